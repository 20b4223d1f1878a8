//! Putting back what a repository says of itself in clear, where no copy of it on its own disk is sound: from a client
//! that kept it, or has the keys to make it anew.

use std::path::Path;

use bytes::Bytes;
use holdall_format::{PublicKey, RecordKind, RepositoryConfig, StoredRecord, Tombstone};
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
        if Tombstone::is_begun_by(bytes) {
            return self.put_back_tombstone(bytes, signer);
        }
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

impl Store {
    /// Puts a tombstone back that is damaged or gone, and whose record another one of its machine follows.
    fn put_back_tombstone(
        &self,
        bytes: &Bytes,
        signer: Option<PublicKey>,
    ) -> Result<(), RepositoryError> {
        let (tombstone, head) = Tombstone::decode_signed(bytes)?;
        if head.repository != self.repository() {
            return Err(refused("the tombstone is another repository's"));
        }
        if signer.is_some_and(|signer| tombstone.signer != signer) {
            return Err(refused("the tombstone was not signed here"));
        }
        let _commit = self.lock_commit();
        self.appender()?;
        let position = tombstone.log_position;
        self.records().put_tombstone_back(&tombstone, bytes, || self.lease().renew())?;
        self.log().at_least(position.saturating_add(1));
        self.forget_unreadable(self.layout().tombstone(position).path());
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

#[cfg(test)]
mod tests {
    use holdall_format::{SignedContext, TombstoneReason};
    use holdall_protocol::Repository;
    use holdall_protocol::contract::TestKey;

    use super::*;
    use crate::place::{Place, id};

    /// A repository of three snapshots, and the tombstone of the one of that index, whose file is gone.
    fn with_lost_tombstone(index: usize) -> (Place, Bytes) {
        let place = Place::new();
        let nodes = [(id(1), &[][..])];
        let session = place.session();
        place.machine().put_blocks(&session, &[place.forge.nodes(&nodes)]).unwrap();
        (0..3).for_each(|_| place.commit_root(&place.session(), id(1)));
        let entry = place.store.records().after(0).swap_remove(index);
        place.store.forget(&[entry.hash], TombstoneReason::Request).unwrap();
        let (bytes, ..) = files::read_tombstone(place.store.layout(), entry.position).unwrap();
        place.store.layout().tombstone(entry.position).remove().unwrap();
        place.store.records().load_again().unwrap();
        (place, bytes.into())
    }

    fn put_back(place: &Place, tombstone: &Bytes) -> Result<(), String> {
        let signer = Some(place.store.signer().public());
        let put_back = place.store.put_back_record(tombstone, signer, false);
        put_back.map_err(|error| error.to_string())
    }

    #[test]
    fn a_tombstone_comes_back_where_a_record_follows_the_one_that_was_forgotten() {
        let (place, followed) = with_lost_tombstone(1);
        assert_eq!(place.store.lost().len(), 1);
        put_back(&place, &followed).unwrap();
        assert_eq!(place.store.lost().len(), 0);
        assert!(put_back(&place, &followed).unwrap_err().contains("it was forgotten"));
        let (place, newest) = with_lost_tombstone(2);
        assert!(put_back(&place, &newest).unwrap_err().contains("no record follows"));
    }

    #[test]
    fn a_tombstone_that_another_key_signed_is_refused() {
        let (place, bytes) = with_lost_tombstone(1);
        let (mut tombstone, _) = Tombstone::decode_signed(&bytes).unwrap();
        let key = TestKey::from_seed(&[3; 32]);
        tombstone.signer = key.public();
        let signature = key.sign(SignedContext::Tombstone, &tombstone.signed_bytes());
        let forged = Bytes::from(tombstone.encode(&signature));
        assert!(put_back(&place, &forged).unwrap_err().contains("not signed here"));
        assert_eq!(place.store.lost().len(), 1);
    }
}
