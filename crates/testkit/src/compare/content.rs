//! Comparing contents where either file has data, and holes by how much data there is.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use holdall_sys::{Dir, Name, Stat, sparse};

use super::{Comparison, Field};

const BUFFER_BYTES: usize = 1 << 20;

impl Comparison<'_> {
    /// Compares two regular files; lengths that differ are noted already.
    pub(super) fn contents(&mut self, left: &Dir, right: &Dir, name: Name<'_>) {
        let files = self.both(left.open_file(name), right.open_file(name));
        let Some(((left, left_stat), (right, right_stat))) = files else { return };
        let size_bytes = left_stat.size.min(right_stat.size);
        let may_have_holes = left_stat.may_have_holes() || right_stat.may_have_holes();
        match first_difference(&left, &right, size_bytes, may_have_holes) {
            Ok(None) => {}
            Ok(Some(offset)) => {
                let place = format!("byte {offset} and on");
                self.note(Field::Content, &place, &place);
            }
            Err(error) => self.note(Field::Unreadable, &error, &error),
        }
        if left_stat.may_have_holes() {
            self.holes((&left, &left_stat), (&right, &right_stat));
        }
    }

    fn holes(&mut self, left: (&File, &Stat), right: (&File, &Stat)) {
        let data = |(file, stat): (&File, &Stat)| data_bytes(file, stat.size);
        let Some((left_bytes, right_bytes)) = self.both(data(left), data(right)) else { return };
        if right_bytes > left_bytes.saturating_add(self.options.filled_bytes) {
            let data = |bytes| format!("{bytes} bytes of data");
            self.note(Field::Holes, data(left_bytes), data(right_bytes));
        }
    }
}

fn data_bytes(file: &File, size_bytes: u64) -> io::Result<u64> {
    let (mut from, mut total_bytes) = (0, 0);
    while let Some(extent) = sparse::next_extent(file, from, size_bytes)? {
        total_bytes += extent.len_bytes;
        from = extent.offset + extent.len_bytes;
    }
    Ok(total_bytes)
}

/// The offset at which two files differ first, give or take a buffer; `None` if they are equal.
fn first_difference(
    left: &File,
    right: &File,
    size_bytes: u64,
    may_have_holes: bool,
) -> io::Result<Option<u64>> {
    if !may_have_holes {
        return first_difference_within(left, right, 0, size_bytes);
    }
    let mut from = 0;
    loop {
        let extents = [
            sparse::next_extent(left, from, size_bytes)?,
            sparse::next_extent(right, from, size_bytes)?,
        ];
        let Some(next) = extents.into_iter().flatten().min_by_key(|extent| extent.offset) else {
            return Ok(None);
        };
        let end = next.offset + next.len_bytes;
        if let Some(offset) = first_difference_within(left, right, next.offset, end)? {
            return Ok(Some(offset));
        }
        from = end;
    }
}

/// As [`first_difference`], of the bytes `[from, end)`.
fn first_difference_within(
    left: &File,
    right: &File,
    from: u64,
    end: u64,
) -> io::Result<Option<u64>> {
    let room = usize::try_from(end - from).unwrap_or(usize::MAX).min(BUFFER_BYTES);
    let (mut left_buffer, mut right_buffer) = (vec![0; room], vec![0; room]);
    let mut offset = from;
    while offset < end {
        let len = usize::try_from(end - offset).unwrap_or(usize::MAX).min(room);
        left.read_exact_at(&mut left_buffer[..len], offset)?;
        right.read_exact_at(&mut right_buffer[..len], offset)?;
        if left_buffer[..len] != right_buffer[..len] {
            return Ok(Some(offset));
        }
        offset += len as u64;
    }
    Ok(None)
}
