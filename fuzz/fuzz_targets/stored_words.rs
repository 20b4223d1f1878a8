//! What a repository keeps in words: what its place can do, how far a scrub is, who has the lease.

#![no_main]

use holdall_repository::decoders::{StoredFile, lease_holder};
use libfuzzer_sys::fuzz_target;

/// What is said of a lease beside the name of the computer, of at most 64 characters.
const HOLDER_MAX_CHARACTERS: usize = 64 + 100;

fuzz_target!(|data: &[u8]| {
    for file in [StoredFile::Probes, StoredFile::ScrubRound] {
        if let Some(once) = file.rewritten(data) {
            assert!(file.rewritten(&once).is_some(), "{file:?} is refused that was just written");
        }
    }
    let holder = lease_holder(data);
    assert!(holder.chars().count() <= HOLDER_MAX_CHARACTERS);
    assert!(!holder.contains(char::is_control));
});
