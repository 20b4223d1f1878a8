//! Bytes to measure with: some that compress as text does, and some that do not compress at all.

use crate::disk::fill;

/// How many different words the text has.
const WORDS: u64 = 4096;

/// Bytes that do not compress.
pub fn incompressible(len_bytes: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len_bytes];
    fill(&mut bytes, seed);
    bytes
}

/// Words of letters, frequent and rare ones: it becomes about a third when it is compressed.
pub fn text(len_bytes: usize, seed: u64) -> Vec<u8> {
    let mut dice = incompressible(len_bytes.div_ceil(2) * 8, seed);
    let mut rolls = dice
        .chunks_exact_mut(8)
        .map(|roll| u64::from_le_bytes(roll.first_chunk().copied().unwrap_or_default()));
    let mut text = Vec::with_capacity(len_bytes + 16);
    while let Some(roll) = rolls.next().filter(|_| text.len() < len_bytes) {
        // The product of two numbers is small more often than not, as a frequent word's rank is.
        let rank = (roll % WORDS) * ((roll >> 16) % WORDS) / WORDS;
        text.extend(word(rank));
        text.push(if roll >> 60 == 0 { b'\n' } else { b' ' });
    }
    text.truncate(len_bytes);
    text
}

/// The word of a rank: rare ones are longer.
fn word(rank: u64) -> impl Iterator<Item = u8> {
    let mut left = rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8;
    (0..2 + u64::BITS - rank.leading_zeros()).map(move |_| {
        let letter = b"etaoinshrdlucmfw"[(left & 15) as usize];
        left >>= 4;
        letter
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_its_length_and_few_letters() {
        let text = text(10_000, 1);
        assert_eq!(text.len(), 10_000);
        assert!(text.iter().all(|byte| byte.is_ascii_lowercase() || b" \n".contains(byte)));
        assert_eq!(incompressible(10, 1).len(), 10);
    }
}
