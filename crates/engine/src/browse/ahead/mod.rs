//! Reading many files for what their blocks cost.
//!
//! A block holds hundreds of small files that lie beside each other in the tree. Who reads them one after the other, as
//! `grep -r` does, gets them from windows: runs of files in the order of the tree whose chunks were fetched and opened
//! before they were asked for, as a restore does.
//!
//! ```text
//! read ──> streams: whose window covers it? ──> window: its file, its pieces
//!             ^ which window is wanted next                  ^
//! workers ────┴── plan (nodes) ── fetch, open, check ────────┘
//! ```
//!
//! A read that follows no other, and one of a large file's beginning, goes to the blocks directly and has nothing fetched
//! ahead. Memory is bounded: [`streams::STREAMS`] runs side by side, each of a few windows.

mod plan;
mod streams;
mod window;

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use holdall_crypto::Opener;
use holdall_format::ObjectId;
use holdall_sys::thread;
use holdall_tree::EntryKind;

use super::numbered::NumberedEntry;
use super::viewer::{FileView, Viewer};
use crate::run::lock;
use crate::{EngineError, UnlockedRepository};
use plan::Planner;
use streams::{Met, Streams, Task};
use window::{Position, Window};

/// Threads that make windows: one fetches while the other opens. Each holds an answer of the repository.
const WORKERS: usize = 2;
/// Files that were opened last, outside windows.
const OPENED_KEPT: usize = 16;

/// Reads files by their numbers, ahead of who reads one after the other. Dropping it ends its threads and its session.
pub struct ReadAhead {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

struct Shared {
    viewer: Viewer,
    state: Mutex<State>,
    /// A window is wanted, or this ends.
    wanted: Condvar,
    /// A window was planned, or none will be.
    planned: Condvar,
    opened: Mutex<VecDeque<(ObjectId, u64, Arc<FileView>)>>,
}

#[derive(Default)]
struct State {
    streams: Streams,
    is_ending: bool,
}

impl ReadAhead {
    /// Opens a session to read in, and starts what reads ahead.
    ///
    /// # Errors
    /// [`EngineError::Repository`] if the repository cannot be asked; [`EngineError::Io`] if no thread can be started.
    pub fn open(access: Arc<UnlockedRepository>) -> Result<Self, EngineError> {
        let viewer = Viewer::open(access)?;
        let (state, wanted, planned, opened) = Default::default();
        let shared = Arc::new(Shared { viewer, state, wanted, planned, opened });
        let mut ahead = Self { shared, workers: Vec::new() };
        for _ in 0..WORKERS {
            let shared = Arc::clone(&ahead.shared);
            let worker = thread::start_alone(move || shared.work());
            let worker = worker.map_err(|error| EngineError::io("starting a thread", error))?;
            ahead.workers.push(worker);
        }
        Ok(ahead)
    }

    /// What looks at entries.
    pub fn viewer(&self) -> &Viewer {
        &self.shared.viewer
    }

    /// Where the next data of a file begins, or its next hole: from `offset` on, and the end of the file is a hole. `None`
    /// where there is none.
    ///
    /// # Errors
    /// As for [`ReadAhead::read`].
    pub fn next(
        &self,
        root: ObjectId,
        number: u64,
        offset: u64,
        is_data: bool,
    ) -> Result<Option<u64>, EngineError> {
        let file = self.shared.file(root, number)?;
        Ok(file.layout.next(offset, file.len_bytes(), is_data))
    }

