//! How much is under way at once, in requests with blocks.
//!
//! Several requests fill a fast line, and each other's waiting for the server. Over a slow one they share what a
//! single one would fill: each takes several times as long, one may starve until it counts as stalled, and
//! a cut costs all of them. So what is under way together is what passes in two minutes, or a single block: over
//! a line of 64 kbit/s that is one. A long line that loses packets carries more by several than by one, so
//! it is no less. As long as nothing is known, it is what the slowest line carries in half a minute.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdall_protocol::RequestTimes;

/// What is under way together should pass in this time.
const SECONDS: f64 = 128.0;
/// What may be under way while nothing is known of the line.
const UNKNOWN_BYTES: usize = 256 << 10;
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
    /// How many times what this one carries was under way as it began, by requests or by bytes: the line is
    /// shared by neither alone.
    together: f64,
}

impl Width {
    pub(super) fn new() -> Self {
        let state = Mutex::new(State { requests: 0, bytes: 0, allowed_bytes: UNKNOWN_BYTES });
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
        let by_bytes = state.bytes as f64 / bytes.max(1) as f64;
        UnderWay { width: self, bytes, together: by_bytes.min(state.requests as f64) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnderWay<'_> {
    /// Takes note of how long it took, of which what the server had it for was not the line's.
    pub(super) fn took(self, all: Duration, times: &RequestTimes) {
        let RequestTimes { queue_seconds, cpu_seconds, disk_seconds, .. } = times;
        let served = Duration::try_from_secs_f64(queue_seconds + cpu_seconds + disk_seconds);
        let carried = all.saturating_sub(served.unwrap_or_default()).as_secs_f64();
        if self.bytes >= TELLING_BYTES {
            let bytes_per_second = self.bytes as f64 * self.together / carried;
            self.width.lock().allowed_bytes = (bytes_per_second * SECONDS) as usize;
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

    /// Notes a request that took so many seconds.
    fn ended(request: UnderWay<'_>, seconds: f64) {
        request.took(Duration::from_secs_f64(seconds), &RequestTimes::default());
    }

    #[test]
    fn one_block_is_under_way_until_it_tells_how_many_fit_beside() {
        let width = Width::new();
        for (seconds, expected) in [(130.0, 1), (40.0, 3), (0.0, 8), (1e6, 1)] {
            ended(width.enter(BLOCK), seconds);
            assert_eq!(blocks(&width), expected, "{seconds}");
        }
    }

    #[test]
    fn small_requests_go_together_at_once_and_tell_nothing_of_the_line() {
        let width = Width::new();
        let all: Vec<_> = (0..4).map(|_| width.enter(60_000)).collect();
        all.into_iter().for_each(|one| ended(one, 0.001));
        assert_eq!(blocks(&width), 1);
    }

    #[test]
    fn requests_that_are_under_way_together_share_the_line() {
        let width = Width::new();
        ended(width.enter(BLOCK), 1.0);
        let mut all: Vec<_> = (0..4).map(|_| width.enter(BLOCK)).collect();
        ended(all.pop().unwrap(), 200.0);
        drop(all);
        assert_eq!(blocks(&width), 2, "four of them in 200 seconds");
        let small: Vec<_> = (0..5).map(|_| width.enter(1000)).collect();
        let large = width.enter(BLOCK);
        drop(small);
        ended(large, 64.0);
        assert_eq!(blocks(&width), 2, "small ones beside it are none of it");
    }

    #[test]
    fn what_the_server_takes_its_time_for_is_not_the_line_s() {
        let width = Width::new();
        let times = RequestTimes { queue_seconds: 200.0, ..RequestTimes::default() };
        width.enter(BLOCK).took(Duration::from_secs(210), &times);
        assert_eq!(blocks(&width), 8);
        let absurd = RequestTimes { disk_seconds: f64::NAN, ..times };
        width.enter(BLOCK).took(Duration::from_secs(210), &absurd);
        assert_eq!(blocks(&width), 1);
    }

    #[test]
    fn one_that_waits_goes_on_when_another_ends_or_fails() {
        let width = Width::new();
        let first = width.enter(BLOCK);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| width.enter(BLOCK).together);
            drop(first);
            assert!((second.join().unwrap() - 1.0).abs() < 1e-9);
        });
    }
}
