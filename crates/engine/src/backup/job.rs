//! What goes from stage to stage.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use holdall_sys::{Dir, FileKind, Stat};
use holdall_tree::{Entry, PathKey};

use super::meters::Meters;
use super::produced::Producer;
use crate::EngineError;
use crate::storing::{AdoptedLeaf, Change, LeftOut, Piece, Results};

/// Files up to this size are read whole into their job's buffer and are one chunk: the chunker
/// would not cut them.
pub(super) const SMALL_FILE_BYTES: u64 = 128 << 10;

/// A job is handed on when it has this many items.
const JOB_MAX_ITEMS: usize = 32;
/// A job is handed on when its small files have this many bytes.
const JOB_MAX_BYTES: u64 = 1 << 20;

/// One path, as planned.
pub(super) struct Planned {
    pub(super) path: PathKey,
    pub(super) change: Change,
    pub(super) work: Work,
}

/// What is to be done for a path.
pub(super) enum Work {
    /// Nothing: the parent's entry is taken over.
    Keep(Box<Entry>),
    /// Nothing: the parent's leaf that begins here is taken over.
    Adopt(Box<AdoptedLeaf>),
    /// Nothing: a rule leaves it out, which is these words, for being so many bytes.
    LeaveOut { rule: String, too_large_bytes: Option<u64> },
    /// Read what is called `name` in `dir`; without one, it is called as its path ends.
    Read { dir: Arc<Dir>, name: Option<Box<[u8]>>, stat: Stat },
    /// Read a pipe to its end, as a file.
    Pipe { pipe: Arc<File>, stat: Stat },
    /// Have a program give the content of a file.
    Produce { producer: Arc<dyn Producer>, stat: Stat },
    /// Read the metadata of an open directory, which may have nothing in it.
    Directory { dir: Arc<Dir>, stat: Stat, is_empty: bool },
    /// Record what `stat` says: nothing more can be read.
    StatOnly { stat: Stat },
}

/// Some consecutive paths, read together and used in order.
pub(super) struct Job {
    /// Counts jobs from 0.
    pub(super) number: u64,
    pub(super) items: Vec<Planned>,
    pub(super) results: Sender<Vec<Piece>>,
}

/// Hands jobs to the readers, and the places where their results will come to the assembler.
pub(super) struct JobSender {
    to_readers: Sender<Job>,
    to_assembler: Sender<Results>,
    number: u64,
    items: Vec<Planned>,
    bytes: u64,
    needs_reading: bool,
    begun: Instant,
}

impl JobSender {
    pub(super) fn new(to_readers: Sender<Job>, to_assembler: Sender<Results>) -> Self {
        Self {
            to_readers,
            to_assembler,
            number: 0,
            items: vec![],
            bytes: 0,
            needs_reading: false,
            begun: Instant::now(),
        }
    }

    pub(super) fn push(&mut self, item: Planned, meters: &Meters) -> Result<(), EngineError> {
        if let Work::Read { stat, .. } = &item.work
            && stat.kind == FileKind::File
        {
            self.bytes += stat.size.min(SMALL_FILE_BYTES);
        }
        self.needs_reading |=
            !matches!(item.work, Work::Keep(_) | Work::Adopt(_) | Work::LeaveOut { .. });
        self.items.push(item);
        if self.items.len() >= JOB_MAX_ITEMS || self.bytes >= JOB_MAX_BYTES {
            self.flush(meters)?;
        }
        Ok(())
    }

    /// Takes a leaf over for some paths.
    pub(super) fn adopt(&mut self, leaf: AdoptedLeaf, meters: &Meters) -> Result<(), EngineError> {
        // Its paths are in the leaf.
        let (path, change) = (PathKey::root(), Change::Unmodified);
        self.push(Planned { path, change, work: Work::Adopt(Box::new(leaf)) }, meters)
    }

    pub(super) fn flush(&mut self, meters: &Meters) -> Result<(), EngineError> {
        self.meter(meters);
        let items = std::mem::replace(&mut self.items, Vec::with_capacity(JOB_MAX_ITEMS));
        let (results, pieces) = crossbeam_channel::unbounded();
        let number = self.number;
        self.number += 1;
        self.bytes = 0;
        // Whoever takes jobs or results is gone only when the run has failed.
        let gone = |_| EngineError::Interrupted;
        if std::mem::take(&mut self.needs_reading) {
            let job = Job { number, items, results };
            meters
                .plan
                .waiting_out(|| self.to_readers.send(job).map_err(|_| EngineError::Interrupted))?;
        } else {
            results
                .send(items.into_iter().filter_map(kept).collect())
                .map_err(|_| EngineError::Interrupted)?;
        }
        meters.plan.waiting_out(|| self.to_assembler.send((number, pieces)).map_err(gone))
    }
}

impl JobSender {
    /// What the plan does not wait, it works; to time each path would take longer than its plan.
    fn meter(&self, meters: &Meters) {
        let known = meters.plan.snapshot();
        let known = known.working_seconds + known.waiting_in_seconds + known.waiting_out_seconds;
        let known = Duration::try_from_secs_f64(known).unwrap_or_default();
        meters.plan.add_working(self.begun.elapsed().saturating_sub(known));
    }
}

fn kept(item: Planned) -> Option<Piece> {
    match item.work {
        Work::Keep(entry) => Some(Piece::Entry { path: item.path, entry, change: item.change }),
        Work::Adopt(leaf) => Some(Piece::Leaf(leaf)),
        Work::LeaveOut { rule, too_large_bytes } => {
            Some(Piece::LeftOut(LeftOut { path: item.path, rule, too_large_bytes }))
        }
        Work::Read { .. }
        | Work::Pipe { .. }
        | Work::Produce { .. }
        | Work::Directory { .. }
        | Work::StatOnly { .. } => None,
    }
}
