//! The walk: directories are listed ahead of the plan by a few threads.
//!
//! The plan goes through the tree in order and needs one directory after the other. When it enters
//! a directory it hands the next subdirectories to the walkers, nearest first; what no walker has
//! begun when the plan gets there, the plan lists itself, so the two never wait in a circle. How
//! much may be listed ahead is bounded in entries. Neither waits for the other if that panics.

use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use holdall_sys::{Dir, Listing, Name, Stat};

use super::meters::Meters;
use crate::EngineError;
use crate::run::lock;
use crate::storing::Shared;

/// Entries listed ahead at which walkers pause.
const MAX_ENTRIES_AHEAD: usize = 32 * 1024;
/// Directories larger than this are listed without metadata, which the plan then reads itself, so
/// that memory does not grow with them.
const MAX_STATS_AHEAD: usize = 8 * 1024;

/// A directory, open and listed.
pub(super) struct Listed {
    pub(super) dir: Arc<Dir>,
    pub(super) names: Listing,
    /// For each name, in order; empty for a huge directory.
    pub(super) stats: Vec<io::Result<Stat>>,
}

impl Listed {
    /// Lists an open directory.
    pub(super) fn read(dir: Dir) -> io::Result<Self> {
        let names = dir.entries()?;
        let stats = if names.len() > MAX_STATS_AHEAD {
            Vec::new()
        } else {
            names.iter().map(|entry| dir.stat(entry.name())).collect()
        };
        Ok(Self { dir: Arc::new(dir), names, stats })
    }

    /// The metadata of the name at `index`, to be asked for once; nothing behind the last.
    pub(super) fn stat(&mut self, index: usize) -> Option<io::Result<Stat>> {
        let name = self.names.get(index)?;
        Some(match self.stats.get_mut(index) {
            Some(stat) => std::mem::replace(stat, Err(io::ErrorKind::NotFound.into())),
            None => self.dir.stat(name.name()),
        })
    }
}

/// Closes the walk when it is dropped.
pub(super) struct Closing<'a>(&'a Walk);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// One directory to be listed ahead.
pub(super) struct Task {
    state: Mutex<State>,
    done: Condvar,
}

enum State {
    Waiting {
        parent: Arc<Dir>,
        name: Box<[u8]>,
    },
    Running,
    Done(io::Result<Listed>),
    /// Taken by the plan, or not wanted any more.
    Gone,
}

/// A task that a walker began. If the walker panics, the run has failed, and who waits for the
/// listing gets an error.
struct Begun<'a> {
    task: &'a Task,
    shared: &'a Shared<'a>,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            // In this order, so that the plan can not go on as if one directory were not readable.
            self.shared.fail(EngineError::Interrupted);
            *lock(&self.task.state) = State::Done(Err(io::Error::other("the walker panicked")));
            self.task.done.notify_all();
        }
    }
}

/// The directories to be listed ahead, and by how much the walkers are ahead.
pub(super) struct Walk {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// The next one is last.
    tasks: Vec<Arc<Task>>,
    entries_ahead: usize,
    closed: bool,
}

impl Walk {
    pub(super) fn new() -> Self {
        Self { queue: Mutex::default(), changed: Condvar::new() }
    }

    /// Hands over directories to be listed, nearest first.
    pub(super) fn ahead(&self, parent: &Arc<Dir>, names: &[&[u8]]) -> Vec<Arc<Task>> {
        let tasks: Vec<_> = names
            .iter()
            .map(|name| {
                let state = State::Waiting { parent: Arc::clone(parent), name: (*name).into() };
                Arc::new(Task { state: Mutex::new(state), done: Condvar::new() })
            })
            .collect();
        lock(&self.queue).tasks.extend(tasks.iter().rev().map(Arc::clone));
        self.changed.notify_all();
        tasks
    }

