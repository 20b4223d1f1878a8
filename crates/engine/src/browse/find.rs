//! Which snapshots hold what somebody looks for.
//!
//! Trees are walked node by node, without content. A snapshot whose series was searched already is
//! only compared with the one searched before it: the matches change where the trees differ, and
//! nodes that both have are not walked again. Where there are too many matches to keep them, each
//! snapshot is walked.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use holdall_format::{ObjectId, SeriesId, SessionId};
use holdall_tree::{Cursor, Entry, EntryKind, PathKey, Time, TreeError, diff_below};

use crate::blocks::{Nodes, SharedNodeCache, open_node_cache};
use crate::error::is_damaged;
use crate::{EngineError, Run, Snapshot, UnlockedRepository};

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
pub(super) type Wanted<'a> = dyn Fn(&[u8], &Entry) -> bool + 'a;

/// Most matches of a snapshot that are kept to compare the next one of its series with.
const MATCHES_MAX: usize = 100_000;

/// Where matches go.
pub(super) type Visit<'a> = dyn FnMut(&Snapshot, FoundEntry<'_>) -> Result<(), EngineError> + 'a;

/// What is kept of an entry that matches.
struct Match {
    kind: EntryKind,
    size: u64,
    mtime: Time,
}

impl Match {
    fn of(&Entry { kind, size, mtime, .. }: &Entry) -> Self {
        Self { kind, size, mtime }
    }

    fn at<'a>(&self, path: &'a [u8]) -> FoundEntry<'a> {
        let &Self { kind, size, mtime } = self;
        FoundEntry { path, kind, size, mtime }
    }
}

/// The matches of the snapshot of a series that was searched last.
struct Searched {
    root: ObjectId,
    matches: BTreeMap<PathKey, Match>,
}

/// Looks in each of the snapshots, in the order given, for entries that are `wanted`; shows those of
/// one snapshot in the order of its tree.
///
/// Keeps the matches of one snapshot of each series in memory, up to a bound. What is damaged of a tree is noted
/// as a problem of the path before it, and the search goes on behind it.
///
/// # Errors
/// [`EngineError::Interrupted`]; the first error of `visit`.
pub fn find(
    access: &UnlockedRepository,
    snapshots: &[&Snapshot],
    wanted: &Wanted<'_>,
    run: &Run,
    visit: &mut Visit<'_>,
) -> Result<(), EngineError> {
    find_keeping(MATCHES_MAX, access, snapshots, wanted, run, visit)
}

fn find_keeping(
    most: usize,
    access: &UnlockedRepository,
    snapshots: &[&Snapshot],
    wanted: &Wanted<'_>,
    run: &Run,
    visit: &mut Visit<'_>,
) -> Result<(), EngineError> {
    access.reading(|session| {
        let cache = open_node_cache(access);
        Search { access, session, cache, wanted, run, most }.all(snapshots, visit)
    })
}

/// The same for who has a session and a cache open.
pub(super) fn find_in(
    (access, session, cache): (&UnlockedRepository, SessionId, SharedNodeCache),
    snapshots: &[&Snapshot],
    wanted: &Wanted<'_>,
    run: &Run,
    visit: &mut Visit<'_>,
) -> Result<(), EngineError> {
    Search { access, session, cache, wanted, run, most: MATCHES_MAX }.all(snapshots, visit)
}

/// What every search of one snapshot needs.
struct Search<'a> {
    access: &'a UnlockedRepository,
    session: SessionId,
    cache: SharedNodeCache,
    wanted: &'a Wanted<'a>,
    run: &'a Run,
    /// Most matches that are kept.
    most: usize,
}

/// The matches so far; nothing if they are too many.
type Matches = Option<BTreeMap<PathKey, Match>>;

