//! How much the newest snapshots hold, how much of that was there before, and how many came at once, without
//! any key.
//!
//! Half the files gone, or all of them changed, looks from here like this: of what the snapshot before
//! held, less than half is left. And of an hour, a day and a week rules keep the newest, so that who floods a
//! series with snapshots has the others of that time go. A server looks at both before rules delete what could
//! bring things back.

use std::collections::BTreeMap;

use holdall_format::{RecordHash, RecordKind};
use holdall_protocol::RepositoryError;
use serde::{Deserialize, Serialize};

use crate::closure::tally;
use crate::records::RecordEntry;
use crate::store::Store;

/// Less than this is too little to say what is usual.
const OBJECTS_MIN: u64 = 64;
/// More snapshots of a series within an hour than this are a flood: backups that are due come once a minute at
/// most, and some more are made by hand or tried again.
const HOUR_MOST: usize = 100;
const HOUR_NS: u64 = 3600 * 1_000_000_000;

/// How much a snapshot holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weight {
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
pub struct Weighed {
    /// What it holds.
    pub now: Weight,
    /// Chunks of it that came before the other snapshot did.
    old_chunks: u64,
    /// Whether it came in a flood that did not end before the other.
    is_flooded: bool,
}

impl Weighed {
    /// Says what is unusual since `before`: that much was lost, or that a flood came.
    pub fn anomaly_since(&self, before: &Weight) -> Option<String> {
        self.loss_since(before).or_else(|| self.flood())
    }

    fn flood(&self) -> Option<String> {
        let now = short(&self.now.snapshot);
        self.is_flooded.then(|| {
            format!("up to snapshot {now}, more than {HOUR_MOST} of its series came within an hour")
        })
    }

    fn loss_since(&self, before: &Weight) -> Option<String> {
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

impl Store {
    /// Weighs the newest snapshot of each series, by a name that is the series' own; those that are in
    /// `known` already are left out, and so are those of which something is missing. Also looks whether it
    /// came in a flood. Commits wait while one is weighed.
    ///
    /// # Errors
    /// If the index can not be read.
    pub fn weigh(
        &self,
        known: &BTreeMap<String, Weight>,
    ) -> Result<BTreeMap<String, Weighed>, RepositoryError> {
        let mut all: BTreeMap<String, Vec<RecordEntry>> = BTreeMap::new();
        let records = self.records().after(0).into_iter();
        for entry in records.filter(|entry| entry.kind == RecordKind::Snapshot) {
            all.entry(format!("{}/{}", entry.machine, entry.series)).or_default().push(entry);
        }
        let mut weighed = BTreeMap::new();
        for (series, entries) in all {
            let Some(entry) = entries.last() else { continue };
            let before = known.get(&series);
            if before.is_some_and(|before| before.snapshot == entry.hash.to_string()) {
                continue;
            }
            let old_before = before.map_or(0, |before| before.position);
            let counted = tally(self, &self.lock_commit(), entry.root, old_before)?;
            let is_flooded = before.is_some_and(|before| is_flooded(&came(&entries), before));
            weighed.extend(counted.map(|tally| {
                let now = Weight {
                    first_position: before.map_or(entry.position, |before| before.first_position),
                    ..weight(&entry.hash, entry.position, tally.objects, tally.chunks)
                };
                (series, Weighed { now, old_chunks: tally.old_chunks, is_flooded })
            }));
        }
        Ok(weighed)
    }
}

fn short(id: &str) -> &str {
    id.get(..10).unwrap_or(id)
}

fn weight(snapshot: &RecordHash, position: u64, objects: u64, chunks: u64) -> Weight {
    Weight { snapshot: snapshot.to_string(), position, objects, chunks, first_position: position }
}

/// The places in the log of what came by a clock that had been set, and when that was.
fn came(entries: &[RecordEntry]) -> Vec<(u64, i64)> {
    let sure = entries.iter().filter(|entry| entry.clock_sure);
    sure.map(|entry| (entry.position, entry.received_ns)).collect()
}

/// Whether more came within an hour than honest backups do, the last of them behind `before`. What `before`
/// knew when it was first weighed does not count.
fn is_flooded(came: &[(u64, i64)], before: &Weight) -> bool {
    let counted = came.partition_point(|(position, _)| *position <= before.first_position);
    let counted = came.get(counted..).unwrap_or_default();
    let ends = counted.iter().zip(counted.iter().skip(HOUR_MOST));
    let mut new = ends.filter(|(_, (position, _))| *position > before.position);
    new.any(|((_, first_ns), (_, last_ns))| last_ns.abs_diff(*first_ns) < HOUR_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_gone_or_all_changed_is_a_loss_and_growing_is_not() {
        let id = RecordHash::from_bytes([1; 32]);
        let of = |objects, chunks, old_chunks| Weighed {
            now: weight(&id, 9, objects, chunks),
            old_chunks,
            is_flooded: false,
        };
        let before = weight(&id, 1, 1000, 800);
        let is_loss = |now: Weighed| now.anomaly_since(&before).is_some();
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
        let before =
            Weight { first_position: 500, ..weight(&RecordHash::from_bytes([1; 32]), 1000, 0, 0) };
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
            Weight { first_position, ..weight(&RecordHash::from_bytes([1; 32]), 70, 0, 0) };
        let at_once = |count: u64| -> Vec<_> { (1..=count).map(|number| (number, 0)).collect() };
        assert!(!is_flooded(&at_once(60 + HOUR_MOST as u64), &before));
        assert!(is_flooded(&at_once(61 + HOUR_MOST as u64), &before));
    }
}
