//! What a dry run finds at the target: which entries would be kept as they are there.

use std::path::Path;

use holdall_sys::{FileKind, Name, Stat, TargetDir};
use holdall_tree::Entry;

use super::Overwrite;
use super::below::{self, LastBelow};
use super::unfinished::is_unfinished;

/// The target as it is.
#[derive(Default)]
pub(super) struct Foreseen {
    /// Nothing where it is not there.
    target: Option<TargetDir>,
    last: LastBelow,
}

impl Foreseen {
    pub(super) fn at(target: &Path) -> Self {
        Self { target: TargetDir::open_root(target).ok(), last: LastBelow::default() }
    }

    /// Whether what is at a path below the target would stay.
    pub(super) fn keeps(&mut self, path: &[u8], entry: &Entry, overwrite: Overwrite) -> bool {
        self.find(path).is_some_and(|there| {
            let is_left = there.kind != FileKind::Dir && is_unfinished(&there);
            !is_left && !overwrite.replaces(&there, entry)
        })
    }

    fn find(&mut self, path: &[u8]) -> Option<Stat> {
        let (dir, name) = below::split(path);
        let dir = self.last.open(self.target.as_ref()?, dir).ok()?;
        dir.as_dir().stat(Name::new(name).ok()?).ok()
    }
}
