//! Bytes to measure with: some that compress as text does, and some that do not compress at all.

use crate::disk::fill;

/// How many different words the text has.
const WORDS: u64 = 4096;
/// How far back it repeats itself, and how much of it at a time.
const REPEATS_WITHIN_BYTES: u64 = 256 << 10;
const REPEATED_BYTES: std::ops::Range<u64> = 12..76;

/// Bytes that do not compress.
pub fn incompressible(len_bytes: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len_bytes];
    fill(&mut bytes, seed);
    bytes
}

/// Words of letters, frequent and rare ones, and passages that were there before, as in prose and programs:
/// it becomes about a third when it is compressed, and less when it is compressed harder.
pub fn text(len_bytes: usize, seed: u64) -> Vec<u8> {
    // A word has two letters at least, and its space.
    let dice = incompressible(len_bytes.div_ceil(3).max(1) * 8, seed);
    let rolls = dice.as_chunks::<8>().0.iter().map(|roll| u64::from_le_bytes(*roll));
    let mut text = Vec::with_capacity(len_bytes + REPEATED_BYTES.end as usize);
    for roll in rolls {
        if text.len() >= len_bytes {
            break;
        }
        match passage(roll, text.len()) {
            Some(passage) => text.extend_from_within(passage),
            None => {
                // The product of two numbers is small more often than not, as a frequent word's rank is.
                text.extend(word((roll % WORDS) * ((roll >> 16) % WORDS) / WORDS));
                text.push(if roll >> 60 == 0 { b'\n' } else { b' ' });
            }
        }
    }
    text.truncate(len_bytes);
    text
}

/// What is repeated of the text so far, if this roll says so: one in eight does.
fn passage(roll: u64, len_bytes: usize) -> Option<std::ops::Range<usize>> {
    let len = len_bytes as u64;
    let bytes = REPEATED_BYTES.start + (roll >> 3) % (REPEATED_BYTES.end - REPEATED_BYTES.start);
    if !roll.is_multiple_of(8) || len <= bytes {
        return None;
    }
    let back = bytes + (roll >> 10) % (len - bytes).min(REPEATS_WITHIN_BYTES);
    let start = (len - back) as usize;
    Some(start..start + bytes as usize)
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
