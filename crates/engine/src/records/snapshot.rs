//! A snapshot as its record says it, and a record that is damaged.

use holdall_crypto::RecordSecret;
use holdall_format::{MachineId, ObjectId, RecordHash, SeriesId};

/// A committed snapshot, opened.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Its id: the record's hash.
    pub id: RecordHash,
    /// The machine that made it.
    pub machine: MachineId,
    /// Its series.
    pub series: SeriesId,
    /// Its place in the machine's chain of records, from 1.
    pub sequence: u64,
    /// When the repository received it, in nanoseconds since 1970 UTC.
    pub received_ns: i64,
    /// Whether the clock that said so had been set.
    pub received_sure: bool,
    /// Its place in the repository's log.
    pub log_position: u64,
    /// The root of its tree.
    pub root: ObjectId,
    /// Whether it is a checkpoint of a run that did not end; never shown.
    pub(crate) checkpoint: bool,
    /// Whether retention must keep it, as of its newest amendment.
    pub pinned: bool,
    /// Paths, host, statistics, and the tags of its newest amendment.
    pub secret: RecordSecret,
}

impl Snapshot {
    /// Whether it is a copy of one in another repository.
    pub fn is_copy(&self) -> bool {
        self.secret.copied_from.is_some()
    }

    /// The snapshot that its state was first committed as, in whichever repository: itself, unless
    /// it is a copy.
    pub(crate) fn origin(&self) -> RecordHash {
        self.secret.copied_from.map_or(self.id, |from| from.record)
    }

    /// When its state was first received, in nanoseconds since 1970 UTC: a copy is as old as what
    /// it is a copy of.
    pub fn taken_ns(&self) -> i64 {
        self.secret.copied_from.map_or(self.received_ns, |from| from.received_ns)
    }

    /// Snapshots in the order in which they were made, of those in the order in which they came here. That order stays,
    /// whatever a clock said; what was copied or imported came later than it was made, and goes in between by its date.
    pub fn by_making<'a>(by_arrival: impl IntoIterator<Item = &'a Self>) -> Vec<&'a Self> {
        let mut latest_ns = i64::MIN;
        let at = |one: &'a Self| {
            let is_own = one.secret.copied_from.is_none();
            if is_own {
                latest_ns = latest_ns.max(one.received_ns);
            }
            (if is_own { latest_ns } else { one.taken_ns() }, one)
        };
        let mut all: Vec<_> = by_arrival.into_iter().map(at).collect();
        all.sort_by_key(|(at_ns, _)| *at_ns);
        all.into_iter().map(|(_, one)| one).collect()
    }
}

/// A record that is stored and cannot be used. No other suffers from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedRecord {
    /// The log position that it lies at.
    pub position: u64,
    /// What is wrong with it.
    pub reason: String,
    /// Whether it is, or may be, the tombstone in its place that is meant.
    pub may_be_tombstone: bool,
}
