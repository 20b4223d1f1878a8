//! What all requests of a server share.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use holdall_format::PublicKey;
use holdall_meter::counted;
use holdall_protocol::wire::WireError;
use holdall_protocol::{Denial, RepositoryError};
use tokio::sync::{
    Notify, OwnedRwLockReadGuard, OwnedSemaphorePermit, RwLock, Semaphore, SemaphorePermit,
};
use tokio::time::sleep;

use crate::accounts::Accounts;
use crate::activity::Activities;
use crate::addresses::host_name;
use crate::admin::{Administration, Command, Line, Pace, reply_of};
use crate::auth::actor::Actor;
use crate::auth::rights::Role;
use crate::bandwidth::Bandwidth;
use crate::bounds::buffers::Buffers;
use crate::bounds::failures::{FailureLog, Whose};
use crate::bounds::limits::{Limits, SMALL_BODY_BYTES};
use crate::bounds::refused_pairings::RefusedPairings;
use crate::bounds::source::Source;
use crate::bounds::work::{BufferPermits, Memory, Work};
use crate::jobs::{Job, Jobs};
use crate::measure::Measuring;
use crate::measure::pressure::Pressure;
use crate::short_codes::ShortCodes;
use crate::stores::Stores;
#[cfg(feature = "web")]
use crate::web_sessions::WebSessions;
use crate::{LogSink, ServerError};

const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;
/// Most scrubs from afar at once, each of another repository.
pub(crate) const SCRUBS: usize = 4;
/// Most of an administrator's quick commands at once.
pub(crate) const QUICK_WORKERS: usize = 1;

pub(crate) struct ServerState {
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) stores: Stores,
    pub(crate) work: Work,
    pub(crate) buffers: Buffers,
    /// What passes in a second.
    pub(crate) bandwidth: Arc<Bandwidth>,
    /// For an administrator's commands that wait for no repository: what is locked out is locked out
    /// at once, however busy the server is.
    pub(crate) quick_work: Work,
    pub(crate) limits: Limits,
    /// The server's name for people.
    pub(crate) name: String,
    identity: PublicKey,
    listen: SocketAddr,
    log: LogSink,
    /// How much the log tells beside what everybody wants to know.
    detail: u8,
    /// What requests fail with.
    pub(crate) failures: Arc<FailureLog>,
    /// What goes on in sessions.
    pub(crate) activities: Activities,
    refused_pairings: RefusedPairings,
    /// By repository; that of no name is all strangers'.
    shares: Mutex<HashMap<String, Arc<Share>>>,
    scrubs: Arc<Semaphore>,
    /// How much the processor holds requests back.
    pub(crate) pressure: Pressure,
    /// Whose turn it is to measure the path here.
    pub(crate) measuring: Measuring,
    /// Set when what takes long is to end.
    should_stop: AtomicBool,
    /// What takes long.
    pub(crate) jobs: Jobs,
    /// Who is signed in to the pages.
    #[cfg(feature = "web")]
    pub(crate) web_sessions: WebSessions,
    /// The code by which a machine may be let in.
    pub(crate) short_codes: ShortCodes,
    /// Whoever tells people wakes when a machine has told of a run, or a short code was guessed wrong.
    pub(crate) run_was_told: Notify,
    /// One turn: a proof reads the records of a repository, for whoever has an invite.
    proofs: Semaphore,
}

/// What the machine of a repository may have under way, with its recovery kits.
struct Share {
    connections: Arc<Semaphore>,
    requests: Arc<Semaphore>,
    bodies: Memory,
    answers: Memory,
    /// One turn.
    scrubs: Arc<Semaphore>,
    /// Held by puts from the end of their body on.
    storing: Arc<RwLock<()>>,
}

