//! How much is under way at once, in requests with blocks.
//!
//! Several requests fill a fast line, and each other's waiting for the server's disk. Over a slow one they share what a
//! single one would fill: each takes several times as long, one may starve until it counts as stalled, and
//! a cut costs all of them. So what is under way together is what passes in half a minute, or a single block; and
//! as long as nothing is known, what would pass in that time over a line of 64 kbit/s.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What is under way together should pass in this time.
const SECONDS: f64 = 32.0;
/// A line of which nothing is known.
const UNKNOWN_BYTES_PER_SECOND: f64 = 8e3;
/// A shorter request says more of the way there and back than of the line.
const TELLING_BYTES: usize = 64 << 10;

/// How much is and may be under way, for all threads that send.
#[derive(Debug)]
pub(super) struct Width {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    requests: usize,
    bytes: usize,
    allowed_bytes: usize,
}

/// A request that is under way until this is dropped.
#[derive(Debug)]
pub(super) struct UnderWay<'a> {
    width: &'a Width,
    bytes: usize,
    /// How many requests were under way as it began, this one among them.
    together: usize,
}

impl Width {
    pub(super) fn new() -> Self {
        let allowed_bytes = passing(UNKNOWN_BYTES_PER_SECOND);
        let state = Mutex::new(State { requests: 0, bytes: 0, allowed_bytes });
        Self { state, changed: Condvar::new() }
    }

    /// Waits until a request of so many bytes may be under way, too. One that is alone may.
    pub(super) fn enter(&self, bytes: usize) -> UnderWay<'_> {
        let is_full = |state: &mut State| {
            state.requests > 0 && state.bytes.saturating_add(bytes) > state.allowed_bytes
        };
        let waited = self.changed.wait_while(self.lock(), is_full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.requests += 1;
        state.bytes += bytes;
        UnderWay { width: self, bytes, together: state.requests }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnderWay<'_> {
    /// Takes note of how many bytes it carried in a second.
    pub(super) fn carried(self, each_second: f64) {
        if self.bytes >= TELLING_BYTES {
            self.width.lock().allowed_bytes = passing(each_second * self.together as f64);
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.width.lock();
        state.requests = state.requests.saturating_sub(1);
        state.bytes = state.bytes.saturating_sub(self.bytes);
        drop(state);
        self.width.changed.notify_all();
    }
}

/// What a line of that rate carries while it may be under way.
fn passing(bytes_per_second: f64) -> usize {
    (bytes_per_second * SECONDS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 1 << 20;

    /// How many blocks may be under way, up to 8.
    fn blocks(width: &Width) -> usize {
        let state = width.lock();
        assert_eq!((state.requests, state.bytes), (0, 0));
        (state.allowed_bytes / BLOCK).clamp(1, 8)
    }

    #[test]
    fn one_block_is_under_way_until_it_tells_how_many_fit_beside() {
        let width = Width::new();
        assert_eq!(blocks(&width), 1);
        width.enter(BLOCK).carried(100e3);
        assert_eq!(blocks(&width), 3);
        width.enter(BLOCK).carried(f64::INFINITY);
        assert_eq!(blocks(&width), 8);
        width.enter(BLOCK).carried(1.0);
        assert_eq!(blocks(&width), 1);
    }

    #[test]
    fn small_requests_go_together_at_once_and_tell_nothing_of_the_line() {
        let width = Width::new();
        let all: Vec<_> = (0..4).map(|_| width.enter(60_000)).collect();
        all.into_iter().for_each(|one| one.carried(1e9));
        assert_eq!(blocks(&width), 1);
    }

    #[test]
    fn requests_that_are_under_way_together_share_the_line() {
        let width = Width::new();
        width.enter(BLOCK).carried(1e6);
        let mut all: Vec<_> = (0..4).map(|_| width.enter(BLOCK)).collect();
        all.pop().unwrap().carried(20e3);
        drop(all);
        assert_eq!(blocks(&width), 2, "four of 20 kB/s");
    }

    #[test]
    fn one_that_waits_goes_on_when_another_ends_or_fails() {
        let width = Width::new();
        let first = width.enter(BLOCK);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| width.enter(BLOCK).together);
            drop(first);
            assert_eq!(second.join().unwrap(), 1);
        });
    }
}
