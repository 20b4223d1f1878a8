//! The socket under TLS, which counts what passes and slows down where that is asked for.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
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

/// For how long connections of this process that keep a rate waited, by what for.
static WAITED_MICROS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// What connections that keep a rate waited for, in seconds; of any number at once each second counts once.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct UploadWaits {
    /// For the rate: there was something to send, and it was not allowed yet.
    pub by_limit_seconds: f64,
    /// For the path: it was allowed, and what was sent before filled all buffers.
    pub by_path_seconds: f64,
}

/// What the connections to servers that this process has and had waited for while a rate was set for what they
/// send; nothing where none was. For the whole process, like [`carrying_seconds`].
pub fn upload_waits() -> UploadWaits {
    paces().iter().filter_map(Weak::upgrade).for_each(|pace| pace.count_until_now());
    let [by_limit_seconds, by_path_seconds] = WAITED_MICROS
        .each_ref()
        .map(|micros| Duration::from_micros(micros.load(Ordering::Relaxed)).as_secs_f64());
    UploadWaits { by_limit_seconds, by_path_seconds }
}

/// What a connection that keeps a rate waits for before it can send more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitsFor {
    Limit,
    Path,
}

impl WaitsFor {
    /// Its own of the two.
    fn of<T>(self, [limit, path]: [T; 2]) -> T {
        match self {
            Self::Limit => limit,
            Self::Path => path,
        }
    }
}

/// The paces that are kept: what their connections wait for at the moment counts, too.
static PACES: Mutex<Vec<Weak<Pace>>> = Mutex::new(Vec::new());

fn paces() -> MutexGuard<'static, Vec<Weak<Pace>>> {
    PACES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many connections wait, since when at least one did that was not counted yet, and for how long that was so
/// until then.
#[derive(Debug, Default)]
struct Waiting {
    connections: usize,
    since: Option<Instant>,
    waited: Duration,
}

impl Waiting {
    /// Counts what was waited until now. With several connections some of them waits at any moment.
    fn count_until_now(&mut self, all_micros: &AtomicU64) {
        let now = Instant::now();
        let Some(since) = self.since.replace(now) else {
            self.since = None;
            return;
        };
        let waited = now.saturating_duration_since(since);
        self.waited += waited;
        all_micros.fetch_add(u64::try_from(waited.as_micros()).unwrap_or(0), Ordering::Relaxed);
    }
}

/// A rate that all connections of a client keep together.
#[derive(Debug)]
pub(super) struct Pace {
    bytes_per_second: u64,
    free_at: Mutex<Instant>,
    waiting: Mutex<[Waiting; 2]>,
}

impl Pace {
    pub(super) fn new(bytes_per_second: u64) -> Arc<Self> {
        let (free_at, waiting) = (Mutex::new(Instant::now()), Mutex::default());
        let pace = Arc::new(Self { bytes_per_second: bytes_per_second.max(1), free_at, waiting });
        let mut paces = paces();
        paces.retain(|other| other.strong_count() > 0);
        paces.push(Arc::downgrade(&pace));
        pace
    }

    fn waiting(&self) -> MutexGuard<'_, [Waiting; 2]> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what its connections waited until now.
    fn count_until_now(&self) {
        for (waiting, all_micros) in self.waiting().iter_mut().zip(&WAITED_MICROS) {
            waiting.count_until_now(all_micros);
        }
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

    /// One connection more waits for that.
    fn begin(&self, waits_for: WaitsFor) {
        let mut all = self.waiting();
        let waiting = waits_for.of(all.each_mut());
        waiting.connections += 1;
        waiting.since.get_or_insert_with(Instant::now);
    }

    /// One connection less does.
    fn end(&self, waits_for: WaitsFor) {
        let mut all = self.waiting();
        let waiting = waits_for.of(all.each_mut());
        waiting.connections = waiting.connections.saturating_sub(1);
        if waiting.connections == 0 {
            waiting.count_until_now(waits_for.of(WAITED_MICROS.each_ref()));
            waiting.since = None;
        }
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
    waits_for: Option<WaitsFor>,
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
            waits_for: None,
            carried: Duration::ZERO,
            uncounted_bytes: 0,
        }
    }

    pub(super) fn moved_bytes(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.moved_bytes)
    }

    /// Notes what it waits for from now on, if it keeps a rate.
    fn wait_for(&mut self, now: Option<WaitsFor>) {
        let Some(pace) = &self.pace else { return };
        let before = std::mem::replace(&mut self.waits_for, now);
        if before != now {
            before.into_iter().for_each(|before| pace.end(before));
            now.into_iter().for_each(|now| pace.begin(now));
        }
    }

    /// Ready when the pace allows the next write.
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
        self.wait_for(written.is_pending().then_some(WaitsFor::Path));
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

impl Drop for Socket {
    fn drop(&mut self) {
        self.wait_for(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::sleep;

    /// For how long a connection waited that sent so many bytes at a rate, for the rate and for the path; the
    /// other end rests after each read.
    fn waited(bytes_per_second: u64, bytes: usize, rest: Duration) -> [f64; 2] {
        let pace = Pace::new(bytes_per_second);
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
                let mut socket = Socket::new(tcp, Arc::default(), Some(Arc::clone(&pace)));
                socket.write_all(&vec![7; bytes]).await.unwrap();
            };
            tokio::join!(read, write);
        });
        pace.waiting.lock().unwrap().each_ref().map(|waiting| waiting.waited.as_secs_f64())
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

    #[test]
    fn what_connections_wait_for_counts_while_one_of_them_still_waits() {
        const A_MOMENT: Duration = Duration::from_millis(5);
        let pace = Pace::new(1);
        pace.begin(WaitsFor::Limit);
        pace.begin(WaitsFor::Limit);
        pace.end(WaitsFor::Limit);
        let begun = Instant::now();
        while begun.elapsed() < A_MOMENT {
            std::hint::spin_loop();
        }
        let told = upload_waits().by_limit_seconds;
        let counted = pace.waiting()[0].waited;
        assert!(counted >= A_MOMENT && told >= A_MOMENT.as_secs_f64(), "{counted:?} {told}");
        pace.end(WaitsFor::Limit);
        let ended = pace.waiting()[0].waited;
        upload_waits();
        assert_eq!(pace.waiting().each_ref().map(|all| all.waited), [ended, Duration::ZERO]);
    }

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
