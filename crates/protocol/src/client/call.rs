//! Asking, and asking again.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdall_format::FormatError;

use super::body::{Sink, Whole};
use super::dial::Dialer;
use super::stream::{Answer, Head, Stream, StreamError};
use super::turns::{Turn, Turns};
use super::{ClientOptions, ServerAddress};
use crate::tls::TlsError;
use crate::wire::{ErrorAnswer, Frames, RepositoryVerb, Route, WireError};
use crate::{Denial, MachineIdentity, RepositoryError, Traffic};

/// What is said where a server does not know a request.
pub(super) const UNKNOWN_REQUEST: &str =
    "the server does not know this request: it is older than this program, update it";
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How long a server may look something up or make blocks durable, and how long it may work on anything else,
/// before its connection is given up and it is asked again on another: it may have all of a repository to go
/// through. A server that is gone is found earlier, by the kernel; this finds one that hangs, or a
/// box between that forgot the connection.
const LOOKS_UP: Duration = Duration::from_secs(120);
const WORKS: Duration = Duration::from_secs(600);
/// How often an interruption is looked for while pausing.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Whether a request carries blocks, for which there are only so many turns, or is a question in
/// between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// A question.
    Light,
    /// A question over the connections of that path, counted from 0, which a measurement chooses itself.
    Over(usize),
    /// It takes blocks along: its turn is over when they are on their way.
    Puts,
    /// It brings blocks back: its turn is over when they are here.
    Fetches,
}

/// Asks one server, over as many connections as there are callers.
pub(crate) struct Caller {
    dialer: Dialer,
    /// All hosts, for messages.
    hosts: String,
    /// The first host, for the header that HTTP asks for.
    host: String,
    idle: Mutex<Vec<Stream>>,
    turns: Arc<Turns>,
    last_success: Mutex<Instant>,
    lost: AtomicU64,
    /// How many questions are asked, again and again until there is an answer.
    asking: AtomicUsize,
    options: ClientOptions,
}

/// One try on one connection.
enum Attempt {
    Answered(Answer),
    /// No answer on a connection that had been idle: it may have been closed meanwhile.
    Stale(StreamError),
    Failed(StreamError),
}

/// What is asked, apart from the body.
pub(crate) struct Question {
    path: String,
    method: &'static str,
    weight: Weight,
    patience: Duration,
    /// Whether an answer to it is what the caller wants, and shows that it gets on.
    gets_on: bool,
}

impl Question {
    /// What the caller wants to know or to have done.
    pub(crate) fn new(route: &Route, weight: Weight) -> Self {
        let (path, method) = (route.path(), route.method().name());
        Self { path, method, weight, patience: patience(route), gets_on: true }
    }

    /// What is asked about a request that was lost.
    pub(crate) fn about_a_lost_one(route: &Route) -> Self {
        Self { gets_on: false, ..Self::new(route, Weight::Light) }
    }
}

/// How asking goes, until there is an answer.
pub(crate) struct Asking {
    started: Instant,
    pause: Duration,
    is_first: bool,
    was_stale: bool,
    waited_once: bool,
}

impl Asking {
    /// Of what was not asked yet.
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            pause: FIRST_PAUSE,
            is_first: true,
            was_stale: false,
            waited_once: false,
        }
    }
}

/// What came of asking once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tried {
    /// The sink has the answer.
    Answered,
    /// The server has no time; it is time to ask again.
    Busy,
    /// There is no answer, whatever was done; it is time to ask again.
    Lost,
}

impl Caller {
    /// Makes ready to ask, without asking.
    pub(crate) fn new(
        address: &ServerAddress,
        identity: &MachineIdentity,
        options: ClientOptions,
    ) -> Result<Self, TlsError> {
        let dialer = Dialer::new(address, identity, &options)?;
        Ok(Self {
            turns: Turns::new(options.streams, dialer.paths()),
            dialer,
            hosts: address.hosts.join(", "),
            host: address.hosts.first().cloned().unwrap_or_default(),
            idle: Mutex::default(),
            last_success: Mutex::new(Instant::now()),
            lost: AtomicU64::new(0),
            asking: AtomicUsize::new(0),
            options,
        })
    }

