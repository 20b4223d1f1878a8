//! Overwrites a whole disk with noise, and reads a sample of it back.
//!
//! The noise of a pass comes from a key that is drawn for it and is the same when asked for again, so that what is read back
//! can be compared. What a disk keeps beside what it shows, such as spare cells and sectors that it no longer uses, this
//! does not reach; a disk that can be told to forget everything is told so at the end.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use holdall_sys::aligned::AlignedBuffer;
use holdall_sys::raw_file;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::claim::Claim;
use crate::error::{DiskError, failed};
use crate::prepare::forget_partitions;
use crate::program::{BLKDISCARD, PARTX};
use crate::read::value;

/// So much is written at once, a multiple of what any disk writes.
const PIECE_BYTES: usize = 4 << 20;
/// So many pieces are read back, with the first and the last among them.
const SAMPLES: u64 = 256;
/// A disk that refuses more pieces than that is given up.
const MAX_REFUSED: u64 = 64;
/// What the kernel says of a place that a disk cannot write (`blk_errors` of its block layer).
const BAD_PLACE: [Errno; 5] =
    [Errno::IO, Errno::NODATA, Errno::REMOTEIO, Errno::NOSPC, Errno::ILSEQ];

/// How a disk is erased.
pub struct Erasing<'a> {
    /// So many times it is overwritten.
    pub passes: u32,
    /// Whether to stop.
    pub interrupt: &'a AtomicBool,
    /// Is told how many bytes were written, each time more were.
    pub told: &'a dyn Fn(u64),
}

/// A disk that was erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Erased {
    /// How large it is.
    pub bytes: u64,
    /// How many bytes it refused to overwrite in at least one pass, in pieces of 4 MiB.
    pub refused_bytes: u64,
    /// How many bytes were read back and found to be what was written.
    pub compared_bytes: u64,
    /// What the disk was told to forget afterwards.
    pub forgotten: Forgotten,
}

/// What a disk was told to forget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgotten {
    /// Everything, also what it keeps elsewhere.
    Securely,
    /// Everything that it shows.
    Plainly,
    /// Nothing: it cannot be told.
    Nothing,
}

impl Erasing<'_> {
    /// Erases the disk.
    ///
    /// # Errors
    /// [`DiskError::Changed`] and the like before anything is written; after that [`DiskError::HalfDone`], which says how
    /// the disk is. Calling it again begins anew.
    pub fn erase(&self, claim: &Claim) -> Result<Erased, DiskError> {
        PARTX.find()?;
        claim.check()?;
        forget_partitions(claim)?;
        let mut work = Work::begin(self, claim)?;
        for pass in 1..=self.passes {
            claim.check().map_err(|error| work.half_done(pass, 0, error))?;
            work.pass(pass)?;
        }
        let state = "Everything was overwritten, and not all of what was read back is right";
        let compared_bytes = work.compare().map_err(|error| error.with_state(state))?;
        let forgotten = forget(claim)?;
        Ok(Erased {
            bytes: work.size_bytes,
            refused_bytes: work.refused.len() as u64 * PIECE_BYTES as u64,
            compared_bytes,
            forgotten,
        })
    }
}

/// An erasing under way.
struct Work<'a> {
    how: &'a Erasing<'a>,
    claim: &'a Claim,
    size_bytes: u64,
    key: [u8; 32],
    buffer: AlignedBuffer,
    /// Where pieces begin that the disk refused in any pass.
    refused: Vec<u64>,
}

impl<'a> Work<'a> {
    fn begin(how: &'a Erasing<'a>, claim: &'a Claim) -> Result<Self, DiskError> {
        // Around the page cache, where that is allowed: what is counted then was written.
        let disk = claim.file();
        let flags =
            fcntl_getfl(disk).map_err(|error| failed("looking at the disk")(error.into()))?;
        let _ = fcntl_setfl(disk, flags | OFlags::DIRECT);
        let size_bytes = claim.identity().size_bytes;
        let (key, buffer) = ([0; 32], AlignedBuffer::new(PIECE_BYTES));
        Ok(Self { how, claim, size_bytes, key, buffer, refused: Vec::new() })
    }

