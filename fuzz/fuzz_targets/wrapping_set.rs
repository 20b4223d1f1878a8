//! Sets of wrappings with a signature that holds.

#![no_main]

use holdall_format::{SignedContext, WrappingSet};
use holdall_fuzz::signed;
use libfuzzer_sys::fuzz_target;

/// Where a set has its version.
const VERSION_AT: usize = 4;
/// Where a set has its owner.
const OWNER_AT: usize = 32;

fuzz_target!(|data: &[u8]| {
    let bytes = signed(SignedContext::Wrappings, data, OWNER_AT);
    for bytes in [data, &bytes] {
        if let Ok(set) = WrappingSet::decode_signed(bytes) {
            // Version 3 is read and not written.
            assert!(bytes[VERSION_AT] == 3 || bytes.starts_with(&set.signed_bytes()));
        }
    }
});
