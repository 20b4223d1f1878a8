//! Directory listings in one arena: a name costs its bytes and 16 more, not an allocation.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{RawDir, SeekFrom};

use super::stat;
use crate::{FileKind, Name};

/// How much of a directory is read in one call.
const BUFFER_BYTES: usize = 64 * 1024;

/// The names in a directory, or in a piece of it, sorted by their bytes, each once.
#[derive(Debug, Default)]
pub struct Listing {
    names: Vec<u8>,
    slots: Vec<Slot>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    offset: usize,
    len_bytes: u16,
    kind: Option<FileKind>,
}

/// One name of a [`Listing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    name: Name<'a>,
    kind: Option<FileKind>,
}

impl Listing {
    /// How many names there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Says whether the directory, or the piece, holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The entry at `index` in the order of names; `None` past the end.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Entry<'_>> {
        self.slots.get(index).and_then(|slot| self.entry(slot))
    }

    /// All entries in the order of names.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Entry<'_>> {
        self.slots.iter().filter_map(|slot| self.entry(slot))
    }

    fn entry(&self, slot: &Slot) -> Option<Entry<'_>> {
        Name::new(self.bytes_of(slot)).ok().map(|name| Entry { name, kind: slot.kind })
    }

    fn bytes_of(&self, slot: &Slot) -> &[u8] {
        self.names.get(slot.offset..slot.offset + usize::from(slot.len_bytes)).unwrap_or_default()
    }

    /// Adds a name, unless it is `.` or `..`.
    ///
    /// # Errors
    ///
    /// `InvalidData` for a name that cannot be one, as only a broken file system has.
    fn push(&mut self, name: &[u8], kind: Option<FileKind>) -> io::Result<()> {
        if matches!(name, b"." | b"..") {
            return Ok(());
        }
        let bad = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let name = Name::new(name).map_err(bad)?.as_bytes();
        let len_bytes = u16::try_from(name.len()).map_err(io::Error::other)?;
        self.slots.push(Slot { offset: self.names.len(), len_bytes, kind });
        self.names.extend_from_slice(name);
        Ok(())
    }

    /// Sorts the names, and keeps one of each: some file systems list a name twice where the directory
    /// changes meanwhile.
    fn sort(&mut self) {
        let mut slots = std::mem::take(&mut self.slots);
        slots.sort_unstable_by(|left, right| self.bytes_of(left).cmp(self.bytes_of(right)));
        slots.dedup_by(|next, kept| self.bytes_of(next) == self.bytes_of(kept));
        self.slots = slots;
    }

    fn memory_bytes(&self) -> usize {
        self.names.len() + self.slots.len() * size_of::<Slot>()
    }
}

impl<'a> Entry<'a> {
    /// The entry's name.
    #[must_use]
    pub fn name(&self) -> Name<'a> {
        self.name
    }

    /// The entry's kind, where the file system says it in a listing.
    #[must_use]
    pub fn kind(&self) -> Option<FileKind> {
        self.kind
    }
}

/// Reads the whole directory from its start and hands over sorted pieces of about `piece_bytes`.
pub(crate) fn read(
    dir: BorrowedFd<'_>,
    piece_bytes: usize,
    mut take: impl FnMut(Listing) -> io::Result<()>,
) -> io::Result<()> {
    rustix::fs::seek(dir, SeekFrom::Start(0))?;
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    let mut raw = RawDir::new(dir, buffer.spare_capacity_mut());
    let mut piece = Listing::default();
    while let Some(entry) = raw.next() {
        let entry = entry?;
        piece.push(entry.file_name().to_bytes(), stat::kind_of(entry.file_type()))?;
        if piece.memory_bytes() >= piece_bytes {
            piece.sort();
            take(std::mem::take(&mut piece))?;
        }
    }
    if piece.is_empty() {
        return Ok(());
    }
    piece.sort();
    take(piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_the_file_system_lists_twice_is_there_once() {
        let mut listing = Listing::default();
        for name in ["b", "a", "b", "ab", "a"] {
            listing.push(name.as_bytes(), Some(FileKind::File)).unwrap();
        }
        listing.sort();
        let names: Vec<&[u8]> = listing.iter().map(|entry| entry.name().as_bytes()).collect();
        assert_eq!(names, [b"a", &b"ab"[..], b"b"]);
    }
}
