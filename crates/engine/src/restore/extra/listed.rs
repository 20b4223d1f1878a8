//! What was listed, each item as it was then, in eight bytes: a million of them take little memory.
//!
//! A number stands for where an item is and what it was, keyed by chance, so that no other item has it but by a chance of one
//! in 10^13 for a million of them.

use std::collections::HashSet;
use std::hash::BuildHasher;
use std::hash::RandomState;

use holdall_sys::{FileKind, Stat, Timestamp};

/// What was listed.
#[derive(Debug, Default)]
pub(super) struct Listed {
    key: RandomState,
    items: HashSet<u64>,
}

impl Listed {
    /// Adds what is at a path below the target.
    pub(super) fn add(&mut self, below: &[u8], there: &Stat) {
        let changed = (there.nlink == 1).then_some(there.ctime);
        self.items.insert(self.number_of(below, there, changed));
    }

    /// Whether what is there now is what was listed. Of a folder it is that folder, whatever is in it.
    pub(super) fn has(&self, below: &[u8], there: &Stat) -> bool {
        // One that had other names is another one's too: that these go or come is no change of its content.
        let known = |changed| self.items.contains(&self.number_of(below, there, changed));
        known(Some(there.ctime)) || known(None)
    }

    fn number_of(&self, below: &[u8], there: &Stat, changed: Option<Timestamp>) -> u64 {
        let state = match there.kind {
            FileKind::Dir => None,
            _ => Some((there.size, there.mtime, changed)),
        };
        let place = (there.device, there.mount_id, there.inode);
        self.key.hash_one((below, there.kind, place, state))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use holdall_sys::{Name, TargetDir};

    use super::*;

    fn stat(dir: &Path, name: &str) -> Stat {
        let dir = TargetDir::open_root(dir).unwrap();
        dir.as_dir().stat(Name::new(name.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn what_is_another_file_or_changed_was_not_listed() {
        let folder = tempfile::tempdir().unwrap();
        let mut listed = Listed::default();
        let at = |name: &str| folder.path().join(name);
        for name in ["file", "other", "linked"] {
            fs::write(at(name), "as it was").unwrap();
        }
        fs::create_dir(at("dir")).unwrap();
        fs::hard_link(at("linked"), at("twin")).unwrap();
        for name in ["file", "linked", "twin", "dir"] {
            listed.add(name.as_bytes(), &stat(folder.path(), name));
        }
        let has = |name: &str| listed.has(name.as_bytes(), &stat(folder.path(), name));
        assert!(has("file") && has("linked") && has("dir") && !has("other"));
        // A folder is itself whatever comes into it, and a file is whatever other names it loses.
        fs::write(at("dir/new"), "new").unwrap();
        fs::remove_file(at("linked")).unwrap();
        assert!(has("dir") && has("twin"));
        fs::write(at("file"), "changed").unwrap();
        fs::write(at("twin"), "changed").unwrap();
        assert!(!has("file") && !has("twin"));
        fs::rename(at("other"), at("linked")).unwrap();
        assert!(!has("linked"));
    }
}
