//! Pipes, read without waiting for somebody who may never write.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, pipe, tee};

/// Opens the pipe that `path` is, or leads to as `/dev/stdin` may, for reading; never waits for a writer, nor does
/// reading it. Who waits for a reader goes on, and fails once this is dropped.
///
/// # Errors
///
/// What the system says. `Ok(None)` for anything but a pipe.
pub fn open(path: &Path) -> io::Result<Option<File>> {
    if !std::fs::metadata(path)?.file_type().is_fifo() {
        return Ok(None);
    }
    let flags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    Ok(file.metadata()?.file_type().is_fifo().then_some(file))
}

/// Whether something is in a pipe, or still may be written to it. Takes nothing out of it.
///
/// # Errors
///
/// What the system says.
pub fn may_give(file: &File) -> io::Result<bool> {
    let (_unread, copy) = pipe()?;
    match tee(file, copy, 1, SpliceFlags::NONBLOCK) {
        Ok(copied) => Ok(copied > 0),
        Err(Errno::AGAIN) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Has reading this end of a pipe never wait. Its other end stays as it is.
///
/// # Errors
///
/// What the system says.
pub fn never_block(file: &File) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    Ok(rustix::fs::fcntl_setfl(file, flags.union(OFlags::NONBLOCK))?)
}

/// Waits until there is something to read, or the end, but no longer than that.
///
/// # Errors
///
/// What the system says.
pub fn wait(file: impl AsFd, at_most: Duration) -> io::Result<()> {
    let at_most = Timespec::try_from(at_most).map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&at_most)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_pipe_may_give_something_while_it_has_a_writer_or_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::RWXU, 0)
            .unwrap();
        let mut file = open(&path).unwrap().unwrap();
        assert!(!may_give(&file).unwrap());
        let mut writer = File::options().write(true).open(&path).unwrap();
        assert!(may_give(&file).unwrap());
        writer.write_all(b"x").unwrap();
        drop(writer);
        wait(&file, Duration::MAX.min(Duration::from_secs(60))).unwrap();
        assert!(may_give(&file).unwrap());
        let mut read = String::new();
        file.read_to_string(&mut read).unwrap();
        assert_eq!((&*read, may_give(&file).unwrap()), ("x", false));
        std::fs::write(folder.path().join("file"), b"").unwrap();
        assert!(open(&folder.path().join("file")).unwrap().is_none());
    }
}
