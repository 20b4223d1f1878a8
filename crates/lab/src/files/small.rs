//! Many small files, and one kind of work on all of them after the other.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use holdall_sys::process;

use super::{
    FilesMeasured, Items, Work, drop_cached, make_durable, make_folder, piece, read_file, remove,
};
use crate::cache::Cache;
use crate::{LabError, Scratch, Stop};

/// What a small file takes on a disk at least.
const MIN_ROOM_BYTES: u64 = 4096;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmallFiles {
    /// How many files, shared among the workers.
    pub files: u64,
    /// Bytes of each.
    pub file_bytes: u64,
    /// Threads, each with a folder of its own.
    pub workers: u32,
    /// The longest that each kind of work may take; what is not created, or written, by then is left out
    /// of what needs it.
    pub limit: Duration,
}

/// One kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Create,
    Write,
    Fsync,
    Stat,
    List,
    Read,
    Rename,
    Delete,
}

impl Phase {
    const ALL: [Self; 8] = [
        Self::Create,
        Self::Write,
        Self::Fsync,
        Self::Stat,
        Self::List,
        Self::Read,
        Self::Rename,
        Self::Delete,
    ];

    fn words(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Write => "write",
            Self::Fsync => "fsync",
            Self::Stat => "stat",
            Self::List => "list",
            Self::Read => "read",
            Self::Rename => "rename",
            Self::Delete => "delete",
        }
    }
}

/// Creates, writes, makes durable, looks at, lists, reads, renames and deletes small files, and tells
/// each kind of work when it is done.
///
/// # Errors
/// [`LabError::Settings`], [`LabError::NoRoom`], [`LabError::Interrupted`], or what the system says;
/// what `told` says ends it too.
pub fn measure_small<E: From<LabError>>(
    scratch: &Scratch,
    asked: &SmallFiles,
    stop: &Stop,
    mut told: impl FnMut(FilesMeasured) -> Result<(), E>,
) -> Result<(), E> {
    if asked.files == 0 || asked.workers == 0 {
        let wrong = "a number of files and of workers cannot be 0".to_owned();
        return Err(LabError::Settings(wrong).into());
    }
    let room = asked.files.saturating_mul(asked.file_bytes.max(MIN_ROOM_BYTES));
    scratch.claim(room)?;
    let folder = scratch.path().join("small");
    let failed = |error| LabError::io("measuring files in", &folder, error);
    let mut workers = make_workers(&folder, asked).map_err(failed)?;
    for phase in Phase::ALL {
        if phase == Phase::Read {
            let written =
                workers.iter().flat_map(|worker| worker.files.iter().take(worker.written));
            drop_cached(written).map_err(failed)?;
        }
        let read_before = process::bytes_read_from_disks();
        let (work, took) = run_phase(&mut workers, phase, asked, stop).map_err(failed)?;
        stop.check()?;
        let mut measured = work.measured(phase.words(), took, asked.workers);
        measured.measurement.file_bytes = Some(asked.file_bytes);
        measured.measurement.end_fsync = Some(phase == Phase::Fsync);
        measured.measurement.cache =
            (phase == Phase::Read).then(|| Cache::of_read_in(&folder, work.bytes, read_before));
        told(measured)?;
    }
    remove(&folder).map_err(failed)?;
    scratch.release(room);
    Ok(())
}

/// A thread's folder and the files that it made there.
struct Worker {
    folder: PathBuf,
    files: Vec<PathBuf>,
    /// How many of the files, the first ones, have all of their content.
    written: usize,
    piece: Vec<u8>,
}

fn make_workers(folder: &Path, asked: &SmallFiles) -> io::Result<Vec<Worker>> {
    make_folder(folder)?;
    let make = |number| {
        let folder = folder.join(format!("worker-{number}"));
        make_folder(&folder)?;
        let piece = piece(u64::from(number));
        Ok(Worker { folder, files: Vec::new(), written: 0, piece })
    };
    (0..asked.workers).map(make).collect()
}

