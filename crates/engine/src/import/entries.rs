//! Entries that are handed over one by one become jobs for the readers. What is as it was comes from the import of the
//! snapshot before.

use std::time::Instant;

use crossbeam_channel::Sender;
use holdall_tree::{Cursor, Entry, EntryKind, PathKey};

use super::foreign::Found;
use crate::EngineError;
use crate::backup::meters::Meters;
use crate::copy::NodesWhileRunning;
use crate::storing::{Change, Piece, Results, Shared};

/// A job is handed on when it has this many items.
const JOB_MAX_ITEMS: usize = 32;
/// A job is handed on when this many bytes are expected of its files.
const JOB_MAX_BYTES: u64 = 1 << 20;

/// One path, and what is left to do for it.
pub(super) enum Item {
    /// Nothing: as it was imported before.
    Keep { path: PathKey, entry: Box<Entry> },
    /// To be read.
    Read { path: PathKey, found: Box<Found>, change: Change },
}

/// Some consecutive paths, read together and used in order.
pub(super) struct Job {
    pub(super) number: u64,
    pub(super) items: Vec<Item>,
    pub(super) results: Sender<Vec<Piece>>,
}

/// Walks the tree of a snapshot of another program.
pub trait ForeignTree: Send {
    /// Hands over all that is in it, in ascending order of the paths. What cannot be read is told to `entries`, and no
    /// error.
    ///
    /// # Errors
    /// Those of `entries`; [`EngineError::Damaged`] if the snapshot cannot be read at all.
    fn walk(&mut self, entries: &mut Entries<'_>) -> Result<(), EngineError>;
}

/// Takes the entries of a tree in the order of their paths.
pub struct Entries<'a> {
    shared: &'a Shared<'a>,
    meters: &'a Meters,
    /// The tree of the snapshot before.
    before: Option<Cursor<NodesWhileRunning<'a>>>,
    to_readers: Sender<Job>,
    to_assembler: Sender<Results>,
    jobs: u64,
    items: Vec<Item>,
    bytes: u64,
    /// When whoever walks the other tree went on doing so.
    left: Instant,
}

impl<'a> Entries<'a> {
    pub(super) fn new(
        shared: &'a Shared<'a>,
        meters: &'a Meters,
        before: Option<Cursor<NodesWhileRunning<'a>>>,
        to_readers: Sender<Job>,
        to_assembler: Sender<Results>,
    ) -> Self {
        let (items, left) = (Vec::with_capacity(JOB_MAX_ITEMS), Instant::now());
        Self { shared, meters, before, to_readers, to_assembler, jobs: 0, items, bytes: 0, left }
    }

    /// Takes `path` and all below it as the snapshot before has it. False if that has nothing there, or there is none: then
    /// what is there has to be handed over.
    ///
    /// # Errors
    /// [`EngineError::Interrupted`] if the run ended; those of reading the snapshot before.
    pub fn keep(&mut self, path: &PathKey) -> Result<bool, EngineError> {
        self.entered();
        let Some(entry) = self.take_before(path)? else {
            self.left = Instant::now();
            return Ok(false);
        };
        self.push(Item::Keep { path: path.clone(), entry: Box::new(entry) }, 0)?;
        while let Some((below, entry)) = self.next_below(path)? {
            self.push(Item::Keep { path: below, entry: Box::new(entry) }, 0)?;
        }
        self.left = Instant::now();
        Ok(true)
    }

    /// Takes what was found at `path`, which is higher than all before it.
    ///
    /// # Errors
    /// As for [`Entries::keep`].
    pub fn put(&mut self, path: PathKey, mut found: Found) -> Result<(), EngineError> {
        self.entered();
        let before = self.take_before(&path)?;
        if let (Some(before), Some(content)) = (&before, &found.content)
            && content.is_as_before
            && before.kind == EntryKind::File
        {
            found.entry.size = before.size;
            found.entry.content = before.content.clone();
            found.content = None;
        }
        let bytes = found.content.as_ref().map_or(0, |_| found.entry.size);
        let change = before.map_or(Change::New, |before| Change::Maybe(Box::new(before)));
        self.push(Item::Read { path, found: Box::new(found), change }, bytes)?;
        self.left = Instant::now();
        Ok(())
    }

    /// Notes that something at `path` is not imported, or not all of it.
    pub fn problem(&mut self, path: &PathKey, reason: impl Into<String>) {
        self.shared.run.problem(&path.to_absolute(), reason);
    }

    /// Hands on what is left.
    pub(super) fn end(&mut self) -> Result<(), EngineError> {
        self.flush()
    }

    fn entered(&self) {
        self.meters.walk.add_working(self.left.elapsed());
    }

    /// What the snapshot before has at a path, which is higher than all that was asked for.
    fn take_before(&mut self, path: &PathKey) -> Result<Option<Entry>, EngineError> {
        self.shared.check()?;
        let Some(before) = &mut self.before else { return Ok(None) };
        before.seek(path)?;
        let is_there = before.peek()?.is_some_and(|(at, _)| at == path);
        let found = if is_there { before.next()? } else { None };
        self.shared.note_parents(&before.take_visited());
        Ok(found.map(|(_, entry)| entry))
    }

    fn next_below(&mut self, path: &PathKey) -> Result<Option<(PathKey, Entry)>, EngineError> {
        self.shared.check()?;
        let Some(before) = &mut self.before else { return Ok(None) };
        let is_below = before.peek()?.is_some_and(|(at, _)| path.is_ancestor_of(at));
        let found = if is_below { before.next()? } else { None };
        self.shared.note_parents(&before.take_visited());
        Ok(found)
    }

    fn push(&mut self, item: Item, bytes: u64) -> Result<(), EngineError> {
        self.items.push(item);
        self.bytes = self.bytes.saturating_add(bytes);
        match self.items.len() >= JOB_MAX_ITEMS || self.bytes >= JOB_MAX_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), EngineError> {
        let items = std::mem::replace(&mut self.items, Vec::with_capacity(JOB_MAX_ITEMS));
        self.bytes = 0;
        let (results, pieces) = crossbeam_channel::unbounded();
        let number = self.jobs;
        self.jobs += 1;
        let job = Job { number, items, results };
        // Whoever takes jobs or results is gone only when the run has failed.
        let plan = &self.meters.plan;
        plan.waiting_out(|| self.to_readers.send(job)).map_err(|_| EngineError::Interrupted)?;
        let sent = plan.waiting_out(|| self.to_assembler.send((number, pieces)));
        sent.map_err(|_| EngineError::Interrupted)
    }
}
