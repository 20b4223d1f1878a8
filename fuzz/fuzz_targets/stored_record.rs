//! Receipts, and records with their receipts.

#![no_main]

use holdall_format::{Receipt, SignedContext, StoredRecord};
use holdall_fuzz::signed;
use libfuzzer_sys::fuzz_target;

/// Where a receipt has its signer.
const SIGNER_AT: usize = 72;

fuzz_target!(|data: &[u8]| {
    if let Ok(stored) = StoredRecord::decode(data) {
        assert_eq!(stored.encode(), data);
    }
    let bytes = signed(SignedContext::Receipt, data, SIGNER_AT);
    for bytes in [data, &bytes] {
        if let Ok(receipt) = Receipt::decode_signed(bytes) {
            assert!(bytes.starts_with(&receipt.signed_bytes()));
        }
    }
});
