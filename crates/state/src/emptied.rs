//! Sources that were empty at the last backup and had something before, such as a disk that is not mounted. The next
//! backup cannot see this in the snapshot before, so the state folder keeps it.
//!
//! Each repository has a file with a JSON list of paths. A backup only uses it to say more, so it treats a file that it cannot
//! read as one that is missing.

use std::path::{Path, PathBuf};

use holdall_engine::Source;

use crate::error::StateError;
use crate::private_file;

const LIMIT_BYTES: u64 = 64 << 20;

/// The sources that became empty, of one repository.
pub struct Emptied {
    file: PathBuf,
    paths: Vec<Vec<u8>>,
}

impl Emptied {
    /// Those in a state folder.
    pub fn in_state(state: &Path, repository: &str) -> Self {
        let file = state.join("emptied").join(repository);
        let read = private_file::read(&file, LIMIT_BYTES).ok().flatten();
        let paths = read.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        Self { file, paths }
    }

    /// Where they are recorded.
    pub fn paths(&self) -> &[Vec<u8>] {
        &self.paths
    }

    /// Keeps which of these sources are empty now; of others, what is known stays.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(mut self, sources: &[Source], emptied: Vec<Vec<u8>>) -> Result<(), StateError> {
        let mut paths = self.paths.clone();
        paths.retain(|path| sources.iter().all(|source| source.path != *path));
        paths.extend(emptied);
        paths.sort();
        if paths == self.paths {
            return Ok(());
        }
        self.paths = paths;
        private_file::replace(&self.file, &serde_json::to_vec(&self.paths)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_empty_is_known_until_it_has_something_again() {
        let folder = tempfile::tempdir().unwrap();
        let known = || Emptied::in_state(folder.path(), "one");
        let source = |path: &[u8]| Source { path: path.to_vec(), read_at: path.to_vec() };
        let [disk, other] = [&b"/disk\xff"[..], b"/other"];
        known().keep(&[source(disk)], vec![disk.to_vec()]).unwrap();
        known().keep(&[source(other)], vec![other.to_vec()]).unwrap();
        assert_eq!(known().paths(), [disk, other]);
        assert!(Emptied::in_state(folder.path(), "two").paths().is_empty());
        known().keep(&[source(disk)], vec![]).unwrap();
        assert_eq!(known().paths(), [other]);
    }
}
