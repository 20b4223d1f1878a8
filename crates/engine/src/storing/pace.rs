//! How much one request with blocks carries.
//!
//! A connection that is cut costs the request that it was in. So a request carries what its stream does in a
//! second: on a slow link that is a block, which is never divided, and what comes between costs little and
//! is told as done soon; on a fast one it is as much as makes the answer worth waiting for.

use std::time::Duration;

use holdall_protocol::RequestTimes;

/// A request with blocks takes what is ready, up to this many bytes.
pub const PUT_TARGET_BYTES: usize = 3 << 20;

/// The pace of one stream's requests. As long as nothing is known, they carry a block each.
#[derive(Debug, Default)]
pub(super) struct Pace {
    target_bytes: usize,
}

impl Pace {
    /// A request that has so many bytes takes no more blocks.
    pub(super) fn target_bytes(&self) -> usize {
        self.target_bytes
    }

    /// Takes note of a request of so many bytes, more than none, and how long it took.
    ///
    /// The keeper's disk takes its time for a request rather than for its bytes, so that is left out. The
    /// rest is not divided: a busy server calls a part of it processor, and a cut costs what was on its way
    /// meanwhile all the same.
    pub(super) fn note(&mut self, bytes: usize, took: Duration, times: &RequestTimes) {
        let at_disk = Duration::try_from_secs_f64(times.disk_seconds).unwrap_or_default();
        let each_second = bytes as f64 / took.saturating_sub(at_disk).as_secs_f64();
        self.target_bytes = each_second.min(PUT_TARGET_BYTES as f64) as usize;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target_after(requests: &[(usize, u64)]) -> usize {
        let mut pace = Pace::default();
        let times = RequestTimes::default();
        requests
            .iter()
            .for_each(|(bytes, ms)| pace.note(*bytes, Duration::from_millis(*ms), &times));
        pace.target_bytes()
    }

    #[test]
    fn requests_begin_with_a_block_and_carry_what_the_stream_does_in_a_second() {
        assert_eq!(target_after(&[]), 0);
        assert_eq!(target_after(&[(1 << 20, 2000)]), 1 << 19);
        assert_eq!(target_after(&[(1 << 20, 500)]), 2 << 20);
    }

    #[test]
    fn a_fast_stream_carries_no_more_than_the_limit() {
        assert_eq!(target_after(&[(1 << 20, 1)]), PUT_TARGET_BYTES);
        assert_eq!(target_after(&[(1, 0)]), PUT_TARGET_BYTES);
    }

    #[test]
    fn the_newest_request_counts() {
        assert_eq!(target_after(&[(3 << 20, 10), (3 << 20, 12_000)]), 1 << 18);
    }

    #[test]
    fn the_disk_s_time_is_left_out_and_no_other_part_of_the_server_s() {
        let target_of = |times| {
            let mut pace = Pace::default();
            pace.note(1 << 20, Duration::from_secs(2), &times);
            pace.target_bytes()
        };
        let at_disk = |disk_seconds| RequestTimes { disk_seconds, ..RequestTimes::default() };
        assert_eq!(target_of(at_disk(1.5)), 2 << 20);
        // A server cannot say that a request took less than no time.
        assert_eq!(
            [1e9, f64::INFINITY].map(|told| target_of(at_disk(told))),
            [PUT_TARGET_BYTES, 1 << 19]
        );
        let busy = RequestTimes { queue_seconds: 0.9, cpu_seconds: 1.0, ..RequestTimes::default() };
        assert_eq!(target_of(busy), 1 << 19);
    }
}
