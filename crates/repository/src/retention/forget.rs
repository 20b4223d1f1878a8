//! Forgetting: a snapshot is no longer listed, and what only it reached may be pruned.
//!
//! A tombstone takes the place of the record, so that forgetting and omitting can be told apart and
//! the chain of the machine's records stays whole. What amended the snapshot goes with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use holdall_format::{
    RecordHash, RecordKind, SignedContext, StoredRecord, TagToken, Tombstone, TombstoneReason,
};
use holdall_protocol::{Buried, RepositoryError};

use crate::records::entry::RecordEntry;
use crate::records::files;
use crate::retention::evaluate::Policy;
use crate::storage::layout::number_of;
use crate::storage::publish::random;
use crate::storage::retry::{retry_read, split_process_errors};
use crate::store::{CommitGuard, Store};

/// A checkpoint that nothing followed is kept this long.
const CHECKPOINT_NS: i64 = 90 * 24 * 3600 * 1_000_000_000;

impl Store {
    /// Forgets snapshots, and gives lost records up. Those that were forgotten before stay so.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`] for what is no snapshot of this repository, and nothing is
    /// forgotten then; after any other error, some may be.
    pub fn forget(
        &self,
        snapshots: &[RecordHash],
        reason: TombstoneReason,
    ) -> Result<(), RepositoryError> {
        self.forget_holding(&self.lock_commit(), snapshots, reason)
    }

    /// Forgets those of these snapshots that the rules let go still, with what was committed since they were
    /// judged: a pin or a tag may have come. Says which.
    ///
    /// # Errors
    /// As for [`Store::forget`].
    pub fn forget_by_rules(
        &self,
        snapshots: &[RecordHash],
        policy: &Policy,
        tokens: &[TagToken],
    ) -> Result<BTreeSet<RecordHash>, RepositoryError> {
        let commit = self.lock_commit();
        let judged = self.judge(policy, tokens).into_iter();
        let chosen: BTreeSet<&RecordHash> = snapshots.iter().collect();
        let goes = judged.filter(|one| one.reasons.is_empty() && chosen.contains(&one.id));
        let goes: Vec<RecordHash> = goes.map(|one| one.id).collect();
        self.forget_holding(&commit, &goes, TombstoneReason::Retention)?;
        Ok(goes.into_iter().collect())
    }

    fn forget_holding(
        &self,
        commit: &CommitGuard<'_>,
        snapshots: &[RecordHash],
        reason: TombstoneReason,
    ) -> Result<(), RepositoryError> {
        let lost = self.records().lost();
        for hash in snapshots.iter().filter(|hash| !lost.contains_key(hash)) {
            if self.records().known(hash).is_none_or(|known| known.kind != RecordKind::Snapshot) {
                let reason = format!("there is no snapshot {hash} to forget");
                return Err(RepositoryError::Refused { reason });
            }
        }
        let chosen: BTreeSet<&RecordHash> = snapshots.iter().collect();
        let (amendments, there): (Vec<_>, Vec<_>) =
            self.records().after(0).into_iter().partition(|entry| entry.amends.is_some());
        // Snapshots first: an amendment of one that is gone changes nothing.
        let there = there.iter().filter(|entry| chosen.contains(&entry.hash));
        let of_those =
            amendments.iter().filter(|entry| entry.amends.is_some_and(|of| chosen.contains(&of)));
        self.bury(commit, there.chain(of_those), reason)?;
        let mut given_up = chosen.into_iter().filter(|hash| lost.contains_key(hash));
        given_up.try_for_each(|hash| self.give_up(commit, hash))
    }

    fn give_up(&self, _commit: &CommitGuard<'_>, lost: &RecordHash) -> Result<(), RepositoryError> {
        self.appender()?;
        self.records().give_up(lost, || self.lease().renew())
    }

    /// Records that are lost: another one of their machine follows them, and nobody gave them up.
    pub fn lost(&self) -> BTreeSet<RecordHash> {
        self.records().lost().into_keys().collect()
    }

    /// Whether a record is neither there, nor forgotten, nor given up. None is lacking while the file of one cannot be
    /// read: it may be that.
    pub fn lacks(&self, record: &RecordHash) -> bool {
        let records = self.records();
        records.is_whole() && records.known(record).is_none() && !records.is_given_up(record)
    }

    /// Gives up a record that [`Store::lacks`], which no other one has to follow.
    ///
    /// # Errors
    /// If that cannot be noted.
    pub fn give_up_lacking(&self, record: &RecordHash) -> Result<(), RepositoryError> {
        self.give_up(&self.lock_commit(), record)
    }

    /// Where records are lost, and what there is to say of each.
    pub(crate) fn lost_records(&self) -> impl Iterator<Item = (PathBuf, String)> + use<> {
        let (lost, layout) = (self.records().lost(), self.layout().clone());
        lost.into_iter().map(move |(hash, position)| {
            let follows = layout.record(position);
            let name = follows.file_name().unwrap_or_default().display().to_string();
            let reason = format!(
                "record {hash}, which {name} follows, is gone: put its file back, or forget it by that id"
            );
            (layout.records().path().to_owned(), reason)
        })
    }

    /// Whether a snapshot was forgotten, or given up. Of one whose record cannot be read that is not known.
    pub fn is_forgotten(&self, snapshot: &RecordHash) -> bool {
        let is_given_up = self.records().is_given_up(snapshot);
        is_given_up || self.records().known(snapshot).is_some_and(|known| known.forgotten)
    }

