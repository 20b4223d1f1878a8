//! The walk: directories are listed ahead of the plan by a few threads.
//!
//! The plan goes through the tree in order and needs one directory after the other. When it enters
//! a directory it hands the next subdirectories to the walkers, nearest first, and these go on below
//! them in the plan's order, where nothing says that it will leave them out; what no walker has
//! begun when the plan gets there, the plan lists itself, so the two never wait in a circle. While a
//! walker is at the one that the plan needs, the plan lists others. How much may be listed ahead is
//! bounded in entries. Neither waits for the other if that panics, and nobody is woken who does not
//! wait: a directory takes less time to list than a thread to wake.

use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use holdall_sys::mounts::{MountPoints, Mounts};
use holdall_sys::{Dir, Name};

use super::listed::{Begin, Listed, State, Task};
use super::meters::Meters;
use super::places::Scope;
use crate::EngineError;
use crate::pipeline::concurrency::Member;
use crate::run::lock;
use crate::storing::Shared;

/// Entries listed ahead at which walkers pause.
const MAX_ENTRIES_AHEAD: usize = 32 * 1024;
/// How many entries a directory counts for itself: each is held open, so there must not be too many.
const DIRECTORY_WEIGHT: usize = 128;
/// Closes the walk when it is dropped.
pub(super) struct Closing<'a>(&'a Walk);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
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
            // In this order, so that the plan cannot go on as if one directory were not readable.
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
    has_walkers: bool,
    points: MountPoints,
}

#[derive(Default)]
struct Queue {
    /// The next one is last.
    tasks: Vec<Arc<Task>>,
    entries_ahead: usize,
    /// Walkers that wait.
    idle: usize,
    closed: bool,
}

impl Queue {
    fn has_work(&self) -> bool {
        self.entries_ahead < MAX_ENTRIES_AHEAD && !self.tasks.is_empty()
    }

    fn pop(&mut self) -> Option<Arc<Task>> {
        if self.has_work() { self.tasks.pop() } else { None }
    }
}

impl Walk {
    pub(super) fn new() -> Self {
        // Without the table, all is looked at ahead.
        let points = Mounts::read().map(|mounts| MountPoints::from(&mounts)).unwrap_or_default();
        Self { queue: Mutex::default(), changed: Condvar::new(), has_walkers: true, points }
    }

    /// One that the plan goes by itself: nothing is listed ahead.
    pub(super) fn alone() -> Self {
        Self { has_walkers: false, ..Self::new() }
    }

    /// Lists an open directory of which that much is looked at.
    pub(super) fn read(&self, dir: Dir, scope: Scope) -> io::Result<Listed> {
        match scope {
            Scope::All | Scope::Direct => Listed::read(dir, &self.points),
            Scope::Through => Listed::names_of(dir),
        }
    }

    /// Whether something was mounted on a name in that directory when the run began.
    pub(super) fn has_mount(&self, dir: &Dir, name: &[u8]) -> bool {
        Name::new(name).is_ok_and(|name| self.points.has(dir, name))
    }

    fn list(&self, task: &Begin) -> io::Result<Listed> {
        self.read(task.parent.open_child(Name::new(&task.name)?)?, Scope::All)
    }

    /// Hands over directories to be listed, nearest first; all of them come `behind` that one.
    pub(super) fn ahead(
        &self,
        begins: impl IntoIterator<Item = Begin>,
        behind: Option<&Arc<Task>>,
    ) -> Vec<Arc<Task>> {
        let tasks: Vec<_> = begins.into_iter().map(Task::new).collect();
        if !self.has_walkers {
            return tasks;
        }
        let mut queue = lock(&self.queue);
        let is_it = |task: &Arc<Task>| behind.is_some_and(|behind| Arc::ptr_eq(task, behind));
        let at = queue.tasks.iter().rposition(is_it).unwrap_or(queue.tasks.len());
        queue.tasks.splice(at..at, tasks.iter().rev().map(Arc::clone));
        self.wake(&queue);
        tasks
    }

    /// Wakes walkers for what is in the queue.
    fn wake(&self, queue: &Queue) {
        if queue.idle > 0 && queue.has_work() {
            self.changed.notify_all();
        }
    }

