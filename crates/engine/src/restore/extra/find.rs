//! The tree of the snapshot and the folders of the target, joined in the order of their names.

use std::collections::HashSet;
use std::io;

use holdall_sys::{Listing, Name, TargetDir};
use holdall_tree::{Cursor, EntryKind, PathKey};

use super::look::{Look, is_mark};
use super::{DeleteIn, Extras, Place, joined, place_of};
use crate::blocks::Nodes;
use crate::records::snapshot_path::key_of;
use crate::restore::mark;
use crate::restore::target::Start;
use crate::{EngineError, Run, Snapshot, UnlockedRepository};

impl DeleteIn<'_> {
    /// Finds what is in the target and not in the snapshot, which would be restored there as [`restore`](crate::restore)
    /// does. Nothing where the target is not there, or a single file is restored.
    ///
    /// # Errors
    /// [`EngineError::Path`] if there is too much of it; [`EngineError::NoPath`]; [`EngineError::Io`] if a folder cannot be
    /// listed; what keeps the repository from being read; [`EngineError::Interrupted`].
    pub fn find(
        &self,
        access: &UnlockedRepository,
        snapshot: &Snapshot,
        path: Option<&[u8]>,
        run: &Run,
    ) -> Result<Extras, EngineError> {
        let root = match self.open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Extras::default()),
            root => root.map_err(self.opening())?,
        };
        access.reading(|session| {
            let start = Start::find(access, session, snapshot, path)?;
            if start.only.is_some() {
                return Ok(Extras::default());
            }
            let sources = snapshot.secret.paths.iter();
            let mut finder = Finder {
                look: Look::new(self, run),
                sources: sources.filter_map(|source| key_of(source)).collect(),
                levels: Vec::new(),
                found: Extras::default(),
            };
            finder.enter(root, start.top.clone(), Vec::new())?;
            let mut cursor = Cursor::new(Nodes::open(access, session), snapshot.root);
            cursor.seek(&start.top)?;
            while let Some((key, entry)) = cursor.next()? {
                if key == start.top {
                    continue;
                }
                if !start.top.is_ancestor_of(&key) {
                    break;
                }
                run.check()?;
                let is_dir = entry.kind == EntryKind::Directory;
                if !finder.meet(&key, is_dir)? && is_dir {
                    cursor.skip_subtree(&key)?;
                }
            }
            finder.end()
        })
    }
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
    /// Whether it lies in what was backed up, and nothing keeps what is in it.
    is_in_source: bool,
    /// Whether it, or a folder above it, stays since it was named.
    is_kept: bool,
    /// The names that the snapshot does not have, by their places in the listing.
    extra: Vec<usize>,
    /// What the snapshot has by another spelling of its name, by inode.
    spelled: HashSet<u64>,
}

struct Finder<'a> {
    look: Look<'a>,
    sources: Vec<PathKey>,
    levels: Vec<Level>,
    found: Extras,
}

impl Finder<'_> {
    fn enter(&mut self, dir: TargetDir, key: PathKey, below: Vec<u8>) -> Result<(), EngineError> {
        let shown = String::from_utf8_lossy(&below).into_owned();
        let failed = |error| EngineError::io(format!("listing /{shown} in the target"), error);
        let opened =
            dir.as_dir().entries().and_then(|names| Ok((names, dir.as_dir().stat_self()?)));
        let (names, there) = opened.map_err(failed)?;
        let is_in = |source: &PathKey| *source == key || source.is_ancestor_of(&key);
        let is_kept =
            self.levels.last().is_some_and(|above| above.is_kept) || self.look.is_kept(&below);
        let is_in_source = self.sources.iter().any(is_in) && !is_kept;
        let (extra, spelled, place) = (Vec::new(), HashSet::new(), place_of(&there));
        self.levels.push(Level {
            dir,
            key,
            below,
            place,
            names,
            next: 0,
            is_in_source,
            is_kept,
            extra,
            spelled,
        });
        Ok(())
    }

    /// Takes an entry of the snapshot. Gives whether its folder was entered.
    fn meet(&mut self, key: &PathKey, is_dir: bool) -> Result<bool, EngineError> {
        while self.levels.last().is_some_and(|level| !level.key.is_ancestor_of(key)) {
            self.leave()?;
        }
        let Some(level) = self.levels.last_mut() else { return Ok(false) };
        let Ok(name) = Name::new(key.name()) else { return Ok(false) };
        let is_there = level.pass(Some(name.as_bytes()));
        if !is_there {
            let Ok(there) = level.dir.as_dir().stat(name) else { return Ok(false) };
            level.spelled.insert(there.inode);
        }
        if !is_dir {
            return Ok(false);
        }
        // What became a link or a file since is replaced by the restore, or stays.
        let Ok(dir) = level.dir.open_dir(name) else { return Ok(false) };
        let below = joined(&level.below, name.as_bytes());
        let is_elsewhere =
            dir.as_dir().stat_self().is_ok_and(|there| place_of(&there) != level.place);
        if is_elsewhere && !self.sources.contains(key) {
            self.found.kept.push((below, "it is another file system"));
            return Ok(false);
        }
        self.enter(dir, key.clone(), below)?;
        Ok(true)
    }

    fn end(mut self) -> Result<Extras, EngineError> {
        while !self.levels.is_empty() {
            self.leave()?;
        }
        self.found.extras.sort_by(|one, other| one.below.cmp(&other.below));
        Ok(self.found)
    }

    /// Leaves the innermost folder: now all is known that the snapshot has in it.
    fn leave(&mut self) -> Result<(), EngineError> {
        let is_top = self.levels.len() == 1;
        let Some(mut level) = self.levels.pop() else { return Ok(()) };
        level.pass(None);
        if !level.is_in_source {
            return Ok(());
        }
        let names = level.extra.iter().filter_map(|at| level.names.get(*at));
        let names: Vec<Name<'_>> = names.map(|one| one.name()).collect();
        // A repository that was begun in a folder of the snapshot.
        if names.iter().any(|name| is_mark(name.as_bytes())) {
            self.found.kept.push((level.below, "it is a repository, or a server's data"));
            return Ok(());
        }
        for name in names {
            let is_ours = is_top && name.as_bytes() == mark::NAME;
            let Ok(key) = level.key.child(name.as_bytes()) else { continue };
            let inode = level.dir.as_dir().stat(name).map(|there| there.inode);
            if is_ours || inode.is_ok_and(|inode| level.spelled.contains(&inode)) {
                continue;
            }
            let paths = (joined(&level.below, name.as_bytes()), key.to_absolute());
            let dir = (&level.dir, level.place);
            let looked = self.look.at(dir, name, paths, 0, &mut self.found.kept)?;
            self.found.extras.extend(looked.extras);
        }
        Ok(())
    }
}

impl Level {
    /// Passes the names before `end`, which the snapshot does not have. Gives whether `end` is the next one, and passes it.
    fn pass(&mut self, end: Option<&[u8]>) -> bool {
        while let Some(one) = self.names.get(self.next) {
            let name = one.name();
            let name = name.as_bytes();
            if end.is_some_and(|end| name >= end) {
                let is_there = Some(name) == end;
                self.next += usize::from(is_there);
                return is_there;
            }
            self.extra.push(self.next);
            self.next += 1;
        }
        false
    }
}
