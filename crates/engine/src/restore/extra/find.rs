//! The tree of the snapshot and the folders of the target, joined in the order of their names.

use std::io;
use std::path::Path;

use holdall_sys::{FileKind, Listing, Name, Stat, TargetDir};
use holdall_tree::{Cursor, EntryKind, PathKey};

use super::{Extra, Extras, MOST, Place, goes, place_of};
use crate::blocks::Nodes;
use crate::records::snapshot_path::key_of;
use crate::restore::target::Start;
use crate::restore::{RestoreOptions, mark};
use crate::{EngineError, Run, Snapshot, UnlockedRepository};

/// Finds what is in `target` and not in the snapshot, which would be restored there as [`restore`](crate::restore) does.
/// Nothing where the target is not there.
///
/// # Errors
/// [`EngineError::Path`] if there is too much of it; [`EngineError::NoPath`]; [`EngineError::Io`] if a folder cannot be
/// listed; what keeps the repository from being read; [`EngineError::Interrupted`].
pub fn find_extras(
    access: &UnlockedRepository,
    snapshot: &Snapshot,
    path: Option<&[u8]>,
    target: &Path,
    options: &RestoreOptions,
    run: &Run,
) -> Result<Extras, EngineError> {
    let open = match options.in_place {
        true => TargetDir::open_guarded,
        false => TargetDir::open_root,
    };
    let root = match open(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Extras::default()),
        root => {
            root.map_err(|error| EngineError::io(format!("opening {}", target.display()), error))?
        }
    };
    access.reading(|session| {
        let start = Start::find(access, session, snapshot, path)?;
        if start.only.is_some() {
            return Ok(Extras::default());
        }
        let sources = snapshot.secret.paths.iter().filter_map(|source| key_of(source)).collect();
        let mut finder =
            Finder { target, options, run, sources, levels: Vec::new(), found: Extras::default() };
        finder.enter(root, start.top.clone(), b"")?;
        let mut cursor = Cursor::new(Nodes::open(access, session), snapshot.root);
        cursor.seek(&start.top)?;
        while let Some((key, entry)) = cursor.next()? {
            if key == start.top {
                continue;
            }
            if !start.top.is_ancestor_of(&key) {
                break;
            }
            let is_dir = entry.kind == EntryKind::Directory;
            if !finder.meet(&key, is_dir)? && is_dir {
                cursor.skip_subtree(&key)?;
            }
        }
        finder.leave_all()
    })
}

/// A folder of the target that the cursor is in.
struct Level {
    dir: TargetDir,
    key: PathKey,
    /// Its path below the target.
    below: Vec<u8>,
    place: Place,
    names: Listing,
    /// The first name that was not met yet.
    next: usize,
    /// Whether it lies in what was backed up.
    is_in_source: bool,
}

struct Finder<'a> {
    target: &'a Path,
    options: &'a RestoreOptions,
    run: &'a Run,
    sources: Vec<PathKey>,
    levels: Vec<Level>,
    found: Extras,
}

impl Finder<'_> {
    fn enter(&mut self, dir: TargetDir, key: PathKey, below: &[u8]) -> Result<(), EngineError> {
        let failed = |error| EngineError::io(format!("listing {}", self.shown(below)), error);
        let names = dir.as_dir().entries().map_err(failed)?;
        let place = place_of(&dir.as_dir().stat_self().map_err(failed)?);
        let is_in = |source: &PathKey| *source == key || source.is_ancestor_of(&key);
        let is_in_source = self.sources.iter().any(is_in);
        let below = below.to_vec();
        self.levels.push(Level { dir, key, below, place, names, next: 0, is_in_source });
        Ok(())
    }

    fn shown(&self, below: &[u8]) -> String {
        use std::os::unix::ffi::OsStrExt;
        self.target.join(std::ffi::OsStr::from_bytes(below)).display().to_string()
    }

    /// Takes an entry of the snapshot, and all names before it for extra. Gives whether its folder was entered.
    fn meet(&mut self, key: &PathKey, is_dir: bool) -> Result<bool, EngineError> {
        self.run.check()?;
        while self.levels.last().is_some_and(|level| !level.key.is_ancestor_of(key)) {
            self.leave()?;
        }
        let name = key.name();
        self.take_until(Some(name))?;
        let Some(level) = self.levels.last_mut() else { return Ok(false) };
        let is_there = level.names.get(level.next).is_some_and(|one| one.name().as_bytes() == name);
        level.next += usize::from(is_there);
        if !is_there || !is_dir {
            return Ok(false);
        }
        let Ok(name) = Name::new(name) else { return Ok(false) };
        // What became a link or a file since is replaced by the restore, or stays.
        let Ok(dir) = level.dir.open_dir(name) else { return Ok(false) };
        let below = joined(&level.below, name);
        let there = dir.as_dir().stat_self();
        if there.is_ok_and(|there| place_of(&there) != level.place) && !self.sources.contains(key) {
            self.found.mounts.push(below);
            return Ok(false);
        }
        self.enter(dir, key.clone(), &below)?;
        Ok(true)
    }

    fn leave_all(mut self) -> Result<Extras, EngineError> {
        while !self.levels.is_empty() {
            self.leave()?;
        }
        Ok(self.found)
    }

    fn leave(&mut self) -> Result<(), EngineError> {
        self.take_until(None)?;
        self.levels.pop();
        Ok(())
    }

    /// Takes the names of the innermost folder that come before `end` for extra.
    fn take_until(&mut self, end: Option<&[u8]>) -> Result<(), EngineError> {
        let is_top = self.levels.len() == 1;
        let Some(level) = self.levels.last_mut() else { return Ok(()) };
        while let Some(one) = level.names.get(level.next) {
            let name = one.name();
            if end.is_some_and(|end| name.as_bytes() >= end) {
                break;
            }
            level.next += 1;
            let is_ours = is_top && name.as_bytes() == mark::NAME;
            if !level.is_in_source || is_ours {
                continue;
            }
            // What is gone by now, or cannot be a path of a snapshot, is nobody's business.
            let (Ok(there), Ok(key)) =
                (level.dir.as_dir().stat(name), level.key.child(name.as_bytes()))
            else {
                continue;
            };
            let below = joined(&level.below, name);
            if place_of(&there) != level.place {
                self.found.mounts.push(below);
                continue;
            }
            let extra = Extra::of(key.to_absolute(), below, &there);
            if !goes(self.options.select.as_ref(), &extra.path, extra.is_dir) {
                continue;
            }
            if self.found.extras.len() == MOST {
                return Err(EngineError::Path {
                    path: self.target.display().to_string(),
                    reason: format!(
                        "it has over {MOST} things that are not in the snapshot: is it the right folder?"
                    ),
                });
            }
            self.found.extras.push(extra);
        }
        Ok(())
    }
}

impl Extra {
    fn of(path: Vec<u8>, below: Vec<u8>, there: &Stat) -> Self {
        let is_dir = there.kind == FileKind::Dir;
        Self { path, below, is_dir, place: place_of(there), inode: there.inode }
    }

    /// Whether that is what was listed.
    pub(super) fn is(&self, there: &Stat) -> bool {
        (place_of(there), there.inode, there.kind == FileKind::Dir)
            == (self.place, self.inode, self.is_dir)
    }
}

pub(super) fn joined(below: &[u8], name: Name<'_>) -> Vec<u8> {
    let mut path = below.to_vec();
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name.as_bytes());
    path
}
