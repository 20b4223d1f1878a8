//! Removing what was listed, beneath the target and nowhere else.
//!
//! Each item is looked at right before it goes, and goes only if it is what was listed. A folder goes once nothing is in it,
//! so that what came meanwhile stays, and the folders that it is in.

use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;

use holdall_sys::{FileKind, Name, TargetDir};

use super::{DeleteIn, Extra, Extras, Listed, joined};
use crate::restore::below::{self, LastBelow};
use crate::{EngineError, Run};

const CHANGED: &str = "it changed since it was listed, and stays";
const CHANGED_WITHIN: &str = "something in it changed since it was listed, and stays";

impl DeleteIn<'_> {
    /// Removes what was listed, as far as it is as it was then, and gives how many files, folders and all else that were. What
    /// stays is noted with [`Run::problem`], and the rest goes on. What is gone by then is no problem.
    ///
    /// # Errors
    /// [`EngineError::Io`] if the target cannot be opened; [`EngineError::Interrupted`]: what was removed until then is gone.
    pub fn remove(&self, found: &Extras, run: &Run) -> Result<u64, EngineError> {
        let root = self.open().map_err(self.opening())?;
        let listed = &found.listed;
        let mut removing =
            Removing { within: self, run, listed, removed: 0, failed: 0, is_changed: false };
        let mut last = LastBelow::default();
        for extra in &found.extras {
            let (folder, name) = below::split(&extra.below);
            match last.open(&root, folder).and_then(|dir| Ok((dir, Name::new(name)?))) {
                Ok((dir, name)) => removing.top(dir, name, extra)?,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => removing.failed(&extra.below, &error),
            }
        }
        Ok(removing.removed)
    }
}

struct Removing<'a> {
    within: &'a DeleteIn<'a>,
    run: &'a Run,
    listed: &'a Listed,
    removed: u64,
    failed: u64,
    /// Whether something of the extra that is removed now is not as it was listed.
    is_changed: bool,
}

impl Removing<'_> {
    fn top(&mut self, dir: &TargetDir, name: Name<'_>, extra: &Extra) -> Result<(), EngineError> {
        self.is_changed = false;
        self.one(dir, name, &extra.below)?;
        if self.is_changed {
            let path = self.within.shown(&extra.below);
            let what = if extra.is_dir { CHANGED_WITHIN } else { CHANGED };
            self.run.problem(path.as_os_str().as_bytes(), what);
        }
        Ok(())
    }

    /// Removes something, with what was listed in it.
    fn one(&mut self, dir: &TargetDir, name: Name<'_>, below: &[u8]) -> Result<(), EngineError> {
        self.run.check()?;
        let removed = match dir.as_dir().stat(name) {
            Ok(there) if !self.listed.has(below, &there) => {
                self.is_changed = true;
                return Ok(());
            }
            Ok(there) if there.kind == FileKind::Dir => return self.folder(dir, name, below),
            Ok(_) => dir.unlink(name),
            Err(error) => Err(error),
        };
        self.count(removed, below);
        Ok(())
    }

    fn folder(&mut self, dir: &TargetDir, name: Name<'_>, below: &[u8]) -> Result<(), EngineError> {
        let opened = dir
            .open_dir(name)
            .and_then(|inner| Ok((inner.as_dir().stat_self()?, inner.as_dir().entries()?, inner)));
        let (there, names, inner) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.count(Err(error), below);
                return Ok(());
            }
        };
        if !self.listed.has(below, &there) {
            self.is_changed = true;
            return Ok(());
        }
        let failed = self.failed;
        for entry in names.iter() {
            self.one(&inner, entry.name(), &joined(below, entry.name().as_bytes()))?;
        }
        match dir.remove_dir(name) {
            // What of it could not be removed was told.
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
                self.is_changed |= self.failed == failed;
            }
            removed => self.count(removed, below),
        }
        Ok(())
    }

    fn count(&mut self, removed: io::Result<()>, below: &[u8]) {
        match removed {
            Ok(()) => self.removed += 1,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => self.failed(below, &error),
        }
    }

    fn failed(&mut self, below: &[u8], error: &io::Error) {
        self.failed += 1;
        let path = self.within.shown(below);
        self.run.problem(path.as_os_str().as_bytes(), format!("it could not be deleted: {error}"));
    }
}
