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
use std::path::{Path, PathBuf};

use holdall_sys::{aligned::AlignedBuffer, raw_file};

use super::content;
use super::row::Row;
use crate::storage_stack::DirectAccess;
use crate::{LabError, Scratch, Stop};

const LAYOUT_BLOCK_BYTES: usize = 1 << 20;

/// The files of a set of rows, kept as long as they can be used again.
#[derive(Debug)]
pub struct DiskFiles<'a> {
    scratch: &'a Scratch,
    stop: Stop,
    seed: u64,
    direct_access: DirectAccess,
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
        let direct_access = DirectAccess::of_file(&scratch.sample_file());
        Self { scratch, stop, seed, direct_access, laid_bytes: BTreeMap::new() }
    }

    /// Refuses a block that cannot go around the page cache here.
    pub(super) fn check_direct(&self, row: &Row) -> Result<(), LabError> {
        let sample = raw_file::direct_alignment(&self.scratch.sample_file());
        match sample.ok().flatten().map(u64::from) {
            Some(align) if row.direct && align > 0 && !row.block_bytes.is_multiple_of(align) => {
                let wanted = row.block_bytes;
                Err(LabError::Settings(format!(
                    "blocks of {wanted} bytes cannot go around the cache here, only multiples of \
                     {align} bytes: choose another block, or --buffered"
                )))
            }
            _ => Ok(()),
        }
    }

    /// What the file system makes of direct access where it takes it.
    pub(super) fn direct_access(&self) -> DirectAccess {
        self.direct_access
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

    /// Lays out what `row` reads, so that laying out is not taken for a part of it, and gives back the
    /// room of what it does not read: a row that writes has all of the room, and later rows that read
    /// have it laid out anew.
    ///
    /// # Errors
    /// As for [`measure`](super::measure).
    pub fn prepare(&mut self, row: &Row) -> Result<(), LabError> {
        if row.access.writes() {
            return self.remove_laid_from(0);
        }
        self.remove_laid_from(row.jobs)?;
        let is_laid =
            |job: &u32| self.laid_bytes.get(job).is_some_and(|&len| len >= row.file_bytes);
        let missing = (0..row.jobs).filter(|job| !is_laid(job)).count() as u64;
        // One job alone reads a longer file than each of several does.
        if missing.saturating_mul(row.file_bytes) > self.scratch.room_bytes() {
            self.remove_laid_from(0)?;
        }
        (0..row.jobs).try_for_each(|job| self.lay_out(job, row.file_bytes))
    }

    /// Opens what `row` reads or writes.
    pub(super) fn open(&mut self, row: &Row) -> Result<Opened, LabError> {
        self.prepare(row)?;
        let paths = if row.access.writes() { self.make_writable(row)? } else { Vec::new() };
        let opened = self.open_made(row);
        if opened.is_err() {
            self.remove_writable(&paths, row.file_bytes)?;
        }
        let (files, direct) = opened?;
        Ok(Opened { files, direct, paths })
    }

    /// Opens what is there by now; and whether that goes around the page cache.
    fn open_made(&self, row: &Row) -> Result<(Vec<File>, bool), LabError> {
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
        Ok((files, direct))
    }

    /// Gives back the room of what was made for one row alone.
    pub(super) fn close(&self, opened: Opened, row: &Row) -> Result<(), LabError> {
        drop(opened.files);
        self.remove_writable(&opened.paths, row.file_bytes)
    }

    /// Makes the files that a row writes: all of them, or none.
    fn make_writable(&self, row: &Row) -> Result<Vec<PathBuf>, LabError> {
        let mut paths = Vec::new();
        for job in 0..row.jobs {
            let path = self.path(&format!("write-{job}"));
            if let Err(error) = self.make_one_writable(&path, row.file_bytes) {
                self.remove_writable(&paths, row.file_bytes)?;
                return Err(error);
            }
            paths.push(path);
        }
        Ok(paths)
    }

    fn make_one_writable(&self, path: &Path, bytes: u64) -> Result<(), LabError> {
        self.scratch.claim(bytes)?;
        let made = raw_file::create_new(path).and_then(|file| raw_file::reserve(&file, bytes));
        made.map(|_| ())
            .map_err(|error| self.give_up(path, bytes, LabError::io("making", path, error)))
    }

    fn remove_writable(&self, paths: &[PathBuf], bytes: u64) -> Result<(), LabError> {
        paths.iter().try_for_each(|path| {
            fs::remove_file(path).map_err(|error| LabError::io("removing", path, error))?;
            self.scratch.release(bytes);
            Ok(())
        })
    }

    /// Gives back what was claimed for a file that could not be made, or not be filled.
    fn give_up(&self, path: &Path, bytes: u64, error: LabError) -> LabError {
        // It may never have come to be; and the first failure is the one to tell.
        let _ = fs::remove_file(path);
        self.scratch.release(bytes);
        error
    }

    /// Makes sure that a job has a file to read that is `bytes` long.
    fn lay_out(&mut self, job: u32, bytes: u64) -> Result<(), LabError> {
        if self.laid_bytes.get(&job).is_some_and(|&laid| laid >= bytes) {
            return Ok(());
        }
        self.remove_laid(job)?;
        let path = self.path_to_read(job);
        self.stop.check()?;
        self.scratch.claim(bytes)?;
        let filled = self.make_filled(&path, bytes, self.seed ^ u64::from(job));
        filled.map_err(|error| self.give_up(&path, bytes, error))?;
        self.laid_bytes.insert(job, bytes);
        Ok(())
    }

    /// Makes a file with content, which is durable when this returns.
    fn make_filled(&self, path: &Path, bytes: u64, seed: u64) -> Result<(), LabError> {
        let failed = |error| LabError::io("writing", path, error);
        let file = raw_file::create_new(path).map_err(failed)?;
        raw_file::reserve(&file, bytes).map_err(failed)?;
        self.fill(&file, bytes, seed).map_err(failed)?;
        self.stop.check()?;
        file.sync_all().map_err(failed)
    }

    /// Gives back the room of the files to read of this job and all behind it.
    fn remove_laid_from(&mut self, first: u32) -> Result<(), LabError> {
        while let Some((&job, _)) = self.laid_bytes.range(first..).next() {
            self.remove_laid(job)?;
        }
        Ok(())
    }

    /// Gives back the room of a job's file to read, if it has one.
    fn remove_laid(&mut self, job: u32) -> Result<(), LabError> {
        let Some(laid) = self.laid_bytes.remove(&job) else { return Ok(()) };
        let path = self.path_to_read(job);
        fs::remove_file(&path).map_err(|error| LabError::io("removing", &path, error))?;
        self.scratch.release(laid);
        Ok(())
    }

    fn path_to_read(&self, job: u32) -> PathBuf {
        self.path(&format!("read-{job}"))
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
