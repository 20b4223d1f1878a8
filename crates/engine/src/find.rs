//! Which snapshots hold what somebody looks for.
//!
//! Trees are walked node by node, without content. A snapshot whose series was searched already is
//! only compared with the one searched before it: the matches change where the trees differ, and
//! nodes that both have are not walked again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use holdall_format::{ObjectId, SeriesId, SessionId};
use holdall_tree::{Cursor, Entry, EntryKind, PathKey, Time, TreeError, diff_below};

use crate::blocks::{Nodes, SharedNodeCache, open_node_cache};
use crate::{Access, EngineError, Run, Snapshot};

/// An entry that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundEntry<'a> {
    /// Its absolute path, any bytes.
    pub path: &'a [u8],
    /// What it is.
    pub kind: EntryKind,
    /// Its bytes, with holes.
    pub size: u64,
    /// When it was last modified.
    pub mtime: Time,
}

/// Whether an entry at an absolute path is looked for.
type Wanted<'a> = dyn Fn(&[u8], &Entry) -> bool + 'a;

/// What is kept of an entry that matches.
struct Match {
    kind: EntryKind,
    size: u64,
    mtime: Time,
}

/// The matches of the snapshot of a series that was searched last.
struct Searched {
    root: ObjectId,
    matches: BTreeMap<PathKey, Match>,
}

/// Looks in each of the snapshots, in the order given, for entries that are `wanted`; shows those of
/// one snapshot in the order of its tree.
///
/// Keeps the matches of one snapshot of each series in memory.
///
/// # Errors
/// [`EngineError::Damaged`] for a tree that can not be read on; [`EngineError::Interrupted`]; the
/// first error of `visit`.
pub fn find(
    access: &Access,
    snapshots: &[&Snapshot],
    wanted: &Wanted<'_>,
    run: &Run,
    visit: &mut dyn FnMut(&Snapshot, FoundEntry<'_>) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    access.reading(|session| {
        let cache = open_node_cache(access);
        let search = Search { access, session, cache, wanted, run };
        let mut by_series: HashMap<SeriesId, Searched> = HashMap::new();
        for snapshot in snapshots {
            let before = by_series.remove(&snapshot.series);
            let searched = search.snapshot(snapshot, before)?;
            for (path, found) in &searched.matches {
                run.check()?;
                let Match { kind, size, mtime } = *found;
                visit(snapshot, FoundEntry { path: &path.to_absolute(), kind, size, mtime })?;
            }
            by_series.insert(snapshot.series, searched);
        }
        Ok(())
    })
}

/// What every search of one snapshot needs.
struct Search<'a> {
    access: &'a Access,
    session: SessionId,
    cache: SharedNodeCache,
    wanted: &'a Wanted<'a>,
    run: &'a Run,
}

impl Search<'_> {
    fn nodes(&self) -> Nodes {
        Nodes::with_cache(self.access, self.session, Arc::clone(&self.cache))
    }

    fn snapshot(
        &self,
        snapshot: &Snapshot,
        before: Option<Searched>,
    ) -> Result<Searched, EngineError> {
        let root = snapshot.root;
        let matches = match before {
            Some(before) => self.changes(before, root)?,
            None => self.whole(root)?,
        };
        Ok(Searched { root, matches })
    }

    fn whole(&self, root: ObjectId) -> Result<BTreeMap<PathKey, Match>, EngineError> {
        let mut matches = BTreeMap::new();
        let mut cursor = Cursor::new(self.nodes(), root);
        while let Some((path, entry)) = cursor.next()? {
            self.run.check()?;
            self.take(&mut matches, path, Some(&entry));
        }
        Ok(matches)
    }

    /// Brings the matches of one tree up to those of another.
    fn changes(
        &self,
        before: Searched,
        root: ObjectId,
    ) -> Result<BTreeMap<PathKey, Match>, EngineError> {
        let mut matches = before.matches;
        let trees = ((self.nodes(), before.root), (self.nodes(), root));
        let compared: Result<(), TreeError<EngineError>> =
            diff_below(trees.0, trees.1, &PathKey::root(), |change| {
                self.run.check()?;
                self.take(&mut matches, change.path, change.after.as_ref());
                Ok(())
            });
        compared?;
        Ok(matches)
    }

    fn take(&self, matches: &mut BTreeMap<PathKey, Match>, path: PathKey, entry: Option<&Entry>) {
        match entry.filter(|entry| (self.wanted)(&path.to_absolute(), entry)) {
            Some(&Entry { kind, size, mtime, .. }) => {
                matches.insert(path, Match { kind, size, mtime });
            }
            None => {
                matches.remove(&path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_world::{World, directory, small_file};
    use std::cell::Cell;

    /// Looks for paths with an `x`; gives the paths found in each snapshot, and how many entries
    /// were looked at.
    fn found(world: &World, snapshots: &[&Snapshot]) -> (Vec<Vec<String>>, usize) {
        let looked = Cell::new(0);
        let wanted = |path: &[u8], _: &Entry| {
            looked.set(looked.get() + 1);
            path.contains(&b'x')
        };
        let mut found: Vec<(ObjectId, Vec<String>)> = Vec::new();
        find(&world.access, snapshots, &wanted, &Run::new(), &mut |snapshot, entry| {
            let path = String::from_utf8_lossy(entry.path).into_owned();
            match found.last_mut().filter(|(root, _)| *root == snapshot.root) {
                Some((_, paths)) => paths.push(path),
                None => found.push((snapshot.root, vec![path])),
            }
            Ok(())
        })
        .unwrap();
        (found.into_iter().map(|(_, paths)| paths).collect(), looked.get())
    }

    fn tree(world: &World, more: &[&str]) -> Snapshot {
        let mut entries = vec![("/", directory()), ("/x", directory())];
        let many: Vec<String> = (0..500).map(|number| format!("/file-{number}")).collect();
        entries.extend(many.iter().map(|path| (&path[..], small_file(b""))));
        entries.extend(more.iter().map(|path| (*path, small_file(b"12"))));
        world.snapshot(&entries)
    }

    #[test]
    fn each_snapshot_shows_its_own_matches_in_the_order_of_the_tree() {
        let world = World::new();
        let newest = tree(&world, &["/x/b", "/zx"]);
        let older = tree(&world, &["/x/a", "/x/b"]);
        let (found, _) = found(&world, &[&newest, &older]);
        assert_eq!(found, [vec!["/x", "/x/b", "/zx"], vec!["/x", "/x/a", "/x/b"]]);
    }

    #[test]
    fn what_snapshots_of_a_series_share_is_looked_at_once() {
        let world = World::new();
        let newest = tree(&world, &["/x/b"]);
        let older = tree(&world, &["/x/a"]);
        let (paths, looked) = found(&world, &[&newest, &newest]);
        assert_eq!((paths.concat().len(), looked), (4, 503));
        let (_, looked) = found(&world, &[&newest, &older, &newest]);
        assert!(looked <= 503 + 4, "{looked} entries were looked at");
        let elsewhere = Snapshot { series: SeriesId::from_bytes([7; 16]), ..older };
        assert_eq!(found(&world, &[&newest, &elsewhere]).1, 1006);
    }
}
