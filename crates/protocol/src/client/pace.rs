//! The rate that a client keeps, and what its connections spent their time with.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

use super::yielding::Yielding;
use crate::wire::Held;

/// What a timer may oversleep, which is made up for: it wakes a millisecond late or more, and at 60 MB/s a write
/// is due every quarter of one.
const OVERSLEPT: Duration = Duration::from_millis(20);

/// Most bytes that pass at once while a rate is set.
const PACED_BYTES: usize = 16 << 10;

/// How fast a client may be in one direction, over all of its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateLimit {
    /// So many bytes in a second.
    BytesPerSecond(u64),
    /// As many as leave the line to others: less as soon as packets wait on it.
    Yielding,
}

/// What connections that keep a rate waited for, in seconds; of any number at once each second counts once.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LimitWaits {
    /// For the rate: there was something to send, and it was not allowed yet.
    pub by_limit_seconds: f64,
    /// For the path: it was allowed, and what was sent before filled all buffers.
    pub by_path_seconds: f64,
}

/// A limit of the server's, and for how long it held the connections back, added up over them, since its first answer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ServerLimit {
    /// The last one that it told, in bytes a second; 0 where it told none.
    pub bytes_per_second: u64,
    /// In seconds.
    pub held_seconds: f64,
}

/// For how long the connections of some clients carried what they sent, and what they waited for where they keep a
/// rate. Its clones count together: who wants to know gives one to each client, by its
/// [`ClientOptions`](super::ClientOptions).
#[derive(Debug, Clone, Default)]
pub struct WireMeter {
    counted: Arc<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    carrying_micros: AtomicU64,
    /// For the rate, and for the path.
    waited_micros: [AtomicU64; 2],
    server_limit: Mutex<ToldLimit>,
    /// Paces that are kept: what their connections wait for at the moment counts, too.
    paces: Mutex<Vec<Weak<Pace>>>,
}

/// What a server told of its limit so far.
#[derive(Debug, Default)]
struct ToldLimit {
    last: Option<Held>,
    held_millis: u64,
}

impl WireMeter {
    /// What the server told of a limit that its administrator set.
    pub fn server_limit(&self) -> ServerLimit {
        let told = self.told_limit();
        ServerLimit {
            bytes_per_second: told.last.map_or(0, |last| last.bytes_per_second),
            held_seconds: Duration::from_millis(told.held_millis).as_secs_f64(),
        }
    }

    /// Counts what an answer tells of that. A server that started anew counts from nothing again.
    pub(super) fn note_server_limit(&self, held: Held) {
        let mut told = self.told_limit();
        let before = told.last.replace(held).map_or(held.millis, |last| last.millis);
        told.held_millis = told.held_millis.saturating_add(held.millis.saturating_sub(before));
    }

    fn told_limit(&self) -> MutexGuard<'_, ToldLimit> {
        self.counted.server_limit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For how long the connections carried what they sent, added up over them, in seconds: bytes were under way,
    /// and the other end had room for them. Counted when an answer comes to more than a question.
    pub fn carrying_seconds(&self) -> f64 {
        seconds(&self.counted.carrying_micros)
    }

    /// What the connections waited for while a rate was set for what they send, or receive; nothing where none was.
    /// Who receives waits for the path, too, while the server works.
    pub fn limit_waits(&self) -> LimitWaits {
        self.paces().iter().filter_map(Weak::upgrade).for_each(|pace| pace.count_until_now());
        let [by_limit_seconds, by_path_seconds] =
            self.counted.waited_micros.each_ref().map(seconds);
        LimitWaits { by_limit_seconds, by_path_seconds }
    }

    /// Counts that a connection carried what it sent for so long.
    pub(super) fn add_carrying(&self, carried: Duration) {
        add(&self.counted.carrying_micros, carried);
    }

    fn paces(&self) -> MutexGuard<'_, Vec<Weak<Pace>>> {
        self.counted.paces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn add(all_micros: &AtomicU64, more: Duration) {
    all_micros.fetch_add(u64::try_from(more.as_micros()).unwrap_or(0), Ordering::Relaxed);
}

fn seconds(micros: &AtomicU64) -> f64 {
    Duration::from_micros(micros.load(Ordering::Relaxed)).as_secs_f64()
}

/// What a connection that keeps a rate waits for before it can send more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitsFor {
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

/// How many connections wait, and since when at least one did that was not counted yet.
#[derive(Debug, Default)]
struct Waiting {
    connections: usize,
    since: Option<Instant>,
}

impl Waiting {
    /// Counts what was waited until now. With several connections some of them waits at any moment.
    fn count_until_now(&mut self, all_micros: &AtomicU64) {
        let now = Instant::now();
        let Some(since) = self.since.replace(now) else {
            self.since = None;
            return;
        };
        add(all_micros, now.saturating_duration_since(since));
    }
}

/// A rate that all connections of a client keep together.
#[derive(Debug)]
pub(super) struct Pace {
    line: Mutex<Line>,
    waiting: Mutex<[Waiting; 2]>,
    meter: WireMeter,
}

/// When the next write may happen, and how fast they follow each other.
#[derive(Debug)]
struct Line {
    free_at: Instant,
    rate: Rate,
}

#[derive(Debug)]
enum Rate {
    Set(u64),
    Yielding(Yielding),
}

impl Pace {
    /// A rate whose waits `meter` counts.
    pub(super) fn new(limit: RateLimit, meter: &WireMeter) -> Arc<Self> {
        let now = Instant::now();
        let rate = match limit {
            RateLimit::BytesPerSecond(rate) => Rate::Set(rate.max(1)),
            RateLimit::Yielding => Rate::Yielding(Yielding::new(now)),
        };
        let pace = Arc::new(Self {
            line: Mutex::new(Line { free_at: now, rate }),
            waiting: Mutex::default(),
            meter: meter.clone(),
        });
        let mut paces = meter.paces();
        paces.retain(|other| other.strong_count() > 0);
        paces.push(Arc::downgrade(&pace));
        pace
    }

