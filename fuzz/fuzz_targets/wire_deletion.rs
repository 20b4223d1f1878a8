//! Deletions and compacting: what is asked for, and what waits.

#![no_main]

use holdall_protocol::wire::{
    decode_announced, decode_deletion, decode_deletions, decode_forget, decode_pruned,
    decode_sparse, decode_supersede, decode_superseding, encode_announced, encode_deletions,
    encode_forget, encode_pruned, encode_sparse, encode_supersede, encode_superseding,
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
    if let Ok(announced) = decode_announced(data) {
        assert_eq!(encode_announced(&announced), data);
    }
    if let Ok((token, blocks)) = decode_supersede(data) {
        assert_eq!(encode_supersede(&token, &blocks), data);
    }
    if let Ok(blocks) = decode_sparse(data) {
        assert_eq!(encode_sparse(&blocks), data);
    }
    if let Ok(superseding) = decode_superseding(data) {
        assert_eq!(encode_superseding(&superseding), data);
    }
    if let Ok(pruned) = decode_pruned(data) {
        assert_eq!(decode_pruned(&encode_pruned(&pruned)), Ok(pruned));
    }
});
