//! A line of the log for each snapshot, and for each reading once it ended: who, from where, how much, for how long, and
//! what it waited for as far as this server saw. Of content and names of files it knows nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdall_format::{PublicKey, RecordKind, SessionId, StoredRecord};
use holdall_meter::{duration, size};
use holdall_protocol::{CommitAnswer, RepositoryError, RequestTimes};
use serde::{Deserialize, Serialize};

use crate::ServerError;
use crate::bandwidth::Bandwidth;
use crate::bounds::failures::{FailureLog, Whose};
use crate::bounds::source::Source;
use crate::recent::Recent;

/// A session in which nothing was asked for so long is taken for one that ended.
const ENDED_AFTER: Duration = Duration::from_secs(600);
/// One in which nothing was asked for so long is not taken for one that goes on: its machine may be gone.
const SILENT: Duration = Duration::from_secs(120);
/// So often it is looked for those.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(60);
/// What is told of such a session.
const UNENDED: &str = ", and did not say that it was done";
/// What a machine is told whose session somebody had ended.
const ENDED: &str =
    "an administrator of the server had this run ended; nothing that was stored is lost";
/// What a session is held back by where an administrator said so.
const LIMIT: &str = "the limit that was set";
/// What was shorter says little about what it waited for.
const ENOUGH_SECONDS: f64 = 0.5;
/// Most sessions of a key that are followed at once.
const MOST_OF_KEY: usize = 256;

/// What goes on in sessions.
pub(crate) struct Activities {
    /// Bounds how many lines a machine has.
    log: Arc<FailureLog>,
    /// What the next one is called.
    next: AtomicU64,
    bandwidth: Arc<Bandwidth>,
    of: Mutex<HashMap<(PublicKey, SessionId), Activity>>,
}

/// What goes on in a session.
struct Activity {
    number: u64,
    /// Somebody wants it to end: nothing more is done in it.
    is_ended: bool,
    repository: String,
    /// The machine's name, and where it is.
    who: String,
    source: Source,
    began: Instant,
    last: Instant,
    taken_bytes: u64,
    given_bytes: u64,
    recent: Recent,
    times: RequestTimes,
    /// For how long its machine was held back by a limit, before it and until its last request.
    held: [Duration; 2],
}

/// A session in which a machine stores or reads, as an administrator sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct SessionEntry {
    /// What it is called, until the server ends.
    pub number: u64,
    /// The machine, and where it is.
    pub who: String,
    /// The repository's name on this server.
    pub repository: String,
    /// For how many seconds it has lasted.
    pub seconds: f64,
    /// Bytes that were stored.
    pub taken_bytes: u64,
    /// Bytes that were read.
    pub given_bytes: u64,
    /// Of both, over the last minute.
    pub bytes_per_second: f64,
    /// What it waits for, as far as the server sees.
    pub limited_by: Option<String>,
}

impl Activities {
    pub(crate) fn new(log: Arc<FailureLog>, bandwidth: Arc<Bandwidth>) -> Self {
        Self { log, bandwidth, next: AtomicU64::new(1), of: Mutex::default() }
    }

    /// Notes that a session of a repository was opened, and by whom. Of a key that opens many, the one that was idle
    /// for longest counts as ended.
    pub(crate) fn opened(
        &self,
        of: (PublicKey, SessionId),
        (repository, who): (String, &str),
        source: Source,
    ) {
        let now = Instant::now();
        let activity = Activity {
            number: self.next.fetch_add(1, Ordering::Relaxed),
            is_ended: false,
            repository,
            who: format!("{who} at {source}"),
            source,
            began: now,
            last: now,
            taken_bytes: 0,
            given_bytes: 0,
            recent: Recent::default(),
            times: RequestTimes::default(),
            held: [self.bandwidth.held(&of.0); 2],
        };
        let mut all = self.lock();
        let of_key = || all.iter().filter(|((key, _), _)| *key == of.0);
        let idlest = of_key().min_by_key(|(_, activity)| activity.last).map(|(of, _)| *of);
        let surplus = idlest.filter(|_| of_key().count() >= MOST_OF_KEY);
        let ended = surplus.and_then(|surplus| all.remove(&surplus));
        all.insert(of, activity);
        drop(all);
        ended.iter().for_each(|activity| self.tell_ended(activity, UNENDED));
    }

