//! What may open the repository: signed sets of wrappings, one file for each generation.
//!
//! The highest generation that the configuration's owner signed counts. A new set is published
//! beside the older ones under a name of its own. Whoever keeps a repository for others leaves the
//! older ones where they are, so that an administrator can go back to them; whoever writes to a
//! directory of his own removes them, so that what was taken away opens nothing there any more.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use holdall_format::limits::{WRAPPING_MAX_BYTES, WRAPPINGS_MAX};
use holdall_format::{PublicKey, RepositoryConfig, WrappingSet};
use holdall_protocol::RepositoryError;

use crate::layout::Layout;
use crate::pack_file::{damaged, unreadable};
use crate::publish::{Published, names_in, publish, read_limited, remove, sync_dir};

const SET_MAX_BYTES: u64 = (WRAPPINGS_MAX * (WRAPPING_MAX_BYTES + 512) + 1024) as u64;

/// A set, and its bytes as they were signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignedSet {
    pub(crate) set: WrappingSet,
    pub(crate) bytes: Bytes,
}

impl SignedSet {
    /// Reads a set that somebody sends and checks that it may be a repository's.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`].
    pub(crate) fn check(bytes: &Bytes, config: &RepositoryConfig) -> Result<Self, RepositoryError> {
        let set = WrappingSet::decode_signed(bytes)?;
        if !is_of(&set, config) {
            return Err(refused("the wrappings are not those of the configuration's repository"));
        }
        if set.wrappings.is_empty() {
            return Err(refused("a set without a wrapping would lock everybody out"));
        }
        Ok(Self { set, bytes: bytes.clone() })
    }

    /// Reads the set that counts.
    ///
    /// # Errors
    /// [`RepositoryError::Damaged`] if there is none; [`RepositoryError::NewerFormat`].
    pub(crate) fn newest(
        layout: &Layout,
        config: &RepositoryConfig,
    ) -> Result<Self, RepositoryError> {
        // Between listing and reading, somebody else may have published one and removed the rest.
        for _ in 0..2 {
            if let Some(newest) = Self::newest_listed(layout, config)? {
                return Ok(newest);
            }
        }
        Err(damaged(&layout.wrappings(), "no set of wrappings can be read"))
    }

    fn newest_listed(
        layout: &Layout,
        config: &RepositoryConfig,
    ) -> Result<Option<Self>, RepositoryError> {
        let mut newest: Option<Self> = None;
        for name in names_in(&layout.wrappings())? {
            let path = layout.wrappings().join(name);
            let bytes = read_limited(&path, SET_MAX_BYTES)?.unwrap_or_default();
            let set = match WrappingSet::decode_signed(&bytes) {
                Ok(set) => set,
                // It may say what opens the repository now.
                Err(error) if error.is_newer() => return Err(unreadable(&path, &error)),
                Err(_) => continue,
            };
            let is_newer =
                newest.as_ref().is_none_or(|newest| set.generation > newest.set.generation);
            if is_of(&set, config) && is_newer {
                newest = Some(Self { set, bytes: bytes.into() });
            }
        }
        Ok(newest)
    }
}

fn is_of(set: &WrappingSet, config: &RepositoryConfig) -> bool {
    set.repository == config.repository && set.owner == config.owner
}

fn refused(reason: &str) -> RepositoryError {
    RepositoryError::Refused { reason: reason.to_owned() }
}

/// The set that counts in an open repository.
#[derive(Debug)]
pub(crate) struct Wrappings {
    layout: Layout,
    newest: Mutex<SignedSet>,
}

impl Wrappings {
    pub(crate) fn new(layout: &Layout, newest: SignedSet) -> Self {
        Self { layout: layout.clone(), newest: Mutex::new(newest) }
    }

    /// The bytes of the set that counts.
    pub(crate) fn bytes(&self) -> Bytes {
        self.lock().bytes.clone()
    }

    /// The identities that recovery kits sign in with.
    pub(crate) fn recovery_identities(&self) -> Vec<PublicKey> {
        self.lock().set.recovery_identities()
    }

    /// Publishes a set of the next generation; it is durable when this returns. After an error it
    /// may or may not count once the repository is opened again.
    pub(crate) fn put(&self, next: SignedSet) -> Result<(), RepositoryError> {
        let mut newest = self.lock();
        if next.bytes == newest.bytes {
            return Ok(());
        }
        if Some(next.set.generation) != newest.set.generation.checked_add(1) {
            return Err(refused(
                "the keys were changed at the same time elsewhere; run the command again",
            ));
        }
        let path = self.layout.wrappings_of(next.set.generation);
        if publish(&self.layout.tmp(), &path, &next.bytes)? == Published::Existed {
            let there = read_limited(&path, SET_MAX_BYTES)?;
            if there.as_deref() != Some(&next.bytes[..]) {
                return Err(damaged(&path, "another file has the name of the next set"));
            }
            // An attempt that failed had got so far; its name may not be durable.
            sync_dir(&self.layout.wrappings())?;
        }
        *newest = next;
        Ok(())
    }

    /// Removes all sets but the one that counts.
    pub(crate) fn remove_older(&self) -> Result<(), RepositoryError> {
        let newest = self.lock();
        let counts = self.layout.wrappings_of(newest.set.generation);
        for name in names_in(&self.layout.wrappings())? {
            let path = self.layout.wrappings().join(name);
            if path != counts {
                remove(&path)?;
            }
        }
        sync_dir(&self.layout.wrappings())
    }

    fn lock(&self) -> MutexGuard<'_, SignedSet> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
