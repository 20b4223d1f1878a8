//! What a dry run finds at the target: which entries would be kept as they are there.

use std::path::Path;

use holdall_sys::{Name, Stat, TargetDir};
use holdall_tree::Entry;

use super::below::{self, LastBelow};
use super::context::Context;
use super::place::is_kept;

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
    pub(super) fn keeps(&mut self, path: &[u8], entry: &Entry, context: &Context<'_>) -> bool {
        self.find(path)
            .is_some_and(|(dir, name, there)| is_kept(context, dir.as_dir(), name, &there, entry))
    }

    fn find<'p>(&mut self, path: &'p [u8]) -> Option<(&TargetDir, Name<'p>, Stat)> {
        let (dir, name) = below::split(path);
        let (dir, name) = (self.last.open(self.target.as_ref()?, dir).ok()?, Name::new(name).ok()?);
        Some((dir, name, dir.as_dir().stat(name).ok()?))
    }
}
