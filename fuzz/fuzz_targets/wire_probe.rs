//! Questions whether blocks are there, and the proofs that they are.

#![no_main]

use bytes::Bytes;
use holdall_format::{BlockName, proves_slice};
use holdall_protocol::wire::{decode_probes, decode_proofs, encode_probes, encode_proofs};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(probes) = decode_probes(data) {
        assert_eq!(encode_probes(&probes), data);
    }
    let Some((&count, rest)) = data.split_first() else { return };
    let body = Bytes::copy_from_slice(rest);
    if let Ok(proofs) = decode_proofs(&body, usize::from(count)) {
        assert_eq!(encode_proofs(&proofs), body);
    }
    // Nobody finds bytes of that name.
    let name = BlockName::from_bytes([7; 32]);
    let length = rest.first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
    let length = usize::try_from(length).unwrap_or(0);
    assert!(!proves_slice(&name, length, u32::from(count), rest));
});
