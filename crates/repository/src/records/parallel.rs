//! Many small things at once: on a share each file takes a round trip or several, whatever its length.

use std::panic::resume_unwind;
use std::thread;

/// Threads at most: as many files wait for a share at once.
const THREADS: usize = 8;
/// Fewer items are not worth another thread.
const ITEMS_WORTH_A_THREAD: usize = 32;

/// Does the work for each item, and gives the results in the order of the items.
pub(crate) fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = (items.len() / ITEMS_WORTH_A_THREAD).clamp(1, THREADS);
    if threads == 1 {
        return items.iter().map(work).collect();
    }
    let part = &|part: &[T]| part.iter().map(&work).collect::<Vec<R>>();
    thread::scope(|scope| {
        let start = |items| {
            let thread = thread::Builder::new().spawn_scoped(scope, move || part(items));
            thread.map_err(|_| items)
        };
        let parts: Vec<_> = items.chunks(items.len().div_ceil(threads)).map(start).collect();
        let done = parts.into_iter().map(|started| match started {
            Ok(thread) => thread.join().unwrap_or_else(|panicked| resume_unwind(panicked)),
            // Where there is no room for a thread, it is done here.
            Err(items) => part(items),
        });
        done.flatten().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Mutex;

    #[test]
    fn results_are_in_order_however_many_there_are() {
        for count in [0, 1, 31, 63, 64, 100, 255, 256, 257, 1000] {
            let items: Vec<usize> = (0..count).collect();
            let threads = Mutex::new(HashSet::new());
            let doubled = in_parallel(&items, |item| {
                threads.lock().unwrap().insert(thread::current().id());
                2 * item
            });
            assert_eq!(doubled, items.iter().map(|item| 2 * item).collect::<Vec<_>>());
            let expected = (count / ITEMS_WORTH_A_THREAD).clamp(1, THREADS).min(count);
            assert_eq!(threads.lock().unwrap().len(), expected, "{count} items");
        }
    }
}
