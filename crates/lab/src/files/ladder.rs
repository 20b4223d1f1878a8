//! One size after the other, from small files to large ones: where does a share stop paying for each
//! file and begin to pay for bytes?

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use holdall_sys::process;

use super::{
    FilesMeasured, Items, Work, drop_cached, make_durable, make_folder, piece, read_file, remove,
    write_file,
};
use crate::cache::Cache;
use crate::{LabError, Scratch, Stop};

/// The sizes of the ladder, in bytes.
pub const LADDER_BYTES: [u64; 6] = [2_000, 20_000, 200_000, 2_000_000, 20_000_000, 200_000_000];

/// How much of each size is written at most.
const STEP_BYTES: u64 = 200_000_000;
/// How many files of a size at most.
const STEP_FILES: u64 = 500;

/// Writes files of `file_bytes`, each made durable, for at most `limit`, and reads them again, their
/// content dropped from the cache.
///
/// # Errors
/// [`LabError::NoRoom`], [`LabError::Interrupted`], or what the system says.
pub fn measure_size(
    scratch: &Scratch,
    file_bytes: u64,
    limit: Duration,
    stop: &Stop,
) -> Result<[FilesMeasured; 2], LabError> {
    let files = (STEP_BYTES / file_bytes.max(1)).clamp(1, STEP_FILES);
    let room = files.saturating_mul(file_bytes.max(4096));
    scratch.claim(room)?;
    let folder = scratch.path().join(format!("size-{file_bytes}"));
    let failed = |error| LabError::io("measuring files in", &folder, error);
    make_folder(&folder).map_err(failed)?;
    let started = Instant::now();
    let go_on = || !stop.is_wished() && started.elapsed() < limit;
    let (written, paths) = write(&folder, files, file_bytes, stop, go_on).map_err(failed)?;
    let wrote = written.measured("write with fsync", started.elapsed(), 1);
    stop.check()?;
    drop_cached(&paths).map_err(failed)?;
    let read_before = process::bytes_read_from_disks();
    let started = Instant::now();
    let go_on = || !stop.is_wished() && started.elapsed() < limit;
    let read = read(&paths, stop, go_on).map_err(failed)?;
    let mut readings = read.measured("read", started.elapsed(), 1);
    readings.measurement.cache = Some(Cache::of_read_in(&folder, read.bytes, read_before));
    stop.check()?;
    remove(&folder).map_err(failed)?;
    scratch.release(room);
    let mut both = [wrote, readings];
    both[0].measurement.end_fsync = Some(true);
    both.iter_mut().for_each(|one| one.measurement.file_bytes = Some(file_bytes));
    Ok(both)
}

fn write(
    folder: &Path,
    files: u64,
    file_bytes: u64,
    stop: &Stop,
    go_on: impl Fn() -> bool,
) -> io::Result<(Work, Vec<PathBuf>)> {
    let (mut work, mut paths, mut piece) = (Work::default(), Vec::new(), piece(file_bytes));
    for number in 0..files {
        // At least one, however slow.
        if number > 0 && !go_on() {
            break;
        }
        let path = folder.join(format!("file-{number}"));
        let begun = Instant::now();
        write_file(&path, file_bytes, &mut piece, number, stop)?;
        if stop.is_wished() {
            break;
        }
        make_durable(&path)?;
        work.latency.add(begun.elapsed());
        work.items.add(&Items::of_files(1));
        work.bytes += file_bytes;
        paths.push(path);
    }
    Ok((work, paths))
}

fn read(paths: &[PathBuf], stop: &Stop, go_on: impl Fn() -> bool) -> io::Result<Work> {
    let (mut work, mut piece) = (Work::default(), piece(0));
    for (number, path) in paths.iter().enumerate() {
        if number > 0 && !go_on() {
            break;
        }
        let begun = Instant::now();
        work.bytes += read_file(path, &mut piece, stop)?;
        work.latency.add(begun.elapsed());
        work.items.add(&Items::of_files(1));
    }
    Ok(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_not_wholly_written_is_not_counted() {
        let dir = tempfile::tempdir().unwrap();
        let wished = crate::files::wished();
        let (work, paths) = write(dir.path(), 2, 5000, &wished, || true).unwrap();
        assert_eq!((work.items.all(), work.bytes, paths.len()), (0, 0, 0));
    }
}
