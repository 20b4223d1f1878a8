//! How much the newest snapshots hold, how much of that was there before, and how many came at once, without
//! any key.
//!
//! Half the files gone, or all of them changed, looks from here like this: of what the snapshot before
//! held, less than half is left. And of an hour, a day and a week rules keep the newest, so that who floods a
//! series with snapshots has the others of that time go. A server looks at both before rules delete what could
//! bring things back.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

use holdall_format::{ObjectId, RecordHash, RecordKind};
use holdall_protocol::RepositoryError;
use serde::{Deserialize, Serialize};

use crate::reachability::closure::Tally;
use crate::records::entry::RecordEntry;
use crate::store::Store;

/// Less than this is too little to say what is usual.
const OBJECTS_MIN: u64 = 64;
/// More snapshots of a series within an hour than this are a flood: backups that are due come once a minute at
/// most, and some more are made by hand or tried again.
const HOUR_MOST: usize = 100;
const HOUR_NS: u64 = 3600 * 1_000_000_000;
/// A look goes through so many times what is stored at most, but for its last walk: a machine may name as many
/// series as it likes, and its repository is not to keep a server from looking at the others.
const TIMES_WALKED: u64 = 8;
/// And through so many objects at least.
const OBJECTS_WALKED_LEAST: u64 = 1 << 20;
/// What a walk costs of which nothing comes, in objects: all marks are forgotten before it and after it.
const OBJECTS_OF_WALK: u64 = 1000;

/// How much a snapshot holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotSize {
    /// The snapshot's id, in hexadecimal.
    pub snapshot: String,
    /// Its place in the log.
    pub position: u64,
    /// Nodes and chunks.
    pub objects: u64,
    /// Chunks.
    pub chunks: u64,
    /// The place in the log of the first one of its series that was weighed: whatever came before it was usual.
    #[serde(default)]
    pub first_position: u64,
}

/// The newest snapshot of a series, beside the one that was weighed before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesChange {
    /// What it holds.
    pub now: SnapshotSize,
    /// Chunks of it that came before the other snapshot did.
    old_chunks: u64,
    /// Whether it came in a flood that did not end before the other.
    is_flooded: bool,
}

impl SeriesChange {
    /// Says what is unusual since `before`: that much was lost, or that a flood came.
    pub fn anomaly_since(&self, before: &SnapshotSize) -> Option<String> {
        self.loss_since(before).or_else(|| self.flood())
    }

    fn flood(&self) -> Option<String> {
        let now = short(&self.now.snapshot);
        self.is_flooded.then(|| {
            format!("up to snapshot {now}, more than {HOUR_MOST} of its series came within an hour")
        })
    }

    fn loss_since(&self, before: &SnapshotSize) -> Option<String> {
        let (now, then) = (short(&self.now.snapshot), short(&before.snapshot));
        if before.chunks >= OBJECTS_MIN && self.old_chunks * 2 < before.chunks {
            return Some(format!(
                "snapshot {now} has at most {} of the {} chunks that {then} had",
                self.old_chunks, before.chunks
            ));
        }
        (before.objects >= OBJECTS_MIN && self.now.objects * 2 < before.objects).then(|| {
            format!(
                "snapshot {now} holds {} objects, and {then} held {}",
                self.now.objects, before.objects
            )
        })
    }
}

/// What a look at the newest snapshots found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scan {
    /// The newest snapshots, by a name that is the series' own.
    pub weighed: BTreeMap<String, SeriesChange>,
    /// So many series have a newest snapshot that nobody looked at: that is for the next looks.
    pub left: usize,
}

/// The walks of one look.
struct Walks<'a> {
    store: &'a Store,
    /// How far they went, in objects, and how far they may go before no other begins.
    gone: u64,
    most: u64,
    /// What each came to, by its root and the position before which things are old.
    tallies: HashMap<(ObjectId, u64), Tally>,
}

impl<'a> Walks<'a> {
    fn new(store: &'a Store) -> Self {
        let most = OBJECTS_WALKED_LEAST.max(store.usage().objects.saturating_mul(TIMES_WALKED));
        Self { store, gone: 0, most, tallies: HashMap::new() }
    }

    fn may_go_on(&self) -> bool {
        self.gone < self.most
    }

    /// Counts what a root reaches. Commits wait meanwhile.
    fn tally(&mut self, root: ObjectId, old_before: u64) -> Result<Tally, RepositoryError> {
        if let Some(tally) = self.tallies.get(&(root, old_before)) {
            return Ok(*tally);
        }
        let tally = self.store.tally(&self.store.lock_commit(), root, old_before)?;
        self.gone += OBJECTS_OF_WALK + tally.objects;
        self.tallies.insert((root, old_before), tally);
        Ok(tally)
    }
}

