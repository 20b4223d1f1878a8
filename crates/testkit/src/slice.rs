//! How much of a long test one run does.
//!
//! Some tests could go on for hours: every byte at which a connection may be cut, every call that may fail. A
//! change meets a slice of each, and another commit as a rule another one, so that many changes together meet
//! everything. `cargo xtask torture` takes the whole. `HOLDALL_SLICE` in the environment says which slice:
//!
//! ```text
//! NUMBER       that slice of as many as the test itself is cut into; without the variable, 0
//! NUMBER/MANY  that slice of MANY; 0/1 is everything
//! ```
//!
//! A slice of what can be counted is every MANYth item. A slice of what is drawn at random is a share of the
//! volume, drawn from a seed of its own.

/// Names the slice.
const VARIABLE: &str = "HOLDALL_SLICE";

/// One slice of a test's whole work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    number: u64,
    many: u64,
}

impl Slice {
    /// The slice that the environment names, of `many` unless it says of how many. Prints which it is.
    ///
    /// # Panics
    /// If the variable is neither form.
    #[must_use]
    #[expect(clippy::print_stderr, reason = "a failed run is repeated by the line printed above")]
    pub fn one_in(many: u64) -> Self {
        let slice = Self::parse(variable(VARIABLE).as_deref().unwrap_or("0"), many);
        eprintln!("{VARIABLE}={}/{} repeats this", slice.number, slice.many);
        slice
    }

    fn parse(text: &str, many: u64) -> Self {
        let (number, many) = match text.split_once('/') {
            Some((number, many)) => (number, many.parse()),
            None => (text, Ok(many)),
        };
        match (number.parse(), many) {
            (Ok(number), Ok(many)) if many > 0 => Self { number, many },
            _ => panic!("{VARIABLE} is NUMBER or NUMBER/MANY, not {text:?}"),
        }
    }

    /// Whether the item at this place of the whole belongs to the slice.
    #[must_use]
    pub fn takes(&self, index: usize) -> bool {
        index as u64 % self.many == self.number % self.many
    }

    /// The items that belong to the slice.
    pub fn pick<T>(&self, items: impl IntoIterator<Item = T>) -> Vec<T> {
        let numbered = items.into_iter().enumerate();
        numbered.filter(|(index, _)| self.takes(*index)).map(|(_, item)| item).collect()
    }

    /// The slice's share of a volume, at least 1.
    #[must_use]
    pub fn share(&self, volume: u64) -> u64 {
        volume.div_ceil(self.many).max(1)
    }

    /// The place of the slice's first item, and how far it is from each item to the next.
    #[must_use]
    pub fn start_and_stride(&self) -> (u64, u64) {
        (self.number % self.many, self.many)
    }

    /// A seed that no other slice has, beside a test's own; of slice 0, that one.
    #[must_use]
    pub fn seed(&self, own: u64) -> u64 {
        // Not the step of [`Random`], with which one slice would draw what the next one draws a moment later.
        self.number.wrapping_mul(0xD1B5_4A32_D192_ED03).wrapping_add(own)
    }

    /// Whether it is everything there is.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.many == 1
    }
}

/// A number from the environment, by which `cargo xtask torture` asks a test for more than usual.
///
/// # Panics
/// If the variable is there and no number.
#[must_use]
pub fn setting(name: &str, default: u64) -> u64 {
    let parse = |text: String| text.parse().unwrap_or_else(|_| panic!("{name}: {text:?}"));
    variable(name).map_or(default, parse)
}

#[expect(clippy::disallowed_methods, reason = "a test is told by the environment how long it is")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::Random;

    #[test]
    fn all_slices_together_are_everything_and_no_two_share_an_item() {
        let slices = (0..7).map(|number| Slice { number: 70 + number, many: 7 });
        let mut picked: Vec<u32> = slices.flat_map(|slice| slice.pick(0..100)).collect();
        picked.sort_unstable();
        assert_eq!(picked, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_slice_is_named_with_or_without_the_number_of_slices() {
        assert_eq!(Slice::parse("12", 9), Slice { number: 12, many: 9 });
        assert_eq!(Slice::parse("12/5", 9), Slice { number: 12, many: 5 });
        assert!(Slice::parse("0/1", 9).is_everything());
        for text in ["", "x", "3/", "3/0", "-1"] {
            assert!(std::panic::catch_unwind(|| Slice::parse(text, 9)).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_come_to_the_whole_and_seeds_differ() {
        let slice = |number| Slice { number, many: 9 };
        assert_eq!((slice(1).share(100), slice(1).share(3)), (12, 1));
        assert_ne!(slice(1).seed(5), slice(2).seed(5));
        assert_eq!(slice(4).start_and_stride(), (4, 9));
        assert_eq!(Slice { number: 0, many: 1 }.seed(5), 5);
    }

    #[test]
    fn no_slice_draws_what_another_one_draws() {
        let mut drawn = HashSet::new();
        for number in 0..40 {
            let mut random = Random::new(Slice { number, many: 40 }.seed(5));
            assert!((0..1000).all(|_| drawn.insert(random.next_u64())), "slice {number}");
        }
    }
}