impl ServerState {
    pub(crate) fn new(
        accounts: Arc<Accounts>,
        stores: Stores,
        identity: PublicKey,
        listen: SocketAddr,
        limits: Limits,
        log: LogSink,
        detail: u8,
    ) -> Self {
        let failures = Arc::new(FailureLog::new(Arc::clone(&log), accounts.clock()));
        let bandwidth = Arc::new(Bandwidth::new(Arc::clone(&accounts)));
        Self {
            activities: Activities::new(Arc::clone(&failures), Arc::clone(&bandwidth)),
            bandwidth,
            detail,
            failures,
            refused_pairings: RefusedPairings::default(),
            accounts,
            stores,
            work: Work::new(limits.workers, limits.body_bytes),
            buffers: Buffers::default(),
            quick_work: Work::new(QUICK_WORKERS, 0),
            limits,
            name: host_name(),
            identity,
            listen,
            log,
            shares: Mutex::default(),
            scrubs: Arc::new(Semaphore::new(SCRUBS)),
            pressure: Pressure::default(),
            measuring: Measuring::default(),
            should_stop: AtomicBool::new(false),
            jobs: Jobs::default(),
            #[cfg(feature = "web")]
            web_sessions: WebSessions::default(),
            short_codes: ShortCodes::default(),
            run_was_told: Notify::new(),
            proofs: Semaphore::new(1),
        }
    }

