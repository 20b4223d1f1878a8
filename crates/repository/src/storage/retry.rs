//! Reading again what a repair is about to give up.
//!
//! A repair takes what cannot be read for lost, and what is lost is put aside. So a disk that fails once
//! must not be believed, and a process that may open no more files, or whose disk is not mounted, has found out nothing about the
//! disk.

use std::io;
use std::time::Duration;

use holdall_protocol::RepositoryError;
use rustix::io::Errno;

use crate::storage::place_away::PlaceAway;

/// So often is it read before it is lost.
const TRIES: u32 = 3;

/// Before it is read again.
const PAUSE: Duration = Duration::from_millis(20);

/// What a disk says, or a file system, of bytes that it does not have any more.
const OF_LOST_BYTES: [Errno; 4] = [Errno::IO, Errno::NODATA, Errno::BADMSG, Errno::UCLEAN];

/// What a system says that can open no more files, or has no memory.
const OF_THIS_PROCESS: [Errno; 3] = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];

/// Reads until it can be read; `None` if it is lost.
///
/// # Errors
/// Those that say nothing about what is read.
pub(crate) fn retry_read<T>(
    mut read: impl FnMut() -> Result<T, RepositoryError>,
) -> Result<Option<T>, RepositoryError> {
    for _ in 0..TRIES {
        match read() {
            Ok(read) => return Ok(Some(read)),
            Err(error) if says_lost(&error) => std::thread::sleep(PAUSE),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Tries until it comes to something; `None` if it never does. What a disk that fails once kept from being seen
/// looks like nothing.
///
/// # Errors
/// The first one.
pub(crate) fn retry_until_some<T>(
    mut attempt: impl FnMut() -> Result<Option<T>, RepositoryError>,
) -> Result<Option<T>, RepositoryError> {
    for tries_left in (0..TRIES).rev() {
        if let Some(done) = attempt()? {
            return Ok(Some(done));
        }
        if tries_left > 0 {
            std::thread::sleep(PAUSE);
        }
    }
    Ok(None)
}

/// Whether an error says that the bytes are gone or differ from what was stored.
pub(crate) fn says_lost(error: &RepositoryError) -> bool {
    match error {
        RepositoryError::Damaged { .. } => true,
        RepositoryError::Io { source, .. } => {
            let is_cut = source.kind() == io::ErrorKind::UnexpectedEof;
            let is_gone = source.kind() == io::ErrorKind::NotFound;
            is_cut || is_gone || is_one_of(&OF_LOST_BYTES, source)
        }
        _ => false,
    }
}

/// What came of reading a file, unless that says nothing of any file.
///
/// # Errors
/// Those that say nothing of any file.
pub(crate) fn split_process_errors<T>(
    read: Result<T, RepositoryError>,
) -> Result<Result<T, RepositoryError>, RepositoryError> {
    match read {
        Err(error) if is_of_this_process(&error) => Err(error),
        read => Ok(read),
    }
}

/// Whether an error says nothing of any file.
pub(crate) fn is_of_this_process(error: &RepositoryError) -> bool {
    match error {
        RepositoryError::Io { source, .. } => {
            is_one_of(&OF_THIS_PROCESS, source) || PlaceAway::is(source)
        }
        _ => false,
    }
}

fn is_one_of(errors: &[Errno], source: &io::Error) -> bool {
    errors.iter().any(|errno| Some(errno.raw_os_error()) == source.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(errno: Errno, times: u32) -> (Result<Option<()>, RepositoryError>, u32) {
        let mut tries = 0;
        let read = retry_read(|| {
            tries += 1;
            if tries > times { Ok(()) } else { Err(RepositoryError::io("reading", errno.into())) }
        });
        (read, tries)
    }

    #[test]
    fn what_fails_once_is_not_lost_and_what_fails_every_time_is() {
        assert!(matches!(failing(Errno::IO, 1), (Ok(Some(())), 2)));
        assert!(matches!(failing(Errno::IO, 9), (Ok(None), TRIES)));
    }

    #[test]
    fn what_comes_to_nothing_once_is_tried_again() {
        let mut tries = 0;
        let mut from = |first: u32| {
            retry_until_some(|| {
                tries += 1;
                Ok((tries >= first).then_some(tries))
            })
        };
        assert_eq!(from(2).unwrap(), Some(2));
        assert_eq!(from(99).unwrap(), None);
        assert_eq!(tries, 2 + TRIES);
    }

    #[test]
    fn an_error_that_says_nothing_about_the_bytes_ends_it() {
        for errno in [Errno::MFILE, Errno::NOMEM, Errno::ACCESS, Errno::NOTCONN] {
            assert!(matches!(failing(errno, 1), (Err(RepositoryError::Io { .. }), 1)));
        }
    }
}
