//! Reading a sample's files, by as many threads as a backup reads with.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use holdall_meter::LatencyCount;
use holdall_sys::{Dir, Name, process, raw_file};

use super::Sample;
use super::sample::Batch;
use crate::cache::Cache;
use crate::{LabError, Measurement, Stop};

const PIECE_BYTES: usize = 1 << 20;

/// What reading a sample gave.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleRead {
    /// The row; its operations are files.
    pub measurement: Measurement,
    /// Whether the time ended it before all was read.
    pub ended_early: bool,
}

#[derive(Default)]
struct Tally {
    files: u64,
    bytes: u64,
    latency: LatencyCount,
}

impl Sample {
    /// Asks the system to forget the content of all files, so that what reads them next is told the
    /// disk's speed. It may not heed that.
    ///
    /// What was written there a moment ago has to be on the disk before: the system forgets nothing that it has
    /// in memory alone, and a backup a little later would read from the disk what is called warm here.
    pub fn drop_cached(&self) {
        // It is a wish, too.
        let _ = File::open(self.folder()).and_then(|folder| raw_file::sync_file_system(&folder));
        for batch in &self.batches {
            // It is a wish: who reads next says where the bytes came from.
            let _ = each_file(batch, |file, _| raw_file::drop_cached(&file));
        }
    }

