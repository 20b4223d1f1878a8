//! The socket under TLS, which counts what passes and slows down where that is asked for.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::Traffic;

/// Most bytes of one write while the rate is limited.
const PACED_WRITE_BYTES: usize = 16 << 10;

/// What a timer may oversleep, which is made up for: it wakes a millisecond late or more, and at 60 MB/s a write
/// is due every quarter of one.
const OVERSLEPT: Duration = Duration::from_millis(20);

/// Bytes on the wire, over all connections of a client.
#[derive(Debug, Default)]
pub(super) struct Meter {
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
}

impl Meter {
    pub(super) fn traffic(&self) -> Traffic {
        Traffic {
            sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
        }
    }
}

/// What is sent between two answers is a question if it is less: its last bytes are under way until the answer
/// comes, however quick the path is.
const QUESTION_BYTES: u64 = 64 << 10;

/// For how long connections of this process carried what they sent.
static CARRYING_MICROS: AtomicU64 = AtomicU64::new(0);

/// For how long the connections to servers that this process has and had carried what they sent, added up over
/// them, in seconds: bytes were under way, and the other end had room for them. Counted when an answer comes
/// to more than a question; like the processor time that it is compared with, for the whole process.
pub fn carrying_seconds() -> f64 {
    Duration::from_micros(CARRYING_MICROS.load(Ordering::Relaxed)).as_secs_f64()
}

/// A rate that all connections of a client keep together.
#[derive(Debug)]
pub(super) struct Pace {
    bytes_per_second: u64,
    free_at: Mutex<Instant>,
}

impl Pace {
    pub(super) fn new(bytes_per_second: u64) -> Self {
        let free_at = Mutex::new(Instant::now());
        Self { bytes_per_second: bytes_per_second.max(1), free_at }
    }

    /// When the next write may happen.
    fn free_at(&self) -> Instant {
        *self.free_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a write that just happened.
    fn spend(&self, bytes: usize) {
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        *free_at = self.after(*free_at, Instant::now(), bytes);
    }

    /// When the next write may happen after one of so many bytes at `now`, which might have been at `free_at`.
    fn after(&self, free_at: Instant, now: Instant, bytes: usize) -> Instant {
        let seconds = bytes as f64 / self.bytes_per_second as f64;
        let earliest = now.checked_sub(OVERSLEPT).unwrap_or(now);
        free_at.max(earliest) + Duration::from_secs_f64(seconds)
    }
}

/// A socket that counts.
pub(super) struct Socket {
    tcp: TcpStream,
    meter: Arc<Meter>,
    /// Bytes in both directions on this connection alone, to tell a stalled one.
    moved_bytes: Arc<AtomicU64>,
    pace: Option<Arc<Pace>>,
    pause: Option<Pin<Box<Sleep>>>,
    /// How long it carried, as far as that was counted.
    carried: Duration,
    /// What was sent since.
    uncounted_bytes: u64,
}

impl Socket {
    pub(super) fn new(tcp: TcpStream, meter: Arc<Meter>, pace: Option<Arc<Pace>>) -> Self {
        Self {
            tcp,
            meter,
            moved_bytes: Arc::default(),
            pace,
            pause: None,
            carried: Duration::ZERO,
            uncounted_bytes: 0,
        }
    }

    pub(super) fn moved_bytes(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.moved_bytes)
    }

    /// Ready when the pace allows the next write.
    fn poll_pace(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(pace) = &self.pace else { return Poll::Ready(()) };
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            let free_at = pace.free_at();
            if free_at <= Instant::now() {
                return Poll::Ready(());
            }
            self.pause = Some(Box::pin(sleep_until(free_at)));
        }
    }

    /// Counts for how long it carried what was sent; where the system does not tell, nothing is known of it.
    fn count_carried(&mut self) {
        let sent_bytes = std::mem::take(&mut self.uncounted_bytes);
        if sent_bytes == 0 {
            return;
        }
        let carried = holdall_sys::tcp::carrying(&self.tcp).unwrap_or_default();
        if sent_bytes >= QUESTION_BYTES {
            let more = carried.saturating_sub(self.carried).as_micros();
            CARRYING_MICROS.fetch_add(u64::try_from(more).unwrap_or(0), Ordering::Relaxed);
        }
        self.carried = self.carried.max(carried);
    }

    fn count_sent(&mut self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = written {
            self.uncounted_bytes += *bytes as u64;
            self.meter.sent_bytes.fetch_add(*bytes as u64, Ordering::Relaxed);
            self.moved_bytes.fetch_add(*bytes as u64, Ordering::Relaxed);
            if let Some(pace) = &self.pace {
                pace.spend(*bytes);
            }
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.tcp).poll_read(cx, into);
        let bytes = into.filled().len().saturating_sub(before) as u64;
        self.meter.received_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.moved_bytes.fetch_add(bytes, Ordering::Relaxed);
        if bytes > 0 {
            self.count_carried();
        }
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_pace(cx));
        let from = match self.pace {
            Some(_) => from.get(..PACED_WRITE_BYTES).unwrap_or(from),
            None => from,
        };
        let written = Pin::new(&mut self.tcp).poll_write(cx, from);
        self.count_sent(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.pace.is_some() {
            let first = from.iter().find(|part| !part.is_empty());
            return self.poll_write(cx, first.map_or(&[], |part| part));
        }
        let written = Pin::new(&mut self.tcp).poll_write_vectored(cx, from);
        self.count_sent(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes sent in ten seconds by timers that wake so late, after a pause of a minute.
    fn sent(bytes_per_second: u64, late: Duration) -> f64 {
        let pace = Pace::new(bytes_per_second);
        let begun = pace.free_at() + Duration::from_secs(60);
        let (mut now, mut free_at, mut sent) = (begun, pace.free_at(), 0);
        while now < begun + Duration::from_secs(10) {
            sent += PACED_WRITE_BYTES;
            free_at = pace.after(free_at, now, PACED_WRITE_BYTES);
            if free_at > now {
                now = free_at + late;
            }
        }
        sent as f64
    }

    #[test]
    fn a_limit_is_reached_however_late_timers_wake_and_never_exceeded() {
        for rate in [1_000_000, 8_000_000, 60_000_000, 200_000_000] {
            for late in [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(5)] {
                let share = sent(rate, late) / (10 * rate) as f64;
                assert!((0.95..1.01).contains(&share), "{share} of {rate}, {late:?} late");
            }
        }
    }
}