impl Store {
    /// Weighs the newest snapshot of each series; those that are in `known` already are left out, and so
    /// are those of which something is missing. Also looks whether it came in a flood. Commits wait while
    /// one is weighed. Once all of that together was as much as a few walks through all that is stored,
    /// the other series are left for the next look, which begins with those that waited longest.
    ///
    /// # Errors
    /// If the index cannot be read; [`RepositoryError::Interrupted`] once `should_stop` is set.
    pub fn weigh(
        &self,
        known: &BTreeMap<String, SnapshotSize>,
        should_stop: &AtomicBool,
    ) -> Result<Scan, RepositoryError> {
        self.weigh_by(&mut Walks::new(self), known, should_stop)
    }

    fn weigh_by(
        &self,
        walks: &mut Walks<'_>,
        known: &BTreeMap<String, SnapshotSize>,
        should_stop: &AtomicBool,
    ) -> Result<Scan, RepositoryError> {
        let mut look = Scan::default();
        for (series, entries) in self.unweighed(known) {
            if should_stop.load(Ordering::Acquire) {
                return Err(RepositoryError::Interrupted);
            }
            let Some(entry) = entries.last() else { continue };
            if !walks.may_go_on() {
                look.left += 1;
                continue;
            }
            let before = known.get(&series);
            let tally = walks.tally(entry.root, before.map_or(0, |before| before.position))?;
            if !tally.is_whole {
                continue;
            }
            let is_flooded = before.is_some_and(|before| is_flooded(&came(&entries), before));
            let now = SnapshotSize {
                first_position: before.map_or(entry.position, |before| before.first_position),
                ..weight(&entry.hash, entry.position, tally.objects, tally.chunks)
            };
            let weighed = SeriesChange { now, old_chunks: tally.old_chunks, is_flooded };
            look.weighed.insert(series, weighed);
        }
        Ok(look)
    }

    /// The snapshots of each series whose newest one is not in `known`; the series first that waits longest:
    /// since it was weighed, or since it is there.
    fn unweighed(&self, known: &BTreeMap<String, SnapshotSize>) -> Vec<(String, Vec<RecordEntry>)> {
        let mut all: BTreeMap<String, Vec<RecordEntry>> = BTreeMap::new();
        let records = self.records().after(0).into_iter();
        for entry in records.filter(|entry| entry.kind == RecordKind::Snapshot) {
            // An old snapshot that is copied is no loss of what was backed up here.
            let kind = if entry.taken_ns.is_some() { "/copies" } else { "" };
            let name = format!("{}/{}{kind}", entry.machine, entry.series);
            all.entry(name).or_default().push(entry);
        }
        let is_known = |series: &str, newest: &RecordEntry| {
            known.get(series).is_some_and(|before| before.snapshot == newest.hash.to_string())
        };
        all.retain(|series, entries| {
            !entries.last().is_some_and(|newest| is_known(series, newest))
        });
        let mut unweighed: Vec<_> = all.into_iter().collect();
        unweighed.sort_by_key(|(series, entries)| {
            let begun = entries.first().map_or(0, |entry| entry.position);
            known.get(series).map_or(begun, |before| before.position)
        });
        unweighed
    }
}

fn short(id: &str) -> &str {
    id.get(..10).unwrap_or(id)
}

fn weight(snapshot: &RecordHash, position: u64, objects: u64, chunks: u64) -> SnapshotSize {
    SnapshotSize {
        snapshot: snapshot.to_string(),
        position,
        objects,
        chunks,
        first_position: position,
    }
}

/// The places in the log of what came by a clock that had been set, and when that was.
fn came(entries: &[RecordEntry]) -> Vec<(u64, i64)> {
    let sure = entries.iter().filter(|entry| entry.clock_sure);
    sure.map(|entry| (entry.position, entry.received_ns)).collect()
}

/// Whether more came within an hour than honest backups do, the last of them behind `before`. What `before`
/// knew when it was first weighed does not count.
fn is_flooded(came: &[(u64, i64)], before: &SnapshotSize) -> bool {
    let counted = came.partition_point(|(position, _)| *position <= before.first_position);
    let counted = came.get(counted..).unwrap_or_default();
    let ends = counted.iter().zip(counted.iter().skip(HOUR_MOST));
    let mut new = ends.filter(|(_, (position, _))| *position > before.position);
    new.any(|((_, first_ns), (_, last_ns))| last_ns.abs_diff(*first_ns) < HOUR_NS)
}

#[cfg(test)]
mod tests {
    use holdall_format::SeriesId;
    use holdall_protocol::Repository;

    use super::*;
    use crate::place::{Place, id};

    static GOES_ON: AtomicBool = AtomicBool::new(false);

    /// A snapshot of each of these roots, which have nothing below them, each of a series of its own.
    fn with_series(place: &Place, roots: &[ObjectId]) {
        let nodes: Vec<(ObjectId, &[ObjectId])> = roots.iter().map(|id| (*id, &[][..])).collect();
        place.machine().put_blocks(&place.session(), &[place.forge.nodes(&nodes)]).unwrap();
        for (root, number) in roots.iter().zip(1..) {
            let series = SeriesId::from_bytes([number; 16]);
            place.commit_changed(&place.session(), *root, |head| head.series = series);
        }
    }

