//! Erasing a repository for good.
//!
//! What opens it goes first: once no wrapping of its keys is left, the rest is noise to everybody who has no copy of
//! these. Then each file is overwritten, in passes, and removed. What stays is the folder with a marker that clients of
//! every version refuse, so that none begins anew what was to be gone, and a text that its owner signed.
//!
//! The marker comes before anything is destroyed: whoever is interrupted goes on by erasing it again, which needs no key
//! then. What a disk keeps elsewhere of blocks that are overwritten (flash memory, snapshots of a file system, what a
//! disk set aside) is not reached.

use std::ffi::OsString;
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

/// What a file system puts into its top folder.
const LOST_AND_FOUND: &str = "lost+found";
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

/// What stays of a repository in `dir` that is erased, or was being erased: `None` where marker and text do not both say so.
///
/// # Errors
/// [`RepositoryError::Io`].
pub fn erased_in(dir: &Path) -> Result<Option<Erased>, RepositoryError> {
    let layout = Layout::new(dir);
    if is_marked(&layout)? { read_erased(&layout) } else { Ok(None) }
}

fn is_marked(layout: &Layout) -> Result<bool, RepositoryError> {
    let marker = layout.marker().read_limited(ERASED_MAX_BYTES)?;
    Ok(marker.as_deref() == Some(ERASED_MARKER.as_bytes()))
}

/// Erases the repository in `dir`, of which `text` stays, signed; or goes on with that.
///
/// # Errors
/// [`RepositoryError::Refused`], before anything is destroyed, where something lies in it that is none of the repository's;
/// [`RepositoryError::InUse`]; [`RepositoryError::Interrupted`]; [`RepositoryError::Io`] for what the disk refuses: what was
/// destroyed until then is.
pub fn erase(dir: &Path, text: &str, how: &Erasing<'_>) -> Result<ErasedFiles, RepositoryError> {
    let layout = Layout::new(dir);
    let _lease = Lease::take(&layout, Access::Write)?;
    let names = own_names(&layout)?;
    let root = layout.root().open_dir().and_then(|root| root.stat_self());
    let device = root.map_err(failed("looking at", layout.root()))?.device;
    names.iter().try_for_each(|name| survey(&layout.root().join(name), device))?;
    let mut eraser = Eraser { how, done: ErasedFiles::default() };
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
    names.iter().try_for_each(|name| eraser.any(&layout.root().join(name)))?;
    layout.root().sync_dir().map_err(failed("syncing", layout.root()))?;
    Ok(eraser.done)
}

/// Says that it is erased, durably, before anything is destroyed.
fn begin(layout: &Layout, text: &str) -> Result<(), RepositoryError> {
    // Who goes on has no folder for what is not published yet.
    if is_marked(layout)? {
        return Ok(());
    }
    write_whole(&layout.root().join(ERASED_FILE), text.as_bytes())?;
    layout.marker().replace(ERASED_MARKER.as_bytes())
}

/// What is in the repository's folder and is to go.
///
/// # Errors
/// [`RepositoryError::Refused`] names something that no repository has there.
fn own_names(layout: &Layout) -> Result<Vec<OsString>, RepositoryError> {
    let stays = [layout.lock(), layout.lease(), layout.root().join(ERASED_FILE)];
    let stays = stays.iter().chain(&layout.marker().file()).cloned().collect::<Vec<_>>();
    let mut ours = layout.folders();
    ours.push(layout.probes());
    ours.extend([layout.config().file(), layout.scrubbed().file()].into_iter().flatten());
    let mut own = Vec::new();
    for name in layout.root().names().map_err(failed("listing", layout.root()))? {
        let path = layout.root().join(&name);
        if stays.contains(&path) || name == LOST_AND_FOUND {
            continue;
        }
        if !ours.contains(&path) {
            let reason = format!(
                "{} is none of the repository's: move it away first, and nothing of it is destroyed",
                path.display()
            );
            return Err(RepositoryError::Refused { reason });
        }
        own.push(name);
    }
    Ok(own)
}

/// Refuses what would be destroyed elsewhere, too: another file system, and a file that has other names.
fn survey(path: &PathBeneath, device: u64) -> Result<(), RepositoryError> {
    let there = path.stat().map_err(failed("looking at", path))?;
    let refused = |what: &str| {
        let reason = format!("{} {what}, and nothing was destroyed", path.display());
        Err(RepositoryError::Refused { reason })
    };
    match there.kind {
        _ if there.device != device => refused("is another file system: unmount it first"),
        FileKind::Dir => {
            let names = path.names().map_err(failed("listing", path))?;
            names.iter().try_for_each(|name| survey(&path.join(name), device))
        }
        FileKind::File if there.nlink > 1 => refused(
            "has another name, and what is there would be destroyed, too: remove that first",
        ),
        _ => Ok(()),
    }
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
