//! Reading file contents into memory that was not zeroed before.

use std::fs::File;
use std::io;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;

/// Reads a file from its start and appends what it has to `buffer`, at least up to `bytes` of it and,
/// if there is room, more: who expects `bytes` and gets more knows that the file has grown. Returns
/// how many were read.
///
/// # Errors
///
/// What the system says; `buffer` then has what was read before.
pub fn append_content(file: &File, buffer: &mut Vec<u8>, bytes: usize) -> io::Result<usize> {
    if bytes == 0 {
        return Ok(0);
    }
    let start = buffer.len();
    // One byte more, as there must be room to read into.
    buffer.reserve(bytes + 1);
    loop {
        let read = buffer.len() - start;
        match rustix::io::pread(file, spare_capacity(buffer), read as u64) {
            Ok(0) => return Ok(read),
            Ok(more) if read + more >= bytes => return Ok(read + more),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Appends exactly the `bytes` bytes that a file has from `offset` on to `buffer`, which best has room for
/// just these.
///
/// # Errors
///
/// [`io::ErrorKind::UnexpectedEof`] if the file ends before; what the system says. `buffer` then has some
/// of them.
pub fn append_exact_at(
    file: &File,
    buffer: &mut Vec<u8>,
    bytes: usize,
    offset: u64,
) -> io::Result<()> {
    let (start, end) = (buffer.len(), buffer.len() + bytes);
    buffer.reserve(bytes);
    while buffer.len() < end {
        let at = offset + (buffer.len() - start) as u64;
        match rustix::io::pread(file, spare_capacity(buffer), at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // Where there was room for more, more was read.
    buffer.truncate(end);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn what_a_file_has_is_appended_and_growth_shows() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(b"content", 0).unwrap();
        let mut buffer = b"before ".to_vec();
        assert_eq!(append_content(&file, &mut buffer, 7).unwrap(), 7);
        assert_eq!(buffer, b"before content");
        assert_eq!(append_content(&file, &mut buffer, 100).unwrap(), 7, "it is shorter");
        let mut roomy = Vec::with_capacity(50);
        assert_eq!(append_content(&file, &mut roomy, 3).unwrap(), 7, "it has grown");
        assert_eq!(append_content(&tempfile::tempfile().unwrap(), &mut roomy, 0).unwrap(), 0);
    }
    #[test]
    fn exactly_what_is_asked_for_is_appended_or_nothing_is_right() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(b"0123456789", 0).unwrap();
        let mut buffer = Vec::with_capacity(100);
        buffer.push(b'>');
        append_exact_at(&file, &mut buffer, 4, 3).unwrap();
        assert_eq!(buffer, b">3456");
        append_exact_at(&file, &mut buffer, 0, 50).unwrap();
        assert_eq!(buffer, b">3456");
        let ended = append_exact_at(&file, &mut buffer, 4, 7).unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::UnexpectedEof);
    }
}
