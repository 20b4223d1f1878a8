//! Hard links: the first member of a group is made, later ones are linked to it, however far apart
//! they are.
//!
//! A later member may be read when the first is not finished yet, for writers work side by side; it
//! then waits. That cannot deadlock: entries are handed out in order, and only later ones wait for
//! earlier ones. Where each first member lies is kept in a file without a name, for a tree can have
//! millions of groups: in memory each takes 24 bytes.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};

use holdall_tree::{Entry, EntryKind};

use crate::cache::private_folder::{make_nameless, make_private};
use crate::run::lock;

/// A group that an entry was found to belong to, as the place of its path in the spool.
pub(crate) type GroupPlace = u64;

/// Whether an entry is the first of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Membership {
    /// It has one name only, or is a directory.
    None,
    /// It is the one that others will be linked to.
    First(GroupPlace),
    /// It is to be linked.
    Later(GroupPlace),
}

/// Groups by what their members have in common, known to the planner alone.
#[derive(Default)]
pub(crate) struct Groups {
    places: HashMap<[u8; 16], GroupPlace>,
}

impl Groups {
    /// Says what an entry is in its group; `path` is asked for where it is the first.
    pub(crate) fn join(
        &mut self,
        entry: &Entry,
        links: &Links,
        path: impl FnOnce() -> Vec<u8>,
    ) -> io::Result<Membership> {
        if entry.hardlink.is_none() || entry.kind == EntryKind::Directory {
            return Ok(Membership::None);
        }
        let members = in_common(entry);
        if let Some(place) = self.places.get(&members) {
            return Ok(Membership::Later(*place));
        }
        let place = links.begin(&path())?;
        self.places.insert(members, place);
        Ok(Membership::First(place))
    }
}

/// A hash of the group and of what its members have in common. Names of one group that differ in that are no
/// names of one file: it changed while it was read, or went, and another one got its inode.
pub(crate) fn in_common(entry: &Entry) -> [u8; 16] {
    let mut hashing = Hashing(blake3::Hasher::new());
    (entry.hardlink, entry.kind, entry.mode, entry.uid, entry.gid).hash(&mut hashing);
    (entry.mtime, entry.size, &entry.content).hash(&mut hashing);
    let mut members = [0; 16];
    hashing.0.finalize_xof().fill(&mut members);
    members
}

/// Hashes with BLAKE3: what belongs together is for nobody to choose.
struct Hashing(blake3::Hasher);

impl Hasher for Hashing {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Nobody asks for it.
    fn finish(&self) -> u64 {
        0
    }
}

/// What writers know of groups.
pub(crate) struct Links {
    spool: File,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    spool_bytes: u64,
    pending: HashSet<GroupPlace>,
    failed: HashSet<GroupPlace>,
    /// Which member the others are linked to instead of one that failed.
    instead: HashMap<GroupPlace, GroupPlace>,
    /// First members that are whole, and still beside what they replace: their paths there.
    beside: HashMap<GroupPlace, Vec<u8>>,
}

impl Links {
    /// Keeps its file in the folder `cache`, already without a name.
    pub(crate) fn new(cache: &Path, unique: &str) -> io::Result<Self> {
        make_private(cache)?;
        let spool = make_nameless(&cache.join(format!("restore-{unique}")))?;
        Ok(Self { spool, state: Mutex::default(), changed: Condvar::new() })
    }

    fn begin(&self, path: &[u8]) -> io::Result<GroupPlace> {
        self.begin_in(&mut lock(&self.state), path)
    }

    fn begin_in(&self, state: &mut State, path: &[u8]) -> io::Result<GroupPlace> {
        let place = state.spool_bytes;
        let bytes = [&(path.len() as u64).to_le_bytes(), path].concat();
        self.spool.write_all_at(&bytes, place)?;
        state.spool_bytes += bytes.len() as u64;
        state.pending.insert(place);
        Ok(place)
    }