impl Search<'_> {
    fn nodes(&self) -> Nodes {
        Nodes::with_cache(self.access, self.session, Arc::clone(&self.cache))
    }

    /// Searches one snapshot after the other.
    fn all(&self, snapshots: &[&Snapshot], visit: &mut Visit<'_>) -> Result<(), EngineError> {
        let mut by_series: HashMap<SeriesId, Searched> = HashMap::new();
        for snapshot in snapshots {
            let before = by_series.remove(&snapshot.series);
            if let Some(matches) = self.snapshot(snapshot, before, visit)? {
                by_series.insert(snapshot.series, Searched { root: snapshot.root, matches });
            }
        }
        Ok(())
    }

    /// Shows the matches of a snapshot, and gives them unless they are too many.
    fn snapshot(
        &self,
        snapshot: &Snapshot,
        before: Option<Searched>,
        visit: &mut Visit<'_>,
    ) -> Result<Matches, EngineError> {
        let kept = match before.map(|before| self.changes(before, snapshot.root)) {
            // The walk through the whole tree says where it is damaged, and goes on behind it.
            Some(Err(error)) if is_damaged(&error) => None,
            Some(kept) => kept?,
            None => None,
        };
        let Some(matches) = kept else { return self.whole(snapshot, visit) };
        for (path, found) in &matches {
            self.run.check()?;
            visit(snapshot, found.at(&path.to_absolute()))?;
        }
        Ok(Some(matches))
    }

    /// Walks a tree, and shows what it finds as it goes.
    fn whole(&self, snapshot: &Snapshot, visit: &mut Visit<'_>) -> Result<Matches, EngineError> {
        let mut matches = Some(BTreeMap::new());
        let mut cursor = Cursor::new(self.nodes(), snapshot.root);
        let mut last = PathKey::root();
        loop {
            self.run.check()?;
            let (path, entry) = match cursor.next().map_err(EngineError::from) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(error) if is_damaged(&error) => {
                    let id = snapshot.id.to_string();
                    let reason =
                        format!("in snapshot {id:.10}, what comes after it is damaged: {error}");
                    self.run.damage(&last.to_absolute(), reason);
                    cursor.skip_unreadable();
                    // Others are not found by what they have changed of it.
                    matches = None;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let absolute = path.to_absolute();
            if (self.wanted)(&absolute, &entry) {
                let found = Match::of(&entry);
                visit(snapshot, found.at(&absolute))?;
                self.keep(&mut matches, path.clone(), found);
            }
            last = path;
        }
        Ok(matches)
    }

    /// Brings the matches of one tree up to those of another.
    fn changes(&self, before: Searched, root: ObjectId) -> Result<Matches, EngineError> {
        let mut matches = Some(before.matches);
        let trees = ((self.nodes(), before.root), (self.nodes(), root));
        let compared: Result<(), TreeError<EngineError>> =
            diff_below(trees.0, trees.1, &PathKey::root(), |change| {
                self.run.check()?;
                let after = change.after.as_ref();
                match after.filter(|entry| (self.wanted)(&change.path.to_absolute(), entry)) {
                    Some(entry) => self.keep(&mut matches, change.path, Match::of(entry)),
                    None => {
                        matches.as_mut().and_then(|matches| matches.remove(&change.path));
                    }
                }
                Ok(())
            });
        compared?;
        Ok(matches)
    }

    fn keep(&self, matches: &mut Matches, path: PathKey, found: Match) {
        if let Some(kept) = matches {
            kept.insert(path, found);
            if kept.len() > self.most {
                *matches = None;
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
        found_keeping(MATCHES_MAX, world, snapshots)
    }

    fn found_keeping(
        most: usize,
        world: &World,
        snapshots: &[&Snapshot],
    ) -> (Vec<Vec<String>>, usize) {
        let looked = Cell::new(0);
        let wanted = |path: &[u8], _: &Entry| {
            looked.set(looked.get() + 1);
            path.contains(&b'x')
        };
        let mut found: Vec<(ObjectId, Vec<String>)> = Vec::new();
        find_keeping(
            most,
            &world.access,
            snapshots,
            &wanted,
            &Run::new(),
            &mut |snapshot, entry| {
                let path = String::from_utf8_lossy(entry.path).into_owned();
                match found.last_mut().filter(|(root, _)| *root == snapshot.root) {
                    Some((_, paths)) => paths.push(path),
                    None => found.push((snapshot.root, vec![path])),
                }
                Ok(())
            },
        )
        .unwrap();
        (found.into_iter().map(|(_, paths)| paths).collect(), looked.get())
    }

    #[test]
    fn a_damaged_snapshot_is_told_and_hides_no_older_one() {
        let world = World::new();
        let (old, new) = (tree(&world, &["/x/1"]), tree(&world, &["/x/2"]));
        world.repository.lose(&new.root);
        let (run, mut paths) = (Run::new(), Vec::new());
        let wanted = |path: &[u8], _: &Entry| path.starts_with(b"/x/");
        find(&world.access, &[&new, &old], &wanted, &run, &mut |_, entry| {
            paths.push(entry.path.to_vec());
            Ok(())
        })
        .unwrap();
        assert_eq!((paths, run.damage_count()), (vec![b"/x/1".to_vec()], 1));
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

    #[test]
    fn matches_that_are_too_many_are_found_and_not_kept() {
        let world = World::new();
        let newest = tree(&world, &["/x/b", "/zx"]);
        let older = tree(&world, &["/x/a", "/x/b", "/x/c"]);
        let oldest = tree(&world, &["/x/b"]);
        let all = [&newest, &older, &oldest];
        let (expected, _) = found(&world, &all);
        for most in 0..5 {
            assert_eq!(found_keeping(most, &world, &all).0, expected, "{most}");
        }
        assert_eq!(found_keeping(2, &world, &[&newest, &newest]).1, 2 * 504);
        assert_eq!(found_keeping(3, &world, &[&newest, &newest]).1, 504);
    }
}
