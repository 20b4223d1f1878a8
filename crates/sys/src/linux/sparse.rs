//! Holes: which parts of a file hold data, so that a 3 TiB hole takes neither time nor room.

use std::fs::File;
use std::io;

use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::Errno;

/// A part of a file that holds data: `len_bytes` from `offset` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Where it starts, in bytes from the start of the file.
    pub offset: u64,
    /// How long it is, in bytes, never 0.
    pub len_bytes: u64,
}

/// Finds the first data at or after `from` and before `size_bytes`; `None` if only a hole follows.
///
/// Moves the file's own position: read with offsets. A file system that knows no holes has one
/// extent up to `size_bytes`.
///
/// # Errors
///
/// What the system says.
pub fn next_extent(file: &File, from: u64, size_bytes: u64) -> io::Result<Option<Extent>> {
    if from >= size_bytes {
        return Ok(None);
    }
    let offset = match rustix::fs::seek(file, SeekFrom::Data(from)) {
        Ok(offset) if offset < size_bytes => offset,
        Ok(_) | Err(Errno::NXIO) => return Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => from,
        Err(error) => return Err(error.into()),
    };
    let end = match rustix::fs::seek(file, SeekFrom::Hole(offset)) {
        Ok(end) => end.min(size_bytes),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => size_bytes,
        // The file was cut short meanwhile; reading will tell.
        Err(Errno::NXIO) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(Some(Extent { offset, len_bytes: end.saturating_sub(offset).max(1) }))
}

/// Finds all data of a file of `size_bytes`, in order; the rest is holes.
///
/// Memory grows with the number of extents: [`next_extent`] takes them one by one. Moves the
/// file's own position.
///
/// # Errors
///
/// What the system says.
pub fn data_extents(file: &File, size_bytes: u64) -> io::Result<Vec<Extent>> {
    let mut extents = Vec::new();
    let mut from = 0;
    while let Some(extent) = next_extent(file, from, size_bytes)? {
        from = extent.offset.saturating_add(extent.len_bytes);
        extents.push(extent);
    }
    Ok(extents)
}

/// Makes `len_bytes` from `offset` on a hole, which reads as zeros; the length stays.
///
/// # Errors
///
/// `EOPNOTSUPP` where the file system has no holes; else what the system says.
pub fn punch_hole(file: &File, offset: u64, len_bytes: u64) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);
    Ok(rustix::fs::fallocate(file, flags, offset, len_bytes)?)
}
