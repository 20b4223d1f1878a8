//! The parents: the newest snapshot of the series, and a checkpoint if one is newer, gone through
//! in step with the source.
//!
//! A series that has none yet begins with this machine's newest of the same paths under another
//! host's name: a computer that was renamed, or that replaces a lost one, goes on from what is there
//! and does not compare its files with nothing. Which parent is chosen never decides what a snapshot
//! holds, only what must be read anew.

use std::cmp::Ordering;

use holdall_format::{RecordHash, SeriesId, SessionId};
use holdall_meter::counted;
use holdall_sys::Timestamp;
use holdall_tree::{
    Cursor, Entry, Fingerprints, KnownLeaf, LeafAhead, LeafBetween, PathKey, WholeLeaf,
};

use super::options::Source;
use crate::blocks::{Nodes, SharedNodeCache};
use crate::cache::leaf_cache::KnownLeaves;
use crate::error::is_damaged;
use crate::records::snapshot::Snapshot;
use crate::records::snapshots::Listed;
use crate::run::lock;
use crate::storing::{AdoptedLeaf, Shared};
use crate::{EngineError, UnlockedRepository};

/// The records that a run of this series and of these paths builds on, newest first: a checkpoint,
/// if that is newer than the last snapshot that was made here, and that snapshot, or a copy of a newer
/// state that came behind it.
pub(super) fn choose(
    access: &UnlockedRepository,
    listed: &Listed,
    series: &SeriesId,
    sources: &[Source],
) -> Vec<Snapshot> {
    let mut own = listed.all();
    own.retain(|record| record.machine == access.machine);
    let of_series = among(&own, |record| record.series == *series);
    if !of_series.is_empty() {
        return of_series;
    }
    let paths = || sources.iter().map(|source| &source.path);
    among(&own, |record| record.secret.paths.iter().eq(paths()))
}

/// The newest snapshot of those that fit, behind the last checkpoint if that is newer.
fn among(records: &[&Snapshot], fits: impl Fn(&Snapshot) -> bool) -> Vec<Snapshot> {
    let fitting = || records.iter().copied().filter(|record| fits(record));
    let last_made = fitting().rfind(|record| !record.is_copy());
    let checkpoint = last_made.filter(|record| record.checkpoint);
    let snapshots: Vec<_> = fitting().filter(|record| !record.checkpoint).collect();
    checkpoint.into_iter().chain(newest(&snapshots)).cloned().collect()
}

/// The newest of snapshots in order of the log. A copy is as old as another repository's clock said,
/// which may have been wrong: one is only looked at until the next snapshot is made here.
fn newest<'a>(snapshots: &[&'a Snapshot]) -> Option<&'a Snapshot> {
    let last_made = snapshots.iter().rposition(|snapshot| !snapshot.is_copy());
    let from_it = snapshots.iter().skip(last_made.unwrap_or(0));
    from_it.max_by_key(|snapshot| snapshot.taken_ns()).copied()
}

/// The names of the parents, for the session.
pub(super) fn names(parents: &[Snapshot]) -> Vec<RecordHash> {
    parents.iter().map(|parent| parent.id).collect()
}

/// The parents' entries, in step with the source.
pub(super) struct Parents<'a> {
    cursors: Vec<Cursor<Nodes>>,
    /// How the only parent's leaves are known again; nothing if there are several.
    known: Option<KnownLeaves>,
    fingerprints: Fingerprints,
    /// When the oldest of them was begun, in nanoseconds since 1970 by this computer's clock.
    begun_ns: Option<i64>,
    shared: &'a Shared<'a>,
}

/// What is taken over without a look at the source.
pub(super) enum Kept {
    Leaf(AdoptedLeaf),
    Entry(PathKey, Box<Entry>),
}

