//! Who reads where: runs of reads that follow each other, and the windows ahead of each.
//!
//! Nothing here fetches anything or waits.

use std::collections::VecDeque;
use std::sync::Arc;

use holdall_format::ObjectId;

use super::plan::Planner;
use super::window::{Position, Window};
use crate::browse::viewer::FileView;
use crate::restore::{WINDOW_BYTES, share_of_memory};

/// Runs that are known at the same time.
pub(super) const STREAMS: usize = 3;
/// Windows that are planned ahead of the one that is read.
const WINDOWS_AHEAD: usize = 2;
/// Bytes of a run's first window; each has twice as many as the one before, up to those of a restore.
const FIRST_WINDOW_BYTES: u64 = 1 << 20;
/// Entries that may be left out between two reads of a run.
const NEAR_ENTRIES: u64 = 256;
/// Bytes that may be left out between two reads of one file: the kernel reads ahead in pieces, not always in their order.
const NEAR_BYTES: u64 = 1 << 20;

/// What is known of a position that is about to be read.
pub(super) enum Met {
    /// Nothing is fetched ahead there.
    Nothing,
    /// A window that covers it is being planned, or one that comes before it.
    Coming,
    /// It is in that window.
    Window(Arc<Window>),
}

/// A window that is wanted.
pub(super) struct Task {
    /// The run.
    pub(super) stream: u64,
    /// Its number; those of one run follow each other.
    pub(super) window: u64,
    pub(super) root: ObjectId,
    pub(super) start: Position,
    /// Who planned the window before it.
    pub(super) planner: Option<Box<Planner>>,
    pub(super) limit_bytes: u64,
}

/// All runs; that of the last read is last.
#[derive(Default)]
pub(super) struct Streams {
    list: Vec<Stream>,
    begun: u64,
}

/// Reads that follow each other.
struct Stream {
    id: u64,
    root: ObjectId,
    /// Where the last read ended.
    read_to: Position,
    /// Those that were planned, and not passed long ago.
    windows: VecDeque<Arc<Window>>,
    /// Which of them is read.
    current: usize,
    windows_planned: u64,
    /// Where they end.
    end: Position,
    planning: Planning,
}

/// Whether more windows are planned.
enum Planning {
    /// No: two reads have to follow each other first, or nothing more can be planned.
    Off,
    /// When one is wanted.
    Waits(Option<Box<Planner>>),
    /// A worker is about it.
    Runs,
}

impl Streams {
    /// The file with that number, if a window has it.
    pub(super) fn file(&self, root: ObjectId, number: u64) -> Option<Arc<FileView>> {
        let windows = self.list.iter().rev().flat_map(|stream| &stream.windows);
        windows.filter(|window| window.root == root).find_map(|window| window.file(number))
    }

    /// Notes that `len` bytes from a position on are about to be read.
    pub(super) fn meet(&mut self, root: ObjectId, position: Position, len: usize) -> Met {
        // What is empty is passed, too.
        let read_to = Position { at: position.at + len.max(1) as u64, ..position };
        let here = |stream: &Stream| stream.windows.iter().any(|one| one.covers(root, position));
        if let Some(at) = self.list.iter().position(here) {
            let mut stream = self.list.remove(at);
            let window = stream.move_to(position);
            stream.read_to = read_to;
            self.list.push(stream);
            return window.map_or(Met::Nothing, Met::Window);
        }
        let mut streams = self.list.iter_mut().filter(|stream| stream.root == root);
        if let Some(stream) = streams.find(|stream| stream.will_reach(position)) {
            stream.move_on();
            return Met::Coming;
        }
        let follows = |stream: &Stream| stream.root == root && stream.is_followed_by(position);
        let Some(at) = self.list.iter().position(follows) else {
            self.begin(root, read_to);
            return Met::Nothing;
        };
        let mut stream = self.list.remove(at);
        let ended = stream.ended_at(position);
        if ended {
            stream.read_to = read_to;
        } else {
            self.begun += 1;
            stream.start(self.begun, position);
        }
        self.list.push(stream);
        if ended { Met::Nothing } else { Met::Coming }
    }

