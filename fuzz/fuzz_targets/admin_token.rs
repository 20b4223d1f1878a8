//! Administrators' tokens as people paste them.

#![no_main]

use holdall_protocol::AdminToken;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &str| {
    if let Some(token) = AdminToken::from_text(data) {
        assert!(*token.to_text() == data.trim(), "a token has one text");
    }
});
