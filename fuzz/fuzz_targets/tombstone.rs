//! Tombstones, as they come and with signatures that hold, their own and that of the head in them.

#![no_main]

use holdall_format::{SIGNATURE_BYTES, SignedContext, Tombstone};
use holdall_fuzz::signed;
use libfuzzer_sys::fuzz_target;

/// Where a tombstone has its signer, where its head, and where a head has its key.
const SIGNER_AT: usize = 56;
const HEAD_AT: usize = 92;
const KEY_AT: usize = 40;

fuzz_target!(|data: &[u8]| {
    let resigned = resigned(data).unwrap_or_default();
    for bytes in [data, &resigned] {
        if let Ok((tombstone, _)) = Tombstone::decode_signed(bytes) {
            assert!(bytes.starts_with(&tombstone.signed_bytes()));
        }
    }
});

fn resigned(data: &[u8]) -> Option<Vec<u8>> {
    let (front, rest) = data.split_at_checked(HEAD_AT)?;
    let (head, signature) = rest.split_last_chunk::<SIGNATURE_BYTES>()?;
    let head = signed(SignedContext::Record, head, KEY_AT);
    Some(signed(SignedContext::Tombstone, &[front, &head, signature].concat(), SIGNER_AT))
}
