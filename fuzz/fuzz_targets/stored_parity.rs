//! Heads of parity, as they come and with a checksum that holds.

#![no_main]

use holdall_fuzz::{checked, read_again};
use holdall_repository::decoders::{StoredFile, parity_head_bytes};
use libfuzzer_sys::fuzz_target;

/// Over all that the greatest pack has.
const HEAD_MAX_BYTES: usize = 2 << 20;

fuzz_target!(|data: &[u8]| {
    read_again(StoredFile::ParityHead, data);
    read_again(StoredFile::ParityHead, &checked(data));
    assert!(parity_head_bytes(data).is_none_or(|bytes| bytes <= HEAD_MAX_BYTES));
});