    fn disk(&self) -> &'a File {
        self.claim.file()
    }

    fn half_done(&self, pass: u32, at: u64, error: DiskError) -> DiskError {
        let Erasing { passes, .. } = self.how;
        let share = at as f64 / self.size_bytes.max(1) as f64 * 100.0;
        error.with_state(format!(
            "In pass {pass} of {passes}, {share:.0} % of the disk was overwritten; run the same command again, which begins anew"
        ))
    }

    /// How long the piece is that begins at `at`.
    fn length(&self, at: u64) -> usize {
        usize::try_from(self.size_bytes - at).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES))
    }

    fn pass(&mut self, pass: u32) -> Result<(), DiskError> {
        getrandom(&mut self.key, GetRandomFlags::empty())
            .map_err(|error| failed("drawing random numbers")(error.into()))?;
        let mut noise = blake3::Hasher::new_keyed(&self.key).finalize_xof();
        let mut at = 0;
        while at < self.size_bytes {
            if self.how.interrupt.load(Ordering::Relaxed) {
                return Err(self.half_done(pass, at, DiskError::Interrupted));
            }
            let length = self.length(at);
            let piece = self.buffer.bytes_mut().get_mut(..length).unwrap_or_default();
            noise.fill(piece);
            if let Err(error) = self.claim.file().write_all_at(piece, at) {
                self.refuse(at, error).map_err(|error| self.half_done(pass, at, error))?;
            }
            at += length as u64;
            (self.how.told)(length as u64);
        }
        let synced = self.disk().sync_all().map_err(failed("writing to the disk"));
        synced.map_err(|error| self.half_done(pass, at, error))
    }

    /// Goes on behind a piece that the disk does not take, unless it takes nothing any more.
    fn refuse(&mut self, at: u64, error: io::Error) -> Result<(), DiskError> {
        self.claim.check()?;
        if !self.refused.contains(&at) {
            self.refused.push(at);
        }
        let is_bad_place =
            BAD_PLACE.iter().any(|bad| error.raw_os_error() == Some(bad.raw_os_error()));
        match is_bad_place && self.refused.len() as u64 <= MAX_REFUSED {
            true => Ok(()),
            false => Err(failed(format!("writing to the disk at byte {at}"))(error)),
        }
    }

    /// Reads pieces back that lie evenly on the disk, and compares them with what the last pass wrote.
    fn compare(&mut self) -> Result<u64, DiskError> {
        let disk = self.disk();
        // Where writing went through the cache, reading shall not.
        let _ = raw_file::drop_cached(disk);
        let pieces = self.size_bytes.div_ceil(PIECE_BYTES as u64);
        let samples = pieces.min(SAMPLES);
        let mut expected = vec![0; PIECE_BYTES];
        let mut compared = 0;
        for number in 0..samples {
            let piece = number * (pieces - 1) / (samples - 1).max(1);
            let at = piece * PIECE_BYTES as u64;
            if self.refused.contains(&at) {
                continue;
            }
            let length = self.length(at);
            let expected = expected.get_mut(..length).unwrap_or_default();
            let mut noise = blake3::Hasher::new_keyed(&self.key).finalize_xof();
            noise.set_position(at);
            noise.fill(expected);
            let read = self.buffer.bytes_mut().get_mut(..length).unwrap_or_default();
            let what = || format!("reading the disk back at byte {at}");
            disk.read_exact_at(read, at).map_err(failed(what()))?;
            if read != expected {
                let other =
                    io::Error::new(io::ErrorKind::InvalidData, "it is not what was written");
                return Err(failed(what())(other));
            }
            compared += length as u64;
        }
        Ok(compared)
    }
}

/// Tells the disk to forget what it holds, where it can be told: all copies if it can, else what it shows.
fn forget(claim: &Claim) -> Result<Forgotten, DiskError> {
    let queue = format!("/sys/class/block/{}/queue/discard_max_bytes", claim.identity().name);
    let can = value(queue.as_ref()).is_some_and(|bytes| bytes != "0");
    if !can || BLKDISCARD.find().is_err() {
        return Ok(Forgotten::Nothing);
    }
    let path = claim.path().display().to_string();
    for (option, forgotten) in [(Some("--secure"), Forgotten::Securely), (None, Forgotten::Plainly)]
    {
        claim.check()?;
        // It is held by this process, which is what `--force` does not ask about.
        let args: Vec<_> = option.into_iter().chain(["--force", &path]).collect();
        if BLKDISCARD.run(&args, "", None)?.status.success() {
            return Ok(forgotten);
        }
    }
    Ok(Forgotten::Nothing)
}
