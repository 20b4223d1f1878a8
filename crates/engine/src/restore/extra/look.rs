//! What is in something that is only in the target, and whether all of it may go.

use std::collections::HashSet;
use std::io;
use std::os::unix::fs::MetadataExt;

use holdall_format::REPOSITORY_MARKER;
use holdall_sys::{FileKind, Listing, Name, Stat, TargetDir};

use super::{DeleteIn, Extra, MOST, Place, Seen, joined, place_of};
use crate::restore::Selected;
use crate::{EngineError, Run};

/// Folders in each other that are entered; what lies deeper stays.
const DEPTH_MOST: usize = 200;
/// What a server's data folder has.
const SERVER_DATABASE: &[u8] = b"server.redb";
/// What a file system puts into its top folder.
const LOST_AND_FOUND: &[u8] = b"lost+found";

const OF_REPOSITORY: &str = "it is a repository, or a server's data";
const NAMED: &str = "it is holdall's own";
const MOUNTED: &str = "it is another file system";
const DEEP: &str = "it lies too deep";

/// Looks at things.
pub(super) struct Look<'a> {
    within: &'a DeleteIn<'a>,
    run: &'a Run,
    /// Folders that stay, by device and inode.
    keep: HashSet<(u64, u64)>,
    items: u64,
}

/// What was found of one thing: itself, if all of it may go, else what may go of what is in it.
pub(super) struct Looked {
    pub(super) extras: Vec<Extra>,
    /// What was seen, if all of it may go.
    pub(super) whole: Option<Seen>,
}

impl Looked {
    fn nothing() -> Self {
        Self { extras: Vec::new(), whole: None }
    }
}

/// Whether a folder with these names is a repository, or a server's data.
pub(super) fn is_repository(names: &Listing) -> bool {
    names.iter().any(|one| is_mark(one.name().as_bytes()))
}

/// Whether a folder that has something of that name is one.
pub(super) fn is_mark(name: &[u8]) -> bool {
    name == REPOSITORY_MARKER.as_bytes() || name == SERVER_DATABASE
}

impl<'a> Look<'a> {
    pub(super) fn new(within: &'a DeleteIn<'a>, run: &'a Run) -> Self {
        let folder = |path: &std::path::PathBuf| {
            path.metadata().ok().map(|found| (found.dev(), found.ino()))
        };
        Self { within, run, keep: within.keep.iter().filter_map(folder).collect(), items: 0 }
    }

    /// Whether a folder stays since it was named, with all that is in it.
    pub(super) fn is_kept(&self, below: &[u8]) -> bool {
        let found = self.place_of_path(below).metadata();
        found.is_ok_and(|found| self.keep.contains(&(found.dev(), found.ino())))
    }

    /// Looks at what is called `name` in `dir`. `kept` is told what stays.
    ///
    /// # Errors
    /// [`EngineError::Path`] if there is too much; [`EngineError::Interrupted`]; [`EngineError::Io`] if a folder cannot be
    /// read.
    pub(super) fn at(
        &mut self,
        (dir, place): (&TargetDir, Place),
        name: Name<'_>,
        (below, path): (Vec<u8>, Vec<u8>),
        depth: usize,
        kept: &mut Vec<(Vec<u8>, &'static str)>,
    ) -> Result<Looked, EngineError> {
        self.run.check()?;
        self.count()?;
        // What is gone by now is nobody's business.
        let Ok(there) = dir.as_dir().stat(name) else { return Ok(Looked::nothing()) };
        let is_dir = there.kind == FileKind::Dir;
        if !self.is_chosen(&path, is_dir) {
            return Ok(Looked::nothing());
        }
        let stays = match () {
            () if place_of(&there) != place => Some(MOUNTED),
            () if depth == DEPTH_MOST => Some(DEEP),
            () if is_dir && self.is_kept(&below) => Some(NAMED),
            () if name.as_bytes() == LOST_AND_FOUND => Some(MOUNTED),
            () => None,
        };
        if let Some(why) = stays {
            kept.push((below, why));
            return Ok(Looked::nothing());
        }
        if !is_dir {
            return Ok(whole(Extra::of(below, path, &there)));
        }
        let opened = dir.open_dir(name).and_then(|dir| Ok((dir.as_dir().entries()?, dir)));
        let (names, dir) = opened.map_err(|error| self.cannot_list(&below, error))?;
        if is_repository(&names) {
            kept.push((below, OF_REPOSITORY));
            return Ok(Looked::nothing());
        }
        let mut extra = Extra::of(below, path, &there);
        let (mut all_go, mut parts) = (true, Vec::new());
        for entry in names.iter() {
            let name = entry.name();
            let below = joined(&extra.below, name.as_bytes());
            let path = [&extra.path[..], b"/", name.as_bytes()].concat();
            let looked = self.at((&dir, place), name, (below, path), depth + 1, kept)?;
            parts.extend(looked.extras);
            match looked.whole {
                Some(seen) => extra.seen.add(&seen),
                None => all_go = false,
            }
        }
        Ok(if all_go { whole(extra) } else { Looked { extras: parts, whole: None } })
    }

    fn place_of_path(&self, below: &[u8]) -> std::path::PathBuf {
        use std::os::unix::ffi::OsStrExt;
        self.within.target.join(std::ffi::OsStr::from_bytes(below))
    }

    fn cannot_list(&self, below: &[u8], error: io::Error) -> EngineError {
        EngineError::io(format!("listing {}", self.place_of_path(below).display()), error)
    }

    /// Whether something is to go by what is chosen: nothing that is only on the way to what is wanted is.
    fn is_chosen(&self, path: &[u8], is_dir: bool) -> bool {
        let select = self.within.options.select.as_ref();
        select.is_none_or(|select| select(path, is_dir) == Selected::Yes)
    }

    fn count(&mut self) -> Result<(), EngineError> {
        self.items += 1;
        match self.items > MOST {
            false => Ok(()),
            true => Err(EngineError::Path {
                path: self.within.target.display().to_string(),
                reason: format!(
                    "it has over {MOST} things that are not in the snapshot: is it the right folder?"
                ),
            }),
        }
    }
}

fn whole(extra: Extra) -> Looked {
    let seen = extra.seen;
    Looked { extras: vec![extra], whole: Some(seen) }
}

impl Extra {
    fn of(below: Vec<u8>, path: Vec<u8>, there: &Stat) -> Self {
        let seen = Seen {
            place: place_of(there),
            inode: there.inode,
            items: 1,
            newest_change: there.ctime.max(there.mtime),
        };
        Self { below, is_dir: there.kind == FileKind::Dir, path, seen }
    }
}

impl Seen {
    /// Adds what was seen of something in it.
    fn add(&mut self, other: &Self) {
        self.items += other.items;
        self.newest_change = self.newest_change.max(other.newest_change);
    }
}
