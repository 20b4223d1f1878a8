//! Journals, as they come and with entries whose hashes hold.

#![no_main]

use holdall_fuzz::{checked, put_table_hash, read_again};
use holdall_repository::decoders::StoredFile;
use libfuzzer_sys::fuzz_target;

/// Bytes of a journal before its first entry, and of an entry before its header.
const FRONT_BYTES: usize = 24;
const ENTRY_FRONT_BYTES: usize = 60;

fuzz_target!(|data: &[u8]| {
    let mut hashed = data.to_vec();
    let mut at = FRONT_BYTES;
    while let Some(end) = put_hashes(&mut hashed, at) {
        at = end;
    }
    read_again(StoredFile::Journal, data);
    read_again(StoredFile::Journal, &hashed);
});

/// Makes the hashes of the entry at `at` hold; says where it ends, if it is all there.
fn put_hashes(journal: &mut [u8], at: usize) -> Option<usize> {
    let length = u32::from_le_bytes(*journal.get(at..)?.first_chunk()?) as usize;
    let end = at.checked_add(length).filter(|_| length > ENTRY_FRONT_BYTES)?;
    put_table_hash(journal.get_mut(at..end)?, ENTRY_FRONT_BYTES);
    let entry = journal.get_mut(at..end)?;
    let whole = checked(entry);
    entry.copy_from_slice(whole.get(..length)?);
    Some(end)
}
