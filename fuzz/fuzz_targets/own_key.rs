//! Public and private keys of people's own, as their files have them.

#![no_main]

use holdall_crypto::{OwnPrivateKey, OwnPublicKey};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &str| {
    let with_blanks = format!("\n {data}\n");
    assert_eq!(public(data), public(&with_blanks), "blanks around a key are no part of it");
    let _ = OwnPrivateKey::from_text(data);
});

/// What a public key is called, or why it is none.
fn public(text: &str) -> Result<String, String> {
    OwnPublicKey::from_text(text).map(|key| key.label().to_owned())
}
