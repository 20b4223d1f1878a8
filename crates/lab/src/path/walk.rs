//! Walking through a source by a few threads, as a backup does: every directory is listed, and every
//! item in it looked at.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use holdall_meter::LatencyCount;
use holdall_sys::{Dir, FileKind};

use super::SCRATCH_PREFIX;
use crate::child_path::child;
use crate::{LabError, Measurement, Stop};

/// Threads that list directories.
const WALKERS: u32 = 2;
/// No more items than these are remembered, some 50 MB; a rate is known long before.
const MOST_ITEMS: u64 = 400_000;
/// Directories below a longer path are left out: paths of all of them are remembered.
const LONGEST_PATH_BYTES: usize = 4096;

/// An item of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) name: Box<[u8]>,
    pub(super) kind: FileKind,
    /// Of a file its length; of everything else 0.
    pub(super) bytes: u64,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Walked {
    /// The items of each directory that was listed, by its absolute path.
    pub(super) folders: BTreeMap<Vec<u8>, Vec<Item>>,
    pub(super) top: Vec<u8>,
    /// How many items there are, the top included.
    pub items: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Whether the time, or the number of items, ended it before all was seen.
    pub ended_early: bool,
    /// Directories that could not be read, or not wholly.
    pub unreadable_directories: u64,
    /// Directories at which another file system is mounted, which was not entered.
    pub mount_points: u64,
}

/// What the threads share.
#[derive(Default)]
struct Walk {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<Vec<u8>>,
    /// Directories that are being listed.
    under_way: usize,
    found: Walked,
    latency: LatencyCount,
}

/// Walks through everything on the file system of `top`, at most for `limit`. What cannot be read is
/// left out, and counted.
///
/// # Errors
/// [`LabError::Io`] if `top` itself cannot be listed; [`LabError::Interrupted`].
pub fn walk(top: &Path, limit: Duration, stop: &Stop) -> Result<(Walked, Measurement), LabError> {
    use std::os::unix::ffi::OsStrExt;
    let failed = |error| LabError::io("reading", top, error);
    let path = top.canonicalize().map_err(failed)?;
    let path = path.as_os_str().as_bytes().to_vec();
    let opened = Dir::open_absolute(&path).map_err(failed)?;
    let device = opened.stat_self().map_err(failed)?.device;
    let walk = Walk::default();
    {
        let mut state = walk.lock();
        state.found.top.clone_from(&path);
        state.found.items = 1;
        state.waiting.push(path);
    }
    let begun = Instant::now();
    let is_over = || stop.is_wished() || begun.elapsed() >= limit;
    thread::scope(|scope| {
        for _ in 0..WALKERS {
            scope.spawn(|| walk.work(device, &is_over));
        }
    });
    let took = begun.elapsed();
    stop.check()?;
    let state = walk.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    let row = measurement(&state, took);
    Ok((state.found, row))
}

fn measurement(state: &State, took: Duration) -> Measurement {
    let seconds = took.as_secs_f64().max(1e-9);
    Measurement {
        jobs: Some(WALKERS),
        operations_per_second: Some(state.found.items as f64 / seconds),
        latency_ns: state.latency.latency(),
        ..Measurement::new("source walk", seconds)
    }
}

impl Walk {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists directories until there are none: the body of a thread.
    fn work(&self, device: u64, is_over: &dyn Fn() -> bool) {
        while let Some(path) = self.next(is_over) {
            let begun = Instant::now();
            let listed = list(&path, device);
            let mut state = self.lock();
            state.under_way -= 1;
            state.latency.add(begun.elapsed());
            match listed {
                Ok(listed) => state.take_in(path, listed),
                // What vanished meanwhile is not there to be read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => state.found.unreadable_directories += 1,
            }
            drop(state);
            self.changed.notify_all();
        }
    }

    /// The next directory; `None` once all are listed, or it is over.
    fn next(&self, is_over: &dyn Fn() -> bool) -> Option<Vec<u8>> {
        let mut state = self.lock();
        loop {
            let has_more = !state.waiting.is_empty() || state.under_way > 0;
            if !has_more || is_over() || state.found.items >= MOST_ITEMS {
                state.found.ended_early |= has_more;
                self.changed.notify_all();
                return None;
            }
            if let Some(path) = state.waiting.pop() {
                state.under_way += 1;
                return Some(path);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl State {
    fn take_in(&mut self, path: Vec<u8>, listed: Listed) {
        let Listed { items, below, mount_points, is_whole } = listed;
        self.found.items += items.len() as u64;
        let bytes = items.iter().map(|item| item.bytes);
        self.found.bytes = bytes.fold(self.found.bytes, u64::saturating_add);
        self.found.mount_points += mount_points;
        self.found.unreadable_directories += u64::from(!is_whole);
        self.waiting.extend(below);
        self.found.folders.insert(path, items);
    }
}

/// What a directory has.
struct Listed {
    items: Vec<Item>,
    /// The directories among them that are to be listed, too.
    below: Vec<Vec<u8>>,
    /// Those that lie on another device.
    mount_points: u64,
    /// Whether all of its items could be looked at, and their paths are not too long.
    is_whole: bool,
}

/// Lists a directory of a device.
fn list(path: &[u8], device: u64) -> io::Result<Listed> {
    let dir = Dir::open_absolute(path)?;
    let mut listed =
        Listed { items: Vec::new(), below: Vec::new(), mount_points: 0, is_whole: true };
    for entry in dir.entries()?.iter() {
        let name = entry.name().as_bytes();
        let stat = match dir.stat(entry.name()) {
            Ok(stat) => stat,
            Err(error) => {
                listed.is_whole &= error.kind() == io::ErrorKind::NotFound;
                continue;
            }
        };
        let is_folder = stat.kind == FileKind::Dir;
        if is_folder && name.starts_with(SCRATCH_PREFIX.as_bytes()) {
            continue;
        }
        match (is_folder, stat.device == device) {
            (true, false) => listed.mount_points += 1,
            (true, true) if path.len() < LONGEST_PATH_BYTES => listed.below.push(child(path, name)),
            (true, true) => listed.is_whole = false,
            (false, _) => {}
        }
        let bytes = if stat.kind == FileKind::File { stat.size } else { 0 };
        listed.items.push(Item { name: name.into(), kind: stat.kind, bytes });
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn everything_is_found_but_folders_of_measurements() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["a/b/c", "d", "holdall-lab-1"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        for (file, bytes) in [("a/one", 10), ("a/b/c/two", 5), ("holdall-lab-1/data", 100)] {
            fs::write(dir.path().join(file), vec![1; bytes]).unwrap();
        }
        std::os::unix::fs::symlink("one", dir.path().join("a/link")).unwrap();
        let limit = Duration::from_secs(60);
        let (walked, row) = walk(dir.path(), limit, &Stop::default()).unwrap();
        // The top, a, b, c, d, two files and a link.
        assert_eq!((walked.items, walked.bytes, walked.ended_early), (8, 15, false));
        assert_eq!((walked.unreadable_directories, walked.mount_points), (0, 0));
        assert_eq!(walked.folders.len(), 5);
        assert_eq!((row.operation.as_str(), row.jobs), ("source walk", Some(2)));
        let (walked, _) = walk(dir.path(), Duration::ZERO, &Stop::default()).unwrap();
        assert_eq!((walked.items, walked.ended_early), (1, true));
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = walk(Path::new("/no/such"), Duration::MAX, &Stop::default()).unwrap_err();
        assert!(error.to_string().contains("/no/such"), "{error}");
    }
}
