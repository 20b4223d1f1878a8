//! The thread that keeps the journal, and how the agent and its runs speak with it.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdall_sys::fanotify::Queue;
use holdall_sys::{Clock, SystemClock, thread, waiting};
use jiff::Timestamp;

use super::keeper::Keeper;
use super::set::{Committed, Walk, WatchedSet};

/// Changes are taken in no more often: until then, the kernel joins those of a file.
const TOGETHER: Duration = Duration::from_secs(1);

/// Answers a run: hands the places over in its own way, and gives the line that is sent to the run.
pub type Answer = Box<dyn FnOnce(&Walk) -> io::Result<String> + Send>;

/// The change journal, which is kept as long as this lives.
pub struct Journal {
    commands: Sender<Command>,
    /// Closing it, or writing to it, wakes the thread.
    wake: UnixStream,
    walks: Walks,
}

/// How the last run of each set was to walk, in words.
type Walks = Arc<Mutex<BTreeMap<String, String>>>;

enum Command {
    Follow(Vec<WatchedSet>),
    Started(Run),
    Ended(String, Committed),
}

/// A run that may ask.
struct Run {
    set: String,
    asks: UnixStream,
    answer: Answer,
}

impl Journal {
    /// Begins to watch.
    ///
    /// # Errors
    /// The system allows no other thread, or not what wakes it. Where changes are not told there is a journal all the same, and all
    /// runs are to walk everything.
    pub fn start(queue: Queue) -> io::Result<Self> {
        let (commands, received) = channel();
        let (wake, woken) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        let walks = Walks::default();
        let told = Arc::clone(&walks);
        let keep = move || {
            let keeper = Keeper::new(queue);
            // It ends with its owner. If it cannot wait, runs get no answer, and walk everything.
            let _ = Keeping { keeper, received, woken, run: None, walks: told }.keep();
        };
        thread::start_alone(keep)?;
        Ok(Self { commands, wake, walks })
    }

    /// Follows these sets from now on.
    pub fn follow(&self, sets: Vec<WatchedSet>) {
        self.send(Command::Follow(sets));
    }

    /// A run of a set was started, which writes a byte to the other end of `asks` right before it walks, and reads the answer
    /// up to its end.
    pub fn run_started(&self, set: &str, asks: UnixStream, answer: Answer) {
        self.send(Command::Started(Run { set: set.to_owned(), asks, answer }));
    }

    /// That run has ended.
    pub fn run_ended(&self, set: &str, committed: Committed) {
        self.send(Command::Ended(set.to_owned(), committed));
    }

    /// How the last run of each set was to walk, in words.
    #[must_use]
    pub fn walks(&self) -> BTreeMap<String, String> {
        self.walks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn send(&self, command: Command) {
        // A thread that is gone answers no run, and all of them walk everything.
        let _ = self.commands.send(command);
        let _ = (&self.wake).write_all(&[1]);
    }
}

/// The thread's own.
struct Keeping {
    keeper: Keeper,
    received: Receiver<Command>,
    woken: UnixStream,
    run: Option<Run>,
    walks: Walks,
}

impl Keeping {
    fn keep(mut self) -> io::Result<()> {
        loop {
            let changes = self.keeper.as_fd();
            let mut any_of = vec![self.woken.as_fd()];
            any_of.extend(self.run.as_ref().map(|run| run.asks.as_fd()));
            any_of.extend(changes);
            waiting::wait(&any_of)?;
            if !self.obey() {
                return Ok(());
            }
            self.answer()?;
            self.keeper.take_in();
            let mut any_of = vec![self.woken.as_fd()];
            any_of.extend(self.run.as_ref().map(|run| run.asks.as_fd()));
            waiting::wait_at_most(&any_of, TOGETHER)?;
        }
    }

    /// Does what it was told to; says whether anybody may tell it more.
    fn obey(&mut self) -> bool {
        while (&self.woken).read(&mut [0; 64]).is_ok_and(|bytes| bytes > 0) {}
        loop {
            match self.received.try_recv() {
                Ok(Command::Follow(sets)) => {
                    let replaced = self.keeper.follow(sets);
                    // It may have read what the set was before: it gets no answer, and its snapshot is nothing to go on from.
                    self.run.take_if(|run| replaced.contains(&run.set));
                }
                Ok(Command::Started(run)) => self.run = Some(run),
                Ok(Command::Ended(set, committed)) => {
                    self.run = None;
                    self.keeper.ended(&set, committed);
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// Answers the run, if it asks.
    fn answer(&mut self) -> io::Result<()> {
        let Some(mut run) = self.run.take() else { return Ok(()) };
        if !waiting::is_ready(&run.asks)? {
            self.run = Some(run);
            return Ok(());
        }
        // Who started the run says when it has ended.
        if !run.asks.read(&mut [0]).is_ok_and(|bytes| bytes > 0) {
            return Ok(());
        }
        let now = Timestamp::from_nanosecond(SystemClock.now_ns().into()).unwrap_or_default();
        let Some(walk) = self.keeper.begin(&run.set, now) else { return Ok(()) };
        self.walks.lock().unwrap_or_else(PoisonError::into_inner).insert(run.set, in_words(&walk));
        if let Ok(answer) = (run.answer)(&walk) {
            // If the run is gone, who started it says so.
            let _ = run.asks.write_all(answer.as_bytes());
        }
        Ok(())
    }
}

fn in_words(walk: &Walk) -> String {
    match walk {
        Walk::Changes { places, .. } => match places.len() {
            1 => "the journal named 1 folder".to_owned(),
            places => format!("the journal named {places} folders"),
        },
        Walk::Full(reason) => format!("everything was walked: {reason}"),
    }
}
