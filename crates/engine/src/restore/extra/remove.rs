//! Removing what was listed, beneath the target and nowhere else.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use holdall_sys::{FileKind, Name, TargetDir};

use super::look::Look;
use super::{DeleteIn, Extra, joined, place_of};
use crate::restore::below::{self, LastBelow};
use crate::{EngineError, Run};

impl DeleteIn<'_> {
    /// Removes what was listed, if it is as it was then, and gives how many files, folders and all else that were. What
    /// cannot be removed is noted with [`Run::problem`], and the rest goes on.
    ///
    /// # Errors
    /// [`EngineError::Io`] if the target cannot be opened; [`EngineError::Interrupted`]: what was removed until then is gone.
    pub fn remove(&self, extras: &[Extra], run: &Run) -> Result<u64, EngineError> {
        let root = self.open().map_err(self.opening())?;
        let mut removing = Removing { target: self.target, run, removed: 0 };
        let mut last = LastBelow::default();
        for extra in extras {
            run.check()?;
            let (folder, name) = below::split(&extra.below);
            let opened = last.open(&root, folder).and_then(|dir| Ok((dir, Name::new(name)?)));
            match opened {
                Ok((dir, name)) if self.is_as_listed(dir, name, extra, run)? => {
                    removing.one(dir, name, &extra.below)?;
                }
                Ok(_) => run.problem(
                    removing.shown(&extra.below).as_os_str().as_bytes(),
                    "it changed since it was listed, and stays",
                ),
                Err(error) => removing.failed(&extra.below, &error),
            }
        }
        Ok(removing.removed)
    }

    fn is_as_listed(
        &self,
        dir: &TargetDir,
        name: Name<'_>,
        extra: &Extra,
        run: &Run,
    ) -> Result<bool, EngineError> {
        let paths = (extra.below.clone(), extra.path.clone());
        let place = (dir, extra.seen.place);
        let now = Look::new(self, run).at(place, name, paths, 0, &mut Vec::new())?;
        Ok(now.whole == Some(extra.seen))
    }
}

struct Removing<'a> {
    target: &'a Path,
    run: &'a Run,
    removed: u64,
}

impl Removing<'_> {
    fn shown(&self, below: &[u8]) -> std::path::PathBuf {
        self.target.join(std::ffi::OsStr::from_bytes(below))
    }

    fn failed(&self, below: &[u8], error: &io::Error) {
        let path = self.shown(below);
        self.run.problem(path.as_os_str().as_bytes(), format!("it could not be deleted: {error}"));
    }

    /// Removes something with all that is in it, on its own file system. Gives whether it is gone.
    fn one(&mut self, dir: &TargetDir, name: Name<'_>, below: &[u8]) -> Result<bool, EngineError> {
        self.run.check()?;
        let removed = match dir.as_dir().stat(name) {
            Err(error) => Err(error),
            Ok(there) if there.kind != FileKind::Dir => dir.unlink(name),
            Ok(there) => {
                match dir.open_dir(name).and_then(|dir| Ok((dir.as_dir().entries()?, dir))) {
                    Err(error) => Err(error),
                    Ok((names, inner)) => {
                        let here = inner.as_dir().stat_self().map(|own| place_of(&own));
                        if here.ok() != Some(place_of(&there)) {
                            self.failed(below, &io::Error::other("it is another file system"));
                            return Ok(false);
                        }
                        for entry in names.iter() {
                            let below = joined(below, entry.name().as_bytes());
                            if !self.one(&inner, entry.name(), &below)? {
                                // It was told why.
                                return Ok(false);
                            }
                        }
                        dir.remove_dir(name)
                    }
                }
            }
        };
        match removed {
            Ok(()) => {
                self.removed += 1;
                Ok(true)
            }
            Err(error) => {
                self.failed(below, &error);
                Ok(false)
            }
        }
    }
}
