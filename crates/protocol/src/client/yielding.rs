//! A rate that leaves the line to others: it grows while packets pass at once, and shrinks as soon as they wait.
//!
//! What fills a line stands in a queue somewhere on it, often for half a second, and a call in the same house stands in it
//! too. The time from a packet to its acknowledgement tells: what it takes above the least that was seen is spent waiting.
//! LEDBAT (RFC 6817) does the same from the receiver's clock; the sender's kernel knows enough. One who comes to a queue
//! that others fill already takes it for the length of the way.

use std::time::Duration;

use tokio::time::Instant;

/// Bytes a second at first: less than most lines carry.
const FIRST: f64 = 1e6;
/// It never gets slower than that: a backup goes on.
const LEAST: f64 = 100e3;
/// So often it changes.
const INTERVAL: Duration = Duration::from_millis(50);
/// Packets may wait for so long.
const MOST_WAIT: Duration = Duration::from_millis(10);
/// While they wait for less, it grows.
const LITTLE_WAIT: Duration = Duration::from_millis(4);
/// By how much it grows in an interval until packets wait for the first time, afterwards, and shrinks when they do.
const FIRST_GROWTH: f64 = 1.25;
const GROWTH: f64 = 1.05;
const SHRINKS: f64 = 0.88;
/// What uses less of the rate than that is held back by something else, and says nothing of the line.
const IN_USE: f64 = 0.7;
/// Two whole packets of most lines, which are acknowledged at once: one alone may be for 40 ms.
const TWO_PACKETS: usize = 2 * 1448;
/// Above so many bytes a second several of these are written at once.
const SEVERAL_ABOVE: f64 = 1.5e6;

/// The rate, and what was seen since it changed.
#[derive(Debug)]
pub(super) struct Yielding {
    bytes_per_second: f64,
    has_waited: bool,
    since: Instant,
    spent_bytes: usize,
    waited: Duration,
}

impl Yielding {
    pub(super) fn new(now: Instant) -> Self {
        let waited = Duration::ZERO;
        Self { bytes_per_second: FIRST, has_waited: false, since: now, spent_bytes: 0, waited }
    }

    pub(super) fn bytes_per_second(&self) -> f64 {
        self.bytes_per_second
    }

    /// Most bytes of one write.
    pub(super) fn write_bytes(&self) -> usize {
        if self.bytes_per_second > SEVERAL_ABOVE { 5 * TWO_PACKETS } else { TWO_PACKETS }
    }

    /// Notes what was sent, and for how long packets of that connection wait on their way.
    pub(super) fn note(&mut self, now: Instant, bytes: usize, waited: Duration) {
        self.spent_bytes += bytes;
        self.waited = self.waited.max(waited);
        let passed = now.saturating_duration_since(self.since);
        if passed < INTERVAL {
            return;
        }
        let used = self.spent_bytes as f64 / passed.as_secs_f64() / self.bytes_per_second;
        if self.waited > MOST_WAIT {
            self.has_waited = true;
            self.bytes_per_second = (self.bytes_per_second * SHRINKS).max(LEAST);
        } else if self.waited < LITTLE_WAIT && used > IN_USE {
            self.bytes_per_second *= if self.has_waited { GROWTH } else { FIRST_GROWTH };
        }
        (self.since, self.spent_bytes, self.waited) = (now, 0, Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(5);
    const LEAST_TRIP: f64 = 0.010;

    /// A line with a queue, into which the rate is sent for so long, beside so much of others: what was carried, and the
    /// longest wait in seconds.
    fn sent_over(line: f64, others: f64, lasts: Duration) -> (f64, f64) {
        let mut now = Instant::now();
        let mut rate = Yielding::new(now);
        let (mut queued, mut carried, mut longest, mut seen) = (0.0_f64, 0.0, 0.0_f64, 0.0);
        let end = now + lasts;
        while now < end {
            let bytes = rate.bytes_per_second() * TICK.as_secs_f64();
            queued = (queued + bytes + (others - line) * TICK.as_secs_f64()).max(0.0);
            carried += bytes;
            longest = longest.max(queued / line);
            // The kernel smooths what it measures, and knows it a round trip later.
            seen += (queued / line - seen) * (TICK.as_secs_f64() / LEAST_TRIP).min(1.0);
            rate.note(now, bytes as usize, Duration::from_secs_f64(seen));
            now += TICK;
        }
        (carried / lasts.as_secs_f64(), longest)
    }

    #[test]
    fn a_line_is_used_and_its_queue_stays_short() {
        for line in [250e3, 2.5e6, 12.5e6, 125e6] {
            let (carried, longest) = sent_over(line, 0.0, Duration::from_secs(20));
            assert!(carried > 0.75 * line, "{carried} of {line}");
            // A line that is slower than the first rate has a queue until that is known.
            let most = if line < FIRST { 0.8 } else { 0.035 };
            assert!(longest < most, "{longest} s at {line}");
        }
    }

    #[test]
    fn what_others_take_they_keep() {
        let (carried, longest) = sent_over(2.5e6, 1.5e6, Duration::from_secs(20));
        assert!((0.7e6..1.1e6).contains(&carried), "{carried}");
        assert!(longest < 0.03, "{longest}");
    }

    #[test]
    fn it_never_stops_and_does_not_grow_while_something_else_is_slow() {
        let now = Instant::now();
        let mut rate = Yielding::new(now);
        for step in 1..1000 {
            rate.note(now + INTERVAL * step, 10_000, Duration::from_secs(1));
        }
        assert_eq!((rate.bytes_per_second(), rate.write_bytes()), (LEAST, TWO_PACKETS));
        for step in 1000..2000 {
            rate.note(now + INTERVAL * step, 1000, Duration::ZERO);
        }
        assert_eq!(rate.bytes_per_second(), LEAST);
    }
}