    /// Counts a connection of a machine until it ends; nothing if it has too many. So whoever holds
    /// connections and asks nothing leaves room for all others.
    pub(crate) fn connection_of(&self, key: &PublicKey) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.share_of(key).connections).try_acquire_owned().ok()
    }

    /// Counts a request of a machine until its answer was sent; an error if it has too many under way. At
    /// most half of the workers can be one machine's.
    pub(crate) fn request_slot(&self, key: &PublicKey) -> Result<OwnedSemaphorePermit, WireError> {
        let requests = Arc::clone(&self.share_of(key).requests);
        requests.try_acquire_owned().map_err(|_| WireError::TooManyRequests)
    }

    /// Waits for memory for a body. At most half of it can be one machine's, however slowly it sends what it
    /// announced. A small body waits for none: there are only so many connections, and whoever asks for
    /// a list does not stand behind others' uploads.
    ///
    /// # Cancel safety
    /// Nothing is held when it is dropped.
    pub(crate) async fn body_permits(
        &self,
        key: &PublicKey,
        bytes: u64,
    ) -> Result<Option<BufferPermits>, WireError> {
        if bytes <= SMALL_BODY_BYTES {
            return Ok(None);
        }
        let of_machine = self.share_of(key).bodies.permit(bytes).await?;
        Ok(Some(BufferPermits { of_machine, of_all: self.work.bodies.permit(bytes).await? }))
    }

    /// Waits for memory for an answer. At most half of it can be one machine's, however slowly it takes what it
    /// asked for.
    ///
    /// # Cancel safety
    /// Nothing is held when it is dropped.
    pub(crate) async fn answer_permits(
        &self,
        key: &PublicKey,
        bytes: u64,
    ) -> Result<BufferPermits, WireError> {
        let of_machine = self.share_of(key).answers.permit(bytes).await?;
        Ok(BufferPermits { of_machine, of_all: self.work.answers.permit(bytes).await? })
    }

    /// Counts a put of a machine as one that is being stored, until it is.
    pub(crate) async fn storing(&self, key: &PublicKey) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.share_of(key).storing).read_owned().await
    }

    /// Waits for the puts of a machine that are being stored: one whose connection was cut asks for what is there
    /// sooner than the disk has it.
    pub(crate) async fn stored(&self, key: &PublicKey) {
        drop(self.share_of(key).storing.write().await);
    }

    /// A machine chooses how many recovery kits there are, so they have what it has.
    fn share_of(&self, key: &PublicKey) -> Arc<Share> {
        let repository = match self.accounts.role(key) {
            Role::Machine { repository, .. } | Role::Reader { repository } => repository,
            Role::Unknown | Role::Revoked => String::new(),
        };
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            let requests = self.limits.requests_of_machine.min((self.limits.workers / 2).max(1));
            Arc::new(Share {
                connections: Arc::new(Semaphore::new(self.limits.connections_of_machine)),
                requests: Arc::new(Semaphore::new(requests)),
                bodies: Memory::new(self.limits.body_bytes / 2),
                answers: Memory::new(self.limits.body_bytes / 2),
                scrubs: Arc::new(Semaphore::new(1)),
                storing: Arc::default(),
            })
        };
        Arc::clone(shares.entry(repository).or_insert_with(new))
    }

    /// Counts a scrub of a machine until it ends; an error if its repository has one already, or too many
    /// others have.
    pub(crate) fn scrub_slots(
        &self,
        key: &PublicKey,
    ) -> Result<[OwnedSemaphorePermit; 2], WireError> {
        let take = |turns: Arc<Semaphore>| {
            turns.try_acquire_owned().map_err(|_| WireError::TooManyRequests)
        };
        let of_machine = take(Arc::clone(&self.share_of(key).scrubs))?;
        Ok([of_machine, take(Arc::clone(&self.scrubs))?])
    }

    /// Waits for the turn to prove something by records; one proof at a time.
    ///
    /// # Cancel safety
    /// Nothing is held when it is dropped.
    pub(crate) async fn proof_slot(&self) -> Result<SemaphorePermit<'_>, WireError> {
        self.proofs.acquire().await.map_err(|_| WireError::Busy)
    }

    /// The same refusal; if the machine is to be removed, with when.
    pub(crate) fn with_removal(&self, key: &PublicKey, error: WireError) -> WireError {
        let WireError::Repository(RepositoryError::NotAllowed {
            cause: Denial::RevokedKey, ..
        }) = error
        else {
            return error;
        };
        let Some(going) = self.accounts.removal_of(key) else { return error };
        let left_ns = going.due_ns.saturating_sub(self.stores.now_ns()).max(0);
        let days = u64::try_from(left_ns / DAY_NS + 1).unwrap_or(1);
        let reason = format!(
            "this machine was removed, and its snapshots will be deleted within {} unless the administrator \
             takes that back: `holdall admin cancel {}` on the server",
            counted(days, "day"),
            going.number
        );
        RepositoryError::denied(Denial::Explained, reason).into()
    }

    /// Where it listens, for what tells servers of one computer apart.
    #[cfg(feature = "web")]
    pub(crate) fn port(&self) -> u16 {
        self.listen.port()
    }

    /// What an administrator may work on.
    pub(crate) fn administration<'a>(&'a self, actor: &'a Actor) -> Administration<'a> {
        let Self { accounts, stores, identity, listen, log, jobs, should_stop, .. } = self;
        let activities = Some(&self.activities);
        let (identity, listen) = (*identity, *listen);
        Administration {
            accounts,
            stores,
            identity,
            listen,
            log,
            actor,
            activities,
            short_codes: Some(&self.short_codes),
            #[cfg(feature = "web")]
            web_sessions: Some(&self.web_sessions),
            jobs,
            job: None,
            should_stop,
        }
    }

    /// Does what no request that stores or reads waits for, and counts what the calling thread uses for it.
    pub(crate) fn administer<T>(
        &self,
        actor: &Actor,
        work: impl FnOnce(Administration<'_>) -> T,
    ) -> T {
        self.pressure.own_work.count(|| work(self.administration(actor)))
    }

    /// Does what takes long: the job's log has what is logged meanwhile.
    pub(crate) fn administer_job<T>(
        &self,
        job: &Arc<Job>,
        work: impl FnOnce(Administration<'_>) -> T,
    ) -> T {
        let (own, log, clock) = (Arc::clone(job), Arc::clone(&self.log), self.accounts.clock());
        let log: LogSink = Arc::new(move |line| {
            own.say(line, clock.now_ns());
            log(line);
        });
        let common = self.administration(&job.actor);
        let should_stop = &job.should_stop;
        let administration = Administration { log: &log, job: Some(job), should_stop, ..common };
        self.pressure.own_work.count(|| work(administration))
    }

    /// Has a command carried out, on threads of its pace. What takes long is a job meanwhile.
    ///
    /// # Errors
    /// If the server is ending; what the command itself failed with is in its answer.
    ///
    /// # Cancel safety
    /// A command that began is carried out to its end.
    pub(crate) async fn carry_out(
        self: &Arc<Self>,
        actor: Actor,
        command: Command,
    ) -> Result<Result<Line, ServerError>, WireError> {
        let inner = Arc::clone(self);
        let threads = match command.pace() {
            Pace::Quick => &self.quick_work,
            Pace::Usual => &self.work,
            Pace::Long => {
                let begun = self.begin_asked(actor, &command);
                return match begun {
                    Ok(job) => self.run_job(job, command).await,
                    Err(refused) => Ok(Err(refused)),
                };
            }
        };
        let carry_out = move || Ok(inner.administer(&actor, |all| command.carry_out(&all)));
        Ok(threads.run(carry_out).await?.0)
    }

    /// Begins the job of a command that somebody asks for, which [`ServerState::run_job`] runs.
    ///
    /// # Errors
    /// As [`Jobs::begin_asked`], and [`ServerError::NotAllowed`].
    pub(crate) fn begin_asked(
        &self,
        actor: Actor,
        command: &Command,
    ) -> Result<Arc<Job>, ServerError> {
        self.administer(&actor, |on| on.check_scope(command.name(), command.scope()))?;
        self.jobs.begin_asked(actor, command.title(), self.stores.now_ns())
    }

    /// Begins a job of the server's own.
    pub(crate) fn begin_job(&self, actor: Actor, what: String) -> Arc<Job> {
        self.jobs.begin(actor, what, self.stores.now_ns())
    }

    /// Carries a command out as a job.
    ///
    /// # Errors
    /// As [`ServerState::carry_out`].
    pub(crate) async fn run_job(
        self: &Arc<Self>,
        job: Arc<Job>,
        command: Command,
    ) -> Result<Result<Line, ServerError>, WireError> {
        let (inner, own) = (Arc::clone(self), Arc::clone(&job));
        let carry_out = move || {
            if !own.begin() {
                return Ok(Err(ServerError::refused("the job was cancelled before its turn came")));
            }
            Ok(inner.administer_job(&own, |all| command.carry_out(&all)))
        };
        let done = self.work.run(carry_out).await;
        let result = match &done {
            Ok((Ok(line), _)) => reply_of(line).map_err(|error| error.to_string()),
            Ok((Err(error), _)) => Err(error.to_string()),
            Err(_) => Err("the server ended, or its thread did".to_owned()),
        };
        job.end(result, self.stores.now_ns());
        Ok(done?.0)
    }

    /// Has everything end that takes long.
    pub(crate) fn stop(&self) {
        self.should_stop.store(true, Ordering::Release);
        self.jobs.end_all();
    }

    /// The key that clients pin.
    pub(crate) fn identity(&self) -> PublicKey {
        self.identity
    }

    /// Writes one line. It never has content, names of files or secrets.
    pub(crate) fn log(&self, line: &str) {
        (self.log)(line);
    }

    /// Writes a line that only those want who asked for so much detail.
    pub(crate) fn detail(&self, level: u8, line: impl FnOnce() -> String) {
        if self.detail >= level {
            self.log(&line());
        }
    }

    pub(crate) fn log_failure(
        &self,
        verb: &str,
        key: &PublicKey,
        source: Source,
        error: &WireError,
    ) {
        let who = self.accounts.shown(key);
        if let WireError::Repository(RepositoryError::NoRepository { .. }) = error {
            // A machine looks before it makes one.
            return self
                .detail(1, || format!("{who} at {source}: {verb}: there is no repository yet"));
        }
        let whose = match self.accounts.role(key) {
            Role::Machine { repository, .. } | Role::Reader { repository } => {
                Whose::Repository(repository)
            }
            Role::Unknown | Role::Revoked => Whose::Strangers,
        };
        let what = match error {
            WireError::Repository(error) => error.to_string(),
            WireError::UnknownMachine => "unknown key".into(),
            WireError::TooLarge { limit_bytes } => format!("body over {limit_bytes} bytes"),
            WireError::TooManyRequests => "too many requests".into(),
            other => format!("{other:?}"),
        };
        let what = match whose {
            Whose::Repository(_) => format!("{who} at {source}: {verb}: {what}"),
            // Where from, the line says.
            _ => format!("{verb} by {who}: {what}"),
        };
        self.failures.note(whose, Some(source), &what);
    }

    /// Notes a handshake that broke a rule of TLS, or whose peer does not accept this server. One that merely ended, as
    /// those of whoever looks whether the port is open, is none.
    pub(crate) fn log_handshake(&self, source: Source, error: &io::Error) {
        if error.kind() == io::ErrorKind::InvalidData {
            self.failures.note(Whose::Strangers, Some(source), &format!("handshake: {error}"));
        }
    }

    /// Counts a pairing that was refused, and lets its answer wait; false if there were too many, which wait for
    /// nothing.
    ///
    /// # Cancel safety
    /// It stays counted.
    pub(crate) async fn delay_refused_pairing(&self, source: Source) -> bool {
        let now_ns = self.accounts.clock().running_ns();
        let is_within = self.refused_pairings.count(source, now_ns, &self.limits);
        if is_within {
            sleep(self.limits.refused_pairing_delay).await;
        }
        is_within
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;
    use crate::accounts::InviteRequest;
    use crate::auth::identity::ServerIdentity;
    use crate::data_folder::DataFolder;
    use holdall_testkit::FakeClock;

    const fn key(number: u8) -> PublicKey {
        PublicKey::from_bytes([number; 32])
    }

    /// What the requests of a server share that has let in so many machines, whose keys are numbered.
    fn state_with_machines(temp: &tempfile::TempDir, machines: u8) -> ServerState {
        let folder = Arc::new(DataFolder::take(temp.path()).unwrap());
        let accounts =
            Accounts::open(&folder.database(), Arc::new(FakeClock::at(1_900_000_000))).unwrap();
        for number in 1..=machines {
            let invitation = accounts.invite(&InviteRequest::default(), key(99), vec![]).unwrap();
            let (secret, name) = (&invitation.invite.secret, format!("machine {number}"));
            accounts.pair(secret, key(number), &name, None, |_| false).unwrap();
        }
        let (accounts, log): (_, LogSink) = (Arc::new(accounts), Arc::new(|_| ()));
        let signer = Arc::new(ServerIdentity::of(&folder).unwrap());
        let stores = Stores::new(folder, signer, Arc::clone(&accounts), Arc::clone(&log));
        let listen = "127.0.0.1:1".parse().unwrap();
        ServerState::new(accounts, stores, key(99), listen, Limits::default(), log, 0)
    }

    #[test]
    fn half_of_the_room_for_answers_is_for_others() {
        let temp = tempfile::tempdir().unwrap();
        let state = state_with_machines(&temp, 2);
        let permits = |number, bytes| {
            let key = key(number);
            let waited = pin!(state.answer_permits(&key, bytes));
            waited.poll(&mut Context::from_waker(Waker::noop()))
        };
        let half = state.limits.body_bytes as u64 / 2;
        let first = permits(1, half);
        assert!(first.is_ready() && permits(1, 1024).is_pending());
        let other = permits(2, half);
        assert!(other.is_ready());
        drop(first);
        assert!(permits(1, 1024).is_ready());
    }

    #[test]
    fn a_machine_has_one_scrub_at_a_time_and_leaves_the_other_turns_to_others() {
        let temp = tempfile::tempdir().unwrap();
        let state = state_with_machines(&temp, 5);
        let is_busy = |number| {
            let turn = state.scrub_slots(&key(number));
            matches!(turn, Err(WireError::TooManyRequests))
        };
        let first = state.scrub_slots(&key(1)).unwrap();
        assert!(is_busy(1));
        let of_others: Vec<_> = (2..5).map(|number| state.scrub_slots(&key(number))).collect();
        assert!(of_others.iter().all(Result::is_ok));
        assert!(is_busy(5), "as many as there may be at once");
        drop(first);
        assert!(state.scrub_slots(&key(1)).is_ok() && state.scrub_slots(&key(5)).is_ok());
    }
}
