//! Erasing a repository for good.
//!
//! What opens it goes first: once no wrapping of its keys is left, the rest is noise to everybody who has no copy of
//! these. Then each file is overwritten, in passes, and removed. What stays is the folder with a marker that clients of
//! every version refuse, so that none begins anew what was to be gone, and a text that its owner signed.
//!
//! The marker comes before anything is destroyed: whoever is interrupted goes on by erasing it again, which needs no key
//! then. Where the marker is lost meanwhile, the text alone says so. Only what has the kind and the name of what a
//! repository makes is destroyed, down to the last file: anything else keeps it from being begun.
//!
//! Not reached is what was removed before, as by a prune or a change of keys, and is in blocks that are free now; what the
//! journal of a file system holds of contents; and what a disk keeps elsewhere of blocks that are overwritten (flash memory,
//! snapshots of a file system, what a disk set aside).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use holdall_format::{ERASED_FILE, ERASED_FRONT, ERASED_MAX_BYTES, Erased};
use holdall_protocol::RepositoryError;
use holdall_sys::{FileKind, PathBeneath, Stat};
use rustix::fs::FallocateFlags;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::opening::lease::{Access, Lease};
use crate::state_files::erased::read_own_erased;
use crate::storage::layout::{ERASED_MARKER, Layout, MARKER_TEXT};
use crate::storage::own_names::{LOST_AND_FOUND, below, each_in, is_own};
use crate::storage::placed::PlacedPacks;
use crate::storage::publish::{failed, is_there, make_dir, read_limited, remove};
use crate::storage::retry::split_process_errors;

/// What is made anew from the rest where it is missing.
const MADE_ANEW: [&str; 3] = ["spare", "probes", "scrubbed"];
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

/// What stays of a repository in `dir` that is erased, or was being erased: `None` where its marker says that there is one, or
/// nobody signed that there is none any more. A marker that is lost or damaged says nothing.
///
/// # Errors
/// [`RepositoryError::Refused`] if another repository's is there; [`RepositoryError::Io`].
pub fn erased_in(dir: &Path) -> Result<Option<Erased>, RepositoryError> {
    let layout = Layout::new(dir);
    if marker(&layout)?.as_deref() == Some(MARKER_TEXT.as_bytes()) {
        return Ok(None);
    }
    read_own_erased(&layout)
}

/// Whether anything is left in `dir` of a repository that was begun to be erased.
///
/// # Errors
/// [`RepositoryError::Io`].
pub fn is_anything_left(dir: &Path) -> Result<bool, RepositoryError> {
    let layout = Layout::new(dir);
    Ok(!is_marked(&layout)? || !own_names(&layout)?.is_empty())
}

/// What the marker says, if it can be read.
fn marker(layout: &Layout) -> Result<Option<Vec<u8>>, RepositoryError> {
    Ok(split_process_errors(layout.marker().read_limited(ERASED_MAX_BYTES))?.ok().flatten())
}

fn is_marked(layout: &Layout) -> Result<bool, RepositoryError> {
    Ok(marker(layout)?.as_deref() == Some(ERASED_MARKER.as_bytes()))
}

/// Erases the repository in `dir`, of which `text` stays, signed; or goes on with that, by an empty text.
///
/// # Errors
/// [`RepositoryError::Refused`], before anything is destroyed, where something lies in it that is none of the repository's;
/// [`RepositoryError::InUse`]; [`RepositoryError::Interrupted`]; [`RepositoryError::Io`] for what the disk refuses: what was
/// destroyed until then is.
pub fn erase(dir: &Path, text: &str, how: &Erasing<'_>) -> Result<ErasedFiles, RepositoryError> {
    let layout = Layout::new(dir);
    let _lease = Lease::take(&layout, Access::Write)?;
    if layout.placed().map_or(Ok(false), PlacedPacks::has_any_placed)? {
        let reason = "packs of it lie in storage places: nothing was destroyed; have its server drain them first";
        return Err(RepositoryError::Refused { reason: reason.to_owned() });
    }
    let of_root = layout.root().open_dir().and_then(|root| root.stat_self());
    let of_root = of_root.map_err(failed("looking at", layout.root()))?;
    each_in(&layout, &mut |path, there| {
        let why = why_not(&layout, &of_root, path, there)?;
        why.map_or(Ok(()), |why| Err(refused(path, why, "and nothing was destroyed")))
    })?;
    let mut eraser = Eraser { layout: &layout, of_root, how, done: ErasedFiles::default() };
    if let Err(error) = begin(&layout, text) {
        if !matches!(error, RepositoryError::NoRoom { .. }) {
            return Err(error);
        }
        // What is made anew from the rest makes the room for a few lines.
        MADE_ANEW.iter().try_for_each(|name| eraser.any(&layout.root().join(name)))?;
        begin(&layout, text)?;
    }
    for first in ["wrappings", "spare", "config"] {
        eraser.any(&layout.root().join(first))?;
    }
    layout.root().sync_dir().map_err(failed("syncing", layout.root()))?;
    own_names(&layout)?.iter().try_for_each(|path| eraser.any(path))?;
    layout.root().sync_dir().map_err(failed("syncing", layout.root()))?;
    Ok(eraser.done)
}

