//! The quota: how much may be stored, however many put at the same time.
//!
//! What is stored is counted while nobody puts. Puts that overlap are added to that count, so that
//! none is counted twice while it is on its way from the network to the disk, and none is overlooked.

use std::sync::{Mutex, MutexGuard, PoisonError};

use holdall_protocol::RepositoryError;

#[derive(Debug, Default)]
struct Taken {
    quota_bytes: Option<u64>,
    /// Puts that are under way.
    puts: usize,
    /// What was stored when the first of them came, and what they and their like took since.
    used_bytes: u64,
}

/// Room for what is put.
#[derive(Debug, Default)]
pub(crate) struct Room {
    taken: Mutex<Taken>,
}

/// A put that is under way.
#[derive(Debug)]
pub(crate) struct Put<'a> {
    room: &'a Room,
}

impl Room {
    /// How much may be stored.
    pub(crate) fn quota_bytes(&self) -> Option<u64> {
        self.lock().quota_bytes
    }

    /// Says how much may be stored, from the next put on.
    pub(crate) fn limit(&self, quota_bytes: Option<u64>) {
        self.lock().quota_bytes = quota_bytes;
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
        let mut taken = self.lock();
        if taken.puts == 0 {
            taken.used_bytes = stored_bytes();
        }
        let used_bytes = taken.used_bytes;
        let then_bytes = used_bytes.saturating_add(asked_bytes);
        if let Some(quota_bytes) = taken.quota_bytes.filter(|quota| then_bytes > *quota) {
            let reason = format!(
                "the quota of this repository is {quota_bytes} bytes; {used_bytes} are used and \
                 {asked_bytes} more were asked for"
            );
            return Err(RepositoryError::NotAllowed { reason });
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
        let room = Room::default();
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
    fn puts_at_the_same_time_do_not_pass_the_quota_together_and_are_not_counted_twice() {
        let room = Room::default();
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
