//! What never goes, wherever it lies: repositories, data of servers, and what holdall keeps for anybody. Each is known by
//! the names in it, several of which must be there, since a marker alone may be lost.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use holdall_format::{CONFIG_FILE, REPOSITORY_MARKER};

use super::DeleteIn;
use crate::EngineError;

/// What a server's data folder has.
const SERVER_DATABASE: &str = "server.redb";
/// Names that all repositories have.
const OF_REPOSITORIES: [&str; 6] = [CONFIG_FILE, "wrappings", "spare", "packs", "records", "tails"];
const REPOSITORY_LEAST: usize = 3;
/// What holdall keeps for a user.
const OF_USERS: [&str; 7] =
    ["identity.json", "pairings.json", "keys", "clear-parts", "directories", "receipts", "filled"];
const USER_LEAST: usize = 2;

const REPOSITORY: &str = "it is a repository, or a server's data";
pub(super) const OWN: &str = "it is holdall's own";

/// Why a folder stays with all that is in it, by the names that are there.
pub(super) fn guarded_by<'n>(names: impl Iterator<Item = &'n [u8]>) -> Option<&'static str> {
    let (mut is_marked, mut of_repository, mut of_user) = (false, 0, 0);
    for name in names {
        let is_one_of = |known: &[&str]| known.iter().any(|known| known.as_bytes() == name);
        is_marked |= is_one_of(&[REPOSITORY_MARKER, SERVER_DATABASE]);
        of_repository += usize::from(is_one_of(&OF_REPOSITORIES));
        of_user += usize::from(is_one_of(&OF_USERS));
    }
    match () {
        () if is_marked || of_repository >= REPOSITORY_LEAST => Some(REPOSITORY),
        () if of_user >= USER_LEAST => Some(OWN),
        () => None,
    }
}

/// Folders and files that the caller names, by device and inode.
pub(super) struct Named(HashSet<(u64, u64)>);

impl Named {
    pub(super) fn of(paths: &[PathBuf]) -> Self {
        let of = |path: &PathBuf| path.metadata().ok().map(|found| (found.dev(), found.ino()));
        Self(paths.iter().filter_map(of).collect())
    }

    /// Whether it is one of these, or a link to one.
    pub(super) fn has(&self, path: &Path) -> bool {
        path.metadata().is_ok_and(|found| self.0.contains(&(found.dev(), found.ino())))
    }
}

impl DeleteIn<'_> {
    /// Refuses a target that is a link, or lies in what never goes.
    ///
    /// # Errors
    /// [`EngineError::Path`].
    pub(super) fn check_target(&self, named: &Named) -> Result<(), EngineError> {
        let refused = |reason: String| {
            let path = self.target.display().to_string();
            Err(EngineError::Path { path, reason })
        };
        // With a slash at its end it would lead over a link.
        let target: PathBuf = self.target.components().collect();
        if target.is_symlink() {
            return refused("it is a link, and nothing is deleted where one leads".to_owned());
        }
        let Ok(target) = target.canonicalize() else { return Ok(()) };
        for folder in target.ancestors() {
            let known = OF_REPOSITORIES.iter().chain(&OF_USERS);
            let known =
                known.chain(&[REPOSITORY_MARKER, SERVER_DATABASE]).map(|name| name.as_bytes());
            let is_there =
                |name: &&[u8]| folder.join(OsStr::from_bytes(name)).symlink_metadata().is_ok();
            let why = guarded_by(known.filter(is_there));
            if let Some(why) = why.or_else(|| named.has(folder).then_some(OWN)) {
                return refused(format!("nothing is deleted in {}: {why}", folder.display()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_known_without_its_marker_and_a_folder_of_ones_own_is_none() {
        let guarded = |names: &[&str]| guarded_by(names.iter().map(|name| name.as_bytes()));
        assert_eq!(guarded(&["a", REPOSITORY_MARKER]), Some(REPOSITORY));
        assert_eq!(guarded(&[SERVER_DATABASE]), Some(REPOSITORY));
        assert_eq!(guarded(&["packs", "records", "spare"]), Some(REPOSITORY));
        assert_eq!(guarded(&["identity.json", "keys"]), Some(OWN));
        assert_eq!(guarded(&["config", "records", "keys", "a"]), None);
    }
}
