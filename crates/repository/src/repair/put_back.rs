//! Putting back what a repository says of itself in clear, where no copy of it on its own disk is sound: from a client
//! that kept it, or has the keys to make it anew.

use std::path::Path;

use bytes::Bytes;
use holdall_format::{PublicKey, RecordKind, RepositoryConfig, StoredRecord};
use holdall_protocol::{NewRepository, RepositoryError};

use crate::opening::clear_parts::{ClearParts, highest_generation, put_foreign_aside};
use crate::opening::lease::{Access, Lease};
use crate::opening::open::make_ready;
use crate::opening::wrappings::{SignedSet, put_spare};
use crate::records::claim::Claim;
use crate::records::files;
use crate::storage::layout::{Layout, MARKER_TEXT};
use crate::store::Store;

/// Answers [`holdall_protocol::Repository::put_back`], where the set may name those recovery kits without a proof. Says
/// whether anything was lost.
///
/// # Errors
/// As said there.
pub(crate) fn put_back(
    layout: &Layout,
    known: &NewRepository,
    kits: &[PublicKey],
) -> Result<bool, RepositoryError> {
    let config = RepositoryConfig::decode_signed(&known.config)?;
    let wrappings = SignedSet::check(&known.wrappings, &config, kits)?;
    let lease = Lease::take(layout, Access::Write)?;
    match ClearParts::read(layout) {
        Ok(there) if there.config == config => return Ok(false),
        Ok(_) => return Err(refused("it says of itself that it is another repository")),
        Err(RepositoryError::Damaged { .. }) => {}
        Err(error) => return Err(error),
    }
    check_records(layout, &config)?;
    let generation = wrappings.set.generation;
    // An older set would let in again what was taken away.
    if let Some(highest) = highest_generation(layout)?.filter(|highest| *highest > generation) {
        return Err(RepositoryError::Refused {
            reason: format!(
                "its keys were changed since: set {highest} is damaged, and set {generation} is older"
            ),
        });
    }
    make_ready(layout, &lease)?;
    put_foreign_aside(layout, config.repository)?;
    layout.config().replace(&known.config)?;
    layout.wrappings_of(generation).replace(&known.wrappings)?;
    lease.renew()?;
    layout.marker().replace(MARKER_TEXT.as_bytes())?;
    put_spare(layout, &known.config, &wrappings)?;
    Ok(true)
}

impl Store {
    /// Answers [`holdall_protocol::Repository::put_back`] for the repository in `dir`, which nobody has open. The set
    /// may name `kits`, and any other recovery kit only with a proof. Says whether anything was lost.
    ///
    /// # Errors
    /// As said there.
    pub fn put_back(
        dir: &Path,
        known: &NewRepository,
        kits: &[PublicKey],
    ) -> Result<bool, RepositoryError> {
        put_back(&Layout::new(dir), known, kits)
    }

    /// Answers [`holdall_protocol::Repository::put_back_record`], where receipts have that signer if there is one, and
    /// `vouch_for_record` where the owner vouches.
    ///
    /// # Errors
    /// As said there.
    pub(crate) fn put_back_record(
        &self,
        bytes: &Bytes,
        signer: Option<PublicKey>,
        is_vouched: bool,
    ) -> Result<(), RepositoryError> {
        let stored = StoredRecord::decode(bytes)?;
        if stored.receipt.repository != self.repository() {
            return Err(refused("the record is another repository's"));
        }
        if signer.is_some_and(|signer| stored.receipt.signer != signer) {
            return Err(refused("its receipt was not signed here"));
        }
        let commit = self.lock_commit();
        self.appender()?;
        let head = &stored.record.head;
        let position = stored.receipt.log_position;
        let is_gone = !self.layout().record(position).is_there()?;
        let needs_root = is_vouched || (is_gone && head.kind == RecordKind::Snapshot);
        let root = self.lookup_stored_holding(&commit, vec![head.root])?;
        let claim = Claim { has_root: !root.copies.is_empty(), is_vouched };
        if needs_root && !claim.has_root {
            return Err(refused("what it needs is not stored any more"));
        }
        let _place = self.room().take_reserved(bytes.len() as u64, || self.quota_used_bytes())?;
        self.lease().renew()?;
        self.records().put_back(&stored, bytes, claim)?;
        self.log().at_least(position.saturating_add(1));
        self.forget_unreadable(self.layout().record(position).path());
        Ok(())
    }
}

/// Checks that the newest record that can be read is of the repository of that configuration.
fn check_records(layout: &Layout, config: &RepositoryConfig) -> Result<(), RepositoryError> {
    let positions = files::positions(layout)?.into_iter().rev();
    let newest = positions.filter_map(|position| files::read_head(layout, position).ok()).next();
    match newest {
        Some(head) if head.repository != config.repository => {
            Err(refused("its records are another repository's"))
        }
        _ => Ok(()),
    }
}

fn refused(reason: &str) -> RepositoryError {
    RepositoryError::Refused { reason: reason.to_owned() }
}