/// Says that it is erased, durably, before anything is destroyed.
fn begin(layout: &Layout, text: &str) -> Result<(), RepositoryError> {
    if is_marked(layout)? {
        return Ok(());
    }
    // Who goes on may have no folder any more for what is not published yet.
    make_dir(&layout.tmp())?;
    if !text.is_empty() {
        let path = layout.root().join(ERASED_FILE);
        // Never written into: it may have another name.
        if is_there(&path)? {
            remove(&path)?;
        }
        let file = path.create_new(0o600).map_err(failed("making", &path))?;
        let written = file.write_all_at(text.as_bytes(), 0).and_then(|()| file.sync_all());
        written.map_err(failed("writing", &path))?;
    }
    layout.marker().replace(ERASED_MARKER.as_bytes())
}

/// What is in the repository's folder and is to go.
fn own_names(layout: &Layout) -> Result<Vec<PathBeneath>, RepositoryError> {
    let stays = [layout.lock(), layout.lease(), layout.root().join(ERASED_FILE)];
    let stays: Vec<_> = stays.into_iter().chain(layout.marker().file()).collect();
    let names = layout.root().names().map_err(failed("listing", layout.root()))?;
    let own = names.iter().filter(|name| *name != LOST_AND_FOUND);
    let own = own.map(|name| layout.root().join(name));
    Ok(own.filter(|path| !stays.contains(path)).collect())
}

/// Why something is not destroyed: it is none of the repository's, or would be destroyed elsewhere, too, as another file
/// system, and a file that has other names.
fn why_not(
    layout: &Layout,
    of_root: &Stat,
    path: &PathBeneath,
    there: &Stat,
) -> Result<Option<&'static str>, RepositoryError> {
    let is_others = *path == layout.root().join(ERASED_FILE) && !says_erased(path)?;
    Ok(match there.kind {
        _ if !there.is_on_mount_of(of_root) => Some("is another file system: unmount it first"),
        _ if is_others || !is_own(below(layout, path), there.kind) => {
            Some("is none of the repository's: move it away first")
        }
        FileKind::File if there.nlink > 1 => {
            Some("has another name, and what is there would be destroyed, too: remove that first")
        }
        _ => None,
    })
}

fn refused(path: &PathBeneath, why: &str, so: &str) -> RepositoryError {
    RepositoryError::Refused { reason: format!("{} {why}, {so}", path.display()) }
}

/// Whether a file is what an erase writes, or the front of that, as of one that was interrupted.
fn says_erased(path: &PathBeneath) -> Result<bool, RepositoryError> {
    let bytes = split_process_errors(read_limited(path, ERASED_MAX_BYTES))?;
    let front = ERASED_FRONT.as_bytes();
    Ok(bytes.is_ok_and(|bytes| {
        bytes.is_none_or(|bytes| bytes.starts_with(front) || front.starts_with(&bytes))
    }))
}

struct Eraser<'a> {
    layout: &'a Layout,
    of_root: Stat,
    how: &'a Erasing<'a>,
    done: ErasedFiles,
}

impl Eraser<'_> {
    /// Destroys what is called so, if anything is: what came since all was looked at is refused still.
    fn any(&mut self, path: &PathBeneath) -> Result<(), RepositoryError> {
        let there = match path.stat() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            there => there.map_err(failed("looking at", path))?,
        };
        if let Some(why) = why_not(self.layout, &self.of_root, path, &there)? {
            return Err(refused(path, why, "and erase the rest by asking again"));
        }
        if there.kind != FileKind::Dir {
            return self.file(path, there.size);
        }
        for name in path.names().map_err(failed("listing", path))? {
            self.any(&path.join(name))?;
        }
        path.remove_dir().map_err(failed("removing", path))
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
