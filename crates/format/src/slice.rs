//! Proofs that a block is still there: a slice of it, and the hashes that lead from there to its name.
//!
//! A block's name is the root of BLAKE3's tree over its bytes. So who remembers nothing but the name
//! can ask for any kilobyte of it, and sees from the answer, of less than two more, that the slice is
//! the right one and that whoever answers read or hashed all of the block. The bytes are those of the
//! Bao format, version 0.13.

use std::io::{Cursor, Read};

use bao::decode::SliceDecoder;
use bao::encode::SliceExtractor;

use crate::BlockName;

/// Bytes of a slice; the last one of a block may be shorter.
pub const SLICE_BYTES: usize = 1024;
/// Most bytes of a proof: the block's length, two hashes for each level of the tree, the slice.
pub const SLICE_PROOF_MAX_BYTES: usize = 4096;

/// The number of slices that a block of that length has.
pub fn slices_in(block_bytes: usize) -> u32 {
    u32::try_from(block_bytes.div_ceil(SLICE_BYTES)).unwrap_or(u32::MAX)
}

/// Proves one slice of a block, counted from 0. `None` if the block has no such slice.
pub fn prove_slice(block: &[u8], slice: u32) -> Option<Vec<u8>> {
    if slice >= slices_in(block.len()) {
        return None;
    }
    let (outboard, _) = bao::encode::outboard(block);
    let (start, len) = (start_of(slice), SLICE_BYTES as u64);
    let (block, outboard) = (Cursor::new(block), Cursor::new(&outboard));
    let mut proof = Vec::new();
    SliceExtractor::new_outboard(block, outboard, start, len).read_to_end(&mut proof).ok()?;
    Some(proof)
}

/// Whether that is the proof of a slice of the block of that name and length.
///
/// Untrusted: nothing is allocated by what the proof says of itself.
pub fn proves_slice(name: &BlockName, block_bytes: usize, slice: u32, proof: &[u8]) -> bool {
    if slice >= slices_in(block_bytes) || proof.len() > SLICE_PROOF_MAX_BYTES {
        return false;
    }
    let (start, len) = (start_of(slice), SLICE_BYTES as u64);
    let whole = block_bytes as u64;
    if proof.first_chunk().map(|length| u64::from_le_bytes(*length)) != Some(whole) {
        return false;
    }
    let mut decoder = SliceDecoder::new(proof, &bao::Hash::from(*name.as_bytes()), start, len);
    let mut read = Vec::new();
    let wanted = whole.saturating_sub(start).min(len);
    decoder.read_to_end(&mut read).is_ok() && read.len() as u64 == wanted
}

fn start_of(slice: u32) -> u64 {
    u64::from(slice) * SLICE_BYTES as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn block(bytes: usize) -> (Vec<u8>, BlockName) {
        let block: Vec<u8> = (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect();
        let name = BlockName::from_bytes(*blake3::hash(&block).as_bytes());
        (block, name)
    }

    #[test]
    fn every_slice_of_blocks_of_many_lengths_is_proven() {
        for bytes in [1, 1023, 1024, 1025, 5000, 65_536, 65_537] {
            let (block, name) = block(bytes);
            for slice in 0..slices_in(bytes) {
                let proof = prove_slice(&block, slice).expect("it has that slice");
                assert!(proves_slice(&name, bytes, slice, &proof), "{bytes} {slice}");
                assert!(proof.len() <= SLICE_PROOF_MAX_BYTES);
            }
            assert_eq!(prove_slice(&block, slices_in(bytes)), None);
        }
        assert_eq!(prove_slice(&[], 0), None);
    }

    #[test]
    fn the_largest_block_has_proofs_within_the_limit() {
        let bytes = crate::limits::BLOCK_MAX_BYTES;
        let (block, name) = block(bytes);
        let last = slices_in(bytes) - 1;
        for slice in [0, last / 2, last] {
            let proof = prove_slice(&block, slice).expect("it has that slice");
            assert!(proof.len() <= SLICE_PROOF_MAX_BYTES, "{} bytes", proof.len());
            assert!(proves_slice(&name, bytes, slice, &proof));
        }
    }

    #[test]
    fn what_proves_another_slice_block_or_length_proves_nothing() {
        let (mut block, name) = block(10_000);
        let proof = prove_slice(&block, 3).expect("it has that slice");
        assert!(proves_slice(&name, 10_000, 3, &proof));
        for slice in [0, 2, 4, 9, 10, u32::MAX] {
            assert!(!proves_slice(&name, 10_000, slice, &proof), "{slice}");
        }
        assert!(!proves_slice(&name, 9_999, 3, &proof));
        assert!(!proves_slice(&BlockName::from_bytes([1; 32]), 10_000, 3, &proof));
        block[9_999] ^= 1;
        let of_damaged = prove_slice(&block, 3).expect("it has that slice");
        assert!(!proves_slice(&name, 10_000, 3, &of_damaged), "a change elsewhere shows");
    }

    #[test]
    fn a_proof_with_any_bit_changed_or_cut_anywhere_proves_nothing() {
        let (block, name) = block(3_000);
        let proof = prove_slice(&block, 1).expect("it has that slice");
        for bit in 0..proof.len() * 8 {
            let mut changed = proof.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!proves_slice(&name, 3_000, 1, &changed), "bit {bit}");
        }
        for len in 0..proof.len() {
            assert!(!proves_slice(&name, 3_000, 1, &proof[..len]), "{len} bytes");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_prove_nothing(proof: Vec<u8>, slice in 0u32..20, bytes in 0usize..20_000) {
            prop_assert!(!proves_slice(&BlockName::from_bytes([7; 32]), bytes, slice, &proof));
        }
    }
}
