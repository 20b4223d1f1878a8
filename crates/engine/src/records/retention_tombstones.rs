//! Whether rules may have let go what a keeper says that they did.
//!
//! Of each series the newest snapshot stays whatever the rules say, so where rules let one go, a later one of its
//! series is there, or somebody asked for that to go. A keeper that hides a whole series behind tombstones of
//! its own is found out by this, by whoever has the key and remembers nothing.

use std::collections::HashMap;

use holdall_format::{MachineId, RecordHead, RecordKind, SeriesId, TombstoneReason};

use crate::{DamagedRecord, Snapshot};

/// What a snapshot's place is among others: whose it is, and its number.
type Series = (MachineId, SeriesId);

/// The tombstones of snapshots, in the order of the log.
#[derive(Default)]
pub(crate) struct RetentionTombstones {
    by_rules: Vec<(Series, u64, u64)>,
    /// The newest of each series that somebody asked to go.
    on_request: HashMap<Series, u64>,
}

impl RetentionTombstones {
    /// Takes note of a tombstone, of the record of that head, at its log position.
    pub(crate) fn add(&mut self, head: &RecordHead, reason: TombstoneReason, position: u64) {
        let series = (head.machine, head.series);
        match reason {
            TombstoneReason::Request => raise(&mut self.on_request, series, head.sequence),
            // Unfinished backups are let go without one that follows, and tags go with what they are of.
            _ if head.kind == RecordKind::Checkpoint || head.amends.is_some() => {}
            TombstoneReason::Retention => self.by_rules.push((series, head.sequence, position)),
        }
    }

    /// Those that no rules can have let go, where these snapshots are all that there are.
    pub(crate) fn implausible(self, snapshots: &[Snapshot]) -> Vec<DamagedRecord> {
        let mut newest = self.on_request;
        for snapshot in snapshots {
            raise(&mut newest, (snapshot.machine, snapshot.series), snapshot.sequence);
        }
        let is_last = |(series, sequence, _): &&(Series, u64, u64)| {
            newest.get(series).is_none_or(|newest| newest < sequence)
        };
        let last = self.by_rules.iter().filter(is_last);
        last.map(|(_, _, position)| DamagedRecord {
            position: *position,
            reason: "the repository says that its rules for keeping let it go, and none lets the newest snapshot \
                     of a series go"
                .to_owned(),
            may_be_tombstone: true,
        })
        .collect()
    }
}

fn raise(newest: &mut HashMap<Series, u64>, series: Series, sequence: u64) {
    let known = newest.entry(series).or_default();
    *known = (*known).max(sequence);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_world::{World, stored_record};
    use holdall_crypto::SigningKey;
    use holdall_format::RecordHash;

    fn head(sequence: u64) -> RecordHead {
        let key = SigningKey::from_seed(&[1; 32]);
        RecordHead { sequence, ..stored_record(&key, &key, 1).record.head }
    }

    /// The positions of what cannot be, where snapshots of these numbers are left.
    fn implausible(gone: &[(RecordHead, TombstoneReason)], left: &[u64]) -> Vec<u64> {
        let mut let_go = RetentionTombstones::default();
        for (position, (head, reason)) in (10..).zip(gone) {
            let_go.add(head, *reason, position);
        }
        let (of, any) = (head(1), World::new().snapshot(&[]));
        let (machine, series) = (of.machine, of.series);
        let of = |sequence: &u64| Snapshot { machine, series, sequence: *sequence, ..any.clone() };
        let left: Vec<_> = left.iter().map(of).collect();
        let_go.implausible(&left).iter().map(|damaged| damaged.position).collect()
    }

    #[test]
    fn rules_let_go_only_what_another_of_its_series_follows_or_followed() {
        use TombstoneReason::{Request, Retention};
        let two = [(head(1), Retention), (head(2), Retention)];
        assert_eq!(implausible(&two, &[3]), [0; 0]);
        assert_eq!(implausible(&two, &[1]), [11]);
        assert_eq!(implausible(&two, &[]), [10, 11]);
        let asked = [(head(1), Retention), (head(2), Request)];
        assert_eq!(implausible(&asked, &[]), [0; 0]);
        let other = RecordHead { machine: MachineId::from_bytes([9; 16]), ..head(1) };
        assert_eq!(implausible(&[(other, Retention)], &[3]), [10]);
    }

    #[test]
    fn unfinished_backups_and_tags_go_by_themselves() {
        let checkpoint = RecordHead { kind: RecordKind::Checkpoint, ..head(1) };
        let tags = RecordHead { amends: Some(RecordHash::from_bytes([1; 32])), ..head(2) };
        let gone = [checkpoint, tags].map(|head| (head, TombstoneReason::Retention));
        assert_eq!(implausible(&gone, &[]), [0; 0]);
    }
}
