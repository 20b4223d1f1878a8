//! The pages of all runs that were read last, within a fixed number of bytes.
//!
//! Two generations stand in for a list by age: a page that is used again moves to the young one;
//! when that is full, the old one is dropped and the young one becomes old.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Length of a page.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Pages of a generation: 4 MiB, so that both together take 8.
const GENERATION_PAGES: usize = 1024;

/// A page as it lies in its file, checked.
pub(crate) type Page = [u8; PAGE_BYTES];

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<(u64, u64), Arc<Page>>,
    old: HashMap<(u64, u64), Arc<Page>>,
}

/// Pages by run and number.
#[derive(Debug, Default)]
pub(crate) struct PageCache {
    /// Whether every page that is not here cannot be read.
    #[cfg(test)]
    pub(crate) reads_fail: std::sync::atomic::AtomicBool,
    generations: Mutex<Generations>,
}

impl PageCache {
    /// The page, read by `load` if it is not here.
    pub(crate) fn get<E>(
        &self,
        run: u64,
        page: u64,
        load: impl FnOnce() -> Result<Arc<Page>, E>,
    ) -> Result<Arc<Page>, E> {
        let key = (run, page);
        if let Some(page) = self.use_again(key) {
            return Ok(page);
        }
        let page = load()?;
        self.insert(key, page.clone());
        Ok(page)
    }

    fn use_again(&self, key: (u64, u64)) -> Option<Arc<Page>> {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = generations.young.get(&key) {
            return Some(page.clone());
        }
        let page = generations.old.remove(&key)?;
        drop(generations);
        self.insert(key, page.clone());
        Some(page)
    }

    fn insert(&self, key: (u64, u64), page: Arc<Page>) {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if generations.young.len() >= GENERATION_PAGES {
            generations.old = std::mem::take(&mut generations.young);
        }
        generations.young.insert(key, page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_in_use_stay_and_the_number_of_pages_has_a_limit() {
        let cache = PageCache::default();
        let load = |byte: u8| move || Ok::<_, ()>(Arc::new([byte; PAGE_BYTES]));
        cache.get(1, 0, load(7)).unwrap();
        for page in 1..20_000 {
            cache.get(1, page, load(0)).unwrap();
            if page % 1000 == 0 {
                let kept = cache.get(1, 0, || Err(())).expect("it was used a moment ago");
                assert_eq!(kept[0], 7);
            }
        }
        let generations = cache.generations.lock().unwrap();
        assert!(generations.young.len() + generations.old.len() <= 2 * GENERATION_PAGES);
    }
}