    /// Forgets checkpoints that another record of their series followed, or that are too old to be
    /// gone on from, and what amends no snapshot; none while a file cannot be read of which nobody knows what
    /// it needs or holds. Says how many.
    pub(crate) fn forget_superseded(
        &self,
        commit: &CommitGuard<'_>,
    ) -> Result<u64, RepositoryError> {
        // What cannot be read may be the snapshot that an amendment is of.
        let superseded = self.check_readable().map(|()| self.superseded()).unwrap_or_default();
        self.bury(commit, superseded.iter(), TombstoneReason::Retention)?;
        Ok(superseded.len() as u64)
    }

    /// Checkpoints and amendments that nothing needs.
    pub(crate) fn superseded(&self) -> Vec<RecordEntry> {
        let there = self.records().after(0);
        let of_series = |entry: &RecordEntry| (entry.machine, *entry.series.as_bytes());
        let followed = there.iter().filter(|entry| entry.kind != RecordKind::Amendment);
        let newest: BTreeMap<_, u64> =
            followed.map(|entry| (of_series(entry), entry.position)).collect();
        let snapshots: BTreeSet<RecordHash> = there.iter().map(|entry| entry.hash).collect();
        let is_superseded = |entry: &RecordEntry| match entry.kind {
            RecordKind::Snapshot => false,
            RecordKind::Amendment => entry.amends.is_none_or(|of| !snapshots.contains(&of)),
            RecordKind::Checkpoint => {
                let is_newest = newest.get(&of_series(entry)) == Some(&entry.position);
                let age_ns = self.passed_ns(entry.received_ns);
                !is_newest || (entry.clock_sure && age_ns > CHECKPOINT_NS)
            }
        };
        there.into_iter().filter(is_superseded).collect()
    }

    /// Puts tombstones in the place of these records.
    fn bury<'a>(
        &self,
        _commit: &CommitGuard<'_>,
        entries: impl Iterator<Item = &'a RecordEntry>,
        reason: TombstoneReason,
    ) -> Result<(), RepositoryError> {
        self.appender()?;
        for entry in entries {
            self.bury_one(files::read(self.layout(), entry.position)?.1, reason)?;
        }
        Ok(())
    }

    fn bury_one(
        &self,
        stored: StoredRecord,
        reason: TombstoneReason,
    ) -> Result<(), RepositoryError> {
        let tombstone = Tombstone {
            reason,
            record: stored.record.hash(),
            log_position: stored.receipt.log_position,
            forgotten_ns: self.now_ns(),
            signer: self.signer().public(),
            head_bytes: stored.record.head_bytes,
        };
        let signed = tombstone.signed_bytes();
        let signature = self.signer().sign(SignedContext::Tombstone, &signed);
        // Whoever took the lease over may be adding to what is to be forgotten.
        self.records().bury(&tombstone.encode(&signature), || self.lease().renew())
    }

    /// Answers [`holdall_protocol::OwnedRepository::bury_lost`].
    ///
    /// # Errors
    /// As said there.
    pub(crate) fn bury_lost(&self, bytes: &Bytes) -> Result<Buried, RepositoryError> {
        let stored = StoredRecord::decode(bytes)?;
        let (position, hash) = (stored.receipt.log_position, stored.record.hash());
        let commit = self.lock_commit();
        self.appender()?;
        if stored.receipt.repository != self.repository() {
            return Err(refused("it is another repository's"));
        }
        let is_buried = self.layout().tombstone(position).is_there()?;
        if is_buried || self.layout().record(position).is_there()? {
            let unreadable = "what is in its place cannot be read: run `holdall check --repair`";
            let there = files::read_entry(self.layout(), position, is_buried);
            let there = split_process_errors(there)?.map_err(|_| refused(unreadable))?;
            return match there.hash == hash {
                true if is_buried => Ok(Buried::ByTombstone),
                true => Err(refused("it is there")),
                false => self.give_up(&commit, &hash).map(|()| Buried::Noted),
            };
        }
        self.bury_one(stored, TombstoneReason::Request)?;
        self.log().at_least(position.saturating_add(1));
        Ok(Buried::ByTombstone)
    }

    /// Moves tombstones that cannot be read to `quarantine/`, and says where. A record whose file is still there is
    /// listed again; of any other the next one of its machine shows that it is missing, until it is given up.
    pub(crate) fn put_damaged_tombstones_aside(&self) -> Result<Vec<String>, RepositoryError> {
        let _commit = self.lock_commit();
        let (folder, mut quarantined) = (self.layout().tombstones(), Vec::new());
        for (path, _) in self.unreadable_files() {
            let name = path.strip_prefix(folder.path()).ok().and_then(Path::to_str);
            let Some(position) = name.and_then(number_of) else { continue };
            let tombstone = self.layout().tombstone(position);
            if retry_read(|| files::read_tombstone(self.layout(), position))?.is_some() {
                continue;
            }
            self.lease().renew()?;
            let number = u32::from_le_bytes(random()?);
            let aside = format!("tombstones-{position:016x}.{number:08x}");
            let aside = self.layout().quarantine().join(aside);
            tombstone.rename(&aside)?;
            self.forget_unreadable(&path);
            quarantined.push(aside.display().to_string());
        }
        if !quarantined.is_empty() {
            self.records().load_again()?;
        }
        Ok(quarantined)
    }
}

fn refused(reason: &str) -> RepositoryError {
    RepositoryError::Refused { reason: reason.to_owned() }
}
