//! The quota: how much may be stored, however many put at the same time.
//!
//! What is stored is counted while nobody puts. Puts that overlap are added to that count, so that
//! none is counted twice while it is on its way from the network to the disk, and none is overlooked.
//!
//! Records and wrappings may pass the quota by a small reserve: what was put up to the quota can be
//! committed, and keys can be taken away.

use std::sync::{Mutex, MutexGuard, PoisonError};

use holdall_meter::size;
use holdall_protocol::{Denial, RepositoryError};

/// By how many bytes records and wrappings may pass any quota, and by which part of it besides.
const RESERVE_BYTES: u64 = 1 << 20;
const RESERVE_PART: u64 = 64;

#[derive(Debug, Default)]
struct Taken {
    quota_bytes: Option<u64>,
    /// Puts that are under way.
    puts: usize,
    /// What was stored when the first of them came, and what they and their like took since.
    used_bytes: u64,
    /// Why something was refused since that was asked.
    refused_for: Option<Shortage>,
}

/// Why there was no room for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    /// The quota was reached.
    Quota,
    /// The disk was full.
    Disk,
}

/// What of the quota is reserved for what is being put.
#[derive(Debug, Default)]
pub(crate) struct QuotaReservations {
    taken: Mutex<Taken>,
}

/// A put that is under way.
#[derive(Debug)]
pub(crate) struct Put<'a> {
    room: &'a QuotaReservations,
}

impl QuotaReservations {
    /// How much may be stored.
    pub(crate) fn quota_bytes(&self) -> Option<u64> {
        self.lock().quota_bytes
    }

    /// Says how much may be stored, from the next put on.
    pub(crate) fn limit(&self, quota_bytes: Option<u64>) {
        self.lock().quota_bytes = quota_bytes;
    }

    /// Why something was refused since this was asked last, if anything was.
    pub(crate) fn take_refused(&self) -> Option<Shortage> {
        self.lock().refused_for.take()
    }

    /// Notes that the disk had no room for something, if that is what the error says.
    pub(crate) fn note_want(&self, error: &RepositoryError) {
        if matches!(error, RepositoryError::NoRoom { .. }) {
            self.lock().refused_for = Some(Shortage::Disk);
        }
    }

    /// Takes room for `asked_bytes`, to be held until they are stored. `stored_bytes` counts what
    /// is stored now; it is asked only where nothing else is on its way.
    ///
    /// # Errors
    /// [`RepositoryError::NotAllowed`] where that would pass the quota.
    pub(crate) fn take(
        &self,
        asked_bytes: u64,
        stored_bytes: impl FnOnce() -> u64,
    ) -> Result<Put<'_>, RepositoryError> {
        self.take_up_to(|quota_bytes| quota_bytes, asked_bytes, stored_bytes)
    }

    /// As [`QuotaReservations::take`], for a record or wrappings, which may pass the quota by the reserve.
    ///
    /// # Errors
    /// [`RepositoryError::NotAllowed`] where that would pass the quota and the reserve.
    pub(crate) fn take_reserved(
        &self,
        asked_bytes: u64,
        stored_bytes: impl FnOnce() -> u64,
    ) -> Result<Put<'_>, RepositoryError> {
        let with_reserve = |quota_bytes: u64| {
            let reserve_bytes = RESERVE_BYTES + quota_bytes / RESERVE_PART;
            quota_bytes.saturating_add(reserve_bytes)
        };
        self.take_up_to(with_reserve, asked_bytes, stored_bytes)
    }

    fn take_up_to(
        &self,
        most_bytes: impl FnOnce(u64) -> u64,
        asked_bytes: u64,
        stored_bytes: impl FnOnce() -> u64,
    ) -> Result<Put<'_>, RepositoryError> {
        let mut taken = self.lock();
        if taken.puts == 0 {
            taken.used_bytes = stored_bytes();
        }
        let used_bytes = taken.used_bytes;
        let then_bytes = used_bytes.saturating_add(asked_bytes);
        if let Some(quota_bytes) = taken.quota_bytes
            && then_bytes > most_bytes(quota_bytes)
        {
            let reason = format!(
                "the quota of this repository is {}; {} are used, and {} more were asked for",
                size(quota_bytes),
                size(used_bytes),
                size(asked_bytes)
            );
            taken.refused_for = Some(Shortage::Quota);
            return Err(RepositoryError::denied(Denial::Quota, reason));
        }
        taken.used_bytes = then_bytes;
        taken.puts += 1;
        Ok(Put { room: self })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Put<'_> {
    fn drop(&mut self) {
        let mut taken = self.room.lock();
        taken.puts = taken.puts.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_up_to_the_quota_and_no_byte_further() {
        let room = QuotaReservations::default();
        room.limit(Some(100));
        drop(room.take(10, || 90).unwrap());
        let refused = room.take(11, || 90).unwrap_err().to_string();
        for number in ["100", "90", "11"] {
            assert!(refused.contains(number), "{refused}");
        }
        room.limit(None);
        drop(room.take(u64::MAX, || u64::MAX).unwrap());
    }

    #[test]
    fn why_something_was_refused_is_told_once() {
        let room = QuotaReservations::default();
        assert_eq!(room.take_refused(), None);
        room.limit(Some(100));
        assert!(room.take(101, || 0).is_err());
        assert_eq!((room.take_refused(), room.take_refused()), (Some(Shortage::Quota), None));
        room.note_want(&RepositoryError::NoRoom { place: "/x".into() });
        assert_eq!(room.take_refused(), Some(Shortage::Disk));
    }

    #[test]
    fn records_and_wrappings_pass_the_quota_by_the_reserve_and_no_byte_further() {
        let room = QuotaReservations::default();
        room.limit(Some(6400));
        let most = 6400 + 100 + RESERVE_BYTES;
        assert!(room.take(1, || 6400).is_err());
        drop(room.take_reserved(most - 6400, || 6400).unwrap());
        assert!(room.take_reserved(most - 6400 + 1, || 6400).is_err());
        room.limit(Some(u64::MAX));
        drop(room.take_reserved(1, || u64::MAX).unwrap());
    }

    #[test]
    fn puts_at_the_same_time_do_not_pass_the_quota_together_and_are_not_counted_twice() {
        let room = QuotaReservations::default();
        room.limit(Some(100));
        let first = room.take(60, || 0).unwrap();
        // Half of it is stored by now.
        assert!(room.take(41, || 30).is_err());
        let second = room.take(40, || 30).unwrap();
        drop(first);
        assert!(room.take(1, || 60).is_err());
        drop(second);
        drop(room.take(5, || 95).unwrap());
    }
}