    /// The listing of a directory that was handed over; lists it here if no walker began.
    pub(super) fn take(&self, task: &Task, meters: &Meters) -> io::Result<Listed> {
        let mut state = lock(&task.state);
        if let State::Waiting { .. } = *state {
            let begun = std::mem::replace(&mut *state, State::Gone);
            drop(state);
            return meters.walk.working(|| list(begun));
        }
        while let State::Running = *state {
            state = task.done.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        let State::Done(listed) = std::mem::replace(&mut *state, State::Gone) else {
            return Err(io::Error::other("a directory was listed twice"));
        };
        drop(state);
        if let Ok(listed) = &listed {
            lock(&self.queue).entries_ahead -= listed.names.len();
            self.changed.notify_all();
        }
        listed
    }

    /// Says that a directory that was handed over is not wanted any more.
    pub(super) fn forget(&self, task: &Task) {
        let state = std::mem::replace(&mut *lock(&task.state), State::Gone);
        if let State::Done(Ok(listed)) = state {
            lock(&self.queue).entries_ahead -= listed.names.len();
            self.changed.notify_all();
        }
    }

    /// Lists directories until the walk is closed: the body of a walker thread.
    pub(super) fn run(&self, meters: &Meters, shared: &Shared<'_>) {
        self.run_by(list, meters, shared);
    }

    fn run_by(
        &self,
        list: impl Fn(State) -> io::Result<Listed>,
        meters: &Meters,
        shared: &Shared<'_>,
    ) {
        while let Some(task) = meters.walk.waiting_in(|| self.next()) {
            let mut state = lock(&task.state);
            if !matches!(*state, State::Waiting { .. }) {
                continue;
            }
            let begun = std::mem::replace(&mut *state, State::Running);
            drop(state);
            let _guard = Begun { task: &task, shared };
            let listed = meters.walk.working(|| list(begun));
            let mut state = lock(&task.state);
            if !matches!(*state, State::Running) {
                continue;
            }
            if let Ok(listed) = &listed {
                lock(&self.queue).entries_ahead += listed.names.len();
            }
            *state = State::Done(listed);
            drop(state);
            task.done.notify_all();
        }
    }

    fn next(&self) -> Option<Arc<Task>> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.closed {
                return None;
            }
            if queue.entries_ahead < MAX_ENTRIES_AHEAD
                && let Some(task) = queue.tasks.pop()
            {
                return Some(task);
            }
            queue = self.changed.wait(queue).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Ends the walker threads when what it gives is dropped.
    pub(super) fn closing(&self) -> Closing<'_> {
        Closing(self)
    }

    /// Ends the walker threads.
    fn close(&self) {
        let mut queue = lock(&self.queue);
        queue.closed = true;
        queue.tasks.clear();
        drop(queue);
        self.changed.notify_all();
    }
}

fn list(task: State) -> io::Result<Listed> {
    let State::Waiting { parent, name } = task else {
        return Err(io::Error::other("a directory was listed twice"));
    };
    Listed::read(parent.open_child(Name::new(&name)?)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::Run;
    use crate::budget::Budget;

    #[test]
    fn a_walker_that_panics_fails_the_run_and_lets_the_plan_go() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open_absolute(folder.path().as_os_str().as_bytes()).unwrap();
        let (walk, meters, run) = (Walk::new(), Meters::new(1, 1, 1, 1), Run::new());
        let shared = Shared::new(&run, Budget::new(1, 1));
        let tasks = walk.ahead(&Arc::new(dir), &[b"below"]);
        let (begins, begun) = channel();
        let panics = |_| {
            begins.send(()).unwrap();
            panic!("as a mistake in the code would");
        };
        thread::scope(|scope| {
            let walker = scope.spawn(|| walk.run_by(panics, &meters, &shared));
            begun.recv().unwrap();
            assert!(walk.take(&tasks[0], &meters).is_err());
            assert!(shared.failed());
            walker.join().unwrap_err();
        });
    }

    #[test]
    fn walkers_end_with_a_plan_that_panics() {
        let (walk, meters, run) = (Walk::new(), Meters::new(1, 1, 1, 1), Run::new());
        let shared = Shared::new(&run, Budget::new(1, 1));
        thread::scope(|scope| {
            let walker = scope.spawn(|| walk.run(&meters, &shared));
            let plan = scope.spawn(|| {
                let _closing = walk.closing();
                panic!("as a mistake in the code would");
            });
            plan.join().unwrap_err();
            walker.join().unwrap();
        });
    }

    #[test]
    fn what_was_listed_and_is_not_wanted_gives_its_room_back() {
        let run = Run::new();
        let shared = Shared::new(&run, Budget::new(1, 1));
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("below")).unwrap();
        for name in ["one", "two", "three"] {
            std::fs::write(folder.path().join("below").join(name), b"").unwrap();
        }
        let dir = Dir::open_absolute(folder.path().as_os_str().as_bytes()).unwrap();
        let (walk, meters) = (Walk::new(), Meters::new(1, 1, 1, 1));
        let tasks = walk.ahead(&Arc::new(dir), &[b"below"]);
        let ahead = std::thread::scope(|scope| {
            scope.spawn(|| walk.run(&meters, &shared));
            let mut state = lock(&tasks[0].state);
            while !matches!(*state, State::Done(_)) {
                state = tasks[0].done.wait(state).unwrap();
            }
            drop(state);
            let ahead = lock(&walk.queue).entries_ahead;
            walk.forget(&tasks[0]);
            drop(walk.closing());
            ahead
        });
        assert_eq!((ahead, lock(&walk.queue).entries_ahead), (3, 0));
    }
}
