//! The socket under TLS, which counts what passes and slows down where that is asked for.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

use super::pace::{Pace, WaitsFor, WireMeter};
use crate::Traffic;

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

/// One way of a socket, which keeps a rate if one is set.
#[derive(Default)]
struct Side {
    pace: Option<Arc<Pace>>,
    pause: Option<Pin<Box<Sleep>>>,
    waits_for: Option<WaitsFor>,
}

impl Side {
    /// Notes what it waits for from now on, if it keeps a rate.
    fn wait_for(&mut self, now: Option<WaitsFor>) {
        let Some(pace) = &self.pace else { return };
        let before = std::mem::replace(&mut self.waits_for, now);
        if before != now {
            before.into_iter().for_each(|before| pace.end(before));
            now.into_iter().for_each(|now| pace.begin(now));
        }
    }

    /// Ready when the pace allows the next bytes.
    fn poll_pace(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let ready = self.poll_allowed(cx);
        if ready.is_pending() {
            self.wait_for(Some(WaitsFor::Limit));
        }
        ready
    }

    fn poll_allowed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
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
}

/// A socket that counts.
pub(super) struct Socket {
    tcp: TcpStream,
    meter: Arc<Meter>,
    /// Bytes in both directions on this connection alone, to tell a stalled one.
    moved_bytes: Arc<AtomicU64>,
    wire: WireMeter,
    up: Side,
    down: Side,
    /// How long it carried, as far as that was counted.
    carried: Duration,
    /// What was sent since.
    uncounted_bytes: u64,
}

impl Socket {
    pub(super) fn new(
        tcp: TcpStream,
        meter: Arc<Meter>,
        wire: WireMeter,
        [up, down]: [Option<Arc<Pace>>; 2],
    ) -> Self {
        Self {
            tcp,
            meter,
            moved_bytes: Arc::default(),
            wire,
            up: Side { pace: up, ..Side::default() },
            down: Side { pace: down, ..Side::default() },
            carried: Duration::ZERO,
            uncounted_bytes: 0,
        }
    }

    /// The address of this computer that it goes out from.
    pub(super) fn own_address(&self) -> Option<IpAddr> {
        Some(self.tcp.local_addr().ok()?.ip().to_canonical())
    }

    pub(super) fn moved_bytes(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.moved_bytes)
    }

    /// Counts for how long it carried what was sent; where the system does not tell, nothing is known of it.
    fn count_carried(&mut self) {
        let sent_bytes = std::mem::take(&mut self.uncounted_bytes);
        if sent_bytes == 0 {
            return;
        }
        let carried = holdall_sys::tcp::carrying(&self.tcp).unwrap_or_default();
        if sent_bytes >= QUESTION_BYTES {
            self.wire.add_carrying(carried.saturating_sub(self.carried));
        }
        self.carried = self.carried.max(carried);
    }

    /// Reads, at the rate that is set for that if one is.
    fn poll_paced_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let tcp = Pin::new(&mut self.tcp);
        let Some(pace) = self.down.pace.clone() else { return tcp.poll_read(cx, into) };
        ready!(self.down.poll_pace(cx));
        let room = into.remaining().min(pace.most_bytes());
        let mut part = ReadBuf::new(into.initialize_unfilled_to(room));
        let read = tcp.poll_read(cx, &mut part);
        let bytes = part.filled().len();
        into.advance(bytes);
        self.down.wait_for(read.is_pending().then_some(WaitsFor::Path));
        pace.spend(bytes, || Duration::ZERO);
        read
    }

    fn count_sent(&mut self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = written {
            self.uncounted_bytes += *bytes as u64;
            self.meter.sent_bytes.fetch_add(*bytes as u64, Ordering::Relaxed);
            self.moved_bytes.fetch_add(*bytes as u64, Ordering::Relaxed);
            if let Some(pace) = &self.up.pace {
                pace.spend(*bytes, || holdall_sys::tcp::waiting(&self.tcp).unwrap_or_default());
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
        let read = self.poll_paced_read(cx, into);
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
        ready!(self.up.poll_pace(cx));
        let from = match &self.up.pace {
            Some(pace) => from.get(..pace.most_bytes()).unwrap_or(from),
            None => from,
        };
        let written = Pin::new(&mut self.tcp).poll_write(cx, from);
        self.up.wait_for(written.is_pending().then_some(WaitsFor::Path));
        self.count_sent(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.up.pace.is_some() {
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

impl Drop for Socket {
    fn drop(&mut self) {
        self.up.wait_for(None);
        self.down.wait_for(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LimitWaits, RateLimit};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::sleep;

    /// For how long a connection waited that sent so many bytes at a rate, for the rate and for the path; the
    /// other end rests after each read.
    fn waited(bytes_per_second: u64, bytes: usize, rest: Duration) -> [f64; 2] {
        let meter = WireMeter::default();
        let pace = Pace::new(RateLimit::BytesPerSecond(bytes_per_second), &meter);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let to = listener.local_addr().unwrap();
            let read = async {
                let (mut from, _) = listener.accept().await.unwrap();
                let mut buffer = vec![0; 256 << 10];
                while from.read(&mut buffer).await.unwrap() > 0 {
                    sleep(rest).await;
                }
            };
            let write = async {
                let tcp = TcpStream::connect(to).await.unwrap();
                let mut socket =
                    Socket::new(tcp, Arc::default(), meter.clone(), [Some(pace), None]);
                socket.write_all(&vec![7; bytes]).await.unwrap();
            };
            tokio::join!(read, write);
        });
        let LimitWaits { by_limit_seconds, by_path_seconds } = meter.limit_waits();
        [by_limit_seconds, by_path_seconds]
    }

    #[test]
    fn what_a_connection_waits_for_is_told_from_a_path_that_is_slower_than_the_limit() {
        let [by_limit, by_path] = waited(1_000_000, 400_000, Duration::ZERO);
        assert!(
            (0.25..5.0).contains(&by_limit) && by_path < by_limit / 2.0,
            "{by_limit} {by_path}"
        );
        let [by_limit, by_path] = waited(1_000_000_000, 32 << 20, Duration::from_millis(4));
        assert!(by_path > 0.2 && by_limit < by_path / 2.0, "{by_limit} {by_path}");
    }
}