    /// Reads all files by `readers` threads, for at most `limit`; what cannot be read is left out.
    ///
    /// # Errors
    /// [`LabError::Interrupted`].
    pub fn read(&self, readers: u32, limit: Duration, stop: &Stop) -> Result<SampleRead, LabError> {
        let before = process::bytes_read_from_disks();
        let (next, ended_early) = (AtomicUsize::new(0), AtomicBool::new(false));
        let begun = Instant::now();
        let is_over = || {
            let is_over = stop.is_wished() || begun.elapsed() >= limit;
            ended_early.fetch_or(is_over, Ordering::Relaxed);
            is_over
        };
        let tallies: Vec<Tally> = thread::scope(|scope| {
            let start = |_| scope.spawn(|| self.read_batches(&next, &is_over));
            let started: Vec<_> = (0..readers).map(start).collect();
            started.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        let took = begun.elapsed();
        stop.check()?;
        let mut total = Tally::default();
        for tally in &tallies {
            total.files += tally.files;
            total.bytes += tally.bytes;
            total.latency.merge(&tally.latency);
        }
        Ok(SampleRead {
            measurement: Measurement {
                cache: Some(self.cache(total.bytes, before)),
                ..row("source read", &total, readers, took)
            },
            ended_early: ended_early.into_inner(),
        })
    }

    /// Where the bytes came from that were read since this process had made the system read `before` from disks.
    pub fn cache(&self, bytes: u64, before: Option<u64>) -> Cache {
        Cache::of_read_in(self.folder(), bytes, before)
    }

    /// The first folder with files.
    fn folder(&self) -> &Path {
        use std::os::unix::ffi::OsStrExt;
        let folder = self.batches.first().map(|batch| OsStr::from_bytes(&batch.folder));
        Path::new(folder.unwrap_or_default())
    }

    fn read_batches(&self, next: &AtomicUsize, is_over: &dyn Fn() -> bool) -> Tally {
        let (mut tally, mut piece) = (Tally::default(), vec![0; PIECE_BYTES]);
        while let Some(batch) = self.batches.get(next.fetch_add(1, Ordering::Relaxed)) {
            let read = each_file(batch, |mut file, _| {
                if is_over() {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                let begun = Instant::now();
                while let bytes @ 1.. = file.read(&mut piece)? {
                    tally.bytes += bytes as u64;
                    if is_over() {
                        return Err(io::ErrorKind::Interrupted.into());
                    }
                }
                tally.files += 1;
                tally.latency.add(begun.elapsed());
                Ok(())
            });
            if read.is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {
                break;
            }
        }
        tally
    }
}

fn row(operation: &str, tally: &Tally, jobs: u32, took: Duration) -> Measurement {
    let seconds = took.as_secs_f64().max(1e-9);
    Measurement {
        jobs: Some(jobs),
        direct: Some(false),
        bytes_per_second: Some(tally.bytes as f64 / seconds),
        operations_per_second: Some(tally.files as f64 / seconds),
        latency_ns: tally.latency.latency(),
        ..Measurement::new(operation, seconds)
    }
}

/// Opens the files of a batch one after the other; those that cannot be opened are left out.
///
/// # Errors
/// If the folder cannot be opened, or [`io::ErrorKind::Interrupted`] of `take`.
pub(super) fn each_file(
    batch: &Batch,
    mut take: impl FnMut(std::fs::File, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let folder = Dir::open_absolute(&batch.folder)?;
    for (name, _) in &batch.files {
        let Ok(checked) = Name::new(name) else { continue };
        let Ok((file, _)) = folder.open_file(checked) else { continue };
        match take(file, name) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The beginnings of files from all over a sample, together at most `limit_bytes`, for what the
/// processor does with them.
pub fn read_into_memory(sample: &Sample, limit_bytes: usize) -> Vec<u8> {
    let mut content = Vec::new();
    let share = limit_bytes as u64 * 1024 / sample.bytes.max(1);
    for batch in &sample.batches {
        // What cannot be read is missing from the sample.
        let _ = each_file(batch, |file, _| {
            let length = file.metadata()?.len();
            let wanted = (length.saturating_mul(share) / 1024).clamp(4096, limit_bytes as u64);
            let left = (limit_bytes - content.len()) as u64;
            file.take(wanted.min(left)).read_to_end(&mut content)?;
            Ok(())
        });
    }
    content
}

#[cfg(test)]
mod tests {
    use super::super::{Limits, walk};
    use super::*;
    use std::fs;

    fn sample() -> (tempfile::TempDir, Sample) {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..200_usize {
            fs::write(dir.path().join(format!("{number}")), vec![7; number * 10]).unwrap();
        }
        let (walked, _) = walk(dir.path(), Duration::from_secs(60), &Stop::default()).unwrap();
        (dir, Sample::of(&walked, Limits { items: 1000, bytes: 1 << 30 }))
    }

    #[test]
    fn every_file_is_read_once_and_all_threads_together_take_them() {
        let (_dir, sample) = sample();
        sample.drop_cached();
        let read = sample.read(3, Duration::from_secs(60), &Stop::default()).unwrap();
        let row = &read.measurement;
        let of = |rate: Option<f64>| (rate.unwrap() * row.duration_seconds).round() as u64;
        assert_eq!(of(row.operations_per_second), 200);
        assert_eq!(of(row.bytes_per_second), sample.bytes);
        assert!(!read.ended_early && row.latency_ns.is_some());
        let read = sample.read(1, Duration::ZERO, &Stop::default()).unwrap();
        assert!(read.ended_early && read.measurement.operations_per_second == Some(0.0));
    }

    /// Where a file of 16 MiB is read from after its cache was dropped; it was made durable before, or just
    /// written.
    fn read_after_drop(durable: bool) -> Option<Cache> {
        let dir = tempfile::tempdir().unwrap();
        let mut file = File::create(dir.path().join("new")).unwrap();
        io::Write::write_all(&mut file, &vec![7; 16 << 20]).unwrap();
        if durable {
            file.sync_all().unwrap();
        }
        let (walked, _) = walk(dir.path(), Duration::from_secs(60), &Stop::default()).unwrap();
        let sample = Sample::of(&walked, Limits { items: 1000, bytes: 1 << 30 });
        sample.drop_cached();
        let read = sample.read(1, Duration::from_secs(60), &Stop::default()).unwrap();
        read.measurement.cache
    }

    #[test]
    fn what_was_just_written_comes_from_the_disk_like_anything_else_once_its_cache_was_dropped() {
        // Where nothing comes from a disk, or nobody counts, there is nothing to see.
        if read_after_drop(true) == Some(Cache::Cold) {
            assert_eq!(read_after_drop(false), Some(Cache::Cold));
        }
    }

    #[test]
    fn memory_takes_some_of_many_files_and_no_more_than_its_limit() {
        let (_dir, sample) = sample();
        assert_eq!(read_into_memory(&sample, 1 << 20).len() as u64, sample.bytes);
        assert_eq!(read_into_memory(&sample, 50_000).len(), 50_000);
    }
}
