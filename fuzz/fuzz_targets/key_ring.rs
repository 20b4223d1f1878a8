//! Key rings, as they are wrapped and kept.

#![no_main]

use holdall_crypto::KeyRing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(ring) = KeyRing::decode(data) {
        assert!(*ring.encode() == data, "a ring has one encoding");
    }
});
