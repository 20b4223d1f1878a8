//! What a file system does with files: many small ones, sizes from small to large, and a mix as people
//! have it. Any mounted folder will do, so a share over the network and a disk are told in the same
//! units.

mod census;
mod ladder;
mod mix;
mod not_seen;
mod small;

pub use census::{Items, LeftOut, count_items};
pub use ladder::{LADDER_BYTES, measure_size};
pub use mix::{MIX_BYTES, measure_mix};
pub use not_seen::not_seen;
pub use small::{SmallFiles, measure_small};

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdall_meter::LatencyCount;
use serde::Serialize;

use crate::{Measurement, Stop};

/// How much is read or written at a time.
const PIECE_BYTES: usize = 1 << 20;

/// What some work on files gave.
#[derive(Debug, Clone, Serialize)]
pub struct FilesMeasured {
    /// The row as every measurement is told; its operations are items.
    #[serde(flatten)]
    pub measurement: Measurement,
    /// What it was done to.
    pub items: Items,
    /// Bytes of content that were moved.
    pub bytes: u64,
    /// What is not in it; only of a count.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
}

impl FilesMeasured {
    /// The row as a report has it, with how many items it was done to.
    pub fn reported(&self) -> Measurement {
        Measurement { items: Some(self.items.all()), ..self.measurement.clone() }
    }
}

/// What was done so far.
#[derive(Debug, Clone, Default)]
struct Work {
    items: Items,
    bytes: u64,
    latency: LatencyCount,
}

impl Work {
    fn add(&mut self, other: &Self) {
        self.items.add(&other.items);
        self.bytes += other.bytes;
        self.latency.merge(&other.latency);
    }

    /// As a row; bytes are only told where any were moved.
    fn measured(&self, operation: &str, took: Duration, jobs: u32) -> FilesMeasured {
        let seconds = took.as_secs_f64();
        let rate = |amount: u64| (seconds > 0.0).then(|| amount as f64 / seconds);
        FilesMeasured {
            measurement: Measurement {
                jobs: Some(jobs),
                direct: Some(false),
                end_fsync: Some(false),
                bytes_per_second: rate(self.bytes).filter(|_| self.bytes > 0),
                operations_per_second: rate(self.items.all()),
                latency_ns: self.latency.latency(),
                ..Measurement::new(operation, seconds)
            },
            items: self.items,
            bytes: self.bytes,
            left_out: None,
        }
    }
}

/// Writes a new file's content, a piece at a time, each unlike any before; the file stays shorter if
/// it is to end meanwhile.
pub(crate) fn write_file(
    path: &Path,
    bytes: u64,
    piece: &mut [u8],
    number: u64,
    stop: &Stop,
) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    write_content(&mut file, bytes, piece, number, stop)
}

fn write_content(
    file: &mut File,
    bytes: u64,
    piece: &mut [u8],
    number: u64,
    stop: &Stop,
) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 && !stop.is_wished() {
        let len = left.min(piece.len() as u64) as usize;
        crate::disk::stamp(&mut piece[..len], number ^ left << 20);
        file.write_all(&piece[..len])?;
        left -= len as u64;
    }
    Ok(())
}

/// Reads a file to its end, or until it is to end, and says how many bytes that were.
fn read_file(path: &Path, piece: &mut [u8], stop: &Stop) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let mut bytes = 0;
    while !stop.is_wished() {
        match file.read(piece)? {
            0 => break,
            read => bytes += read as u64,
        }
    }
    Ok(bytes)
}

/// A piece to write from.
fn piece(seed: u64) -> Vec<u8> {
    crate::incompressible(PIECE_BYTES, seed)
}

/// Makes a file of our own durable. It is opened for writing: a share (cifs) does nothing for who only
/// reads.
fn make_durable(path: &Path) -> io::Result<()> {
    File::options().write(true).open(path)?.sync_all()
}

/// Empties the system's cache of files that are durable, as far as it lets itself be asked.
fn drop_cached<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> io::Result<()> {
    paths.into_iter().try_for_each(|path| holdall_sys::raw_file::drop_cached(&File::open(path)?))
}

/// Removes a folder with what was measured in it.
fn remove(folder: &Path) -> io::Result<()> {
    holdall_sys::removal::remove_tree(folder)
}

/// A new folder.
fn make_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir(folder)
}

/// A wish to end that is there from the start.
#[cfg(test)]
fn wished() -> Stop {
    Stop::on(std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_further_piece_is_written_or_read_once_it_is_to_end() {
        let dir = tempfile::tempdir().unwrap();
        let (path, mut piece) = (dir.path().join("file"), piece(1));
        write_file(&path, 5000, &mut piece, 0, &wished()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 0);

        let whole = dir.path().join("whole");
        let bytes = PIECE_BYTES as u64 + 1;
        write_file(&whole, bytes, &mut piece, 0, &Stop::default()).unwrap();
        assert_eq!(read_file(&whole, &mut piece, &wished()).unwrap(), 0);
        assert_eq!(read_file(&whole, &mut piece, &Stop::default()).unwrap(), bytes);
    }

    #[test]
    fn a_row_tells_its_items_by_kind_and_in_a_report_how_many_they_are() {
        let items = Items { files: 3, directories: 2, links: 1, others: 0 };
        let work = Work { items, ..Work::default() };
        let measured = work.measured("create", Duration::from_secs(1), 1);
        assert_eq!(measured.reported().items, Some(6));
        let told = serde_json::to_string(&measured).unwrap();
        assert_eq!(told.matches("\"items\":").count(), 1, "{told}");
        assert!(told.contains("\"items\":{\"files\":3,"), "{told}");
    }
}
