//! Marks and sessions of a repository, as they come and with a checksum that holds.

#![no_main]

use holdall_fuzz::{checked, read_again};
use holdall_repository::decoders::StoredFile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let checked = checked(data);
    for file in [StoredFile::CondemnMark, StoredFile::Session, StoredFile::SupersededMark] {
        read_again(file, data);
        read_again(file, &checked);
    }
});
