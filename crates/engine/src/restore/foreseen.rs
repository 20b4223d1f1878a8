//! What a dry run finds at the target: which entries would be kept as they are there.

use std::io;
use std::path::Path;

use holdall_sys::{FileKind, Name, TargetDir};
use holdall_tree::Entry;

use super::Overwrite;
use super::unfinished::is_unfinished;

/// The target as it is.
#[derive(Default)]
pub(super) struct Foreseen {
    /// Nothing where it is not there.
    root: Option<TargetDir>,
    /// The directory that was looked into last, with its path below the target; nothing where there is none.
    last: Option<(Vec<u8>, Option<TargetDir>)>,
}

impl Foreseen {
    pub(super) fn at(target: &Path) -> Self {
        Self { root: TargetDir::open_root(target).ok(), last: None }
    }

    /// Whether what is at a path below the target would stay.
    pub(super) fn keeps(&mut self, path: &[u8], entry: &Entry, overwrite: Overwrite) -> bool {
        let (dir, name) = match path.iter().rposition(|&byte| byte == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&b""[..], path),
        };
        if self.last.as_ref().is_none_or(|(known, _)| known != dir) {
            self.last = Some((dir.to_vec(), self.open(dir).ok().flatten()));
        }
        let dir = match &self.last {
            Some((path, _)) if path.is_empty() => self.root.as_ref(),
            Some((_, dir)) => dir.as_ref(),
            None => None,
        };
        let stat = |dir: &TargetDir| dir.as_dir().stat(Name::new(name).ok()?).ok();
        dir.and_then(stat).is_some_and(|there| {
            let is_left = there.kind != FileKind::Dir && is_unfinished(&there);
            !is_left && !overwrite.replaces(&there, entry)
        })
    }

    fn open(&self, path: &[u8]) -> io::Result<Option<TargetDir>> {
        let Some(root) = &self.root else { return Ok(None) };
        let mut at: Option<TargetDir> = None;
        for name in path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
            at = Some(at.as_ref().unwrap_or(root).open_dir(Name::new(name)?)?);
        }
        Ok(at)
    }
}
