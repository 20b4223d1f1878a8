//! What may open the repository: signed sets of wrappings, one file for each generation.
//!
//! The highest generation counts, and is damage where it is not what the configuration's owner
//! signed: an older one would let in again what was taken away. So would one of an earlier key epoch,
//! which is not taken: whoever only knows the keys from before a rotation changes nothing any more.
//! Only regular files with a generation for their name are sets; other things are left alone. A new
//! set is published beside the older ones under a name of its own. Whoever keeps a repository for
//! others leaves the older ones where they are, so that an administrator can go back to them; whoever
//! writes to a directory of his own removes them, so that what was taken away opens nothing there any
//! more.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use holdall_format::limits::WRAPPING_SET_MAX_BYTES;
use holdall_format::{FormatError, PublicKey, RepositoryConfig, Spare, WrappingSet};
use holdall_protocol::RepositoryError;

use crate::storage::layout::{Layout, generations_in};
use crate::storage::publish::{Published, damaged};

const SET_MAX_BYTES: u64 = WRAPPING_SET_MAX_BYTES as u64;
/// Most sets that are kept.
const KEPT_MAX: usize = 1000;

/// A set, and its bytes as they were signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignedSet {
    pub(crate) set: WrappingSet,
    pub(crate) bytes: Bytes,
}

impl SignedSet {
    /// Reads a set that somebody sends and checks that it may be a repository's, and that it names no key of
    /// somebody else: each recovery identity is proven, or one of those that were `known` here before.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`].
    pub(crate) fn check(
        bytes: &Bytes,
        config: &RepositoryConfig,
        known: &[PublicKey],
    ) -> Result<Self, RepositoryError> {
        let set = WrappingSet::decode_signed(bytes)?;
        if !is_of(&set, config) {
            return Err(refused("the wrappings are not those of the configuration's repository"));
        }
        if set.wrappings.is_empty() {
            return Err(refused("a set without a wrapping would lock everybody out"));
        }
        if let Some(unproven) = set.unproven_identity(known) {
            return Err(refused(&format!(
                "nothing proves that the recovery kit with the public key {unproven} belongs to this repository; \
                 update holdall on the computer that adds the kit, and run the command again"
            )));
        }
        Ok(Self { set, bytes: bytes.clone() })
    }

    /// Reads a set that is stored for the repository of that configuration.
    ///
    /// # Errors
    /// What is wrong with its bytes; nothing if it is another repository's.
    pub(crate) fn decode(
        bytes: &Bytes,
        config: &RepositoryConfig,
    ) -> Result<Self, Option<FormatError>> {
        let set = WrappingSet::decode_signed(bytes).map_err(Some)?;
        if is_of(&set, config) { Ok(Self { set, bytes: bytes.clone() }) } else { Err(None) }
    }
}

/// How many bytes all sets take.
fn bytes_in(layout: &Layout, generations: &[u64]) -> u64 {
    let stat = |generation: &u64| layout.wrappings_of(*generation).stat();
    generations.iter().flat_map(stat).flatten().map(|found| found.len_bytes).sum()
}

fn is_of(set: &WrappingSet, config: &RepositoryConfig) -> bool {
    set.repository == config.repository && set.owner == config.owner
}

fn refused(reason: &str) -> RepositoryError {
    RepositoryError::Refused { reason: reason.to_owned() }
}

/// The sets of an open repository.
#[derive(Debug)]
pub(crate) struct Wrappings {
    layout: Layout,
    config_bytes: Bytes,
    kept: Mutex<Kept>,
}

/// What is kept: the set that counts, how many there are with it, and their bytes.
#[derive(Debug)]
struct Kept {
    newest: SignedSet,
    sets: usize,
    stored_bytes: u64,
}

impl Wrappings {
    pub(crate) fn open(
        layout: &Layout,
        config_bytes: Bytes,
        newest: SignedSet,
    ) -> Result<Self, RepositoryError> {
        let generations = generations_in(&layout.wrappings())?;
        let (sets, stored_bytes) = (generations.len(), bytes_in(layout, &generations));
        let kept = Mutex::new(Kept { newest, sets, stored_bytes });
        Ok(Self { layout: layout.clone(), config_bytes, kept })
    }

    /// Bytes of all sets that are kept.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.lock().stored_bytes
    }

    /// The generation of the set that counts.
    pub(crate) fn generation(&self) -> u64 {
        self.lock().newest.set.generation
    }

    /// The bytes of the set that counts.
    pub(crate) fn bytes(&self) -> Bytes {
        self.lock().newest.bytes.clone()
    }

    /// The identities that recovery kits sign in with.
    pub(crate) fn recovery_identities(&self) -> Vec<PublicKey> {
        self.lock().newest.set.recovery_identities()
    }

    /// Publishes a set of the next generation, while `renew` says that the lease is held; it is durable when this
    /// returns. After an error it may or may not count once the repository is opened again.
    pub(crate) fn put(
        &self,
        next: SignedSet,
        renew: impl FnOnce() -> Result<(), RepositoryError>,
    ) -> Result<(), RepositoryError> {
        let mut kept = self.lock();
        if next.bytes == kept.newest.bytes {
            return Ok(());
        }
        if kept.sets >= KEPT_MAX {
            return Err(refused(&format!(
                "the keys were changed {KEPT_MAX} times, and every set is kept; who keeps the \
                 repository can remove older files of its folder `wrappings`, and open it anew"
            )));
        }
        if Some(next.set.generation) != kept.newest.set.generation.checked_add(1) {
            return Err(refused(
                "the keys were changed at the same time elsewhere; run the command again",
            ));
        }
        if !next.set.later_epochs.starts_with(&kept.newest.set.later_epochs) {
            return Err(refused(
                "the keys were rotated since, and a set without the newest epoch is not taken; run the \
                 command again",
            ));
        }
        let path = self.layout.wrappings_of(next.set.generation);
        if path.put_new_while(renew, &next.bytes)? == Published::Existed {
            let there = path.read_limited(SET_MAX_BYTES)?;
            if there.as_deref() != Some(&next.bytes[..]) {
                return Err(damaged(&path, "another file has the name of the next set"));
            }
            // An attempt that failed had got so far; its name may not be durable.
            self.layout.wrappings().sync()?;
        }
        kept.sets += 1;
        kept.stored_bytes += next.bytes.len() as u64;
        kept.newest = next;
        // Where it cannot be made now, whoever opens the repository next makes it.
        let _ = put_spare(&self.layout, &self.config_bytes, &kept.newest);
        Ok(())
    }

    /// Removes all sets that are older than the one that counts.
    pub(crate) fn remove_older(&self) -> Result<(), RepositoryError> {
        let mut kept = self.lock();
        let counts = kept.newest.set.generation;
        for generation in generations_in(&self.layout.wrappings())? {
            if generation < counts {
                self.layout.wrappings_of(generation).remove()?;
            }
        }
        (kept.sets, kept.stored_bytes) = (1, kept.newest.bytes.len() as u64);
        self.layout.wrappings().sync()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the spare of a set, and removes those of older ones: each holds a set that counts for nothing any more.
pub(crate) fn put_spare(
    layout: &Layout,
    config_bytes: &[u8],
    wrappings: &SignedSet,
) -> Result<(), RepositoryError> {
    let spare = Spare::of(config_bytes, &wrappings.bytes)?;
    let generation = wrappings.set.generation;
    layout.spare_of(generation).replace(&spare.encode())?;
    let older = generations_in(&layout.spares())?.into_iter().filter(|older| *older < generation);
    older.map(|older| layout.spare_of(older)).try_for_each(|older| older.remove())
}
