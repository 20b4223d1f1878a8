//! Making a repository, and reading what it says of itself.

use std::ffi::OsString;
use std::io;

use bytes::Bytes;
use holdall_format::{FormatError, RepositoryConfig};
use holdall_protocol::{NewRepository, RepositoryError};
use holdall_sys::PathBeneath;

use crate::layout::{Layout, MARKER_FRONT, MARKER_TEXT, number_of};
use crate::lease::Lease;
use crate::pack_file::unreadable;
use crate::probing::probe;
use crate::publish::{
    PRIVATE_DIR_MODE, Published, damaged, is_there, make_name, make_private_dirs, names_in,
    publish, read_limited, replace, sync_folder,
};
use crate::store::Access;
use crate::wrappings::SignedSet;

/// What is wrong where records lie and no marker does.
const MARKER_LOST: &str = "it is missing, and there are backups beside it: put it back, with the \
                           line `holdall repository, version 1`";
const CONFIG_MAX_BYTES: u64 = 4 << 10;

/// What a repository says of itself in clear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClearParts {
    /// The configuration.
    pub(crate) config: RepositoryConfig,
    /// Its bytes as they were signed.
    pub(crate) config_bytes: Bytes,
    /// The newest set of wrappings.
    pub(crate) wrappings: SignedSet,
}

impl ClearParts {
    /// Reads and checks the parts; needs no lease, since no file is changed in place.
    pub(crate) fn read(layout: &Layout) -> Result<Self, RepositoryError> {
        check_marker(layout)?;
        let path = layout.config();
        let bytes = read_limited(&path, CONFIG_MAX_BYTES)?.unwrap_or_default();
        let config =
            RepositoryConfig::decode_signed(&bytes).map_err(|error| unreadable(&path, &error))?;
        let wrappings = SignedSet::newest(layout, &config)?;
        Ok(Self { config, config_bytes: bytes.into(), wrappings })
    }
}

/// Checks that there is a repository of a version that this program knows.
pub(crate) fn check_marker(layout: &Layout) -> Result<(), RepositoryError> {
    let path = layout.marker();
    match read_limited(&path, 4096) {
        Ok(Some(text)) if text == MARKER_TEXT.as_bytes() => Ok(()),
        Ok(Some(text)) => Err(unknown_marker(&path, &text)),
        Ok(None) if holds_records(layout)? => Err(damaged(&path, MARKER_LOST)),
        Ok(None) => Err(layout.no_repository()),
        Err(RepositoryError::Io { source, .. })
            if source.kind() == io::ErrorKind::NotADirectory =>
        {
            Err(layout.no_repository())
        }
        Err(error) => Err(error),
    }
}

/// Whether somebody's backups are there, with a marker or without.
fn holds_records(layout: &Layout) -> Result<bool, RepositoryError> {
    let is_record = |name: &OsString| name.to_str().is_some_and(|name| number_of(name).is_some());
    match names_in(&layout.records()) {
        Ok(names) => Ok(names.iter().any(is_record)),
        // What is no directory holds none.
        Err(RepositoryError::Damaged { .. }) => Ok(false),
        Err(RepositoryError::Io { source, .. })
            if source.kind() == io::ErrorKind::NotADirectory =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Tells a version that is to come from a marker that says nothing.
fn unknown_marker(path: &PathBeneath, text: &[u8]) -> RepositoryError {
    let version = text.strip_prefix(MARKER_FRONT.as_bytes());
    let version = version.and_then(|version| std::str::from_utf8(version).ok());
    match version.and_then(|version| version.trim_end().parse().ok()) {
        Some(found) => {
            let what = "the repository";
            unreadable(path, &FormatError::UnsupportedVersion { what, found, supported: 1 })
        }
        None => damaged(path, "it does not say which version the repository has"),
    }
}

/// Makes a repository. The marker comes last: without it there is none, and what an earlier attempt
/// left is replaced.
pub(crate) fn create(layout: &Layout, new: &NewRepository) -> Result<(), RepositoryError> {
    let config = RepositoryConfig::decode_signed(&new.config)?;
    let wrappings = SignedSet::check(&new.wrappings, &config)?;
    make_private_dirs(layout.root().path())?;
    refuse_if_used(layout)?;
    refuse_other_content(layout)?;
    let lease = Lease::take(layout, Access::Write)?;
    // Somebody may have made one, and used it, before the lease was taken.
    refuse_if_used(layout)?;
    layout.folders().iter().try_for_each(|dir| make_name(dir, PRIVATE_DIR_MODE))?;
    sync_folder(layout.root())?;
    probe(layout)?;
    let tmp = layout.tmp();
    lease.renew()?;
    replace(&tmp, &layout.config(), &new.config)?;
    replace(&tmp, &layout.wrappings_of(wrappings.set.generation), &new.wrappings)?;
    lease.renew()?;
    match publish(&tmp, &layout.marker(), MARKER_TEXT.as_bytes())? {
        Published::New => Ok(()),
        Published::Existed => Err(RepositoryError::AlreadyExists { place: layout.place() }),
    }
}

/// A repository is not made where there is one.
fn refuse_if_used(layout: &Layout) -> Result<(), RepositoryError> {
    if is_there(&layout.marker())? {
        return Err(RepositoryError::AlreadyExists { place: layout.place() });
    }
    if holds_records(layout)? {
        // Another configuration and other keys in place of theirs would lose them.
        return Err(damaged(&layout.marker(), MARKER_LOST));
    }
    Ok(())
}

/// A repository is not made among files of somebody else.
fn refuse_other_content(layout: &Layout) -> Result<(), RepositoryError> {
    let mut ours: Vec<_> = layout.folders().to_vec();
    ours.extend([layout.config(), layout.lock(), layout.lease(), layout.probes()]);
    ours.push(layout.root().join("lost+found"));
    for name in names_in(layout.root())? {
        let path = layout.root().join(&name);
        if !ours.contains(&path) {
            let reason = format!(
                "{} is neither empty nor a repository: it has {}; name a folder of its own",
                layout.place(),
                name.display()
            );
            return Err(RepositoryError::Refused { reason });
        }
    }
    Ok(())
}