    fn waiting(&self) -> MutexGuard<'_, [Waiting; 2]> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what its connections waited until now.
    fn count_until_now(&self) {
        let all_micros = &self.meter.counted.waited_micros;
        for (waiting, all_micros) in self.waiting().iter_mut().zip(all_micros) {
            waiting.count_until_now(all_micros);
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When bytes may pass next.
    pub(super) fn free_at(&self) -> Instant {
        self.line().free_at
    }

    /// Most bytes that may pass at once.
    pub(super) fn most_bytes(&self) -> usize {
        match &self.line().rate {
            Rate::Set(_) => PACED_BYTES,
            Rate::Yielding(rate) => rate.write_bytes(),
        }
    }

    /// Notes bytes that just passed; `waited` says for how long packets of that connection wait on their way.
    pub(super) fn spend(&self, bytes: usize, waited: impl FnOnce() -> Duration) {
        let now = Instant::now();
        let mut line = self.line();
        let bytes_per_second = match &mut line.rate {
            Rate::Set(rate) => *rate as f64,
            Rate::Yielding(rate) => {
                rate.note(now, bytes, waited());
                rate.bytes_per_second()
            }
        };
        line.free_at = after(line.free_at, now, bytes as f64 / bytes_per_second);
    }

    /// One connection more waits for that.
    pub(super) fn begin(&self, waits_for: WaitsFor) {
        let mut all = self.waiting();
        let waiting = waits_for.of(all.each_mut());
        waiting.connections += 1;
        waiting.since.get_or_insert_with(Instant::now);
    }

    /// One connection less does.
    pub(super) fn end(&self, waits_for: WaitsFor) {
        let mut all = self.waiting();
        let waiting = waits_for.of(all.each_mut());
        waiting.connections = waiting.connections.saturating_sub(1);
        if waiting.connections == 0 {
            let all_micros = self.meter.counted.waited_micros.each_ref();
            waiting.count_until_now(waits_for.of(all_micros));
            waiting.since = None;
        }
    }
}

/// When bytes may pass after some that took so long at `now`, and might have passed at `free_at`.
fn after(free_at: Instant, now: Instant, seconds: f64) -> Instant {
    let earliest = now.checked_sub(OVERSLEPT).unwrap_or(now);
    free_at.max(earliest) + Duration::from_secs_f64(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE_BYTES: usize = 16 << 10;

    fn pace(bytes_per_second: u64) -> (WireMeter, Arc<Pace>) {
        let meter = WireMeter::default();
        (meter.clone(), Pace::new(RateLimit::BytesPerSecond(bytes_per_second), &meter))
    }

    #[test]
    fn what_connections_wait_for_counts_while_one_of_them_still_waits() {
        const A_MOMENT: Duration = Duration::from_millis(5);
        let (meter, pace) = pace(1);
        pace.begin(WaitsFor::Limit);
        pace.begin(WaitsFor::Limit);
        pace.end(WaitsFor::Limit);
        let begun = Instant::now();
        while begun.elapsed() < A_MOMENT {
            std::hint::spin_loop();
        }
        let told = meter.limit_waits();
        assert!(told.by_limit_seconds >= A_MOMENT.as_secs_f64(), "{told:?}");
        assert_eq!(told.by_path_seconds, 0.0);
        pace.end(WaitsFor::Limit);
        let ended = meter.limit_waits();
        assert!(ended.by_limit_seconds >= told.by_limit_seconds, "{ended:?} {told:?}");
        assert_eq!(meter.limit_waits(), ended);
        assert_eq!(WireMeter::default().limit_waits(), LimitWaits::default());
    }

    /// Bytes sent in ten seconds by timers that wake so late, after a pause of a minute.
    fn sent(bytes_per_second: u64, late: Duration) -> f64 {
        let (_, pace) = pace(bytes_per_second);
        let begun = pace.free_at() + Duration::from_secs(60);
        let (mut now, mut free_at, mut sent) = (begun, pace.free_at(), 0);
        while now < begun + Duration::from_secs(10) {
            sent += WRITE_BYTES;
            free_at = after(free_at, now, WRITE_BYTES as f64 / bytes_per_second as f64);
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

    #[test]
    fn a_servers_limit_counts_from_its_first_answer_and_goes_on_after_it_started_anew() {
        let meter = WireMeter::default();
        assert_eq!(meter.server_limit(), ServerLimit::default());
        for millis in [90_000, 90_500, 92_000, 250, 1250] {
            meter.note_server_limit(Held { bytes_per_second: 1_000_000, millis });
        }
        let told = meter.server_limit();
        assert_eq!((told.bytes_per_second, told.held_seconds), (1_000_000, 3.0));
    }
}
