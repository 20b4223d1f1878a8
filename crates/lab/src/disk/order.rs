//! In which order a file's blocks come: one after the other, or as if shuffled.
//!
//! A shuffled order takes each block once before it takes any again, as fio does, so that no read is
//! answered from the cache because the dice fell twice on the same block. It is computed for each
//! step alone (a Feistel network on the step's number, walked until it falls inside the range): no
//! list of blocks lies in memory, and threads share nothing but a counter.

use std::sync::atomic::{AtomicU64, Ordering};

const ROUNDS: u64 = 4;

/// The blocks of one file in an order; several threads may take from it.
#[derive(Debug)]
pub(super) struct Order {
    blocks: u64,
    shuffled: Option<Shuffle>,
    repeats: bool,
    taken: AtomicU64,
}

impl Order {
    /// The numbers below `blocks`, shuffled by `seed` if there is one, once or for ever.
    pub(super) fn new(blocks: u64, seed: Option<u64>, repeats: bool) -> Self {
        let shuffled = seed.map(|seed| Shuffle::new(blocks, seed));
        Self { blocks, shuffled, repeats, taken: AtomicU64::new(0) }
    }

    /// The next block; `None` after the last.
    pub(super) fn next(&self) -> Option<u64> {
        let step = self.taken.fetch_add(1, Ordering::Relaxed);
        if self.blocks == 0 || (step >= self.blocks && !self.repeats) {
            return None;
        }
        let place = step % self.blocks;
        Some(self.shuffled.as_ref().map_or(place, |shuffle| shuffle.at(place)))
    }
}

/// A permutation of the numbers below a bound.
#[derive(Debug)]
struct Shuffle {
    bound: u64,
    half_bits: u32,
    seed: u64,
}

impl Shuffle {
    fn new(bound: u64, seed: u64) -> Self {
        let bits = u64::BITS - bound.saturating_sub(1).leading_zeros();
        Self { bound, half_bits: bits.div_ceil(2).max(1), seed }
    }

    fn at(&self, place: u64) -> u64 {
        // The network permutes a range less than four times as large: a few steps at most.
        let mut number = self.pass(place);
        while number >= self.bound {
            number = self.pass(number);
        }
        number
    }

    fn pass(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for round in 0..ROUNDS {
            let mixed = mix(right ^ self.seed.wrapping_add(round << 56)) & mask;
            (left, right) = (right, left ^ mixed);
        }
        left << self.half_bits | right
    }
}

/// SplitMix64's output function (Steele, Lea, Flood 2014).
pub(super) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(order: &Order) -> Vec<u64> {
        std::iter::from_fn(|| order.next()).collect()
    }

    #[test]
    fn a_shuffle_has_each_block_once_and_neighbours_lie_far_apart() {
        for blocks in [1, 2, 3, 5, 64, 1000, 4097] {
            let order = all(&Order::new(blocks, Some(7), false));
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..blocks), "{blocks}");
            let following = order.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
            assert!(blocks < 100 || following < 10, "{following} of {blocks} follow each other");
        }
        assert_ne!(all(&Order::new(64, Some(1), false)), all(&Order::new(64, Some(2), false)));
    }

    #[test]
    fn a_sequence_ends_or_begins_again() {
        assert_eq!(all(&Order::new(3, None, false)), [0, 1, 2]);
        let order = Order::new(3, None, true);
        assert_eq!([0; 7].map(|_| order.next().unwrap()), [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(Order::new(0, None, true).next(), None);
    }
}
