//! The files that a row reads or writes: laid out as fio lays out its own, so that both measure the
//! same.
//!
//! What is read was written before from first to last, made durable, and dropped from the cache. What
//! is written is a new file whose room is reserved, where the file system can do that: the row then
//! measures writing, and not looking for room.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use holdall_sys::{aligned::AlignedBuffer, raw_file};

use super::content;
use super::row::Row;
use crate::{LabError, Scratch, Stop};

const LAYOUT_BLOCK_BYTES: usize = 1 << 20;

/// The files of a set of rows, kept as long as they can be used again.
#[derive(Debug)]
pub struct DiskFiles<'a> {
    scratch: &'a Scratch,
    stop: Stop,
    seed: u64,
    /// How long the files are that can be read.
    laid_bytes: BTreeMap<u32, u64>,
}

/// The files of one row, one for each job.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) files: Vec<File>,
    /// Whether they go around the page cache: not where the file system refuses that.
    pub(super) direct: bool,
    /// What was made for this row alone.
    paths: Vec<PathBuf>,
}

impl<'a> DiskFiles<'a> {
    /// None yet. Content and orders come from `seed`: a random one, or storage that finds duplicates
    /// knows the content of the last run.
    pub fn new(scratch: &'a Scratch, stop: Stop, seed: u64) -> Self {
        Self { scratch, stop, seed, laid_bytes: BTreeMap::new() }
    }

    /// Who wishes it to end.
    pub(super) fn stop(&self) -> &Stop {
        &self.stop
    }

    /// What looks random comes from this.
    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// Where a file of this name lies.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Lays out what `row` reads, so that laying out is not taken for a part of it.
    ///
    /// # Errors
    /// As for [`measure`](super::measure).
    pub fn prepare(&mut self, row: &Row) -> Result<(), LabError> {
        if row.access.writes() {
            return Ok(());
        }
        (0..row.jobs).try_for_each(|job| self.lay_out(job, row.file_bytes))
    }

    /// Opens what `row` reads or writes.
    pub(super) fn open(&mut self, row: &Row) -> Result<Opened, LabError> {
        let mut paths = Vec::new();
        self.prepare(row)?;
        for job in (0..row.jobs).filter(|_| row.access.writes()) {
            paths.push(self.make_writable(job, row.file_bytes)?);
        }
        let kind = if row.access.writes() { "write" } else { "read" };
        let all = |direct| {
            let open = |job| {
                let path = self.path(&format!("{kind}-{job}"));
                raw_file::open(&path, direct)
            };
            (0..row.jobs).map(open).collect::<io::Result<Vec<_>>>()
        };
        let failed = |error| LabError::io("opening a file in", self.scratch.path(), error);
        let (files, direct) = match all(row.direct) {
            Ok(files) => (files, row.direct),
            Err(error) if row.direct && raw_file::is_direct_refused(&error) => {
                (all(false).map_err(failed)?, false)
            }
            Err(error) => return Err(failed(error)),
        };
        for file in &files {
            raw_file::drop_cached(file).map_err(failed)?;
            raw_file::advise_order(file, row.access.is_random()).map_err(failed)?;
        }
        Ok(Opened { files, direct, paths })
    }

    /// Gives back the room of what was made for one row alone.
    pub(super) fn close(&self, opened: Opened, row: &Row) -> Result<(), LabError> {
        drop(opened.files);
        for path in opened.paths {
            fs::remove_file(&path).map_err(|error| LabError::io("removing", &path, error))?;
            self.scratch.release(row.file_bytes);
        }
        Ok(())
    }

    fn make_writable(&self, job: u32, bytes: u64) -> Result<PathBuf, LabError> {
        let path = self.path(&format!("write-{job}"));
        self.scratch.claim(bytes)?;
        let made = raw_file::create_new(&path).and_then(|file| raw_file::reserve(&file, bytes));
        made.map_err(|error| LabError::io("making", &path, error))?;
        Ok(path)
    }

    /// Makes sure that a job has a file to read that is `bytes` long.
    fn lay_out(&mut self, job: u32, bytes: u64) -> Result<(), LabError> {
        let laid = self.laid_bytes.get(&job).copied();
        if laid.is_some_and(|laid| laid >= bytes) {
            return Ok(());
        }
        let path = self.path(&format!("read-{job}"));
        if let Some(laid) = laid {
            fs::remove_file(&path).map_err(|error| LabError::io("removing", &path, error))?;
            self.scratch.release(laid);
            self.laid_bytes.remove(&job);
        }
        self.stop.check()?;
        self.scratch.claim(bytes)?;
        let failed = |error| LabError::io("writing", &path, error);
        let file = raw_file::create_new(&path).map_err(failed)?;
        raw_file::reserve(&file, bytes).map_err(failed)?;
        self.fill(&file, bytes, self.seed ^ u64::from(job)).map_err(failed)?;
        self.stop.check()?;
        file.sync_all().map_err(failed)?;
        self.laid_bytes.insert(job, bytes);
        Ok(())
    }

    /// Writes a file's content from first to last, unless it is to end.
    fn fill(&self, file: &File, bytes: u64, seed: u64) -> io::Result<()> {
        let mut buffer = AlignedBuffer::new(LAYOUT_BLOCK_BYTES);
        content::fill(buffer.bytes_mut(), seed);
        let mut at = 0;
        while at < bytes && !self.stop.is_wished() {
            content::stamp(buffer.bytes_mut(), at);
            let len = (bytes - at).min(LAYOUT_BLOCK_BYTES as u64) as usize;
            file.write_all_at(&buffer.bytes()[..len], at)?;
            at += len as u64;
        }
        Ok(())
    }
}