    /// Connects, so that a server that is not there shows at once, or after the time that reaching it may take.
    pub(crate) fn reach(&self) -> Result<(), RepositoryError> {
        let (started, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            let path = self.dialer.next_path();
            match Stream::open(&self.dialer, path, &self.options.interrupt) {
                Ok(stream) => {
                    self.put_back(stream);
                    self.note_success();
                    return Ok(());
                }
                Err(StreamError::Lost(_))
                    if started.elapsed() + pause <= self.options.reach_for =>
                {
                    self.pause(pause)?;
                }
                Err(error) => return Err(self.last_word(error)),
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Asks until there is an answer, and reads it as a whole.
    pub(crate) fn ask<T>(
        &self,
        route: &Route,
        body: &Frames,
        (weight, limit_bytes): (Weight, usize),
        decode: impl FnOnce(Bytes) -> Result<T, FormatError>,
    ) -> Result<T, RepositoryError> {
        let whole = self.ask_into(route, body, weight, || Whole::new(limit_bytes))?;
        decode(whole.into_bytes()).map_err(broken_answer)
    }

    /// Asks until there is an answer; each attempt gets a fresh sink, and the last one is returned.
    pub(crate) fn ask_into<S: Sink>(
        &self,
        route: &Route,
        body: &Frames,
        weight: Weight,
        mut fresh_sink: impl FnMut() -> S,
    ) -> Result<S, RepositoryError> {
        let (question, mut asking) = (Question::new(route, weight), Asking::new());
        self.asking.fetch_add(1, Ordering::Relaxed);
        let answer = loop {
            let mut sink = fresh_sink();
            match self.ask_once(&mut asking, &question, body, &mut sink) {
                Ok(Tried::Answered) => break Ok(sink),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
        };
        self.asking.fetch_sub(1, Ordering::Relaxed);
        answer
    }

    /// Whether something is asked that is not answered yet.
    pub(crate) fn is_asking(&self) -> bool {
        self.asking.load(Ordering::Relaxed) > 0
    }

    /// Asks once. Where it is worth asking again, that is told after the pause that it takes.
    pub(crate) fn ask_once(
        &self,
        asking: &mut Asking,
        question: &Question,
        body: &Frames,
        sink: &mut impl Sink,
    ) -> Result<Tried, RepositoryError> {
        let Question { ref path, method, weight, gets_on, .. } = *question;
        // Whatever it is about, it has the time for it when it is asked again: it may have been started
        // meanwhile, and have its index to make anew.
        let patience = if asking.is_first { question.patience } else { WORKS };
        asking.is_first = false;
        let head = Head { method, path, host: &self.host, patience };
        let turn = match weight {
            Weight::Light | Weight::Over(_) => None,
            Weight::Puts | Weight::Fetches => Some(self.take_turn()?),
        };
        let asked = Instant::now();
        let attempt = self.attempt(&head, body, weight, turn, sink);
        let (tried, error) = match attempt {
            // Once only: what is asked in between leaves connections that are idle, and good.
            Attempt::Stale(_) if !asking.was_stale => {
                asking.was_stale = true;
                return Ok(Tried::Lost);
            }
            Attempt::Stale(error) | Attempt::Failed(error) => (Tried::Lost, error),
            Attempt::Answered(answer) => match self.judge(&answer, gets_on) {
                None => return Ok(Tried::Answered),
                Some(WireError::Busy | WireError::TooManyRequests) => {
                    (Tried::Busy, StreamError::Lost("the server is busy".into()))
                }
                Some(error) => return Err(self.in_words(error)),
            },
        };
        // Who waited for longer than there is to try again has not tried again yet.
        let long = self.options.retry_for.max(LOOKS_UP);
        let waited = gets_on && !asking.waited_once && asked.elapsed() > long;
        match error {
            error
                if error.may_pass() && (waited || self.may_go_on(asking.started, asking.pause)) =>
            {
                asking.waited_once |= waited;
                self.pause(asking.pause)?;
            }
            error => return Err(self.last_word(error)),
        }
        asking.pause = (asking.pause * 2).min(LONGEST_PAUSE);
        Ok(tried)
    }

    /// How many attempts ended without an answer so far. One of them may have been carried out.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// The host that answered last.
    pub(crate) fn host_reached(&self) -> &str {
        self.dialer.host()
    }

    /// Bytes on the wire.
    pub(crate) fn traffic(&self) -> Traffic {
        self.dialer.traffic()
    }

    fn attempt(
        &self,
        head: &Head<'_>,
        body: &Frames,
        weight: Weight,
        turn: Option<Turn>,
        sink: &mut impl Sink,
    ) -> Attempt {
        let interrupt = &self.options.interrupt;
        let path = match weight {
            Weight::Over(path) => Some(path % self.dialer.paths()),
            _ => turn.as_ref().map(|turn| turn.path),
        };
        let reused = self.take_idle(path);
        let was_idle = reused.is_some();
        let open = || {
            Stream::open(&self.dialer, path.unwrap_or_else(|| self.dialer.next_path()), interrupt)
        };
        let (with_body, _until_the_end) =
            if weight == Weight::Puts { (turn, None) } else { (None, turn) };
        let ended = reused.map_or_else(open, Ok).and_then(|mut stream| {
            let answer = stream.exchange(head, body.clone(), with_body, sink, interrupt)?;
            self.put_back(stream);
            Ok(answer)
        });
        if ended.is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        if let Err(StreamError::Lost(_)) = ended {
            // What ended this one may have met the others.
            self.lock_idle().clear();
        }
        match ended {
            Ok(answer) => Attempt::Answered(answer),
            Err(error @ StreamError::Lost(_)) if was_idle => Attempt::Stale(error),
            Err(error) => Attempt::Failed(error),
        }
    }

    /// Tells a success from everything else, and notes it if that gets the caller on.
    fn judge(&self, answer: &Answer, gets_on: bool) -> Option<WireError> {
        if (200..300).contains(&answer.status) {
            if gets_on {
                self.note_success();
            }
            return None;
        }
        let error = ErrorAnswer::read(answer.status, &answer.failure);
        if gets_on && !matches!(error, WireError::Busy) {
            self.note_success();
        }
        Some(error)
    }

    fn may_go_on(&self, started: Instant, pause: Duration) -> bool {
        let last = *self.last_success.lock().unwrap_or_else(PoisonError::into_inner);
        last.max(started).elapsed() + pause <= self.options.retry_for
    }

    /// Notes that a part of what is asked was done, though its answer was lost.
    pub(crate) fn note_part(&self, asking: &mut Asking) {
        self.note_success();
        *asking = Asking { is_first: false, ..Asking::new() };
    }

    fn note_success(&self) {
        *self.last_success.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn pause(&self, pause: Duration) -> Result<(), RepositoryError> {
        let until = Instant::now() + pause;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            self.check_interrupt()?;
            sleep(left.min(LOOK_EVERY));
        }
        self.check_interrupt()
    }

    fn check_interrupt(&self) -> Result<(), RepositoryError> {
        match self.options.interrupt.load(Ordering::Relaxed) {
            true => Err(RepositoryError::Interrupted),
            false => Ok(()),
        }
    }

    fn take_turn(&self) -> Result<Turn, RepositoryError> {
        loop {
            self.check_interrupt()?;
            if let Some(turn) = self.turns.take(LOOK_EVERY * 4) {
                return Ok(turn);
            }
        }
    }

    /// An idle connection, over that path if one is named.
    fn take_idle(&self, path: Option<usize>) -> Option<Stream> {
        let mut idle = self.lock_idle();
        let fits = |stream: &Stream| path.is_none_or(|path| stream.path == path);
        idle.iter().rposition(fits).map(|at| idle.remove(at))
    }

    fn put_back(&self, stream: Stream) {
        if stream.is_usable() {
            self.lock_idle().push(stream);
        }
    }

    fn lock_idle(&self) -> std::sync::MutexGuard<'_, Vec<Stream>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last_word(&self, error: StreamError) -> RepositoryError {
        let address = self.hosts.clone();
        match error {
            StreamError::Lost(reason) => RepositoryError::Unreachable { address, reason },
            StreamError::Lacking(error) => {
                RepositoryError::io(format!("connecting to {address}"), error)
            }
            StreamError::WrongServer => RepositoryError::WrongServer { address },
            StreamError::Interrupted => RepositoryError::Interrupted,
            StreamError::Broken(reason) => broken(&reason),
        }
    }

    fn in_words(&self, error: WireError) -> RepositoryError {
        let reason = match error {
            WireError::Repository(error) => return error,
            WireError::UnknownMachine => {
                let reason = format!("{} does not know this machine; pair it anew", self.hosts);
                return RepositoryError::denied(Denial::UnknownMachine, reason);
            }
            WireError::TooLarge { limit_bytes } => format!("more than {limit_bytes} bytes"),
            WireError::NoSuchRoute => UNKNOWN_REQUEST.into(),
            WireError::TooManyRequests | WireError::Busy => "the server is busy".into(),
        };
        RepositoryError::Refused { reason }
    }
}

/// How long the server may be about it when it is asked for the first time.
fn patience(route: &Route) -> Duration {
    let Route::Repository { verb, .. } = route else { return WORKS };
    match verb {
        RepositoryVerb::Missing(_)
        | RepositoryVerb::Records(_)
        | RepositoryVerb::Fetch(..)
        | RepositoryVerb::PutBlocks(_)
        | RepositoryVerb::ProveBlocks(_) => LOOKS_UP,
        _ => WORKS,
    }
}

/// What an answer is that is not what was asked for.
pub(crate) fn broken_answer(error: FormatError) -> RepositoryError {
    broken(&error.to_string())
}

fn broken(reason: &str) -> RepositoryError {
    RepositoryError::Refused { reason: format!("the server's answer is not valid: {reason}") }
}
