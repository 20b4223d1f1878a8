//! The chains of records: each machine's records count from 1, and each names the one before it.
//!
//! A keeper cannot forge a record, but it can leave some out, or show to one reader what it does not
//! show to another. What is left out in the middle shows in the next record of that machine: the one
//! that it names is not there. What no chain tells is whether its end is the true end; that a client
//! knows of the records that it has receipts for, and of no others.
//!
//! Two records may name the same one before them, and both be good: the repository was set back in
//! between and has both now, or a record came back that was damaged for a while. Nothing is missing
//! then, and nothing is wrong but that it happened.
//!
//! A record that is damaged cannot say whose it is, so it accounts for one that is missing behind the
//! last good one. Forgotten records are counted by their tombstones.

use std::collections::HashMap;

use holdall_format::{MachineId, RecordHash, RecordHead};

/// What a machine's first record names as the one before.
const NO_RECORD: RecordHash = RecordHash::from_bytes([0; 32]);

/// How a record breaks its machine's chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakKind {
    /// So many records before it, the one that it names among them, are not there.
    LeftOut(u64),
    /// Another record follows the same one, and both are there.
    TwoHistories,
}

/// A record that is not the next one of its machine's chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainBreak {
    /// The record.
    pub record: RecordHash,
    /// Its log position.
    pub position: u64,
    /// How it breaks the chain.
    pub kind: BreakKind,
}

/// Follows all chains at once, record after record in the order of the log.
#[derive(Default)]
pub(crate) struct Chains {
    chains: HashMap<MachineId, Chain>,
    damaged: u64,
}

/// One machine's records so far.
struct Chain {
    /// The number of each.
    numbers: HashMap<RecordHash, u64>,
    last: RecordHash,
    /// How many damaged records came before the last one.
    damaged: u64,
}

impl Chains {
    /// Counts a record that cannot be read.
    pub(crate) fn add_damaged(&mut self) {
        self.damaged = self.damaged.saturating_add(1);
    }

    /// Goes on to the record of that head, and says what is wrong with its place.
    pub(crate) fn follow(
        &mut self,
        record: RecordHash,
        position: u64,
        head: &RecordHead,
    ) -> Option<ChainBreak> {
        let chain = self.chains.entry(head.machine).or_insert_with(Chain::new);
        let more_damaged = self.damaged.saturating_sub(chain.damaged);
        let kind = chain.judge(head, more_damaged);
        chain.numbers.insert(record, head.sequence);
        (chain.last, chain.damaged) = (record, self.damaged);
        Some(ChainBreak { record, position, kind: kind? })
    }
}

impl Chain {
    fn new() -> Self {
        let numbers = HashMap::from([(NO_RECORD, 0)]);
        Self { numbers, last: NO_RECORD, damaged: 0 }
    }

    /// `damaged` records behind the last good one may have been this machine's.
    fn judge(&self, head: &RecordHead, damaged: u64) -> Option<BreakKind> {
        let number_before = head.sequence.checked_sub(1);
        if self.numbers.get(&head.previous).copied() != number_before {
            let last = self.numbers.get(&self.last).copied().unwrap_or_default();
            let missing = head.sequence.saturating_sub(last).saturating_sub(1).max(1);
            let left_out = missing.saturating_sub(damaged);
            return (left_out > 0).then_some(BreakKind::LeftOut(left_out));
        }
        (head.previous != self.last).then_some(BreakKind::TwoHistories)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_world::stored_record;
    use holdall_crypto::SigningKey;

    /// A record's number, and which number the record before it had.
    fn head(sequence: u64, previous: u8) -> RecordHead {
        let key = SigningKey::from_seed(&[1; 32]);
        let previous = RecordHash::from_bytes([previous; 32]);
        RecordHead { sequence, previous, ..stored_record(&key, &key, 1).record.head }
    }

    /// Follows records called by a byte each, of which zero is a damaged one. Gives the breaks.
    fn broken(records: &[(u8, u64, u8)]) -> Vec<(u8, BreakKind)> {
        let mut chains = Chains::default();
        let mut found = Vec::new();
        for (name, sequence, previous) in records {
            let record = RecordHash::from_bytes([*name; 32]);
            if *name == 0 {
                chains.add_damaged();
            } else if let Some(broken) = chains.follow(record, 1, &head(*sequence, *previous)) {
                found.push((*name, broken.kind));
            }
        }
        found
    }

    #[test]
    fn a_chain_that_goes_on_evenly_is_whole() {
        assert_eq!(broken(&[(11, 1, 0), (12, 2, 11), (13, 3, 12)]), []);
    }

    #[test]
    fn what_is_left_out_shows_in_the_next_record() {
        let first = [(12, 2, 11), (13, 3, 12)];
        assert_eq!(broken(&first), [(12, BreakKind::LeftOut(1))]);
        let middle = [(11, 1, 0), (13, 3, 12), (14, 4, 13)];
        assert_eq!(broken(&middle), [(13, BreakKind::LeftOut(1))]);
        let two_of_three = [(11, 1, 0), (0, 0, 0), (15, 5, 14)];
        assert_eq!(broken(&two_of_three), [(15, BreakKind::LeftOut(2))]);
        let another_instead = [(11, 1, 0), (23, 2, 22)];
        assert_eq!(broken(&another_instead), [(23, BreakKind::LeftOut(1))]);
        assert_eq!(broken(&[(11, 1, 7)]), [(11, BreakKind::LeftOut(1))]);
        assert_eq!(broken(&[(11, 0, 0)]), [(11, BreakKind::LeftOut(1))], "a number that is none");
    }

    #[test]
    fn two_histories_show_themselves() {
        let both = [(11, 1, 0), (12, 2, 11), (22, 2, 11), (23, 3, 22)];
        assert_eq!(broken(&both), [(22, BreakKind::TwoHistories)]);
        let anew = [(11, 1, 0), (12, 2, 11), (21, 1, 0)];
        assert_eq!(broken(&anew), [(21, BreakKind::TwoHistories)]);
    }

    #[test]
    fn a_damaged_record_accounts_for_one_that_is_missing() {
        assert_eq!(broken(&[(11, 1, 0), (0, 0, 0), (13, 3, 12)]), []);
        assert_eq!(broken(&[(0, 0, 0), (12, 2, 11)]), []);
    }
}
