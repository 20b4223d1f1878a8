//! Removing what was listed, beneath the target and nowhere else.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use holdall_sys::{Name, TargetDir};

use super::find::joined;
use super::{Extra, goes, place_of};
use crate::restore::below::{self, LastBelow};
use crate::restore::{RestoreOptions, Selection};
use crate::{EngineError, Run};

/// Folders in each other that are entered to remove what is in them; what lies deeper stays, and is told.
const DEPTH_MOST: usize = 200;

/// Removes what was listed from the target, and gives how many files, folders and all else that were. What cannot be removed is noted with [`Run::problem`], and the rest goes on.
///
/// # Errors
/// [`EngineError::Io`] if the target cannot be opened; [`EngineError::Interrupted`]: what was removed until then is gone.
pub fn remove_extras(
    extras: &[Extra],
    target: &Path,
    options: &RestoreOptions,
    run: &Run,
) -> Result<u64, EngineError> {
    let open = match options.in_place {
        true => TargetDir::open_guarded,
        false => TargetDir::open_root,
    };
    let opened = open(target);
    let root =
        opened.map_err(|error| EngineError::io(format!("opening {}", target.display()), error))?;
    let mut removing = Removing { target, select: options.select.as_ref(), run, removed: 0 };
    let mut last = LastBelow::default();
    for extra in extras {
        run.check()?;
        let (folder, name) = below::split(&extra.below);
        let dir = match last.open(&root, folder) {
            Ok(dir) => dir,
            Err(error) => {
                removing.failed(&extra.below, &error);
                continue;
            }
        };
        removing.listed(dir, name, extra)?;
    }
    Ok(removing.removed)
}

struct Removing<'a> {
    target: &'a Path,
    select: Option<&'a Selection>,
    run: &'a Run,
    removed: u64,
}

impl Removing<'_> {
    fn failed(&self, below: &[u8], error: &io::Error) {
        let path = self.target.join(std::ffi::OsStr::from_bytes(below));
        self.run.problem(path.as_os_str().as_bytes(), format!("it could not be deleted: {error}"));
    }

    /// Removes something that was listed, if it is still that.
    fn listed(&mut self, dir: &TargetDir, name: &[u8], extra: &Extra) -> Result<(), EngineError> {
        let Ok(name) = Name::new(name) else { return Ok(()) };
        match dir.as_dir().stat(name) {
            Ok(there) if extra.is(&there) => {
                let removed = match extra.is_dir {
                    true => self.folder(dir, name, (&extra.below, &extra.path), 0),
                    false => self.one(dir.unlink(name), &extra.below),
                };
                removed.map(drop)
            }
            // Somebody put something else there, which was not listed.
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => {
                self.failed(&extra.below, &error);
                Ok(())
            }
        }
    }

    /// Counts what was removed, or notes why not. Gives whether it is gone.
    fn one(&mut self, removed: io::Result<()>, below: &[u8]) -> Result<bool, EngineError> {
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

    /// Removes a folder with what is in it and goes by what is chosen. Gives whether it is gone.
    fn folder(
        &mut self,
        above: &TargetDir,
        name: Name<'_>,
        (below, path): (&[u8], &[u8]),
        depth: usize,
    ) -> Result<bool, EngineError> {
        self.run.check()?;
        let opened = above.open_dir(name).and_then(|dir| {
            let (entries, own) = (dir.as_dir().entries()?, dir.as_dir().stat_self()?);
            Ok((dir, entries, place_of(&own)))
        });
        let (dir, entries, place) = match opened {
            Ok(_) if depth == DEPTH_MOST => {
                let error =
                    io::Error::other(format!("it lies more than {DEPTH_MOST} folders deep"));
                return self.one(Err(error), below);
            }
            Ok(opened) => opened,
            Err(error) => return self.one(Err(error), below),
        };
        let mut is_empty = true;
        for entry in entries.iter() {
            let name = entry.name();
            let below = joined(below, name);
            let path = [path, b"/", name.as_bytes()].concat();
            is_empty &= match dir.as_dir().stat(name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => true,
                Err(error) => self.one(Err(error), &below)?,
                Ok(there) if place_of(&there) != place => {
                    let error = io::Error::other("it is another file system");
                    self.one(Err(error), &below)?
                }
                Ok(there) => {
                    let is_dir = there.kind == holdall_sys::FileKind::Dir;
                    match (goes(self.select, &path, is_dir), is_dir) {
                        (false, _) => false,
                        (true, true) => self.folder(&dir, name, (&below, &path), depth + 1)?,
                        (true, false) => self.one(dir.unlink(name), &below)?,
                    }
                }
            };
        }
        match is_empty {
            true => self.one(above.remove_dir(name), below),
            false => Ok(false),
        }
    }
}
