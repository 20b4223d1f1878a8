//! Random numbers that are the same on every machine, forever: those of the testkit, and distributions of them.

/// A generator; the same seed gives the same numbers. Neighbouring seeds give unrelated ones.
pub(crate) struct Random(holdall_testkit::Random);

impl Random {
    /// A generator for `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(holdall_testkit::Random::new(seed.wrapping_mul(0xD134_2543_DE82_EF95)))
    }

    /// The next number, uniform over all of `u64`.
    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `[0, limit)`, for a `limit` above 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit)
    }

    /// An index into a slice of `len` elements, which is not empty.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        self.0.index(len)
    }

    /// A number in `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number from the standard normal distribution (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// A number from a log-normal distribution with this median.
    pub(crate) fn log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        median * (sigma * self.normal()).exp()
    }

    /// Fills `buffer` with bytes that do not compress.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) {
        self.0.fill(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_never_change() {
        let mut random = Random::new(0);
        // From the reference implementation with seed 0.
        assert_eq!(random.next(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(random.next(), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn the_distributions_have_their_middle_where_they_should() {
        let mut random = Random::new(1);
        let mut sizes: Vec<f64> = (0..10_001).map(|_| random.log_normal(2048.0, 1.665)).collect();
        sizes.sort_by(f64::total_cmp);
        assert!((1900.0..2200.0).contains(&sizes[5000]), "{}", sizes[5000]);
        let mean = (0..10_000).map(|_| random.unit()).sum::<f64>() / 10_000.0;
        assert!((0.48..0.52).contains(&mean), "{mean}");
        assert!((0..1000).all(|_| random.below(7) < 7));
    }
}
