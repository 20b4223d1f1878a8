//! How much the newest snapshots hold, and how much of that was there before, without any key.
//!
//! Half the files gone, or all of them changed, looks from here like this: of what the snapshot before
//! held, less than half is left. A server looks at that before rules delete what could bring it back.

use std::collections::BTreeMap;

use holdall_format::{RecordHash, RecordKind};
use holdall_protocol::RepositoryError;
use serde::{Deserialize, Serialize};

use crate::closure::tally;
use crate::records::RecordEntry;
use crate::store::Store;

/// Less than this is too little to say what is usual.
const OBJECTS_MIN: u64 = 64;

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
}

/// The newest snapshot of a series, beside the one that was weighed before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighed {
    /// What it holds.
    pub now: Weight,
    /// Chunks of it that came before the other snapshot did.
    old_chunks: u64,
}

impl Weighed {
    /// Says what was lost since `before`, if that is much.
    pub fn loss_since(&self, before: &Weight) -> Option<String> {
        let short = |id: &str| id.get(..10).unwrap_or(id).to_owned();
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
    /// `known` already are left out, and so are those of which something is missing. Commits wait
    /// while one is weighed.
    ///
    /// # Errors
    /// If the index can not be read.
    pub fn weigh(
        &self,
        known: &BTreeMap<String, Weight>,
    ) -> Result<BTreeMap<String, Weighed>, RepositoryError> {
        let mut newest: BTreeMap<String, RecordEntry> = BTreeMap::new();
        let records = self.records().after(0).into_iter();
        for entry in records.filter(|entry| entry.kind == RecordKind::Snapshot) {
            newest.insert(format!("{}/{}", entry.machine, entry.series), entry);
        }
        let mut weighed = BTreeMap::new();
        for (series, entry) in newest {
            let before = known.get(&series);
            if before.is_some_and(|before| before.snapshot == entry.hash.to_string()) {
                continue;
            }
            let old_before = before.map_or(0, |before| before.position);
            let counted = tally(self, &self.lock_commit(), entry.root, old_before)?;
            weighed.extend(counted.map(|tally| {
                let (hash, position) = (entry.hash, entry.position);
                let now = weight(&hash, position, tally.objects, tally.chunks);
                (series, Weighed { now, old_chunks: tally.old_chunks })
            }));
        }
        Ok(weighed)
    }
}

fn weight(snapshot: &RecordHash, position: u64, objects: u64, chunks: u64) -> Weight {
    Weight { snapshot: snapshot.to_string(), position, objects, chunks }
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
        };
        let before = weight(&id, 1, 1000, 800);
        let is_loss = |now: Weighed| now.loss_since(&before).is_some();
        assert!(!is_loss(of(1000, 800, 800)), "unchanged");
        assert!(!is_loss(of(9000, 8000, 800)), "grown");
        assert!(!is_loss(of(500, 400, 400)), "half of it is left");
        assert!(is_loss(of(499, 399, 399)), "less than half is left");
        assert!(is_loss(of(1000, 800, 10)), "everything changed");
        assert!(is_loss(of(400, 399, 400)), "small contents are gone");
        let little = weight(&id, 1, 63, 40);
        assert!(of(1, 0, 0).loss_since(&little).is_none(), "too little to say");
    }
}
