//! One bit for each entry of a run, set by one thread while others read.

use std::sync::atomic::{AtomicU64, Ordering};

/// A fixed number of bits.
#[derive(Debug, Default)]
pub(crate) struct Bits {
    words: Vec<AtomicU64>,
}

impl Bits {
    /// That many bits, all clear.
    pub(crate) fn clear(count: u64) -> Self {
        let words = usize::try_from(count.div_ceil(64)).unwrap_or(usize::MAX);
        Self { words: std::iter::repeat_with(AtomicU64::default).take(words).collect() }
    }

    /// The bits of words that were stored; `None` if they are not as many as `count` needs.
    pub(crate) fn from_words(words: Vec<u64>, count: u64) -> Option<Self> {
        let fits = words.len() as u64 == count.div_ceil(64);
        fits.then(|| Self { words: words.into_iter().map(AtomicU64::new).collect() })
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = u64> + '_ {
        self.words.iter().map(|word| word.load(Ordering::Relaxed))
    }

    pub(crate) fn get(&self, at: u64) -> bool {
        self.word(at).is_some_and(|word| word.load(Ordering::Relaxed) & (1 << (at % 64)) != 0)
    }

    /// Sets or clears a bit.
    pub(crate) fn put(&self, at: u64, value: bool) {
        let Some(word) = self.word(at) else { return };
        if value {
            word.fetch_or(1 << (at % 64), Ordering::Relaxed);
        } else {
            word.fetch_and(!(1 << (at % 64)), Ordering::Relaxed);
        }
    }

    /// Moves all set bits of `from` here; says how many of them were new.
    pub(crate) fn take_all(&self, from: &Self) -> u64 {
        let moved = self.words.iter().zip(&from.words).map(|(word, from)| {
            let taken = from.swap(0, Ordering::Relaxed);
            u64::from((taken & !word.fetch_or(taken, Ordering::Relaxed)).count_ones())
        });
        moved.sum()
    }

    /// Clears all bits.
    pub(crate) fn reset(&self) {
        self.words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    fn word(&self, at: u64) -> Option<&AtomicU64> {
        self.words.get(usize::try_from(at / 64).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_moved_and_counted_once() {
        let (closed, tentative) = (Bits::clear(130), Bits::clear(130));
        closed.put(3, true);
        [3, 64, 129].iter().for_each(|&at| tentative.put(at, true));
        assert_eq!(closed.take_all(&tentative), 2);
        assert!([3, 64, 129].iter().all(|&at| closed.get(at) && !tentative.get(at)));
        let again = Bits::from_words(closed.words().collect(), 130).unwrap();
        assert!(again.get(129) && !again.get(128) && !again.get(1000));
        assert!(Bits::from_words(vec![0; 2], 130).is_none());
        again.put(129, false);
        assert!(!again.get(129));
    }
}
