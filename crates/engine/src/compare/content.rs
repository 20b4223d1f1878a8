//! Comparing what two files hold, extent by extent, so that holes take no time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use holdall_sys::sparse::next_extent;

/// How much of each file is read at once.
const PIECE_BYTES: usize = 256 << 10;

/// Two buffers that a thread uses again and again.
pub(super) struct Buffers {
    left: Vec<u8>,
    right: Vec<u8>,
}

/// Where two files of one length differ.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Nowhere; so many bytes of data were read of each.
    Same(u64),
    /// In the piece that starts at this offset.
    DiffersAt(u64),
}

impl Buffers {
    pub(super) fn new() -> Self {
        Self { left: vec![0; PIECE_BYTES], right: vec![0; PIECE_BYTES] }
    }

    /// Compares two files of `size_bytes`. Only what is data in one of them is read.
    pub(super) fn compare(
        &mut self,
        left: &File,
        right: &File,
        size_bytes: u64,
    ) -> io::Result<Content> {
        let mut at = 0;
        let mut compared_bytes = 0;
        while at < size_bytes {
            let Some((start, end)) = next_data(left, right, at, size_bytes)? else { break };
            at = start;
            while at < end {
                let len = usize::try_from(end - at).unwrap_or(usize::MAX).min(PIECE_BYTES);
                let (one, other) = (&mut self.left[..len], &mut self.right[..len]);
                let (one_len, other_len) = (read(left, one, at)?, read(right, other, at)?);
                if one[..one_len] != other[..other_len] || one_len < len {
                    return Ok(Content::DiffersAt(at));
                }
                at += len as u64;
                compared_bytes += len as u64;
            }
        }
        Ok(Content::Same(compared_bytes))
    }
}

/// The next range that is data in at least one of the two.
fn next_data(
    left: &File,
    right: &File,
    from: u64,
    size_bytes: u64,
) -> io::Result<Option<(u64, u64)>> {
    // A small file is read whole in less time than asking for its extents takes.
    if size_bytes <= PIECE_BYTES as u64 {
        return Ok(Some((from, size_bytes)));
    }
    let found = [next_extent(left, from, size_bytes)?, next_extent(right, from, size_bytes)?];
    let ends = |extent: holdall_sys::sparse::Extent| {
        (extent.offset.max(from), extent.offset.saturating_add(extent.len_bytes).min(size_bytes))
    };
    Ok(found.into_iter().flatten().map(ends).min())
}

/// Reads until the buffer is full or the file ends.
fn read(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(len: u64, writes: &[(u64, &[u8])]) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(len).unwrap();
        for (offset, bytes) in writes {
            file.write_all_at(bytes, *offset).unwrap();
        }
        file
    }

    #[test]
    fn a_hole_equals_zeros_and_takes_no_reading() {
        let (len, far) = (3 << 40, 2 << 40);
        let left = file(len, &[(far, b"x")]);
        let right = file(len, &[(far, b"x"), (1 << 20, &[0; 5000])]);
        let Content::Same(bytes) = Buffers::new().compare(&left, &right, len).unwrap() else {
            panic!("they hold the same")
        };
        assert!(bytes < 1 << 22, "{bytes} bytes were read");
    }

    #[test]
    fn one_byte_of_difference_is_found_in_data_and_in_holes() {
        let len = 1 << 30;
        let left = file(len, &[(1 << 29, b"x")]);
        let other = file(len, &[(1 << 29, b"y")]);
        let hole = file(len, &[]);
        for right in [other, hole] {
            let found = Buffers::new().compare(&left, &right, len).unwrap();
            assert!(matches!(found, Content::DiffersAt(_)));
        }
    }
}
