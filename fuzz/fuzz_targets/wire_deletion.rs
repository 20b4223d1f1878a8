//! Deletions: what is asked for, and what waits.

#![no_main]

use holdall_protocol::wire::{
    decode_deletion, decode_deletions, decode_forget, decode_pruned, encode_deletions,
    encode_forget, encode_pruned,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok((token, snapshots)) = decode_forget(data) {
        assert_eq!(encode_forget(&token, &snapshots), data);
    }
    if let Ok(deletions) = decode_deletions(data) {
        assert_eq!(encode_deletions(&deletions), data);
    }
    let _ = decode_deletion(data);
    if let Ok(report) = decode_pruned(data) {
        assert_eq!(decode_pruned(&encode_pruned(&report)), Ok(report));
    }
});
