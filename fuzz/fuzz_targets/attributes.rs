//! Encoded attributes.

#![no_main]

use holdall_tree::Attributes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(attributes) = Attributes::decode(data) {
        assert_eq!(attributes.encode(), data);
    }
});
