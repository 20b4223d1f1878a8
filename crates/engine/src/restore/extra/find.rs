//! The tree of the snapshot and the folders of the target, joined in the order of their names.

use std::collections::HashSet;
use std::hash::BuildHasher;
use std::io;

use holdall_sys::{Listing, Name, Stat, TargetDir};
use holdall_tree::{Cursor, EntryKind, PathKey};

use super::look::{Look, MOUNTED};
use super::spelling::folded;
use super::{DeleteIn, Extras, joined};
use crate::blocks::Nodes;
use crate::records::snapshot_path::key_of;
use crate::restore::target::Start;
use crate::restore::{beside, mark};
use crate::{EngineError, Run, Snapshot, UnlockedRepository};

const LEFT_OUT: &str = "it is left out";
const SPELLED: &str = "it may be another spelling of what the snapshot has";

impl DeleteIn<'_> {
    /// Finds what is in the target and not in the snapshot, which would be restored there as [`restore`](crate::restore)
    /// does. Nothing where the target is not there, or a single file is restored.
    ///
    /// # Errors
    /// [`EngineError::Path`] if there is too much of it, or of a target that is a link, or lies in what never goes;
    /// [`EngineError::NoPath`]; [`EngineError::Io`] if a folder cannot be listed; what keeps the repository from being read;
    /// [`EngineError::Interrupted`].
    pub fn find(
        &self,
        access: &UnlockedRepository,
        snapshot: &Snapshot,
        path: Option<&[u8]>,
        run: &Run,
    ) -> Result<Extras, EngineError> {
        let look = Look::new(self, run)?;
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
            let sources = sources.filter_map(|source| key_of(source)).collect();
            let mut finder = Finder { look, sources, levels: Vec::new() };
            if !finder.begin(root, &start.top)? {
                return finder.end();
            }
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
    there: Stat,
    key: PathKey,
    /// Its path below the target.
    below: Vec<u8>,
    names: Listing,
    /// The first name that was not met yet.
    next: usize,
    /// Whether it lies in what was backed up.
    is_in_source: bool,
    /// The names that the snapshot does not have, by their places in the listing.
    extra: Vec<usize>,
    /// What the snapshot has by another spelling of its name, by inode.
    spelled: HashSet<u64>,
    /// Names of the snapshot that are not there, [`folded`], as numbers.
    missing: HashSet<u64>,
}

struct Finder<'a> {
    look: Look<'a>,
    sources: Vec<PathKey>,
    levels: Vec<Level>,
}

impl Finder<'_> {
    /// Enters the target itself, unless it lies in what the selection leaves out.
    fn begin(&mut self, root: TargetDir, top: &PathKey) -> Result<bool, EngineError> {
        let mut at = Some(top.clone());
        while let Some(key) = at.filter(|key| !key.is_root()) {
            if !self.look.is_chosen(&key.to_absolute(), true) {
                self.look.found.kept.push((Vec::new(), LEFT_OUT));
                return Ok(false);
            }
            at = key.parent();
        }
        self.enter(root, top.clone(), Vec::new())
    }

    /// Gives whether it is entered.
    fn enter(&mut self, dir: TargetDir, key: PathKey, below: Vec<u8>) -> Result<bool, EngineError> {
        let shown = String::from_utf8_lossy(&below).into_owned();
        let failed = |error| EngineError::io(format!("listing /{shown} in the target"), error);
        let opened =
            dir.as_dir().entries().and_then(|names| Ok((names, dir.as_dir().stat_self()?)));
        let (names, there) = opened.map_err(failed)?;
        let bytes = names.iter().map(|one| one.name().as_bytes());
        if let Some(why) = self.look.why_it_stays(&below, bytes) {
            self.look.found.kept.push((below, why));
            return Ok(false);
        }
        let is_in = |source: &PathKey| *source == key || source.is_ancestor_of(&key);
        let is_in_source = self.sources.iter().any(is_in);
        let (spelled, missing) = (HashSet::new(), HashSet::new());
        let (next, extra) = (0, Vec::new());
        self.levels.push(Level {
            dir,
            there,
            key,
            below,
            names,
            next,
            is_in_source,
            extra,
            spelled,
            missing,
        });
        Ok(true)
    }

    /// Takes an entry of the snapshot. Gives whether its folder was entered.
    fn meet(&mut self, key: &PathKey, is_dir: bool) -> Result<bool, EngineError> {
        while self.levels.last().is_some_and(|level| !level.key.is_ancestor_of(key)) {
            self.leave()?;
        }
        let is_chosen = self.look.is_chosen(&key.to_absolute(), is_dir);
        let Some(level) = self.levels.last_mut() else { return Ok(false) };
        let Ok(name) = Name::new(key.name()) else { return Ok(false) };
        let is_there = level.pass(Some(name.as_bytes()));
        if !is_there && !level.names.is_empty() {
            level.missing.insert(self.look.key.hash_one(folded(name.as_bytes())));
            let Ok(there) = level.dir.as_dir().stat(name) else { return Ok(false) };
            level.spelled.insert(there.inode);
        }
        if !is_dir || !is_chosen {
            return Ok(false);
        }
        // What became a link or a file since is replaced by the restore, or stays.
        let Ok(dir) = level.dir.open_dir(name) else { return Ok(false) };
        let below = joined(&level.below, name.as_bytes());
        let is_here = |there: Stat| there.is_on_mount_of(&level.there);
        if !dir.as_dir().stat_self().is_ok_and(is_here) && !self.sources.contains(key) {
            self.look.found.kept.push((below, MOUNTED));
            return Ok(false);
        }
        self.enter(dir, key.clone(), below)
    }

    fn end(mut self) -> Result<Extras, EngineError> {
        while !self.levels.is_empty() {
            self.leave()?;
        }
        self.look.found.extras.sort_by(|one, other| one.below.cmp(&other.below));
        Ok(self.look.found)
    }

    /// Leaves the innermost folder: now all is known that the snapshot has in it.
    fn leave(&mut self) -> Result<(), EngineError> {
        let is_top = self.levels.len() == 1;
        let Some(mut level) = self.levels.pop() else { return Ok(()) };
        level.pass(None);
        if !level.is_in_source {
            return Ok(());
        }
        for name in level.extra.iter().filter_map(|at| level.names.get(*at)).map(|one| one.name()) {
            let bytes = name.as_bytes();
            // What a restore that was killed left goes when the next one comes there.
            let is_ours = (is_top && bytes == mark::NAME) || beside::is_beside(bytes);
            let Ok(key) = level.key.child(bytes) else { continue };
            let inode = level.dir.as_dir().stat(name).map(|there| there.inode);
            if is_ours || inode.is_ok_and(|inode| level.spelled.contains(&inode)) {
                continue;
            }
            let below = joined(&level.below, bytes);
            if level.missing.contains(&self.look.key.hash_one(folded(bytes))) {
                self.look.found.kept.push((below, SPELLED));
                continue;
            }
            self.look.note((&level.dir, &level.there), name, (below, key.to_absolute()))?;
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
