//! Sources that had something in them when they were backed up. One that is empty later, such as a disk that is not mounted,
//! is told until it has something again, whatever else is backed up with it.
//!
//! Each repository has a file with a JSON list of paths. A backup only uses it to say more, so it treats a file that it cannot
//! read as one that is missing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use holdall_engine::Source;

use crate::error::StateError;
use crate::private_file;

const LIMIT_BYTES: u64 = 64 << 20;
/// Where sources were kept that had become empty, and no others.
const BEFORE: &str = "emptied";

/// The sources that had something, of one repository.
pub struct FilledSources {
    file: PathBuf,
    paths: BTreeSet<Vec<u8>>,
}

impl FilledSources {
    /// Those in a state folder.
    pub fn in_state(state: &Path, repository: &str) -> Self {
        let in_folder = |folder: &str| state.join(folder).join(repository);
        let read = |file: &Path| private_file::read(file, LIMIT_BYTES).ok().flatten();
        let file = in_folder("filled");
        let read = read(&file).or_else(|| read(&in_folder(BEFORE)));
        let paths = read.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        Self { file, paths }
    }

    /// Where they are recorded.
    pub fn paths(&self) -> &BTreeSet<Vec<u8>> {
        &self.paths
    }

    /// Keeps which of these sources have or had something; of others, what is known stays.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(mut self, sources: &[Source], filled: Vec<Vec<u8>>) -> Result<(), StateError> {
        let mut paths = self.paths.clone();
        for source in sources {
            paths.remove(&source.path);
        }
        paths.extend(filled);
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
    fn what_had_something_is_known_whatever_else_is_backed_up() {
        let folder = tempfile::tempdir().unwrap();
        let known = || FilledSources::in_state(folder.path(), "one");
        let source = |path: &[u8]| Source { path: path.to_vec(), read_at: path.to_vec() };
        let [disk, other] = [&b"/disk\xff"[..], b"/other"];
        known().keep(&[source(disk)], vec![disk.to_vec()]).unwrap();
        known().keep(&[source(other)], vec![other.to_vec()]).unwrap();
        assert_eq!(*known().paths(), BTreeSet::from([disk.to_vec(), other.to_vec()]));
        assert!(FilledSources::in_state(folder.path(), "two").paths().is_empty());
        known().keep(&[source(disk)], vec![]).unwrap();
        assert_eq!(*known().paths(), BTreeSet::from([other.to_vec()]));
    }

    #[test]
    fn what_the_version_before_kept_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let known = || FilledSources::in_state(folder.path(), "one");
        let before = folder.path().join(BEFORE).join("one");
        private_file::replace(&before, b"[[47,100]]").unwrap();
        assert_eq!(*known().paths(), BTreeSet::from([b"/d".to_vec()]));
        known().keep(&[Source { path: b"/d".to_vec(), read_at: b"/d".to_vec() }], vec![]).unwrap();
        assert!(known().paths().is_empty());
    }
}
