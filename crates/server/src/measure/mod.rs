//! Who measures the path to this server, and for how long: one machine at a time, and not for ever.
//!
//! Bytes that are taken are forgotten piece by piece, and those that are given are the same million
//! over and over. Bytes that are written go to files that never had a name, so that nothing stays of them
//! however the server ends. They are no more at once than a backup writes with one request, no more together
//! than a pack has, and are made durable as those of a put are ([`tail`]). What is read comes from such a
//! file, too, which is kept until the measurement is over. What a measurement costs is the line and the
//! disk's time, which others need for their backups.
//!
//! `source` and `tail` are these files. `pressure` is about all requests: how much of their time the processor took.

pub(crate) mod pressure;
mod source;
mod tail;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdall_format::PublicKey;
use holdall_protocol::RepositoryError;
use holdall_protocol::wire::{Frames, MAX_LAB_BYTES, WireError};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use rustix::fs::{CWD, Mode, OFlags};
use source::Source;
use tail::Tail;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// A machine that asked for nothing for so long has ended its measurement.
const ENDED_AFTER: Duration = Duration::from_secs(10);
/// A measurement takes at most so long.
const LONGEST: Duration = Duration::from_secs(300);
/// One request of a measurement takes at most so long.
const LONGEST_REQUEST: Duration = Duration::from_secs(60);
const PIECE_BYTES: usize = 1 << 20;
/// A server whose disk has less than this left writes nothing that nobody needs.
const ROOM_LEFT_BYTES: u64 = 256 << 20;

/// Whose turn it is to measure.
#[derive(Default)]
pub(crate) struct Measuring {
    turn: Mutex<Option<Turn>>,
    /// What is read to measure, once somebody does.
    source: Mutex<Option<Arc<Source>>>,
    /// What is written to measure, once somebody does.
    tail: Mutex<Option<Arc<Tail>>>,
    /// Told when one of these was made.
    made: Notify,
}

struct Turn {
    key: PublicKey,
    began: Instant,
    last: Instant,
}

impl Measuring {
    /// Lets the key begin or go on at `now`.
    ///
    /// # Errors
    /// [`WireError::TooManyRequests`] while another one measures;
    /// [`RepositoryError::Refused`] once it has measured for 5 minutes, until it pauses.
    pub(crate) fn go_on(&self, key: PublicKey, now: Instant) -> Result<(), WireError> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let going = turn.as_mut().filter(|turn| now.duration_since(turn.last) < ENDED_AFTER);
        match going {
            Some(turn) if turn.key != key => return Err(WireError::TooManyRequests),
            Some(turn) if now.duration_since(turn.began) > LONGEST => {
                let reason = "a measurement takes at most 5 minutes: pause for 10 seconds".into();
                return Err(WireError::Repository(RepositoryError::Refused { reason }));
            }
            Some(turn) => turn.last = now,
            None => *turn = Some(Turn { key, began: now, last: now }),
        }
        Ok(())
    }

    /// Gives back the room of what was read whenever a measurement is over. Never ends by itself.
    pub(crate) async fn let_go_of_ended(&self) {
        loop {
            self.made.notified().await;
            while self.is_going_on(Instant::now()) {
                sleep(ENDED_AFTER).await;
            }
            *self.source.lock().unwrap_or_else(PoisonError::into_inner) = None;
            *self.tail.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    fn is_going_on(&self, now: Instant) -> bool {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        turn.as_ref().is_some_and(|turn| now.duration_since(turn.last) < ENDED_AFTER)
    }

    /// Writes bytes on the disk that `folder` is on and makes them durable as a put does; how long that took.
    ///
    /// # Errors
    /// [`RepositoryError::NoRoom`] where little is free; [`RepositoryError::Io`], also where the file
    /// system has no files without names.
    pub(crate) fn write(&self, folder: &Path, bytes: &[u8]) -> Result<Duration, RepositoryError> {
        check_room(folder)?;
        let begun = Instant::now();
        let tail = self.tail(folder)?;
        tail.append(bytes).and_then(|()| tail.sync()).map_err(disk_failed)?;
        Ok(begun.elapsed())
    }

    /// What is written at the moment, a new one where that is as long as it may get.
    fn tail(&self, folder: &Path) -> Result<Arc<Tail>, RepositoryError> {
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tail) = tail.as_ref().filter(|tail| !tail.is_full()) {
            return Ok(Arc::clone(tail));
        }
        let new = || Ok(Tail::new(unnamed(folder)?, unnamed(folder)?));
        let made = Arc::new(new().map_err(disk_failed)?);
        *tail = Some(Arc::clone(&made));
        self.made.notify_one();
        Ok(made)
    }

    /// Reads so many bytes of a file on the disk that `folder` is on; makes it first where there is none yet.
    ///
    /// # Errors
    /// As for [`Measuring::write`].
    pub(crate) fn read(&self, folder: &Path, bytes: u64) -> Result<Bytes, RepositoryError> {
        let source = self.source(folder)?;
        source.read(bytes).map_err(disk_failed)
    }

    fn source(&self, folder: &Path) -> Result<Arc<Source>, RepositoryError> {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = &*source {
            return Ok(Arc::clone(source));
        }
        check_room(folder)?;
        let made =
            Arc::new(Source::make(unnamed(folder).map_err(disk_failed)?).map_err(disk_failed)?);
        *source = Some(Arc::clone(&made));
        self.made.notify_one();
        Ok(made)
    }
}

