//! Where the data of a file lies when it is read: its holes take neither time nor room.

use std::fs::File;
use std::io;

use holdall_sys::Stat;
use holdall_sys::sparse::{Extent, next_extent};

use crate::restore::SIDE_CONTENT_MAX_BYTES;

/// Most bytes that an extent takes where it is stored: two numbers of 64 bits.
const EXTENT_MAX_BYTES: u64 = 20;
/// Most extents of a file: a restore takes no more.
const EXTENTS_MAX: usize = (SIDE_CONTENT_MAX_BYTES / EXTENT_MAX_BYTES) as usize;

/// The data of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileData {
    /// The file's size, with holes.
    pub(super) size_bytes: u64,
    /// Ascending; what lies between them is holes.
    pub(super) extents: Vec<Extent>,
}

impl FileData {
    /// Looks for the data of a file that was just opened.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn find(file: &File, stat: &Stat) -> io::Result<Self> {
        Self::find_some(file, stat, EXTENTS_MAX)
    }

    /// Looks for the data; gives `most` extents at most, by taking the smallest holes for zeros.
    fn find_some(file: &File, stat: &Stat, most: usize) -> io::Result<Self> {
        let size_bytes = stat.size;
        if !stat.may_have_holes() {
            let extents = vec![Extent { offset: 0, len_bytes: size_bytes }];
            return Ok(Self { size_bytes, extents });
        }
        let mut extents = Vec::new();
        let mut from = 0;
        while let Some(extent) = next_extent(file, from, size_bytes)? {
            from = extent.offset.saturating_add(extent.len_bytes);
            extents.push(extent);
            if extents.len() >= most.saturating_mul(2) {
                extents = merged(extents, most);
            }
        }
        let mut data = Self { size_bytes, extents: merged(extents, most) };
        // A file that is cut short meanwhile seems to end with a hole.
        data.cut_short(holdall_sys::stat::of_fd(file)?.size);
        Ok(data)
    }

    /// Leaves out what lies behind `end`.
    pub(super) fn cut_short(&mut self, end: u64) {
        self.size_bytes = self.size_bytes.min(end);
        self.extents.retain_mut(|extent| {
            extent.len_bytes = extent.len_bytes.min(end.saturating_sub(extent.offset));
            extent.len_bytes > 0
        });
    }

    /// How many bytes of data there are.
    pub(super) fn bytes(&self) -> u64 {
        self.extents.iter().fold(0, |sum, extent| sum.saturating_add(extent.len_bytes))
    }

    /// Whether some of the file is no data.
    pub(super) fn has_holes(&self) -> bool {
        self.bytes() < self.size_bytes
    }
}

/// Joins the extents that the smallest holes divide until `most` are left.
fn merged(extents: Vec<Extent>, most: usize) -> Vec<Extent> {
    let surplus = extents.len().saturating_sub(most.max(1));
    if surplus == 0 {
        return extents;
    }
    let hole = |pair: &[Extent]| match pair {
        [before, after] => after.offset.saturating_sub(before.offset + before.len_bytes),
        _ => 0,
    };
    let mut holes: Vec<_> = extents.windows(2).map(hole).zip(1..).collect();
    holes.select_nth_unstable(surplus - 1);
    let mut filled: Vec<usize> = holes.into_iter().take(surplus).map(|(_, at)| at).collect();
    filled.sort_unstable();
    let mut filled = filled.into_iter().peekable();
    let mut joined: Vec<Extent> = Vec::new();
    for (at, extent) in extents.into_iter().enumerate() {
        match joined.last_mut() {
            Some(last) if filled.next_if_eq(&at).is_some() => {
                last.len_bytes = extent.offset + extent.len_bytes - last.offset;
            }
            _ => joined.push(extent),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    use holdall_sys::stat;

    fn extents(list: &[(u64, u64)]) -> Vec<Extent> {
        list.iter().map(|&(offset, len_bytes)| Extent { offset, len_bytes }).collect()
    }

    #[test]
    fn of_too_many_extents_those_next_to_each_other_are_joined() {
        let all = extents(&[(0, 1), (5, 1), (7, 1), (20, 1), (22, 1)]);
        assert_eq!(merged(all.clone(), 5), all);
        assert_eq!(merged(all.clone(), 4).len(), 4);
        assert_eq!(merged(all.clone(), 3), extents(&[(0, 1), (5, 3), (20, 3)]));
        assert_eq!(merged(all.clone(), 2), extents(&[(0, 8), (20, 3)]));
        assert_eq!(merged(all, 1), extents(&[(0, 23)]));
    }

    #[test]
    fn what_was_cut_off_while_it_was_looked_at_is_no_hole() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[1; 4096], 0).unwrap();
        file.set_len(1 << 30).unwrap();
        let opened = stat::of_fd(&file).unwrap();
        let data = FileData::find(&file, &opened).unwrap();
        assert_eq!((data.size_bytes, data.bytes(), data.has_holes()), (1 << 30, 4096, true));
        file.set_len(5000).unwrap();
        assert_eq!(FileData::find(&file, &opened).unwrap().size_bytes, 5000);
        file.set_len(100).unwrap();
        let data = FileData::find(&file, &opened).unwrap();
        assert_eq!(data, FileData { size_bytes: 100, extents: extents(&[(0, 100)]) });
    }

    #[test]
    fn a_file_that_takes_less_room_than_its_size_need_not_have_holes() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[1; 10_000], 0).unwrap();
        let compressed = Stat { blocks: 1, ..stat::of_fd(&file).unwrap() };
        assert!(compressed.may_have_holes());
        assert!(!FileData::find(&file, &compressed).unwrap().has_holes());
    }

    #[test]
    fn extents_are_bounded_while_they_are_looked_for() {
        let file = tempfile::tempfile().unwrap();
        for at in 0..9 {
            file.write_all_at(&[1; 4096], at << 20).unwrap();
        }
        file.write_all_at(&[1; 4096], 1 << 30).unwrap();
        let data = FileData::find_some(&file, &stat::of_fd(&file).unwrap(), 2).unwrap();
        assert_eq!(data.extents, extents(&[(0, (8 << 20) + 4096), (1 << 30, 4096)]));
    }
}