impl<'a> Parents<'a> {
    pub(super) fn open(
        access: &UnlockedRepository,
        session: SessionId,
        cache: &SharedNodeCache,
        (series, fingerprints): (&SeriesId, Fingerprints),
        parents: &[Snapshot],
        shared: &'a Shared<'a>,
    ) -> Self {
        let cursors = parents
            .iter()
            .map(|parent| {
                let nodes = Nodes::with_cache(access, session, SharedNodeCache::clone(cache));
                Cursor::new(nodes, parent.root).noting_visited()
            })
            .collect();
        // Whoever holds the node cache has this folder for itself.
        let known = match parents {
            // What was lost is found by looking at each entry.
            [only] if shared.lost.is_empty() && lock(cache).is_some() => {
                KnownLeaves::open(&access.cache, series, &only.root, fingerprints.clone())
            }
            _ => None,
        };
        let begun_ns = parents.iter().map(|parent| parent.secret.client_time_ns).min();
        Self { cursors, known, fingerprints, begun_ns, shared }
    }

    /// Whether any leaves can be known again.
    pub(super) fn knows_leaves(&self) -> bool {
        self.known.is_some()
    }

    /// The parent's leaf that begins with `path`, if it was not fetched and can be known again.
    /// Paths must be asked for in ascending order, as with [`Parents::find`].
    pub(super) fn leaf_at(
        &mut self,
        path: &PathKey,
    ) -> Result<Option<(LeafAhead, KnownLeaf)>, EngineError> {
        let (Some(known), [cursor]) = (&mut self.known, &mut self.cursors[..]) else {
            return Ok(None);
        };
        let Some(ahead) = cursor.leaf_at(path).map_err(of_parent)? else { return Ok(None) };
        Ok(known.find(&ahead.id).map(|known| (ahead, known)))
    }

    /// The directories of the only parent that have something in them which needs a look in every run; nothing if that
    /// is not known, or if they are too many.
    pub(super) fn need_a_look(&self) -> Option<Vec<PathKey>> {
        self.known.as_ref()?.need_a_look()
    }

    /// Steps to the key `from`: what the only parent has before it is not in the source any more.
    pub(super) fn keep_from(&mut self, from: &[u8]) -> Result<(), EngineError> {
        self.cursors
            .iter_mut()
            .try_for_each(|cursor| cursor.seek_bytes(from))
            .map_err(of_parent)?;
        self.note_nodes();
        Ok(())
    }

    /// Takes what the only parent has next, and before the key `until`, which may be none: a leaf where that can
    /// be known again, and begins and ends where it does in every tree that has its paths; else an entry.
    pub(super) fn next_kept(&mut self, until: Option<&[u8]>) -> Result<Option<Kept>, EngineError> {
        let [cursor] = &mut self.cursors[..] else { return Ok(None) };
        let kept = match cursor.leaf_before(until).map_err(of_parent)? {
            Some(between) => known_between(&between, self.known.as_mut(), &self.fingerprints),
            None => None,
        };
        if let Some(leaf) = kept {
            self.skip_leaf();
            return Ok(Some(Kept::Leaf(leaf)));
        }
        let kept = self.next_entry(until)?;
        self.note_nodes();
        Ok(kept)
    }

    fn next_entry(&mut self, until: Option<&[u8]>) -> Result<Option<Kept>, EngineError> {
        let [cursor] = &mut self.cursors[..] else { return Ok(None) };
        let is_before = |path: &PathKey| until.is_none_or(|until| path.as_bytes() < until);
        let next = cursor.peek().map_err(of_parent)?.filter(|(path, _)| is_before(path));
        let kept = next.map(|(path, entry)| Kept::Entry(path.clone(), Box::new(entry.clone())));
        if kept.is_some() {
            cursor.advance();
        }
        Ok(kept)
    }

    /// Steps past the leaf that was given last. The nodes above it are the parent's.
    pub(super) fn skip_leaf(&mut self) {
        self.cursors.iter_mut().for_each(Cursor::skip_leaf);
        self.note_nodes();
    }

    /// The newest parent's entry at `path`. Paths must be asked for in ascending order.
    pub(super) fn find(&mut self, path: &PathKey) -> Result<Option<&Entry>, EngineError> {
        for cursor in &mut self.cursors {
            while cursor.peek().map_err(of_parent)?.is_some_and(|(at, _)| at < path) {
                cursor.advance();
            }
        }
        self.note_nodes();
        let found = self.cursors.iter().find_map(|cursor| {
            cursor.current().filter(|(at, _)| (*at).cmp(path) == Ordering::Equal)
        });
        let lost = &self.shared.lost;
        Ok(found.map(|(_, entry)| entry).filter(|entry| !lost.is_needed_by(entry)))
    }