/// Reads a body and forgets it; how long it was.
///
/// # Errors
/// [`WireError::TooLarge`]; [`RepositoryError::Refused`] if it is cut short or takes over a minute.
pub(crate) async fn forget(mut body: Incoming) -> Result<u64, WireError> {
    let refused =
        |reason: &str| WireError::Repository(RepositoryError::Refused { reason: reason.into() });
    let reading = async {
        let mut bytes = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| refused("the body was cut short"))?;
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if bytes > MAX_LAB_BYTES {
                return Err(WireError::TooLarge { limit_bytes: MAX_LAB_BYTES as u64 });
            }
        }
        Ok(bytes as u64)
    };
    timeout(LONGEST_REQUEST, reading).await.map_err(|_| refused("the body came too slowly"))?
}

fn check_room(folder: &Path) -> Result<(), RepositoryError> {
    let free = holdall_sys::disk::free_bytes(folder).map_err(disk_failed)?;
    match free < ROOM_LEFT_BYTES {
        true => Err(RepositoryError::NoRoom { place: "measuring the disk".into() }),
        false => Ok(()),
    }
}

fn disk_failed(source: io::Error) -> RepositoryError {
    RepositoryError::Io { what: "measuring the disk".into(), source }
}

/// A file of which nothing is left once it is closed.
fn unnamed(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(CWD, folder, flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// So many bytes, none of which is worth keeping.
pub(crate) fn bytes(count: u64) -> Frames {
    static PIECE: OnceLock<Bytes> = OnceLock::new();
    let piece = PIECE.get_or_init(|| Bytes::from(vec![0x5a; PIECE_BYTES]));
    let mut left = usize::try_from(count).unwrap_or(MAX_LAB_BYTES).min(MAX_LAB_BYTES);
    let mut body = Frames::new();
    while left > 0 {
        let length = left.min(PIECE_BYTES);
        body.push_plain(piece.slice(..length));
        left -= length;
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_measures_at_a_time_and_not_for_ever() {
        let (one, other) = (PublicKey::from_bytes([1; 32]), PublicKey::from_bytes([2; 32]));
        let (measuring, begun) = (Measuring::default(), Instant::now());
        let at = |seconds| begun + Duration::from_secs(seconds);
        measuring.go_on(one, at(0)).unwrap();
        assert!(matches!(measuring.go_on(other, at(9)), Err(WireError::TooManyRequests)));
        measuring.go_on(other, at(10)).unwrap();
        assert!(matches!(measuring.go_on(one, at(11)), Err(WireError::TooManyRequests)));
        for second in 11..=310 {
            measuring.go_on(other, at(second)).unwrap();
        }
        let error = measuring.go_on(other, at(311)).unwrap_err();
        assert!(format!("{error:?}").contains("at most 5 minutes"), "{error:?}");
        measuring.go_on(other, at(321)).unwrap();
    }

    #[test]
    fn what_is_written_to_measure_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let before = holdall_sys::process::bytes_written_to_disks();
        let measuring = Measuring::default();
        assert!(measuring.write(folder.path(), &[7; 1 << 20]).unwrap() > Duration::ZERO);
        let after = holdall_sys::process::bytes_written_to_disks();
        if let (Some(before), Some(after)) = (before, after) {
            assert!(after - before >= 1 << 20, "{} bytes were written", after - before);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(Measuring::default().write(Path::new("/no/such/folder"), &[7]).is_err());
    }

    #[test]
    fn writes_go_behind_each_other_until_there_is_as_much_as_in_a_pack() {
        let folder = tempfile::tempdir().unwrap();
        let measuring = Measuring::default();
        let mut tails = Vec::new();
        for _ in 0..4 {
            measuring.write(folder.path(), &[7; 16 << 20]).unwrap();
            tails.push(Arc::as_ptr(measuring.tail.lock().unwrap().as_ref().unwrap()));
        }
        assert!(tails[..3].iter().all(|tail| *tail == tails[0]) && tails[3] != tails[0]);
    }

    #[tokio::test]
    async fn what_is_read_to_measure_is_kept_until_nobody_measures() {
        let folder = tempfile::tempdir().unwrap();
        let measuring = Measuring::default();
        measuring.go_on(PublicKey::from_bytes([1; 32]), Instant::now()).unwrap();
        assert_eq!(measuring.read(folder.path(), 0).unwrap().len(), 0);
        measuring.write(folder.path(), &[7]).unwrap();
        let kept = Arc::clone(measuring.source.lock().unwrap().as_ref().unwrap());
        assert_eq!(measuring.read(folder.path(), 1 << 20).unwrap().len(), 1 << 20);
        assert_eq!(Arc::strong_count(&kept), 2, "another file was made");
        let a_while = Duration::from_millis(50);
        timeout(a_while, measuring.let_go_of_ended()).await.unwrap_err();
        assert_eq!(Arc::strong_count(&kept), 2, "it went while somebody measures");
        measuring.turn.lock().unwrap().as_mut().unwrap().last -= ENDED_AFTER;
        measuring.made.notify_one();
        timeout(a_while, measuring.let_go_of_ended()).await.unwrap_err();
        assert_eq!(Arc::strong_count(&kept), 1);
        assert!(measuring.tail.lock().unwrap().is_none(), "what was written takes its room");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(Measuring::default().read(Path::new("/no/such/folder"), 1).is_err());
    }

    #[test]
    fn as_many_bytes_are_given_as_were_asked_for_and_no_more_than_the_limit() {
        for count in [0, 1, 1 << 20, (5 << 20) + 7] {
            assert_eq!(bytes(count).total_bytes(), count);
        }
        assert_eq!(bytes(u64::MAX).total_bytes(), MAX_LAB_BYTES as u64);
    }
}
