//! What lies inside a seal that holds: compression, directory, padding.

#![no_main]

use holdall_crypto::Opener;
use holdall_format::{BlockKind, padded_len};
use holdall_fuzz::{keys, sealed};
use libfuzzer_sys::fuzz_target;

/// Bytes of a payload before its body.
const PREFIX_BYTES: usize = 9;

fuzz_target!(|data: &[u8]| {
    let Some((&[kind, objects, compression, low, high], body)) = data.split_first_chunk() else {
        return;
    };
    let kinds = [BlockKind::Nodes, BlockKind::Chunks, BlockKind::Record];
    let kind = kinds[usize::from(kind) % 3];
    let unpacked_bytes = match compression {
        0 => body.len(),
        _ => usize::from(u16::from_le_bytes([low, high])) << (low % 8),
    };
    let mut payload = vec![compression];
    payload.extend_from_slice(&(body.len() as u32).to_le_bytes());
    payload.extend_from_slice(&(unpacked_bytes as u32).to_le_bytes());
    payload.extend_from_slice(body);
    payload.resize(padded_len(PREFIX_BYTES + body.len()), 0);
    for payload in [&payload[..], body] {
        let block = sealed(kind, objects, payload);
        let mut opener = Opener::new(keys().sealing(), keys().repository());
        let checked = opener.check(&block, kind, keys().ids());
        match opener.open(&block, kind) {
            Err(error) => assert_eq!(checked, Err(error)),
            Ok(opened) => {
                assert_eq!(opened.objects.len(), usize::from(objects));
                assert!(
                    opened.objects.iter().all(|object| object.range.end <= opened.plain.len()
                        || kind == BlockKind::Record)
                );
            }
        }
    }
});