    fn begin(&mut self, root: ObjectId, read_to: Position) {
        if self.list.len() == STREAMS {
            self.list.remove(0);
        }
        self.begun += 1;
        self.list.push(Stream {
            id: self.begun,
            root,
            read_to,
            windows: VecDeque::new(),
            current: 0,
            windows_planned: 0,
            end: Position { number: 0, at: 0 },
            planning: Planning::Off,
        });
    }

    /// Whether a window is wanted.
    pub(super) fn want_window(&self) -> bool {
        self.list.iter().any(Stream::wants_window)
    }

    /// Takes a window that is wanted, of the run that was read last if several want one.
    pub(super) fn take_task(&mut self) -> Option<Task> {
        self.list.iter_mut().rev().find_map(Stream::take_task)
    }

    /// Adds the window that was planned for a run, unless that is gone.
    pub(super) fn add(&mut self, id: u64, window: &Arc<Window>, planner: Option<Box<Planner>>) {
        let Some(stream) = self.list.iter_mut().find(|stream| stream.id == id) else { return };
        stream.end = window.end;
        stream.windows.push_back(Arc::clone(window));
        stream.windows_planned += 1;
        stream.planning = planner.map_or(Planning::Off, |planner| Planning::Waits(Some(planner)));
    }

    /// Plans nothing more for a run.
    pub(super) fn stop(&mut self, id: u64) {
        if let Some(stream) = self.list.iter_mut().find(|stream| stream.id == id) {
            stream.planning = Planning::Off;
        }
    }
}

impl Stream {
    /// Begins to plan from there.
    fn start(&mut self, id: u64, position: Position) {
        self.windows.clear();
        (self.id, self.current, self.windows_planned) = (id, 0, 0);
        (self.end, self.planning) = (position, Planning::Waits(None));
    }

    /// Whether it ended where something is read now: there is nothing to read ahead, or a large file begins of which nobody
    /// knows yet how much is read.
    fn ended_at(&self, position: Position) -> bool {
        matches!(self.planning, Planning::Off) && self.end == position
    }

    /// Whether the next windows come to that position soon.
    fn will_reach(&self, position: Position) -> bool {
        if matches!(self.planning, Planning::Off) || position < self.end {
            return false;
        }
        match position.number - self.end.number {
            0 => position.at - self.end.at <= WINDOW_BYTES,
            entries => self.end.at == 0 && entries <= NEAR_ENTRIES,
        }
    }

    /// Whether that position follows the last read.
    fn is_followed_by(&self, position: Position) -> bool {
        match position.number.checked_sub(self.read_to.number) {
            Some(0) => {
                let gap = position.at.checked_sub(self.read_to.at);
                gap.is_some_and(|bytes| bytes <= NEAR_BYTES)
            }
            Some(entries) => entries <= NEAR_ENTRIES && position.at == 0,
            None => false,
        }
    }

    /// Notes which window is read, and forgets those before the one before it.
    fn move_to(&mut self, position: Position) -> Option<Arc<Window>> {
        self.current = self.windows.iter().position(|one| one.covers(self.root, position))?;
        self.forget_passed();
        self.windows.get(self.current).map(Arc::clone)
    }

    /// Notes that all windows are passed.
    fn move_on(&mut self) {
        self.current = self.windows.len();
        self.forget_passed();
    }

    fn forget_passed(&mut self) {
        while self.current > 1 {
            self.windows.pop_front();
            self.current -= 1;
        }
    }

    fn wants_window(&self) -> bool {
        let ahead = self.windows.len().saturating_sub(self.current + 1);
        matches!(self.planning, Planning::Waits(_)) && ahead < WINDOWS_AHEAD
    }

    fn take_task(&mut self) -> Option<Task> {
        if !self.wants_window() {
            return None;
        }
        let Planning::Waits(planner) = std::mem::replace(&mut self.planning, Planning::Runs) else {
            return None;
        };
        let most = WINDOW_BYTES / share_of_memory() as u64;
        let limit_bytes = FIRST_WINDOW_BYTES.saturating_mul(1 << self.windows_planned.min(10));
        Some(Task {
            stream: self.id,
            window: (self.id << 32) | self.windows_planned,
            root: self.root,
            start: self.end,
            planner,
            limit_bytes: limit_bytes.min(most),
        })
    }
}
