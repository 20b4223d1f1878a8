//! Which directories are those of the repository that is backed up to: each backup would store again what the ones
//! before stored, and read what changes meanwhile.
//!
//! Such a directory has the configuration that the repository's owner signed, as it is there. On a server it is
//! `repositories/NAME` in the data folder, and `cache/NAME` has what the server derives from it, which changes as
//! often.

use std::io::Read;

use holdall_format::{CONFIG_FILE, REPOSITORY_MARKER, RepositoryConfig};
use holdall_sys::{Dir, Listing, Name};

use crate::filter::exclude::has_name;

/// More than any configuration has.
const CONFIG_MAX_BYTES: u64 = 4096;
/// Where a server's data folder has its repositories, and what is derived from them.
const REPOSITORIES: &[u8] = b"repositories";
const CACHE: &[u8] = b"cache";

/// Whether a directory with these names may be a repository's.
pub(super) fn may_be(names: &Listing) -> bool {
    has_name(names, REPOSITORY_MARKER.as_bytes())
}

/// Whether a directory is that repository's.
pub(super) fn is(dir: &Dir, names: &Listing, own: &RepositoryConfig) -> bool {
    may_be(names) && configuration(dir).is_some_and(|config| config == *own)
}

/// Whether what is called `name`, in a directory called `above` of a folder with these names, is what a server derives
/// from that repository.
pub(super) fn is_cache(
    folder: &Dir,
    names: &Listing,
    above: &[u8],
    name: &[u8],
    own: &RepositoryConfig,
) -> bool {
    if above != CACHE || !has_name(names, REPOSITORIES) {
        return false;
    }
    let child = |dir: &Dir, name| dir.open_child(Name::new(name).ok()?).ok();
    let beside = child(folder, REPOSITORIES).and_then(|all| child(&all, name));
    let config = beside.and_then(|dir| configuration(&dir));
    config.is_some_and(|config| config == *own)
}

/// The signed configuration in a directory, if there is a whole one.
fn configuration(dir: &Dir) -> Option<RepositoryConfig> {
    let (file, _) = dir.open_file(Name::new(CONFIG_FILE.as_bytes()).ok()?).ok()?;
    let mut bytes = Vec::new();
    file.take(CONFIG_MAX_BYTES).read_to_end(&mut bytes).ok()?;
    RepositoryConfig::decode_signed(&bytes).ok()
}