    /// What was weighed of a series.
    fn now(look: Scan) -> impl Iterator<Item = (String, SnapshotSize)> {
        look.weighed.into_iter().map(|(series, weighed)| (series, weighed.now))
    }

    #[test]
    fn what_many_series_have_in_common_is_walked_through_once() {
        let place = Place::new();
        with_series(&place, &[id(1); 50]);
        let mut walks = Walks::new(&place.store);
        let look = place.store.weigh_by(&mut walks, &BTreeMap::new(), &GOES_ON).unwrap();
        assert_eq!((look.weighed.len(), look.left), (50, 0));
        assert_eq!(walks.gone, OBJECTS_OF_WALK + 1);
    }

    #[test]
    fn what_is_too_much_for_one_look_is_left_for_the_next_and_none_is_left_out_for_ever() {
        let place = Place::new();
        let roots: Vec<ObjectId> = (1..=9).map(id).collect();
        with_series(&place, &roots);
        let look = |known: &BTreeMap<String, SnapshotSize>| {
            let mut walks = Walks { most: 2 * OBJECTS_OF_WALK, ..Walks::new(&place.store) };
            place.store.weigh_by(&mut walks, known, &GOES_ON).unwrap()
        };
        let mut known = BTreeMap::new();
        for left in [7, 5, 3, 1, 0] {
            let look = look(&known);
            assert_eq!(look.left, left);
            known.extend(now(look));
        }
        // All of them have something new before each look, and none falls behind by more than its turn.
        for _ in 0..5 {
            with_series(&place, &roots);
            let look = look(&known);
            assert_eq!(look.left, 7);
            known.extend(now(look));
        }
        let oldest = known.values().map(|weight| weight.position).min().unwrap();
        assert!(oldest > 9, "{known:?}");
    }

    #[test]
    fn a_look_ends_when_the_server_does() {
        let place = Place::new();
        with_series(&place, &[id(1)]);
        let stopped = place.store.weigh(&BTreeMap::new(), &AtomicBool::new(true));
        assert!(matches!(stopped, Err(RepositoryError::Interrupted)), "{stopped:?}");
    }

    #[test]
    fn half_gone_or_all_changed_is_a_loss_and_growing_is_not() {
        let id = RecordHash::from_bytes([1; 32]);
        let of = |objects, chunks, old_chunks| SeriesChange {
            now: weight(&id, 9, objects, chunks),
            old_chunks,
            is_flooded: false,
        };
        let before = weight(&id, 1, 1000, 800);
        let is_loss = |now: SeriesChange| now.anomaly_since(&before).is_some();
        assert!(!is_loss(of(1000, 800, 800)), "unchanged");
        assert!(!is_loss(of(9000, 8000, 800)), "grown");
        assert!(!is_loss(of(500, 400, 400)), "half of it is left");
        assert!(is_loss(of(499, 399, 399)), "less than half is left");
        assert!(is_loss(of(1000, 800, 10)), "everything changed");
        assert!(is_loss(of(400, 399, 400)), "small contents are gone");
        let little = weight(&id, 1, 63, 40);
        assert!(of(1, 0, 0).anomaly_since(&little).is_none(), "too little to say");
    }

    #[test]
    fn more_than_honest_backups_within_an_hour_are_a_flood() {
        let minute = |position: u64| (position, position as i64 * 60_000_000_000);
        let before = SnapshotSize {
            first_position: 500,
            ..weight(&RecordHash::from_bytes([1; 32]), 1000, 0, 0)
        };
        // One a minute, and at once so many that came around `at`.
        let flood = |at: u64, at_once: u64| {
            let all = (400..1200).map(minute);
            let at_once = (0..at_once).map(|_| minute(at));
            let mut came: Vec<_> = all.chain(at_once).collect();
            came.sort_unstable();
            is_flooded(&came, &before)
        };
        assert!(!flood(1100, 0), "one a minute");
        assert!(!flood(1100, 40) && flood(1100, 41), "and more at once");
        assert!(flood(1000, 41), "some of them were there at the last look");
        assert!(!flood(900, 200), "all of them were");
    }

    #[test]
    fn what_was_there_at_the_first_look_is_no_part_of_a_flood() {
        let first_position = 60;
        let before =
            SnapshotSize { first_position, ..weight(&RecordHash::from_bytes([1; 32]), 70, 0, 0) };
        let at_once = |count: u64| -> Vec<_> { (1..=count).map(|number| (number, 0)).collect() };
        assert!(!is_flooded(&at_once(60 + HOUR_MOST as u64), &before));
        assert!(is_flooded(&at_once(61 + HOUR_MOST as u64), &before));
    }
}
