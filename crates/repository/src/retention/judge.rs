//! What rules for keeping say of the snapshots of a repository, without any key.

use std::collections::{BTreeMap, BTreeSet};

use holdall_format::{MachineId, RecordHash, RecordKind, TagToken};
use jiff::tz::TimeZone;

use crate::records::entry::RecordEntry;
use crate::retention::evaluate::{Aged, Backwards, Policy, Reason, keep};
use crate::store::Store;

/// A snapshot, and why it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// Which.
    pub id: RecordHash,
    /// Whose it is.
    pub machine: MachineId,
    /// When it was received, in nanoseconds since 1970 UTC.
    pub received_ns: i64,
    /// Of a copy: when its machine says that the original was received.
    pub taken_ns: Option<i64>,
    /// Nothing if the rules let it go.
    pub reasons: Vec<Reason>,
}

impl Store {
    /// Says of each snapshot, oldest first, why it is kept: by rules, or by a tag of one of these
    /// `tokens`. One that came when the clock was not set is kept: nobody knows how old it is.
    pub fn judge(&self, policy: &Policy, tokens: &[TagToken]) -> Vec<Judged> {
        let records = self.records().after(0);
        let of_kind = |kind: RecordKind| records.iter().filter(move |entry| entry.kind == kind);
        let amended: BTreeMap<RecordHash, &RecordEntry> = of_kind(RecordKind::Amendment)
            .filter_map(|entry| Some((entry.amends?, entry)))
            .collect();
        let snapshots: Vec<_> = of_kind(RecordKind::Snapshot).collect();
        let sure = self.sure(&records);
        let aged: Vec<_> = snapshots
            .iter()
            .map(|entry| {
                let as_it_is = amended.get(&entry.hash).unwrap_or(entry);
                Aged {
                    series: (entry.machine, entry.series),
                    received_ns: entry.received_ns,
                    passed_ns: self.passed_ns(entry.received_ns),
                    taken_ns: entry.taken_ns,
                    clock_sure: entry.clock_sure,
                    is_sure: sure.contains(&entry.position),
                    pinned: as_it_is.pinned,
                    tagged: as_it_is.tags.iter().any(|tag| tokens.contains(tag)),
                }
            })
            .collect();
        let kept = keep(policy, &aged, &TimeZone::UTC);
        let judged = snapshots.into_iter().zip(kept).map(|(entry, reasons)| Judged {
            id: entry.hash,
            machine: entry.machine,
            received_ns: entry.received_ns,
            taken_ns: entry.taken_ns,
            reasons,
        });
        judged.collect()
    }

    /// The positions of those of all records that came when their receipts say: when the clock was set, and
    /// no later than what came behind them in the log, or than now.
    fn sure(&self, records: &[RecordEntry]) -> BTreeSet<u64> {
        let mut log = Backwards::from_now(self.now_ns());
        let newest_first = records.iter().rev();
        let is_sure = |entry: &&RecordEntry| log.came(entry.received_ns, entry.clock_sure).is_sure;
        newest_first.filter(is_sure).map(|entry| entry.position).collect()
    }
}
