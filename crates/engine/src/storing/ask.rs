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
use crate::run::Amount;

/// Objects asked for at once.
const ASK_MAX_IDS: usize = 4096;
/// Plain bytes asked for at once. What is gathered for a question waits for more to come, so this is
/// well below the budget's reserve; what is asked for always goes on.
const ASK_MAX_BYTES: usize = 2 << 20;
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

/// An object, and what counts as done when it is in the repository.
pub(super) struct Wanted {
    pub(super) wish: Wish,
    pub(super) stands_for: Amount,
}

/// Objects, and for each whether it is missing.
pub(super) type Answer = (Vec<Wanted>, Vec<bool>);

/// What comes to be stored, in order.
pub(super) enum Asked {
    /// Where the answer will come.
    Objects(Receiver<Answer>),
    Flush,
}

/// Objects that are asked for together, and where the answer goes.
pub(super) struct Question {
    wishes: Vec<Wanted>,
    answer: Sender<Answer>,
}

/// Makes questions of what the assembler wants stored. It has no thread of its own: a queue that takes
/// objects one by one would wake somebody for most of them.
pub(crate) struct Gather<'a> {
    meters: &'a StoringMeters,
    to_askers: Sender<Question>,
    to_store: Sender<Asked>,
    wishes: Vec<Wanted>,
    bytes: usize,
}

impl<'a> Gather<'a> {
    pub(super) fn new(
        meters: &'a StoringMeters,
        to_askers: Sender<Question>,
        to_store: Sender<Asked>,
    ) -> Self {
        Self { meters, to_askers, to_store, wishes: Vec::new(), bytes: 0 }
    }

    /// Has an object stored if it is missing, and counts what it stands for when it is there.
    ///
    /// # Errors
    /// [`EngineError::Interrupted`] if nobody takes questions any more, which is so only when the run has
    /// failed.
    pub(super) fn want(&mut self, wish: Wish, stands_for: Amount) -> Result<(), EngineError> {
        self.bytes += wish.len_bytes();
        self.wishes.push(Wanted { wish, stands_for });
        if self.wishes.len() >= ASK_MAX_IDS || self.bytes >= ASK_MAX_BYTES {
            self.ask()?;
        }
        Ok(())
    }

    /// Has everything that was wanted before sent, and then noted.
    ///
    /// # Errors
    /// As [`Gather::want`].
    pub(super) fn flush(&mut self) -> Result<(), EngineError> {
        self.ask()?;
        self.meters.assemble.waiting_out(|| self.to_store.send(Asked::Flush)).map_err(gone)
    }

    fn ask(&mut self) -> Result<(), EngineError> {
        self.bytes = 0;
        let wishes = std::mem::take(&mut self.wishes);
        if wishes.is_empty() {
            return Ok(());
        }
        let (answer, answered) = bounded(1);
        self.meters.assemble.waiting_out(|| {
            self.to_store.send(Asked::Objects(answered)).map_err(gone)?;
            self.to_askers.send(Question { wishes, answer }).map_err(gone)
        })
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
            let ids: Vec<ObjectId> = wishes.iter().map(|wanted| wanted.wish.id()).collect();
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
