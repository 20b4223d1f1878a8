//! Erasing a repository for good.
//!
//! What opens it goes first: once no wrapping of its keys is left, the rest is noise to everybody who has no copy of
//! these. Then each file is overwritten, in passes, and removed. What stays is the folder with a marker that clients of
//! every version refuse, so that none begins anew what was to be gone, and a text that its owner signed.
//!
//! The marker comes before anything is destroyed: whoever is interrupted goes on by erasing it again, which needs no key
//! then. What a disk keeps elsewhere of blocks that are overwritten (flash memory, snapshots of a file system, what a
//! disk set aside) is not reached.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use holdall_format::{ERASED_FILE, ERASED_MAX_BYTES, Erased};
use holdall_protocol::RepositoryError;
use holdall_sys::{FileKind, PathBeneath};
use rustix::fs::FallocateFlags;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::opening::lease::{Access, Lease};
use crate::state_files::erased::read_erased;
use crate::storage::layout::{ERASED_MARKER, Layout};
use crate::storage::publish::failed;

/// What is written at once.
const PIECE_BYTES: usize = 1 << 20;

/// What was destroyed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ErasedFiles {
    /// Files that were overwritten and removed.
    pub files: u64,
    /// Bytes that they had.
    pub bytes: u64,
}

/// How it is done.
pub struct Erasing<'a> {
    /// How often each file is overwritten; at least once.
    pub passes: u32,
    /// Set to end it: it can be begun again.
    pub interrupt: &'a AtomicBool,
    /// Told after each piece how many bytes were written since the last time.
    pub told: &'a dyn Fn(u64),
}

/// What stays of a repository in `dir` that is erased, or was being erased: `None` where nothing says so.
///
/// # Errors
/// [`RepositoryError::Io`].
pub fn erased_in(dir: &Path) -> Result<Option<Erased>, RepositoryError> {
    read_erased(&Layout::new(dir))
}

/// Erases the repository in `dir`, of which `text` stays, signed; or goes on with that.
///
/// # Errors
/// [`RepositoryError::InUse`]; [`RepositoryError::Interrupted`]; [`RepositoryError::Io`] for what the disk refuses. What was
/// destroyed until then is.
pub fn erase(dir: &Path, text: &str, how: &Erasing<'_>) -> Result<ErasedFiles, RepositoryError> {
    let layout = Layout::new(dir);
    let _lease = Lease::take(&layout, Access::Write)?;
    let erased = layout.root().join(ERASED_FILE);
    if read_erased(&layout)?.is_none() {
        write_whole(&erased, text.as_bytes())?;
    }
    // Who goes on has no folder for what is not published yet.
    if layout.marker().read_limited(ERASED_MAX_BYTES)?.as_deref() != Some(ERASED_MARKER.as_bytes())
    {
        layout.marker().replace(ERASED_MARKER.as_bytes())?;
    }
    let mut eraser = Eraser { how, done: ErasedFiles::default() };
    for first in ["wrappings", "spare", "config"] {
        eraser.any(&layout.root().join(first))?;
    }
    layout.root().sync_dir().map_err(failed("syncing", layout.root()))?;
    let stays = [erased.file_name(), Some(OsStr::new("lock")), layout.lease().file_name()]
        .map(Option::unwrap_or_default)
        .map(OsStr::to_owned);
    let marker = OsStr::new(holdall_format::REPOSITORY_MARKER);
    let names = layout.root().names().map_err(failed("listing", layout.root()))?;
    for name in names.iter().filter(|name| !stays.contains(name) && *name != marker) {
        eraser.any(&layout.root().join(name))?;
    }
    layout.root().sync_dir().map_err(failed("syncing", layout.root()))?;
    Ok(eraser.done)
}

fn write_whole(path: &PathBeneath, bytes: &[u8]) -> Result<(), RepositoryError> {
    let file = path.open_or_create(0o600).map_err(failed("making", path))?;
    let written = file.set_len(0).and_then(|()| file.write_all_at(bytes, 0));
    written.and_then(|()| file.sync_all()).map_err(failed("writing", path))
}

struct Eraser<'a> {
    how: &'a Erasing<'a>,
    done: ErasedFiles,
}

impl Eraser<'_> {
    /// Destroys whatever is called so, if anything is. Nothing of a link is but the link.
    fn any(&mut self, path: &PathBeneath) -> Result<(), RepositoryError> {
        let there = match path.stat() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            there => there.map_err(failed("looking at", path))?,
        };
        match there.kind {
            FileKind::Dir => {
                for name in path.names().map_err(failed("listing", path))? {
                    self.any(&path.join(name))?;
                }
                path.remove_tree().map_err(failed("removing", path))
            }
            FileKind::File => self.file(path, there.size),
            _ => path.remove_file().map_err(failed("removing", path)),
        }
    }

    fn file(&mut self, path: &PathBeneath, bytes: u64) -> Result<(), RepositoryError> {
        let file = path.open_to_change().map_err(failed("opening", path))?;
        for _ in 0..self.how.passes.max(1) {
            self.overwrite(&file, bytes).map_err(|error| match error.kind() {
                io::ErrorKind::Interrupted => RepositoryError::Interrupted,
                _ => failed("overwriting", path)(error),
            })?;
        }
        // Where the file system passes that on, the disk forgets these blocks at once.
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = rustix::fs::fallocate(&file, punch, 0, bytes.max(1));
        path.remove_file().map_err(failed("removing", path))?;
        self.done.files += 1;
        self.done.bytes += bytes;
        Ok(())
    }

    /// Writes noise over so many bytes, durably.
    fn overwrite(&self, file: &File, bytes: u64) -> io::Result<()> {
        let mut seed = [0; 32];
        getrandom(&mut seed, GetRandomFlags::empty())?;
        let mut noise = blake3::Hasher::new_keyed(&seed).finalize_xof();
        let mut piece = vec![0; PIECE_BYTES.min(usize::try_from(bytes).unwrap_or(PIECE_BYTES))];
        let mut at = 0;
        while at < bytes {
            if self.how.interrupt.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let length = piece.len().min(usize::try_from(bytes - at).unwrap_or(PIECE_BYTES));
            let piece = piece.get_mut(..length).unwrap_or_default();
            noise.fill(piece);
            file.write_all_at(piece, at)?;
            at += length as u64;
            (self.how.told)(length as u64);
        }
        file.sync_all()
    }
}

#[cfg(test)]
mod tests;
