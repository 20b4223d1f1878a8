//! Extents: where the data of a sparse file lies, so that holes stay holes and take no time.
//!
//! ```text
//! | per extent: gap since the end of the one before varint | length varint |
//! ```

use holdall_format::FormatError;
use holdall_format::wire::{Reader, put_varint};

const WHAT: &str = "extents";

/// The data extents of a sparse file as (offset, length) in bytes: ascending, not overlapping, none
/// empty. What lies between them, and after the last up to the file's size, is a hole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extents(Vec<(u64, u64)>);

impl Extents {
    /// Takes the extents of a file of that size.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if one is empty, overlaps another or ends after `size_bytes`.
    pub fn new(extents: Vec<(u64, u64)>, size_bytes: u64) -> Result<Self, FormatError> {
        let invalid = |reason| Reader::new(WHAT, &[]).invalid("extent", reason);
        let mut end = 0u64;
        for &(offset, len) in &extents {
            if len == 0 {
                return Err(invalid("empty"));
            }
            if offset < end {
                return Err(invalid("overlaps the one before"));
            }
            end = offset.checked_add(len).ok_or_else(|| invalid("ends after 2^64"))?;
        }
        if end > size_bytes {
            return Err(invalid("ends after the file"));
        }
        Ok(Self(extents))
    }

    /// The extents as (offset, length), ascending.
    pub fn as_slice(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// Bytes of data: the length of the file's content.
    pub fn data_bytes(&self) -> u64 {
        self.0.iter().fold(0, |sum, (_, len)| sum.saturating_add(*len))
    }

    /// The bytes that a content holds; none for a file that is one hole.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut end = 0u64;
        for &(offset, len) in &self.0 {
            put_varint(&mut out, offset.saturating_sub(end));
            put_varint(&mut out, len);
            end = offset.saturating_add(len);
        }
        out
    }

    /// Reads what [`Extents::encode`] wrote, for a file of that size.
    ///
    /// Untrusted: allocates at most 8 bytes for each of `bytes`.
    ///
    /// # Errors
    /// [`FormatError`] for anything cut short or outside of the file.
    pub fn decode(bytes: &[u8], size_bytes: u64) -> Result<Self, FormatError> {
        let mut reader = Reader::new(WHAT, bytes);
        let mut extents = Vec::new();
        let mut end = 0u64;
        while !reader.remaining().is_empty() {
            let gap = reader.varint("gap")?;
            let len = reader.varint("length")?;
            let after = reader.invalid("extent", "ends after 2^64");
            let offset = end.checked_add(gap).ok_or_else(|| after.clone())?;
            end = offset.checked_add(len).ok_or(after)?;
            extents.push((offset, len));
        }
        Self::new(extents, size_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn extents_that_overlap_or_pass_the_end_are_refused() {
        for extents in [vec![(0, 10), (9, 2)], vec![(5, 0)], vec![(90, 11)], vec![(u64::MAX, 2)]] {
            assert!(Extents::new(extents.clone(), 100).is_err(), "{extents:?}");
        }
        assert_eq!(Extents::new(vec![(0, 10), (10, 2), (90, 10)], 100).unwrap().data_bytes(), 22);
    }

    #[test]
    fn a_file_that_is_one_hole_has_no_bytes_of_extents() {
        let size = 3 << 40;
        assert_eq!(Extents::new(Vec::new(), size).unwrap().encode(), []);
        assert_eq!(Extents::decode(&[], size), Ok(Extents::default()));
    }

    proptest! {
        #[test]
        fn extents_read_back(gaps in proptest::collection::vec((0u64..1 << 50, 1u64..1 << 50), 0..50)) {
            let mut end = 0;
            let list = gaps.iter().map(|&(gap, len)| {
                let offset = end + gap;
                end = offset + len;
                (offset, len)
            }).collect();
            let extents = Extents::new(list, end).unwrap();
            prop_assert_eq!(Extents::decode(&extents.encode(), end), Ok(extents.clone()));
            if end > 0 {
                prop_assert!(Extents::decode(&extents.encode(), end - 1).is_err());
            }
        }

        #[test]
        fn random_bytes_are_extents_or_an_error(bytes: Vec<u8>, size: u64) {
            if let Ok(extents) = Extents::decode(&bytes, size) {
                prop_assert_eq!(extents.encode(), bytes);
            }
        }
    }
}