    /// Notes blocks that were stored.
    pub(crate) fn took(&self, of: (PublicKey, SessionId), bytes: u64, times: &RequestTimes) {
        self.went_on(of, times, |activity| activity.taken_bytes += bytes);
    }

    /// Notes blocks that were read.
    pub(crate) fn gave(&self, of: (PublicKey, SessionId), bytes: u64, times: &RequestTimes) {
        self.went_on(of, times, |activity| activity.given_bytes += bytes);
    }

    fn went_on(
        &self,
        of: (PublicKey, SessionId),
        times: &RequestTimes,
        add: impl FnOnce(&mut Activity),
    ) {
        let held = self.bandwidth.held(&of.0);
        if let Some(activity) = self.lock().get_mut(&of) {
            add(activity);
            activity.held[1] = held;
            activity.last = Instant::now();
            let seconds = activity.last.duration_since(activity.began).as_secs_f64();
            activity.recent.note(activity.bytes(), seconds);
            activity.times.receive_seconds += times.receive_seconds;
            activity.times.queue_seconds += times.queue_seconds;
            activity.times.cpu_seconds += times.cpu_seconds;
            activity.times.disk_seconds += times.disk_seconds;
        }
    }

    /// Tells of a snapshot that was committed, if that is what the answer says.
    pub(crate) fn committed(&self, of: (PublicKey, SessionId), answer: &CommitAnswer) {
        let CommitAnswer::Committed(stored) = answer else { return };
        let Ok(StoredRecord { record, .. }) = StoredRecord::decode(stored) else { return };
        if record.head.kind != RecordKind::Snapshot || record.head.amends.is_some() {
            return;
        }
        let id = record.hash().to_string();
        if let Some(activity) = self.lock().remove(&of) {
            let id = id.get(..10).unwrap_or_default();
            self.tell(&activity, &activity.line(&format!("snapshot {id}"), activity.taken_bytes));
        }
    }

    /// Tells of a session that ended.
    pub(crate) fn closed(&self, of: (PublicKey, SessionId)) {
        let ended = self.lock().remove(&of);
        ended.iter().for_each(|activity| self.tell_ended(activity, ""));
    }

    /// Has one end: the next request in it is refused, so that the machine's run ends.
    ///
    /// # Errors
    /// [`ServerError::Refused`] if nothing goes on under that number.
    pub(crate) fn end(&self, number: u64) -> Result<SessionEntry, ServerError> {
        let mut all = self.lock();
        let Some(activity) = all.values_mut().find(|activity| activity.number == number) else {
            let why = format!("no machine does anything here that is called {number}");
            return Err(ServerError::refused(why));
        };
        activity.is_ended = true;
        Ok(activity.entry(LIMIT))
    }