    /// Whether something was there before all of them, and is as it was then.
    pub(super) fn are_younger_than(&self, ctime: Timestamp) -> bool {
        let changed_ns = i128::from(ctime.secs) * 1_000_000_000 + i128::from(ctime.nanos);
        self.begun_ns.is_some_and(|begun_ns| changed_ns < i128::from(begun_ns))
    }

    /// Tells of a directory that has nothing in it and had something, as where a disk is not mounted.
    /// The snapshots before have what is missing, so this one is made all the same. Steps past that.
    pub(super) fn tell_emptied(&mut self, path: &PathKey) -> Result<(), EngineError> {
        let before = self.count_below(path)?;
        if before > 0 {
            let reason = format!(
                "it is empty, and the previous snapshot has {} in it: is its disk mounted?",
                counted(before, "item")
            );
            self.shared.run.problem(&path.to_absolute(), reason);
        }
        Ok(())
    }

    /// How many entries the parents have below `path`, whichever has more. Steps past them.
    pub(super) fn count_below(&mut self, path: &PathKey) -> Result<u64, EngineError> {
        let mut most = 0;
        for cursor in &mut self.cursors {
            let mut count = 0;
            while let Some((at, _)) = cursor
                .peek()
                .map_err(of_parent)?
                .filter(|(at, _)| *at <= path || path.is_ancestor_of(at))
            {
                count += u64::from(path.is_ancestor_of(at));
                cursor.advance();
            }
            most = most.max(count);
        }
        self.note_nodes();
        Ok(most)
    }

    fn note_nodes(&mut self) {
        for cursor in &mut self.cursors {
            self.shared.note_parents(&cursor.take_visited());
        }
    }
}

/// A leaf as it is taken over, if it can be known again, and begins and ends where it does in every tree that has its
/// paths and the one behind them.
fn known_between(
    leaf: &LeafBetween<'_>,
    known: Option<&mut KnownLeaves>,
    fingerprints: &Fingerprints,
) -> Option<AdoptedLeaf> {
    let LeafBetween { first, ahead: LeafAhead { id, items, bytes }, next } = *leaf;
    let known = known?.find(&id)?;
    let is_whole = fingerprints.starts_leaf(first) && fingerprints.starts_leaf(next);
    // Its last path, only the leaf itself has.
    let leaf = WholeLeaf { id, first: first.clone(), last: None, items, bytes };
    is_whole.then_some(AdoptedLeaf { leaf, known })
}

/// Says that it is the parent which is damaged, if anything is.
fn of_parent(error: impl Into<EngineError>) -> EngineError {
    let error = error.into();
    if is_damaged(&error) { EngineError::Parent(Box::new(error)) } else { error }
}

#[cfg(test)]
mod tests {
    use holdall_crypto::CopiedFrom;

    use super::*;
    use crate::test_world::World;

    #[test]
    fn a_copy_is_a_parent_only_until_the_next_snapshot_is_made_here() {
        let world = World::new();
        let of = |id: u8, received_ns: i64, is_copy: bool| {
            let id = RecordHash::from_bytes([id; 32]);
            let mut snapshot = Snapshot { id, received_ns, ..world.snapshot(&[]) };
            let from = CopiedFrom { record: id, received_ns, through: None };
            snapshot.secret.copied_from = is_copy.then_some(from);
            snapshot
        };
        let (made, checkpoint) =
            (of(1, 10, false), Snapshot { checkpoint: true, ..of(4, 11, false) });
        // The other repository's clock is wrong.
        let (future, old) = (of(2, i64::MAX, true), of(3, 1, true));
        let chosen = |records: &[&Snapshot]| names(&among(records, |_| true));
        assert_eq!(chosen(&[&future, &made]), [made.id]);
        assert_eq!(chosen(&[&made, &future, &old]), [future.id]);
        assert_eq!(chosen(&[&made, &old]), [made.id]);
        assert_eq!(chosen(&[&future, &old]), [future.id]);
        assert_eq!(chosen(&[&future, &made, &checkpoint]), [checkpoint.id, made.id]);
        assert!(chosen(&[]).is_empty());
    }
}