    /// Says that the first member of a group is there, or that it never will be.
    pub(crate) fn first_is_done(&self, membership: Membership, made: bool) {
        let Membership::First(place) = membership else { return };
        let mut state = lock(&self.state);
        state.pending.remove(&place);
        if !made {
            state.failed.insert(place);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Says that the first member of a group is whole, and at another path for now.
    pub(super) fn first_is_beside(&self, membership: Membership, path: Vec<u8>) {
        if let Membership::First(place) = membership {
            lock(&self.state).beside.insert(place, path);
        }
    }

    /// Moves an entry to its own path with `keep`; what comes of it counts if it is the first of a group.
    pub(super) fn keep_first(
        &self,
        membership: Membership,
        keep: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let Membership::First(place) = membership else { return keep() };
        // Held meanwhile: who comes too late for the one path learns the other.
        let mut state = lock(&self.state);
        let kept = keep();
        state.beside.remove(&place);
        if kept.is_err() {
            state.failed.insert(place);
        }
        kept
    }

    /// Says that an entry is not made after all, and takes it away with `remove`.
    pub(super) fn fail_first(&self, membership: Membership, remove: impl FnOnce()) {
        let removed = || {
            remove();
            Err(io::ErrorKind::NotFound.into())
        };
        let _ = self.keep_first(membership, removed);
    }

    /// Whether the first member of a group could not be made, after all.
    pub(super) fn has_failed(&self, membership: Membership) -> bool {
        matches!(membership, Membership::Later(place) if lock(&self.state).failed.contains(&place))
    }

    /// What a later member is now whose first failed: the first of those that follow, unless another one is
    /// already. `None` if the first did not fail.
    pub(super) fn succeed(
        &self,
        place: GroupPlace,
        path: impl FnOnce() -> Vec<u8>,
    ) -> io::Result<Option<Membership>> {
        let mut state = lock(&self.state);
        if !state.failed.contains(&place) {
            return Ok(None);
        }
        if let Some(other) = state.instead.get(&place) {
            return Ok(Some(Membership::Later(*other)));
        }
        let own = self.begin_in(&mut state, &path())?;
        state.instead.insert(place, own);
        Ok(Some(Membership::First(own)))
    }

    /// Waits until the first member is done and gives where it is now, below the target; `None` if it could
    /// not be made.
    pub(crate) fn wait(&self, place: GroupPlace) -> Option<Vec<u8>> {
        let mut state = lock(&self.state);
        while state.pending.contains(&place) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.failed.contains(&place) {
            return None;
        }
        if let Some(path) = state.beside.get(&place) {
            return Some(path.clone());
        }
        drop(state);
        self.read(place).ok()
    }

    fn read(&self, place: GroupPlace) -> io::Result<Vec<u8>> {
        let mut len = [0; 8];
        self.spool.read_exact_at(&mut len, place)?;
        let len = usize::try_from(u64::from_le_bytes(len)).map_err(io::Error::other)?;
        let mut path = vec![0; len];
        self.spool.read_exact_at(&mut path, place + 8)?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_tree::Content;

    fn member(group: u8, content: &[u8]) -> Entry {
        let content = Content::Inline(content.to_vec());
        Entry { hardlink: Some([group; 16]), content, ..Entry::empty(EntryKind::File) }
    }

    #[test]
    fn names_of_a_group_that_differ_are_made_apart() {
        let cache = tempfile::tempdir().unwrap();
        let links = Links::new(cache.path(), "x").unwrap();
        let mut groups = Groups::default();
        let mut is_first = |entry: &Entry| {
            let joined = groups.join(entry, &links, || b"path".to_vec()).unwrap();
            matches!(joined, Membership::First(_))
        };
        let one = member(1, b"one");
        assert!(is_first(&one));
        // What says nothing of the file, or what another reader saw of it, may differ.
        assert!(!is_first(&Entry { inode: 5, unsettled: true, ..one.clone() }));
        assert!(!is_first(&Entry { user: b"ann"[..].into(), ..one.clone() }));
        for other in [
            member(1, b"two"),
            member(2, b"one"),
            Entry { mode: 0o600, ..one.clone() },
            Entry { kind: EntryKind::Symlink, ..one.clone() },
        ] {
            assert!(is_first(&other), "{other:?}");
            assert!(!is_first(&other), "{other:?}");
        }
    }

    #[test]
    fn a_later_member_waits_for_the_first_and_learns_its_path() {
        let cache = tempfile::tempdir().unwrap();
        let links = Links::new(cache.path(), "x").unwrap();
        let mut groups = Groups::default();
        let mut join = |group, path: &str| {
            groups.join(&member(group, b""), &links, || path.as_bytes().to_vec()).unwrap()
        };
        let (one, other) = (join(1, "a/one"), join(2, "b"));
        let Membership::Later(place) = join(1, "z") else { panic!("it is the second") };
        assert_eq!(one, Membership::First(place));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| links.wait(place));
            links.first_is_done(other, false);
            links.first_is_done(one, true);
            assert_eq!(waiting.join().unwrap(), Some(b"a/one".to_vec()));
        });
        let Membership::First(failed) = other else { panic!("it is the first") };
        assert_eq!(links.wait(failed), None);
        let succeed =
            |place, path: &str| links.succeed(place, || path.as_bytes().to_vec()).unwrap();
        assert_eq!(succeed(place, "c"), None);
        let next = succeed(failed, "c").unwrap();
        let Membership::First(own) = next else { panic!("it is the first now") };
        assert_eq!(succeed(failed, "d"), Some(Membership::Later(own)));
        links.first_is_done(next, true);
        assert_eq!(links.wait(own), Some(b"c".to_vec()));
        assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 0);
    }
}