    /// Checks that nobody had a session ended, in which something is asked for now.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`].
    pub(crate) fn check(&self, of: (PublicKey, SessionId)) -> Result<(), RepositoryError> {
        match self.lock().get_mut(&of) {
            Some(activity) if activity.is_ended => {
                Err(RepositoryError::Refused { reason: ENDED.into() })
            }
            Some(activity) => {
                activity.last = Instant::now();
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Tells of the sessions that ended without a word, now and then. Never ends by itself.
    pub(crate) async fn tell_ended_ones(&self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            self.tell_those(|activity| activity.last.elapsed() >= ENDED_AFTER);
        }
    }

    /// Tells of all sessions.
    pub(crate) fn tell_all(&self) {
        self.tell_those(|_| true);
    }

    /// Those that did not end yet and in which something was asked for lately, the oldest first.
    pub(crate) fn entries(&self) -> Vec<SessionEntry> {
        let all = self.lock();
        let mut active: Vec<_> =
            all.values().filter(|one| !one.is_ended && one.last.elapsed() < SILENT).collect();
        active.sort_by_key(|activity| activity.began);
        let rule = self.bandwidth.rule();
        let limit = rule.map(|rule| format!("the limit of {rule}"));
        let limit = limit.as_deref().unwrap_or(LIMIT);
        active.into_iter().map(|activity| activity.entry(limit)).collect()
    }

    fn tell_those(&self, is_due: impl Fn(&Activity) -> bool) {
        let ended: Vec<_> = self.lock().extract_if(|_, activity| is_due(activity)).collect();
        for (_, activity) in ended {
            self.tell_ended(&activity, UNENDED);
        }
    }

    fn tell_ended(&self, activity: &Activity, how: &str) {
        let tell = |what: &str, bytes: u64| {
            if bytes > 0 {
                self.tell(activity, &format!("{}{how}", activity.line(what, bytes)));
            }
        };
        tell("sent without a snapshot", activity.taken_bytes);
        tell("read", activity.given_bytes);
    }

    fn tell(&self, activity: &Activity, line: &str) {
        let whose = Whose::Sessions(activity.repository.clone());
        self.log.note(whose, Some(activity.source), line);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(PublicKey, SessionId), Activity>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Activity {
    fn entry(&self, limit: &str) -> SessionEntry {
        let seconds = self.began.elapsed().as_secs_f64();
        SessionEntry {
            number: self.number,
            who: self.who.clone(),
            repository: self.repository.clone(),
            seconds,
            taken_bytes: self.taken_bytes,
            given_bytes: self.given_bytes,
            bytes_per_second: self.recent.rate(self.bytes(), seconds),
            limited_by: self
                .limit(seconds)
                .map(|by| if by == LIMIT { limit } else { by }.to_owned()),
        }
    }

    fn limit(&self, seconds: f64) -> Option<&'static str> {
        let [before, now] = self.held;
        limit(&self.times, now.saturating_sub(before).as_secs_f64(), seconds)
    }

    fn bytes(&self) -> u64 {
        self.taken_bytes + self.given_bytes
    }

    fn line(&self, what: &str, bytes: u64) -> String {
        let seconds = self.last.max(self.began).duration_since(self.began).as_secs_f64();
        let limit = self.limit(seconds).map(|limit| format!(", limited by {limit}"));
        let (who, limit) = (&self.who, limit.unwrap_or_default());
        format!("{who}: {what}, {} in {}{limit}", size(bytes), duration(seconds))
    }
}

/// What a session waited for most: requests come over several connections at once, so that their times may add up to more.
/// What this server did not spend on them is the network's or the client's, but for what it was `held` back by a limit.
fn limit(times: &RequestTimes, held: f64, seconds: f64) -> Option<&'static str> {
    let RequestTimes { receive_seconds, queue_seconds, cpu_seconds, disk_seconds } = *times;
    let idle = seconds - (receive_seconds + queue_seconds + cpu_seconds + disk_seconds);
    let all = [
        (LIMIT, held),
        ("client or network", receive_seconds + idle.max(0.0) - held),
        ("server-busy", queue_seconds),
        ("server-cpu", cpu_seconds),
        ("server-disk", disk_seconds),
    ];
    let most = all.into_iter().max_by(|(_, one), (_, other)| one.total_cmp(other));
    most.filter(|_| seconds >= ENOUGH_SECONDS).map(|(limit, _)| limit)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use holdall_sys::Root;
    use holdall_testkit::FakeClock;

    use super::*;
    use crate::LogSink;
    use crate::accounts::Accounts;

    fn activities() -> (Activities, Arc<Mutex<Vec<String>>>) {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let told = Arc::clone(&lines);
        let log: LogSink = Arc::new(move |line| told.lock().unwrap().push(line.to_owned()));
        let clock = Arc::new(FakeClock::at(1_900_000_000));
        let log = FailureLog::new(log, clock.clone());
        let folder = tempfile::tempdir().unwrap();
        let accounts = Accounts::open(&Root::at(folder.path()).join("db"), clock).unwrap();
        let bandwidth = Arc::new(Bandwidth::new(Arc::new(accounts)));
        (Activities::new(Arc::new(log), bandwidth), lines)
    }

    #[test]
    fn a_reading_has_a_line_when_it_ends_however_it_ends() {
        let (activities, lines) = activities();
        let of = |number| (PublicKey::from_bytes([1; 32]), SessionId::from_bytes([number; 16]));
        let source = Source::from(IpAddr::from([10, 0, 0, 7]));
        for number in 1..=3 {
            activities.opened(of(number), ("desk".into(), "laptop"), source);
        }
        activities.gave(of(1), 2_000_000, &RequestTimes::default());
        activities.gave(of(2), 1000, &RequestTimes::default());
        activities.closed(of(1));
        activities.closed(of(1));
        activities.tell_those(|activity| activity.last.elapsed() >= ENDED_AFTER);
        activities.tell_all();
        activities.closed(of(3));
        assert_eq!(
            *lines.lock().unwrap(),
            [
                "laptop at 10.0.0.7: read, 2.0 MB in 0.00 s",
                "laptop at 10.0.0.7: read, 1.0 kB in 0.00 s, and did not say that it was done"
            ]
        );
    }

    #[test]
    fn a_machine_that_opens_many_sessions_has_few_lines_and_takes_none_from_others() {
        let (activities, lines) = activities();
        let source = Source::from(IpAddr::from([10, 0, 0, 7]));
        let session = |number: usize| {
            SessionId::from_bytes(std::array::from_fn(|at| (number >> (8 * (at % 4))) as u8))
        };
        let [flooding, other] = [1, 2].map(|key| PublicKey::from_bytes([key; 32]));
        activities.opened((other, session(0)), ("desk".into(), "desk"), source);
        activities.gave((other, session(0)), 1000, &RequestTimes::default());
        for number in 0..MOST_OF_KEY + 100 {
            activities.opened((flooding, session(number)), ("laptop".into(), "laptop"), source);
            activities.gave((flooding, session(number)), 1000, &RequestTimes::default());
        }
        assert_eq!(activities.lock().len(), MOST_OF_KEY + 1);
        activities.closed((other, session(0)));
        let lines = lines.lock().unwrap();
        assert!(lines.len() <= 12, "{}", lines.len());
        assert!(lines.iter().any(|line| line.starts_with("desk at 10.0.0.7: read")), "{lines:?}");
    }

    #[test]
    fn what_a_session_waited_for_is_what_took_most_of_its_time() {
        let times = |receive_seconds, disk_seconds| RequestTimes {
            receive_seconds,
            disk_seconds,
            cpu_seconds: 0.1,
            queue_seconds: 0.2,
        };
        assert_eq!(limit(&times(0.1, 3.0), 0.0, 1.0), Some("server-disk"));
        assert_eq!(limit(&times(5.0, 3.0), 0.0, 2.0), Some("client or network"));
        let idle = limit(&times(0.1, 0.1), 0.0, 2.0);
        assert_eq!(idle, Some("client or network"), "it was asked nothing");
        assert_eq!(limit(&times(0.1, 0.1), 0.0, 0.4), None);
        assert_eq!(limit(&times(5.0, 1.0), 4.5, 6.0), Some(LIMIT), "bytes came late for it");
        assert_eq!(limit(&times(0.1, 1.0), 4.5, 6.0), Some(LIMIT), "they went late for it");
    }
}
