//! Making a repository, and reading what it says of itself.

use std::fs::{self, OpenOptions};
use std::io;

use bytes::Bytes;
use holdall_format::RepositoryConfig;
use holdall_protocol::{NewRepository, RepositoryError};
use holdall_sys::lock as file_lock;

use crate::layout::{Layout, MARKER_TEXT};
use crate::pack_file::damaged;
use crate::publish::{Published, failed, make_dir, names_in, publish, read_limited, replace};
use crate::wrappings::SignedSet;

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
            RepositoryConfig::decode_signed(&bytes).map_err(|error| damaged(&path, error))?;
        let wrappings = SignedSet::newest(layout, &config)?;
        Ok(Self { config, config_bytes: bytes.into(), wrappings })
    }
}

/// Checks that there is a repository of a version that this program knows.
pub(crate) fn check_marker(layout: &Layout) -> Result<(), RepositoryError> {
    let path = layout.marker();
    match read_limited(&path, 4096) {
        Ok(Some(text)) if text == MARKER_TEXT.as_bytes() => Ok(()),
        Ok(Some(_)) => Err(damaged(&path, "it is not of a version that this program reads")),
        Ok(None) => Err(layout.no_repository()),
        Err(RepositoryError::Io { source, .. })
            if source.kind() == io::ErrorKind::NotADirectory =>
        {
            Err(layout.no_repository())
        }
        Err(error) => Err(error),
    }
}

/// Makes a repository. The marker comes last: without it there is none, and what an earlier attempt
/// left is replaced.
pub(crate) fn create(layout: &Layout, new: &NewRepository) -> Result<(), RepositoryError> {
    let config = RepositoryConfig::decode_signed(&new.config)?;
    let wrappings = SignedSet::check(&new.wrappings, &config)?;
    fs::create_dir_all(layout.root()).map_err(failed("making", layout.root()))?;
    if layout.marker().exists() {
        return Err(RepositoryError::AlreadyExists { place: layout.place() });
    }
    refuse_other_content(layout)?;
    let path = layout.lock();
    let lock = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(failed("making", &path))?;
    if !file_lock::try_exclusive(&lock).map_err(failed("locking", &path))? {
        return Err(RepositoryError::InUse { place: layout.place() });
    }
    layout.folders().iter().try_for_each(|folder| make_dir(folder))?;
    let tmp = layout.tmp();
    replace(&tmp, &layout.config(), &new.config)?;
    replace(&tmp, &layout.wrappings_of(wrappings.set.generation), &new.wrappings)?;
    match publish(&tmp, &layout.marker(), MARKER_TEXT.as_bytes())? {
        Published::New => Ok(()),
        Published::Existed => Err(RepositoryError::AlreadyExists { place: layout.place() }),
    }
}

/// A repository is not made among files of somebody else.
fn refuse_other_content(layout: &Layout) -> Result<(), RepositoryError> {
    let mut ours: Vec<_> = layout.folders().to_vec();
    ours.extend([layout.config(), layout.lock()]);
    ours.push(layout.root().join("lost+found"));
    for name in names_in(layout.root())? {
        let path = layout.root().join(&name);
        if !ours.contains(&path) {
            let reason = format!(
                "{} is neither empty nor a repository: it has {}",
                layout.place(),
                name.display()
            );
            return Err(RepositoryError::Refused { reason });
        }
    }
    Ok(())
}
