//! Configurations with a signature that holds.

#![no_main]

use holdall_format::{RepositoryConfig, SignedContext};
use holdall_fuzz::{keys, signed};
use libfuzzer_sys::fuzz_target;

/// Where a configuration has its owner.
const OWNER_AT: usize = 32;

fuzz_target!(|data: &[u8]| {
    let bytes = signed(SignedContext::Config, data, OWNER_AT);
    for bytes in [data, &bytes] {
        if let Ok(config) = RepositoryConfig::decode_signed(bytes) {
            assert!(bytes.starts_with(&config.signed_bytes()));
        }
        assert!(keys().check_config(bytes).is_err(), "no key of this target is the owner's");
    }
});
