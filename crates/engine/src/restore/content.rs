//! Putting content into a file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::context::{Context, add};
use super::layout::Layout;
use super::read_back::Piece;

/// A file that content is put into.
pub(super) struct Filling<'f> {
    pub(super) context: &'f Context<'f>,
    pub(super) file: &'f Arc<File>,
    pub(super) layout: &'f Layout,
    /// The file's, in the snapshot.
    pub(super) path: &'f dyn Fn() -> Vec<u8>,
}

impl Filling<'_> {
    /// Writes bytes that lie at `position` of the content. Gives their number.
    pub(super) fn write(&self, position: u64, bytes: &[u8]) -> io::Result<u64> {
        let Self { context, file, .. } = self;
        let mut written = 0;
        for (range, offset) in self.layout.places(position, bytes.len()) {
            let piece = &bytes[range];
            file.write_all_at(piece, offset)?;
            if context.options.verify {
                self.have_read_back(piece, offset);
            }
            context.write_behind.wrote(file, offset..offset + piece.len() as u64);
            written += piece.len() as u64;
        }
        add(&context.tally.bytes, written);
        Ok(written)
    }

    fn have_read_back(&self, bytes: &[u8], offset: u64) {
        let (file, path) = (Arc::clone(self.file), (self.path)());
        let (len_bytes, hash) = (bytes.len(), blake3::hash(bytes));
        self.context.wrote(Piece { file, path, offset, len_bytes, hash });
    }

    /// Gives the file the hole at its end.
    pub(super) fn set_size(&self, size_bytes: u64) -> io::Result<()> {
        match self.layout {
            Layout::Dense => Ok(()),
            Layout::Sparse(_) => self.file.set_len(size_bytes),
        }
    }
}

/// Closes a file that is whole. Where it lies on another computer, or has a quota, only this may tell
/// that there was no room for it.
pub(super) fn close(context: &Context<'_>, file: Arc<File>) -> io::Result<()> {
    match Arc::try_unwrap(file) {
        Ok(file) => holdall_sys::close(file),
        // Some of it is on its way to the disk.
        Err(shared) => tell_closed(context, &shared),
    }
}

/// Tells what closing a file would, and leaves it open: each closing tells what went wrong so far.
pub(super) fn tell_closed(context: &Context<'_>, file: &Arc<File>) -> io::Result<()> {
    let closed = file.try_clone().and_then(holdall_sys::close);
    if closed.is_err() {
        context.let_go(file);
    }
    closed
}
