//! Where nodes end: chosen by a keyed hash of the path alone, so that an edit never moves a
//! boundary, and nobody without the key learns from node sizes which paths there are.
//!
//! A path whose hash ends in `leaf_bits` zero bits starts a leaf; one that ends in
//! `leaf_bits * (n + 1)` starts a node of level n, and so one of every lower level too.

use holdall_format::ObjectId;

/// Chooses boundaries.
///
/// Secret: with the key, node sizes say something of paths.
#[derive(Clone)]
pub(crate) struct Boundary {
    key: [u8; 32],
    leaf_bits: u32,
}

impl Boundary {
    pub(crate) fn new(key: [u8; 32], leaf_bits: u8) -> Self {
        Self { key, leaf_bits: u32::from(leaf_bits) }
    }

    /// The number of levels at which this path starts a node.
    pub(crate) fn levels_of_path(&self, key: &[u8]) -> u32 {
        self.zero_bits(key).checked_div(self.leaf_bits).unwrap_or(0)
    }

    /// Says whether a list node ends before this reference, with odds of 1 in 512.
    pub(crate) fn ends_list_at(&self, id: &ObjectId) -> bool {
        self.zero_bits(id.as_bytes()) >= 9
    }

    fn zero_bits(&self, bytes: &[u8]) -> u32 {
        let hash = blake3::keyed_hash(&self.key, bytes);
        let (low, _) = hash.as_bytes().as_chunks::<8>();
        low.first().map_or(0, |low| u64::from_le_bytes(*low).trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_start_leaves_with_the_odds_asked_for() {
        let boundary = Boundary::new([3; 32], 4);
        let starts = |level: u32| {
            let hit = |n: &u32| boundary.levels_of_path(&n.to_le_bytes()) > level;
            (0..65_536).filter(hit).count()
        };
        assert!((3700..4500).contains(&starts(0)), "{}", starts(0));
        assert!((180..340).contains(&starts(1)), "{}", starts(1));
    }
}
