//! Spares, as they come and with a checksum that holds.

#![no_main]

use holdall_format::{SPARE_MAX_BYTES, Spare};
use holdall_fuzz::checked;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for bytes in [data, &checked(data)] {
        if let Ok(spare) = Spare::decode(bytes) {
            assert!(bytes.len() <= SPARE_MAX_BYTES);
            assert!(spare.encode() == bytes, "a spare has one form");
        }
    }
});
