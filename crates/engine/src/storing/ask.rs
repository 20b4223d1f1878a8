//! Asking which objects are missing: thousands at a time, several questions under way.
//!
//! An answer takes a round trip, in which nothing would be stored if one question waited for the
//! other. Answers are used in the order of the questions, so that blocks hold what belongs together.

use crossbeam_channel::{Receiver, Sender, bounded};
use holdall_format::{ObjectId, SessionId};
use holdall_protocol::Repository;
use holdall_tree::BuiltNode;

use super::meters::StoringMeters;
use super::piece::NewChunk;
use crate::EngineError;

/// Objects asked for at once.
const ASK_MAX_IDS: usize = 4096;
/// Plain bytes asked for at once. What is gathered for a question waits for more to come, so this is
/// well below the budget's reserve; what is asked for always goes on.
const ASK_MAX_BYTES: usize = 2 << 20;
/// Questions under way at once.
pub(super) const ASKERS: usize = 3;

/// What the assembler wants stored.
pub(super) enum Wanted {
    Object(Wish),
    /// Send everything that was wanted before, then note it.
    Flush,
}

/// An object that is to be stored if it is missing.
pub(super) enum Wish {
    Chunk(NewChunk),
    Node(BuiltNode),
}

impl Wish {
    pub(super) fn id(&self) -> ObjectId {
        match self {
            Self::Chunk(chunk) => chunk.id,
            Self::Node(node) => node.id,
        }
    }

    pub(super) fn len_bytes(&self) -> usize {
        match self {
            Self::Chunk(chunk) => chunk.bytes.len(),
            Self::Node(node) => node.body.len(),
        }
    }
}

/// Objects, and for each whether it is missing.
pub(super) type Answer = (Vec<Wish>, Vec<bool>);

/// What comes to be stored, in order.
pub(super) enum Asked {
    /// Where the answer will come.
    Objects(Receiver<Answer>),
    Flush,
}

/// Objects that are asked for together, and where the answer goes.
pub(super) struct Question {
    wishes: Vec<Wish>,
    answer: Sender<Answer>,
}

/// The gathering thread: makes questions of what is wanted.
pub(super) struct Gather {
    to_askers: Sender<Question>,
    to_store: Sender<Asked>,
    wishes: Vec<Wish>,
    bytes: usize,
}

impl Gather {
    pub(super) fn new(to_askers: Sender<Question>, to_store: Sender<Asked>) -> Self {
        Self { to_askers, to_store, wishes: Vec::new(), bytes: 0 }
    }

    /// Makes questions until nobody wants anything more: the body of the gathering thread.
    ///
    /// # Errors
    /// [`EngineError::Interrupted`] if nobody takes them any more, which is so only when the run has
    /// failed.
    pub(super) fn run(&mut self, wanted: &Receiver<Wanted>) -> Result<(), EngineError> {
        while let Ok(next) = wanted.recv() {
            match next {
                Wanted::Object(wish) => {
                    self.bytes += wish.len_bytes();
                    self.wishes.push(wish);
                    if self.wishes.len() >= ASK_MAX_IDS || self.bytes >= ASK_MAX_BYTES {
                        self.ask()?;
                    }
                }
                Wanted::Flush => {
                    self.ask()?;
                    self.to_store.send(Asked::Flush).map_err(gone)?;
                }
            }
        }
        Ok(())
    }

    fn ask(&mut self) -> Result<(), EngineError> {
        self.bytes = 0;
        let wishes = std::mem::take(&mut self.wishes);
        if wishes.is_empty() {
            return Ok(());
        }
        let (answer, answered) = bounded(1);
        self.to_store.send(Asked::Objects(answered)).map_err(gone)?;
        self.to_askers.send(Question { wishes, answer }).map_err(gone)
    }
}

/// What the asking threads share.
#[derive(Clone, Copy)]
pub(super) struct Askers<'a> {
    pub(super) repository: &'a dyn Repository,
    pub(super) session: SessionId,
    pub(super) meters: &'a StoringMeters,
}

impl Askers<'_> {
    /// Asks until there are no more questions: the body of an asking thread.
    ///
    /// # Errors
    /// What the repository answers.
    pub(super) fn run(&self, questions: &Receiver<Question>) -> Result<(), EngineError> {
        while let Ok(Question { wishes, answer }) = questions.recv() {
            let ids: Vec<ObjectId> = wishes.iter().map(Wish::id).collect();
            let ask = || self.repository.missing(&self.session, &ids);
            let asked = self.meters.ask.working(|| self.meters.talk.during(ask));
            answer.send((wishes, asked?)).map_err(gone)?;
        }
        Ok(())
    }
}

/// Whoever takes what a stage makes is gone only when the run has failed.
fn gone<T>(_: T) -> EngineError {
    EngineError::Interrupted
}
