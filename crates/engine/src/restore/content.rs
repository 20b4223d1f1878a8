//! Putting content into a file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::context::{Context, add};
use super::layout::Layout;

/// Writes bytes that lie at `position` of a content, and reads them back where that is wished.
/// Gives their number.
pub(super) fn write(
    context: &Context<'_>,
    file: &Arc<File>,
    layout: &Layout,
    position: u64,
    bytes: &[u8],
) -> io::Result<u64> {
    let mut written = 0;
    for (range, offset) in layout.places(position, bytes.len()) {
        let piece = &bytes[range];
        file.write_all_at(piece, offset)?;
        if context.options.verify {
            verify(file, offset, piece)?;
        }
        context.write_behind.wrote(file, offset..offset + piece.len() as u64);
        written += piece.len() as u64;
    }
    add(&context.tally.bytes, written);
    Ok(written)
}

/// Gives a file the hole at its end.
pub(super) fn set_size(file: &File, layout: &Layout, size_bytes: u64) -> io::Result<()> {
    match layout {
        Layout::Dense => Ok(()),
        Layout::Sparse(_) => file.set_len(size_bytes),
    }
}

fn verify(file: &File, offset: u64, expected: &[u8]) -> io::Result<()> {
    let mut found = vec![0; expected.len()];
    file.read_exact_at(&mut found, offset)?;
    if found == expected {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "what was written reads back otherwise"))
}
