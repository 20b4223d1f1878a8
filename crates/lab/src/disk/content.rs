//! What is written: bytes that neither compress nor repeat, or a disk that does so flatters itself.

use super::order::mix;

/// Pieces that differ in every request: no storage that finds duplicates looks at smaller ones.
const PIECE_BYTES: usize = 4096;

/// Fills a buffer with bytes that do not compress.
pub fn fill(buffer: &mut [u8], seed: u64) {
    for (at, word) in buffer.chunks_mut(8).enumerate() {
        let bytes = mix(seed ^ mix(at as u64)).to_le_bytes();
        word.copy_from_slice(&bytes[..word.len()]);
    }
}

/// Makes each piece of a filled buffer one that was never written before, at next to no cost.
pub fn stamp(buffer: &mut [u8], number: u64) {
    for piece in buffer.chunks_mut(PIECE_BYTES) {
        if let Some(start) = piece.first_chunk_mut::<8>() {
            *start = (u64::from_le_bytes(*start) ^ mix(number)).to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_piece_is_like_another_before_or_after_it_is_stamped() {
        let mut buffer = vec![0; 64 << 10];
        fill(&mut buffer, 3);
        let mut pieces: Vec<Vec<u8>> = buffer.chunks(PIECE_BYTES).map(<[u8]>::to_vec).collect();
        for number in 0..3 {
            stamp(&mut buffer, number);
            pieces.extend(buffer.chunks(PIECE_BYTES).map(<[u8]>::to_vec));
        }
        let all = pieces.len();
        pieces.sort();
        pieces.dedup();
        assert_eq!(pieces.len(), all);
        let zeros = buffer.iter().filter(|&&byte| byte == 0).count();
        assert!((100..500).contains(&zeros), "{zeros} of 65,536 bytes are 0, not about 256");
    }
}
