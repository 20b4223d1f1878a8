//! Whose receipts are good: a repository outlives its keepers.
//!
//! A server that was set up anew from its repositories has another identity than the one that signed
//! the receipts so far, and a server's folder may be used as a directory and given back. So a record
//! is not refused because somebody else kept it earlier. Read in the order of the log, a receipt is
//! good if its signer is
//!
//! - the present keeper;
//! - anybody, for a record that is older than the present keeper's first one;
//! - the very key that signed the record: its machine kept it in a directory;
//! - anybody, where the repository is in a directory and has no keeper.
//!
//! What this gives away is nothing that a keeper has not anyway. A receipt tells when a record came
//! and in which order; the record itself is signed by its machine, names the one before it and is
//! sealed, so no signer of receipts can change, forge or move one within its machine's chain. The
//! present keeper can sign what it likes at any time, and whoever else wants to be believed must get
//! the present keeper to hand it out. A strange receipt behind one of the present keeper's fits none
//! of this and is refused.

use holdall_format::{PublicKey, StoredRecord, Tombstone};

use crate::UnlockedRepository;

/// Judges receipts, record after record in the order of the log.
pub(crate) struct ReceiptSigners {
    present: PublicKey,
    in_directory: bool,
    present_began: bool,
}

impl ReceiptSigners {
    /// Before the first record. A repository in a directory is known by its receipts being this
    /// machine's own.
    pub(crate) fn of(access: &UnlockedRepository) -> Self {
        let in_directory = access.is_in_directory();
        Self { present: access.receipts_from, in_directory, present_began: false }
    }

    /// Whether the next record's receipt is good.
    pub(crate) fn accept(&mut self, stored: &StoredRecord) -> bool {
        let signer = stored.receipt.signer;
        self.present_began |= signer == self.present;
        self.may_have_signed(signer, stored.record.head.key)
    }

    /// Whether a tombstone in the place of the next record is good. Whoever buried it may have come
    /// later than whoever received it, so it tells nothing of those that follow.
    pub(crate) fn accept_tombstone(&self, tombstone: &Tombstone, key: PublicKey) -> bool {
        self.may_have_signed(tombstone.signer, key)
    }

    fn may_have_signed(&self, signer: PublicKey, of_record: PublicKey) -> bool {
        signer == self.present || !self.present_began || self.in_directory || signer == of_record
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_world::stored_record;
    use holdall_crypto::SigningKey;

    const MACHINE: u8 = 1;
    const FORMER: u8 = 2;
    const PRESENT: u8 = 3;

    fn judged(keeper: u8, signers: &[u8]) -> Vec<bool> {
        let key = |seed: u8| SigningKey::from_seed(&[seed; 32]);
        let mut keepers = ReceiptSigners {
            present: key(keeper).public(),
            in_directory: keeper == MACHINE,
            present_began: false,
        };
        let records =
            (1..).zip(signers).map(|(at, signer)| stored_record(&key(MACHINE), &key(*signer), at));
        records.map(|stored| keepers.accept(&stored)).collect()
    }

    #[test]
    fn a_former_keeper_is_believed_until_the_present_one_begins() {
        let signers = [FORMER, 7, FORMER, PRESENT, PRESENT];
        assert_eq!(judged(PRESENT, &signers), [true; 5]);
        let forged = [FORMER, PRESENT, FORMER, PRESENT, 7];
        assert_eq!(judged(PRESENT, &forged), [true, true, false, true, false]);
    }

    #[test]
    fn what_its_machine_kept_in_a_directory_is_believed_at_any_time() {
        assert_eq!(judged(PRESENT, &[PRESENT, MACHINE, PRESENT]), [true; 3]);
    }

    #[test]
    fn in_a_directory_anybody_may_have_kept_it_before() {
        assert_eq!(judged(MACHINE, &[FORMER, MACHINE, FORMER, PRESENT]), [true; 4]);
    }
}