    /// Reads at most `len` bytes of a file from `offset` on; fewer only at its end.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] if they cannot be had, or the number is no file's; [`EngineError::Repository`].
    pub fn read(
        &self,
        root: ObjectId,
        number: u64,
        offset: u64,
        len: usize,
    ) -> Result<Vec<u8>, EngineError> {
        let file = self.shared.file(root, number)?;
        let size = file.len_bytes();
        let mut bytes = Vec::with_capacity(len.min(size.saturating_sub(offset) as usize));
        while bytes.len() < len {
            let left = len - bytes.len();
            match file.layout.at(offset + bytes.len() as u64, size) {
                (_, 0) => break,
                (None, hole_bytes) => {
                    bytes.resize(bytes.len() + left.min(hole_bytes as usize), 0);
                }
                (Some(at), run_bytes) => {
                    let most = left.min(run_bytes as usize);
                    self.shared.read_data(
                        &file,
                        (root, Position { number, at }),
                        most,
                        &mut bytes,
                    )?;
                }
            }
        }
        Ok(bytes)
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        lock(&self.shared.state).is_ending = true;
        self.shared.wanted.notify_all();
        for worker in self.workers.drain(..) {
            // One that panicked read nothing more.
            let _ = worker.join();
        }
    }
}

impl Shared {
    /// The file with that number, as it was opened last, or as the tree has it.
    fn file(&self, root: ObjectId, number: u64) -> Result<Arc<FileView>, EngineError> {
        if let Some(file) = lock(&self.state).streams.file(root, number) {
            return Ok(file);
        }
        let is_it = |(of, its, _): &&(_, _, _)| (*of, *its) == (root, number);
        if let Some((_, _, file)) = lock(&self.opened).iter().find(is_it) {
            return Ok(Arc::clone(file));
        }
        let NumberedEntry { path, entry, .. } = self.viewer.numbered(root, number)?;
        if entry.kind != EntryKind::File {
            return Err(EngineError::damaged("a tree", format!("its entry {number} is no file")));
        }
        let file = Arc::new(self.viewer.file(&path, entry)?);
        let mut opened = lock(&self.opened);
        opened.truncate(OPENED_KEPT - 1);
        opened.push_front((root, number, Arc::clone(&file)));
        Ok(file)
    }

    /// Adds bytes of a file's content: from a window where one has some of them, else all of them from their blocks.
    fn read_data(
        &self,
        file: &FileView,
        (root, position): (ObjectId, Position),
        most: usize,
        bytes: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        let read = match self.meet(root, position, most) {
            Some(window) => window.read(position, most)?,
            None => None,
        };
        match read {
            Some(piece) => bytes.extend_from_slice(&piece),
            None => bytes.extend_from_slice(&self.viewer.read_data(file, position.at, most)?),
        }
        Ok(())
    }

    /// The window in which something is about to be read, once it was planned.
    fn meet(&self, root: ObjectId, position: Position, len: usize) -> Option<Arc<Window>> {
        let mut state = lock(&self.state);
        loop {
            let met = state.streams.meet(root, position, len);
            if state.streams.want_window() {
                self.wanted.notify_all();
            }
            match met {
                Met::Nothing => {
                    // A run may be gone for which somebody waits.
                    self.planned.notify_all();
                    return None;
                }
                Met::Window(window) => return Some(window),
                Met::Coming => {
                    state = self.planned.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Makes windows until this ends.
    fn work(&self) {
        let mut opener = self.viewer.opener();
        while let Some(task) = self.next_task() {
            self.make_window(task, &mut opener);
        }
    }

    fn next_task(&self) -> Option<Task> {
        let mut state = lock(&self.state);
        loop {
            if state.is_ending {
                return None;
            }
            if let Some(task) = state.streams.take_task() {
                return Some(task);
            }
            state = self.wanted.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Plans a window, puts it where it is found, and gets its chunks.
    fn make_window(&self, task: Task, opener: &mut Opener) {
        let Task { stream, window, root, start, planner, limit_bytes } = task;
        let planner = planner.unwrap_or_else(|| Box::new(Planner::new(&self.viewer, root, start)));
        let planned = planner.plan(limit_bytes);
        let mut state = lock(&self.state);
        let Ok(plan::Planned { window: made, chunks, planner }) = planned else {
            state.streams.stop(stream);
            return self.planned.notify_all();
        };
        let made = Arc::new(made);
        let filling = made.filling();
        // Before the next one is planned, which then knows of this one.
        let arriving = self.viewer.chunks.arriving(window);
        state.streams.add(stream, &made, planner);
        if state.streams.want_window() {
            self.wanted.notify_one();
        }
        drop(state);
        self.planned.notify_all();
        filling.fill(self.viewer.chunks.get(opener, &chunks, Some(arriving)));
    }
}

#[cfg(test)]
mod tests;
