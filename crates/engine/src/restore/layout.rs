//! Where the bytes of a content belong in their file: one after the other, or, for a sparse file,
//! in its extents.

use std::ops::Range;

use holdall_format::FormatError;
use holdall_tree::{Content, Entry, Extents};

/// Places a content's bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Without holes.
    Dense,
    /// Data runs, ascending.
    Sparse(Vec<DataRun>),
}

/// A run of data in a sparse file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DataRun {
    /// Where it starts in the content.
    content_at: u64,
    /// Where it starts in the file.
    file_at: u64,
    len_bytes: u64,
}

/// Why an entry's content has no place in its file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LayoutError {
    #[error("its extents cannot be read: {0}")]
    Extents(#[from] FormatError),
    #[error("its content has {content_bytes} bytes, but should have {expected_bytes}")]
    Length { content_bytes: u64, expected_bytes: u64 },
}

impl Layout {
    /// Reads the layout of a file whose extents, if it has any, lie in its entry.
    ///
    /// Untrusted: the content's length fits the file exactly, or it is refused.
    pub(crate) fn of(entry: &Entry) -> Result<Self, LayoutError> {
        let content_bytes = entry.content.len_bytes();
        let (layout, expected_bytes) = match &entry.extents {
            None => (Self::Dense, entry.size),
            Some(extents) => {
                let bytes = match extents {
                    Content::Inline(bytes) => &bytes[..],
                    Content::Chunks(_) | Content::List { .. } => &[],
                };
                let extents = Extents::decode(bytes, entry.size)?;
                (Self::sparse(&extents), extents.data_bytes())
            }
        };
        if content_bytes != expected_bytes {
            return Err(LayoutError::Length { content_bytes, expected_bytes });
        }
        Ok(layout)
    }

    /// The data runs of a sparse file as (offset in the file, length), ascending; nothing for a file
    /// without holes.
    pub(crate) fn runs(&self) -> Option<impl Iterator<Item = (u64, u64)>> {
        match self {
            Self::Dense => None,
            Self::Sparse(runs) => Some(runs.iter().map(|run| (run.file_at, run.len_bytes))),
        }
    }

    fn sparse(extents: &Extents) -> Self {
        let mut content_at = 0;
        let runs = extents.as_slice().iter().map(|&(file_at, len_bytes)| {
            let run = DataRun { content_at, file_at, len_bytes };
            content_at += len_bytes;
            run
        });
        Self::Sparse(runs.collect())
    }

    /// What lies at `offset` of a file of `size` bytes: where in the content its data starts, or nothing for a hole; and
    /// for how many bytes that goes on.
    pub(crate) fn at(&self, offset: u64, size: u64) -> (Option<u64>, u64) {
        let left = size.saturating_sub(offset);
        let runs = match self {
            Self::Dense => return (Some(offset), left),
            Self::Sparse(runs) => runs,
        };
        let next = runs.partition_point(|run| run.file_at + run.len_bytes <= offset);
        match runs.get(next) {
            None => (None, left),
            Some(run) if run.file_at > offset => (None, left.min(run.file_at - offset)),
            Some(run) => {
                let inside = offset - run.file_at;
                (Some(run.content_at + inside), left.min(run.len_bytes - inside))
            }
        }
    }

    /// Where the next data of a file of `size` bytes begins, or the next hole: from `offset` on, and the end of the file is
    /// a hole. `None` where there is none.
    pub(crate) fn next(&self, offset: u64, size: u64, is_data: bool) -> Option<u64> {
        if offset >= size {
            return None;
        }
        let mut at = offset;
        while at < size {
            let (data, len_bytes) = self.at(at, size);
            if data.is_some() == is_data {
                return Some(at);
            }
            at = at.saturating_add(len_bytes);
        }
        (!is_data).then_some(size)
    }

    /// Where `len` bytes that start at `position` of the content belong: pieces of them, with
    /// their offsets in the file.
    pub(crate) fn places(&self, position: u64, len: usize) -> Vec<(Range<usize>, u64)> {
        let runs = match self {
            Self::Dense => return vec![(0..len, position)],
            Self::Sparse(runs) => runs,
        };
        let first = runs.partition_point(|run| run.content_at + run.len_bytes <= position);
        let mut places = Vec::new();
        let mut done = 0;
        for run in runs.iter().skip(first) {
            if done >= len {
                break;
            }
            let inside = position + done as u64 - run.content_at;
            let left = usize::try_from(run.len_bytes - inside).unwrap_or(usize::MAX);
            let end = done.saturating_add(left).min(len);
            places.push((done..end, run.file_at + inside));
            done = end;
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_tree::EntryKind;

    fn entry(size: u64, content: usize, extents: Option<Vec<(u64, u64)>>) -> Entry {
        let extents = extents.map(|extents| Extents::new(extents, size).unwrap().encode());
        Entry {
            size,
            content: Content::Inline(vec![0; content]),
            extents: extents.map(Content::Inline),
            ..Entry::empty(EntryKind::File)
        }
    }

    #[test]
    fn bytes_of_a_sparse_file_are_spread_over_its_extents() {
        let layout = Layout::of(&entry(100, 12, Some(vec![(10, 4), (50, 6), (98, 2)]))).unwrap();
        assert_eq!(layout.places(0, 12), [(0..4, 10), (4..10, 50), (10..12, 98)]);
        assert_eq!(layout.places(3, 2), [(0..1, 13), (1..2, 50)]);
        assert_eq!(layout.places(4, 6), [(0..6, 50)]);
    }

    #[test]
    fn at_every_offset_of_a_sparse_file_is_data_or_a_hole() {
        let layout = Layout::of(&entry(100, 12, Some(vec![(10, 4), (50, 6), (98, 2)]))).unwrap();
        let at = |offset| layout.at(offset, 100);
        assert_eq!(
            [at(0), at(10), at(13), at(14)],
            [(None, 10), (Some(0), 4), (Some(3), 1), (None, 36)]
        );
        assert_eq!([at(50), at(99), at(100)], [(Some(4), 6), (Some(11), 1), (None, 0)]);
        assert_eq!(Layout::Dense.at(7, 10), (Some(7), 3));
    }

    #[test]
    fn data_and_holes_are_found_from_any_offset_on() {
        let layout = Layout::of(&entry(100, 12, Some(vec![(10, 4), (50, 6), (98, 2)]))).unwrap();
        let next = |offset| (layout.next(offset, 100, true), layout.next(offset, 100, false));
        assert_eq!(next(0), (Some(10), Some(0)));
        assert_eq!(next(12), (Some(12), Some(14)));
        assert_eq!(next(60), (Some(98), Some(60)));
        assert_eq!(next(99), (Some(99), Some(100)));
        assert_eq!(next(100), (None, None));
        assert_eq!(Layout::Dense.next(3, 10, true), Some(3));
        assert_eq!(Layout::Dense.next(3, 10, false), Some(10));
    }

    #[test]
    fn a_content_that_is_longer_or_shorter_than_its_file_is_refused() {
        assert_eq!(Layout::of(&entry(5, 5, None)).unwrap(), Layout::Dense);
        assert!(Layout::of(&entry(5, 4, None)).is_err());
        assert!(Layout::of(&entry(5, 6, None)).is_err());
        assert!(Layout::of(&entry(100, 5, Some(vec![(10, 4)]))).is_err());
        assert!(Layout::of(&entry(100, 0, Some(Vec::new()))).is_ok());
    }
}
