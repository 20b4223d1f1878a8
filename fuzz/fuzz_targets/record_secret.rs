//! The sealed half of a record, opened.

#![no_main]

use holdall_crypto::RecordSecret;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok((secret, binding)) = RecordSecret::decode(data) {
        assert_eq!(secret.encode(&binding).unwrap(), data);
    }
});
