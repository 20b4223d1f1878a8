//! Telling records that are sound from those that are not, among lists of them in the order of the log.

use holdall_format::{StoredRecord, Tombstone};
use holdall_protocol::ListedRecord;

/// Whether what lies at a position is what was stored there: a record with its receipt, or a tombstone.
pub(crate) fn is_sound(listed: &ListedRecord) -> bool {
    match Tombstone::is_begun_by(&listed.stored) {
        true => Tombstone::decode_signed(&listed.stored)
            .is_ok_and(|(tombstone, _)| tombstone.log_position == listed.position),
        false => StoredRecord::decode(&listed.stored)
            .is_ok_and(|stored| stored.receipt.log_position == listed.position),
    }
}

/// Those of the known records that are sound and lie under log positions where what is listed is not.
pub(crate) fn sound_in_place_of_damaged(
    known: &[ListedRecord],
    listed: &[ListedRecord],
) -> Vec<ListedRecord> {
    // Where both are the same nothing is to be chosen, and signatures take time.
    let is_better = |known: &&ListedRecord| {
        at(listed, known.position).is_ok_and(|at| {
            known.stored != listed[at].stored && !is_sound(&listed[at]) && is_sound(known)
        })
    };
    known.iter().filter(is_better).cloned().collect()
}

/// Where the record under a log position is, or would be.
///
/// # Errors
/// Where it would be, if nothing is there.
pub(crate) fn at(records: &[ListedRecord], position: u64) -> Result<usize, usize> {
    records.binary_search_by_key(&position, |record| record.position)
}