    /// The listing of a directory that was handed over; lists it here if no walker began, and others
    /// while one is at it.
    pub(super) fn take(&self, task: &Task, meters: &Meters) -> io::Result<Listed> {
        let mut state = lock(&task.state);
        while let State::Running { awaited } = &mut *state {
            let other = lock(&self.queue).pop();
            if let Some(other) = other {
                drop(state);
                self.begin(&other, &|begin: &_| self.list(begin), meters);
                state = lock(&task.state);
                continue;
            }
            *awaited = true;
            state = task.done.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        let taken = std::mem::replace(&mut *state, State::Gone);
        drop(state);
        match taken {
            State::Done(listed) => {
                self.give_back(&listed);
                listed
            }
            State::Waiting(begin) => meters.walk.working(|| self.list(&begin)),
            State::Running { .. } | State::Gone => {
                Err(io::Error::other("a directory was listed twice"))
            }
        }
    }

    /// Says that a directory that was handed over is not wanted any more.
    pub(super) fn forget(&self, task: &Task) {
        let state = std::mem::replace(&mut *lock(&task.state), State::Gone);
        if let State::Done(listed) = state {
            self.give_back(&listed);
            listed.iter().for_each(|listed| self.discard(listed));
        }
    }

    /// Says the same of what lies below a directory that was taken.
    pub(super) fn discard(&self, listed: &Listed) {
        listed.below.iter().for_each(|(_, task)| self.forget(task));
    }

    fn give_back(&self, listed: &io::Result<Listed>) {
        if let Ok(listed) = listed {
            let mut queue = lock(&self.queue);
            queue.entries_ahead -= weight(listed);
            self.wake(&queue);
        }
    }

    /// Lists directories until the walk is closed: the body of a walker thread.
    pub(super) fn run(&self, walker: &Member<'_>, meters: &Meters, shared: &Shared<'_>) {
        self.run_by(|begin| self.list(begin), walker, meters, shared);
    }

    fn run_by(
        &self,
        list: impl Fn(&Begin) -> io::Result<Listed>,
        walker: &Member<'_>,
        meters: &Meters,
        shared: &Shared<'_>,
    ) {
        loop {
            walker.take_part();
            let Some(task) = meters.walk.waiting_in(|| self.next()) else { return };
            let _guard = Begun { task: &task, shared };
            walker.did(self.begin(&task, &list, meters), 0);
        }
    }

    /// Lists a directory, unless somebody else began or it is not wanted any more. Returns how many
    /// items it looked at.
    fn begin(
        &self,
        task: &Task,
        list: &impl Fn(&Begin) -> io::Result<Listed>,
        meters: &Meters,
    ) -> u64 {
        let mut state = lock(&task.state);
        if !matches!(*state, State::Waiting(_)) {
            return 0;
        }
        let running = State::Running { awaited: false };
        let State::Waiting(begin) = std::mem::replace(&mut *state, running) else { return 0 };
        drop(state);
        let mut listed = meters.walk.working(|| list(&begin));
        let items = 1 + listed.as_ref().map_or(0, |listed| listed.stats.len() as u64);
        let mut state = lock(&task.state);
        let State::Running { awaited } = *state else { return items };
        if let Ok(listed) = &mut listed {
            self.go_deeper(listed, &begin);
        }
        *state = State::Done(listed);
        drop(state);
        if awaited {
            task.done.notify_all();
        }
        items
    }

    /// Counts a listing, and puts the directories in it next in the queue: the plan will want them
    /// right behind it.
    fn go_deeper(&self, listed: &mut Listed, begin: &Begin) {
        let deeper = begin.deeper.as_ref();
        let found = deeper.map(|deeper| deeper.find(listed, &begin.name)).unwrap_or_default();
        let below = found.into_iter().map(|(at, begin)| (at, Task::new(begin))).collect();
        listed.below = below;
        let mut queue = lock(&self.queue);
        queue.entries_ahead += weight(listed);
        queue.tasks.extend(listed.below.iter().rev().map(|(_, task)| Arc::clone(task)));
        self.wake(&queue);
    }

    fn next(&self) -> Option<Arc<Task>> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.closed {
                return None;
            }
            if let Some(task) = queue.pop() {
                return Some(task);
            }
            queue.idle += 1;
            queue = self.changed.wait(queue).unwrap_or_else(|poisoned| poisoned.into_inner());
            queue.idle -= 1;
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

/// What a directory that is listed ahead takes of the bound.
fn weight(listed: &Listed) -> usize {
    listed.names.len() + DIRECTORY_WEIGHT
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::Run;
    use crate::pipeline::budget::Budget;
    use crate::pipeline::concurrency::Concurrency;

    fn begin(dir: Dir) -> Begin {
        Begin { parent: Arc::new(dir), name: b"below".as_slice().into(), deeper: None }
    }

    #[test]
    fn a_walker_that_panics_fails_the_run_and_lets_the_plan_go() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open_absolute(folder.path().as_os_str().as_bytes()).unwrap();
        let (walk, meters, run) = (Walk::new(), Meters::new(1, 1, 1, 1), Run::new());
        let stages = [&meters.walk];
        let walkers = Concurrency::new(&stages, 1, 1, 1);
        let shared = Shared::new(&run, Budget::new(1, 1));
        let tasks = walk.ahead([begin(dir)], None);
        let (begins, begun) = channel();
        let panics = |_: &Begin| {
            begins.send(()).unwrap();
            panic!("as a mistake in the code would");
        };
        thread::scope(|scope| {
            let walker = scope.spawn(|| walk.run_by(panics, &walkers.member(0), &meters, &shared));
            begun.recv().unwrap();
            assert!(walk.take(&tasks[0], &meters).is_err());
            assert!(shared.failed());
            walker.join().unwrap_err();
        });
    }

    #[test]
    fn walkers_end_with_a_plan_that_panics() {
        let (walk, meters, run) = (Walk::new(), Meters::new(1, 1, 1, 1), Run::new());
        let stages = [&meters.walk];
        let walkers = Concurrency::new(&stages, 1, 1, 1);
        let shared = Shared::new(&run, Budget::new(1, 1));
        thread::scope(|scope| {
            let walker = scope.spawn(|| walk.run(&walkers.member(0), &meters, &shared));
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
        let stages = [&meters.walk];
        let walkers = Concurrency::new(&stages, 1, 1, 1);
        let tasks = walk.ahead([begin(dir)], None);
        let ahead = std::thread::scope(|scope| {
            scope.spawn(|| walk.run(&walkers.member(0), &meters, &shared));
            while !matches!(*lock(&tasks[0].state), State::Done(_)) {
                std::thread::yield_now();
            }
            let ahead = lock(&walk.queue).entries_ahead;
            walk.forget(&tasks[0]);
            drop(walk.closing());
            ahead
        });
        assert_eq!((ahead, lock(&walk.queue).entries_ahead), (3 + DIRECTORY_WEIGHT, 0));
    }
}
