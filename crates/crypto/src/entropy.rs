//! Where random bytes come from.

/// A source of random bytes, handed in so that tests can fix or break it.
pub trait Entropy: Send {
    /// Fills the whole of `out`.
    fn fill(&mut self, out: &mut [u8]);
}

/// The operating system's generator, by way of AWS-LC's.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&mut self, out: &mut [u8]) {
        #[expect(clippy::expect_used, reason = "AWS-LC aborts itself when the system has none")]
        aws_lc_rs::rand::fill(out).expect("the system gives random bytes");
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A generator that is stuck: it gives the same byte for ever.
    pub(crate) struct Stuck(pub(crate) u8);

    impl Entropy for Stuck {
        fn fill(&mut self, out: &mut [u8]) {
            out.fill(self.0);
        }
    }

    #[test]
    fn the_systems_generator_does_not_repeat() {
        let (mut one, mut two) = ([0; 32], [0; 32]);
        SystemEntropy.fill(&mut one);
        SystemEntropy.fill(&mut two);
        assert_ne!(one, two);
    }
}
