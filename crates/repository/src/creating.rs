//! Making a repository, and reading what it says of itself.

use std::fs::{self, OpenOptions};
use std::io;

use bytes::Bytes;
use holdall_format::limits::{WRAPPING_MAX_BYTES, WRAPPINGS_MAX};
use holdall_format::{PublicKey, RepositoryConfig, RepositoryId, WrappingSet};
use holdall_protocol::{NewRepository, RepositoryError};
use holdall_sys::lock as file_lock;

use crate::layout::{Layout, MARKER_TEXT};
use crate::pack_file::damaged;
use crate::publish::{Published, failed, make_dir, names_in, publish, read_limited, replace};

const CONFIG_MAX_BYTES: u64 = 4 << 10;
const WRAPPINGS_MAX_BYTES: u64 = (WRAPPINGS_MAX * (WRAPPING_MAX_BYTES + 512) + 1024) as u64;

/// What a repository says of itself in clear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClearParts {
    /// The repository's id.
    pub(crate) repository: RepositoryId,
    /// The signed configuration.
    pub(crate) config: Bytes,
    /// The newest signed set of wrappings.
    pub(crate) wrappings: Bytes,
    /// The recovery kit's identity.
    pub(crate) recovery_identity: Option<PublicKey>,
}

impl ClearParts {
    /// Reads and checks the parts; needs no lease, since they are never changed in place.
    pub(crate) fn read(layout: &Layout) -> Result<Self, RepositoryError> {
        check_marker(layout)?;
        let path = layout.config();
        let config = read_limited(&path, CONFIG_MAX_BYTES)?.unwrap_or_default();
        let decoded =
            RepositoryConfig::decode_signed(&config).map_err(|error| damaged(&path, error))?;
        let wrappings = newest_wrappings(layout, &decoded)?;
        Ok(Self {
            repository: decoded.repository,
            config: config.into(),
            wrappings: wrappings.into(),
            recovery_identity: recovery_identity(layout)?,
        })
    }
}

/// The recovery kit's identity, if the repository has one.
pub(crate) fn recovery_identity(layout: &Layout) -> Result<Option<PublicKey>, RepositoryError> {
    check_marker(layout)?;
    let path = layout.recovery_identity();
    let identity = read_limited(&path, PublicKey::LEN as u64)?
        .map(|bytes| <[u8; PublicKey::LEN]>::try_from(&bytes[..]))
        .transpose()
        .map_err(|_| damaged(&path, "it is no public key"))?;
    Ok(identity.map(PublicKey::from_bytes))
}

/// The set of the highest generation that belongs to this repository and owner.
fn newest_wrappings(
    layout: &Layout,
    config: &RepositoryConfig,
) -> Result<Vec<u8>, RepositoryError> {
    let mut newest: Option<(u64, Vec<u8>)> = None;
    for name in names_in(&layout.wrappings())? {
        let path = layout.wrappings().join(name);
        let bytes = read_limited(&path, WRAPPINGS_MAX_BYTES)?.unwrap_or_default();
        let Ok(set) = WrappingSet::decode_signed(&bytes) else { continue };
        let is_ours = set.repository == config.repository && set.owner == config.owner;
        if is_ours && newest.as_ref().is_none_or(|(generation, _)| set.generation > *generation) {
            newest = Some((set.generation, bytes));
        }
    }
    let missing = || damaged(&layout.wrappings(), "no set of wrappings can be read");
    newest.map(|(_, bytes)| bytes).ok_or_else(missing)
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
    let (config, wrappings) = check_parts(new)?;
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
    replace(&tmp, &layout.config(), &config)?;
    let generation = layout.wrappings().join(format!("{:016x}", wrappings.generation));
    replace(&tmp, &generation, &new.wrappings)?;
    if let Some(identity) = &new.recovery_identity {
        replace(&tmp, &layout.recovery_identity(), identity.as_bytes())?;
    }
    match publish(&tmp, &layout.marker(), MARKER_TEXT.as_bytes())? {
        Published::New => Ok(()),
        Published::Existed => Err(RepositoryError::AlreadyExists { place: layout.place() }),
    }
}

fn check_parts(new: &NewRepository) -> Result<(Bytes, WrappingSet), RepositoryError> {
    let config = RepositoryConfig::decode_signed(&new.config)?;
    let wrappings = WrappingSet::decode_signed(&new.wrappings)?;
    if wrappings.repository != config.repository || wrappings.owner != config.owner {
        let reason = "the wrappings are not those of the configuration's repository".into();
        return Err(RepositoryError::Refused { reason });
    }
    Ok((new.config.clone(), wrappings))
}

/// A repository is not made among files of somebody else.
fn refuse_other_content(layout: &Layout) -> Result<(), RepositoryError> {
    let mut ours: Vec<_> = layout.folders().to_vec();
    ours.extend([layout.config(), layout.lock(), layout.recovery_identity()]);
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
