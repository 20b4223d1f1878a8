//! The mix: 600 MB of files as people have them, from less than 1 KB to more than 200 MB, in folders,
//! with links. It is what disks and enclosures were compared by long before there was a lab.

use std::fs::File;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Instant;

use holdall_sys::{disk, process, raw_file};

use super::{
    FilesMeasured, Items, Work, drop_cached, make_durable, make_folder, piece, read_file, remove,
    write_file,
};
use crate::cache::Cache;
use crate::{LabError, Scratch, Stop};

/// How many bytes the whole mix has.
pub const MIX_BYTES: u64 = 600_000_000;

/// Sizes in bytes and how many files of each: about as many bytes in each kind as people have.
const KINDS: [(u64, u64); 7] = [
    (205_000_000, 1),
    (60_000_000, 3),
    (10_000_000, 10),
    (1_000_000, 65),
    (100_000, 300),
    (10_000, 1_700),
    (700, 4_285),
];
/// Files of a folder.
const FOLDER_FILES: u64 = 100;

/// Writes the mix, or a smaller one that has all its sizes below `bytes`, makes all of it durable, and
/// reads it again, its content dropped from the cache. Each item is timed: the fsync is not one.
///
/// # Errors
/// [`LabError::NoRoom`], [`LabError::Interrupted`], or what the system says.
pub fn measure_mix(
    scratch: &Scratch,
    bytes: u64,
    stop: &Stop,
) -> Result<[FilesMeasured; 2], LabError> {
    let share = (bytes as f64 / MIX_BYTES as f64).min(1.0);
    let room = (MIX_BYTES as f64 * share) as u64 + room_of_small(share);
    scratch.claim(room)?;
    let folder = scratch.path().join("mix");
    let failed = |error| LabError::io("measuring files in", &folder, error);
    make_folder(&folder).map_err(failed)?;
    let started = Instant::now();
    let (written, paths) = write(&folder, share, stop).map_err(failed)?;
    stop.check()?;
    make_all_durable(&folder, &paths, stop).map_err(failed)?;
    stop.check()?;
    let mut wrote = written.measured(&named("write", share), started.elapsed(), 1);
    wrote.measurement.end_fsync = Some(true);
    drop_cached(&paths).map_err(failed)?;
    let read_before = process::bytes_read_from_disks();
    let started = Instant::now();
    let read = read(&paths, stop).map_err(failed)?;
    let mut readings = read.measured(&named("read", share), started.elapsed(), 1);
    readings.measurement.cache = Some(Cache::of_read_in(&folder, read.bytes, read_before));
    stop.check()?;
    remove(&folder).map_err(failed)?;
    scratch.release(room);
    Ok([wrote, readings])
}

/// What a mix is called: one that was made smaller is another.
fn named(verb: &str, share: f64) -> String {
    match (MIX_BYTES as f64 * share) as u64 {
        MIX_BYTES => format!("{verb} a mix"),
        bytes => format!("{verb} a mix of {:.1} MB", bytes as f64 / 1e6),
    }
}

/// Makes all of it durable: at once where that is known to reach the disk, as after copying to one that
/// is unplugged next; file by file on a share, whose server is not told otherwise.
fn make_all_durable(folder: &Path, paths: &[PathBuf], stop: &Stop) -> io::Result<()> {
    if disk::is_share(disk::file_system(folder)?) {
        return make_each_durable(paths, stop);
    }
    raw_file::sync_file_system(&File::open(folder)?)
}

/// One file after the other, until it is to end.
fn make_each_durable(paths: &[PathBuf], stop: &Stop) -> io::Result<()> {
    paths.iter().take_while(|_| !stop.is_wished()).try_for_each(|path| make_durable(path))
}

/// What small files take beyond their bytes.
fn room_of_small(share: f64) -> u64 {
    KINDS.iter().map(|(_, files)| count(*files, share) * 4096).sum()
}

/// A share of files, and at least one.
fn count(files: u64, share: f64) -> u64 {
    ((files as f64 * share).round() as u64).max(1)
}

/// Files, folders and links, largest files first; a small mix has smaller large files.
fn write(folder: &Path, share: f64, stop: &Stop) -> io::Result<(Work, Vec<PathBuf>)> {
    let (mut work, mut paths, mut piece) = (Work::default(), Vec::new(), piece(1));
    for (file_bytes, files) in KINDS {
        let has_few = files as f64 * share < 1.0;
        let file_bytes =
            if has_few { (file_bytes as f64 * share * files as f64) as u64 } else { file_bytes };
        for number in (0..count(files, share)).take_while(|_| !stop.is_wished()) {
            let folder = folder.join(format!("{file_bytes}-{}", number / FOLDER_FILES));
            if number.is_multiple_of(FOLDER_FILES) {
                work.timed(Items { directories: 1, ..Items::default() }, || make_folder(&folder))?;
                let link = folder.join("link");
                work.timed(Items { links: 1, ..Items::default() }, || symlink("file-0", &link))?;
            }
            let path = folder.join(format!("file-{number}"));
            work.timed(Items::of_files(1), || {
                write_file(&path, file_bytes, &mut piece, number, stop)
            })?;
            work.bytes += file_bytes;
            paths.push(path);
        }
    }
    Ok((work, paths))
}

fn read(paths: &[PathBuf], stop: &Stop) -> io::Result<Work> {
    let (mut work, mut piece) = (Work::default(), piece(0));
    for path in paths.iter().take_while(|_| !stop.is_wished()) {
        let bytes = work.timed(Items::of_files(1), || read_file(path, &mut piece, stop))?;
        work.bytes += bytes;
    }
    Ok(work)
}

impl Work {
    /// Does something to items, and counts them.
    fn timed<T>(&mut self, items: Items, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let begun = Instant::now();
        let done = action()?;
        self.latency.add(begun.elapsed());
        self.items.add(&items);
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_mix_has_its_bytes_and_every_size() {
        let bytes: u64 = KINDS.iter().map(|(bytes, files)| bytes * files).sum();
        assert!(bytes.abs_diff(MIX_BYTES) < 10_000_000, "{bytes}");
        assert!(KINDS[0].0 > 200_000_000 && KINDS[6].0 < 1000);
    }

    #[test]
    fn no_further_file_is_made_durable_once_it_is_to_end() {
        let dir = tempfile::tempdir().unwrap();
        let not_there = [dir.path().join("file")];
        make_each_durable(&not_there, &crate::files::wished()).unwrap();
        assert!(make_each_durable(&not_there, &Stop::default()).is_err(), "it is tried");
    }
}