/// Lets all workers do a kind of work at once, and says what they did together and how long it took.
fn run_phase(
    workers: &mut [Worker],
    phase: Phase,
    asked: &SmallFiles,
    stop: &Stop,
) -> io::Result<(Work, Duration)> {
    let barrier = Barrier::new(workers.len());
    let share = |number: u64| {
        let workers = u64::from(asked.workers);
        asked.files / workers + u64::from(number < asked.files % workers)
    };
    let done: Vec<_> = thread::scope(|scope| {
        let numbered = workers.iter_mut().zip(0..);
        let start = numbered.map(|(worker, number)| {
            let (barrier, share) = (&barrier, share(number));
            scope.spawn(move || {
                barrier.wait();
                let started = Instant::now();
                let go_on = || !stop.is_wished() && started.elapsed() < asked.limit;
                let work = worker.run(phase, share, asked.file_bytes, stop, go_on);
                work.map(|work| (work, started, Instant::now()))
            })
        });
        let started: Vec<_> = start.collect();
        let ended = started.into_iter().map(|thread| thread.join());
        ended
            .map(|work| work.unwrap_or_else(|_| Err(io::Error::other("a worker failed"))))
            .collect::<io::Result<_>>()
    })?;
    let mut total = Work::default();
    done.iter().for_each(|(work, ..)| total.add(work));
    let starts = done.iter().map(|(_, started, _)| *started).min();
    let ends = done.iter().map(|(.., ended)| *ended).max();
    Ok((total, starts.zip(ends).map(|(start, end)| end - start).unwrap_or_default()))
}

impl Worker {
    fn run(
        &mut self,
        phase: Phase,
        share: u64,
        file_bytes: u64,
        stop: &Stop,
        go_on: impl Fn() -> bool,
    ) -> io::Result<Work> {
        let mut work = Work::default();
        match phase {
            Phase::Create => self.create(share, &mut work, go_on)?,
            Phase::List => list(&self.folder, &mut work)?,
            Phase::Rename => self.rename(&mut work, go_on)?,
            _ => {
                let needs_content = matches!(phase, Phase::Fsync | Phase::Read);
                let files = if needs_content { self.written } else { self.files.len() };
                let numbered = self.files.iter().take(files).zip(0..);
                for (path, number) in numbered.take_while(|_| go_on()) {
                    let begun = Instant::now();
                    match phase {
                        Phase::Write => {
                            let mut file = File::options().write(true).open(path)?;
                            let piece = &mut self.piece;
                            super::write_content(&mut file, file_bytes, piece, number, stop)?;
                            file.flush()?;
                            work.bytes += file_bytes;
                            self.written += 1;
                        }
                        Phase::Fsync => make_durable(path)?,
                        Phase::Stat => {
                            fs::symlink_metadata(path)?;
                        }
                        Phase::Read => work.bytes += read_file(path, &mut self.piece, stop)?,
                        _ => fs::remove_file(path)?,
                    }
                    work.one_file(begun);
                }
            }
        }
        Ok(work)
    }

    fn create(&mut self, share: u64, work: &mut Work, go_on: impl Fn() -> bool) -> io::Result<()> {
        for number in (0..share).take_while(|_| go_on()) {
            let path = self.folder.join(format!("file-{number}"));
            let begun = Instant::now();
            File::create_new(&path)?;
            work.one_file(begun);
            self.files.push(path);
        }
        Ok(())
    }

    fn rename(&mut self, work: &mut Work, go_on: impl Fn() -> bool) -> io::Result<()> {
        for path in self.files.iter_mut().take_while(|_| go_on()) {
            let renamed = path.with_extension("renamed");
            let begun = Instant::now();
            fs::rename(&*path, &renamed)?;
            work.one_file(begun);
            *path = renamed;
        }
        Ok(())
    }
}

/// Lists a folder; the time of each name is that until the next.
fn list(folder: &Path, work: &mut Work) -> io::Result<()> {
    let mut begun = Instant::now();
    for entry in fs::read_dir(folder)? {
        entry?;
        work.one_file(begun);
        begun = Instant::now();
    }
    Ok(())
}

impl Work {
    fn one_file(&mut self, begun: Instant) {
        self.latency.add(begun.elapsed());
        self.items.add(&Items::of_files(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn what_was_created_and_not_written_has_no_content_to_work_on_and_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let limit = Duration::MAX;
        let asked = SmallFiles { files: 5, file_bytes: 5000, workers: 1, limit };
        let mut workers = make_workers(&dir.path().join("small"), &asked).unwrap();
        let worker = &mut workers[0];
        let mut files_of = |phase, most: u64| {
            let left = Cell::new(most);
            let go_on = || left.replace(left.get().saturating_sub(1)) > 0;
            let work = worker.run(phase, 5, 5000, &Stop::default(), go_on).unwrap();
            (work.items.all(), work.bytes)
        };
        assert_eq!(files_of(Phase::Create, 5), (5, 0));
        assert_eq!(files_of(Phase::Write, 3), (3, 15_000), "in the middle its time is over");
        let later = Phase::ALL.into_iter().skip(2).map(|phase| files_of(phase, 5));
        let expected = [(3, 0), (5, 0), (5, 0), (3, 15_000), (5, 0), (5, 0)];
        assert_eq!(later.collect::<Vec<_>>(), expected, "fsync to delete");
        assert_eq!(fs::read_dir(&workers[0].folder).unwrap().count(), 0);
    }
}
