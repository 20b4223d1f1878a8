//! Records, as they come and with a signature and a hash that hold.

#![no_main]

use holdall_format::{Record, SignedContext};
use holdall_fuzz::signed;
use libfuzzer_sys::fuzz_target;

/// Where a head has its key, and the hash of the sealed half.
const KEY_AT: usize = 40;
const SEALED_HASH_AT: usize = 160;

fuzz_target!(|data: &[u8]| {
    let resigned = resigned(data).unwrap_or_default();
    for bytes in [data, &resigned] {
        if let Ok(record) = Record::decode(bytes) {
            assert_eq!(record.encode(), bytes);
        }
    }
});

fn resigned(data: &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = data.split_first_chunk::<4>()?;
    let (head, sealed) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let mut head = head.to_vec();
    let place = head.get_mut(SEALED_HASH_AT..)?.first_chunk_mut::<32>()?;
    *place = *blake3::hash(sealed).as_bytes();
    Some([&length[..], &signed(SignedContext::Record, &head, KEY_AT), sealed].concat())
}
