//! The newest snapshot of this machine in each repository, with its receipt, as it was acknowledged; and what it changed
//! of tags and pins since.
//!
//! They lie in the state folder, not in the cache: a repository that no longer has them was rolled
//! back, or lies, and that must not look like an empty list, or like snapshots that nobody pinned.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use holdall_engine::{Listed, Snapshot, UnlockedRepository, each_record_behind};
use holdall_format::{
    MachineId, RecordHash, RecordHead, RecordKind, RepositoryId, StoredRecord, Tombstone,
    TombstoneReason,
};
use holdall_protocol::{ListedRecord, Repository};

use crate::error::{Gone, StateError, StateFile};
use crate::private_file;

/// More than any stored record has.
const LIMIT_BYTES: u64 = 4 << 20;

/// Records that are gone, as they were stored.
pub type KnownGone = BTreeMap<RecordHash, Bytes>;

/// The last receipts.
pub struct Receipts {
    folder: PathBuf,
}

impl Receipts {
    /// Those in a state folder.
    pub fn in_state(state: &Path) -> Self {
        Self { folder: state.join("receipts") }
    }

    /// Remembers a snapshot as the repository stored it. It follows all that was remembered before.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn remember(&self, access: &UnlockedRepository, stored: &[u8]) -> Result<(), StateError> {
        let repository = access.config().repository.to_string();
        private_file::replace(&self.path(&repository), stored)?;
        remove(&self.amendment_path(&repository))
    }

    /// Remembers an amendment, behind the snapshot.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn remember_amendment(
        &self,
        access: &UnlockedRepository,
        stored: &[u8],
    ) -> Result<(), StateError> {
        let repository = access.config().repository.to_string();
        private_file::replace(&self.amendment_path(&repository), stored)
    }

    /// Checks that what is remembered is among what the repository lists, or where one of it is damaged, or that somebody
    /// asked for it to be forgotten. Rules let the newest snapshot go only once there is a newer one, and an amendment
    /// only with its snapshot.
    ///
    /// # Errors
    /// [`StateError::Gone`] if it is not.
    pub fn check(&self, access: &UnlockedRepository, listed: &Listed) -> Result<(), StateError> {
        let all = self.remembered(access.config().repository)?;
        all.iter().try_for_each(|stored| judged(stored, Fate::among(listed, stored)))
    }

    /// What [`Self::check`] misses.
    ///
    /// # Errors
    /// If a receipt cannot be read.
    pub fn missed(
        &self,
        access: &UnlockedRepository,
        listed: &Listed,
    ) -> Result<Vec<StoredRecord>, StateError> {
        let mut all = self.remembered(access.config().repository)?;
        all.retain(|stored| judged(stored, Fate::among(listed, stored)).is_err());
        Ok(all)
    }

    /// Has a record that was given up not be missed any more.
    ///
    /// # Errors
    /// If its receipt cannot be read or removed.
    pub fn give_up(&self, repository: RepositoryId, id: &RecordHash) -> Result<(), StateError> {
        let repository = repository.to_string();
        for path in [self.path(&repository), self.amendment_path(&repository)] {
            if read(&path)?.is_some_and(|stored| stored.record.hash() == *id) {
                remove(&path)?;
            }
        }
        Ok(())
    }

    /// What this machine knows to be gone from the repository, by its receipts or its cache.
    ///
    /// # Errors
    /// If a receipt cannot be read.
    pub fn known_gone(
        &self,
        access: &UnlockedRepository,
        listed: &Listed,
    ) -> Result<KnownGone, StateError> {
        let missed = self.missed(access, listed)?;
        let missed =
            missed.iter().map(|stored| (stored.record.hash(), Bytes::from(stored.encode())));
        Ok(listed.gone.iter().map(|gone| (gone.id, gone.stored.clone())).chain(missed).collect())
    }

    /// As [`Self::check`] for who has no key, by what the records of a repository tell without one.
    ///
    /// # Errors
    /// [`StateError::Gone`] as for [`Self::check`]; if the records cannot be listed.
    pub fn check_sealed(
        &self,
        repository: &dyn Repository,
        id: RepositoryId,
    ) -> Result<(), StateError> {
        let all = self.remembered(id)?;
        let Some(oldest) = all.iter().map(|stored| stored.receipt.log_position).min() else {
            return Ok(());
        };
        let mut fates = vec![Fate::Unknown; all.len()];
        each_record_behind(repository, oldest.saturating_sub(1), None, |listed| {
            fates.iter_mut().zip(&all).for_each(|(fate, stored)| fate.learn(&listed, stored));
            Ok(())
        })?;
        all.iter().zip(fates).try_for_each(|(stored, fate)| judged(stored, fate))
    }

    /// Which machine this computer was when it made its newest snapshot in the repository of that id.
    ///
    /// # Errors
    /// If the receipt cannot be read.
    pub fn machine(&self, repository: &str) -> Result<Option<MachineId>, StateError> {
        Ok(self.newest(repository)?.map(|stored| stored.record.head.machine))
    }

    /// When the repository of that id received this computer's newest snapshot, in nanoseconds since 1970 UTC. Nothing if
    /// that is a copy or an import, which is no backup of this computer.
    ///
    /// # Errors
    /// If the receipt cannot be read.
    pub fn newest_received_ns(&self, repository: &str) -> Result<Option<i64>, StateError> {
        let newest =
            self.newest(repository)?.filter(|stored| stored.record.head.taken_ns.is_none());
        Ok(newest.map(|stored| stored.receipt.received_ns))
    }

    /// What is remembered, as it was stored; nothing of what cannot be read.
    pub fn all_stored(&self, id: RepositoryId) -> Vec<Bytes> {
        let id = id.to_string();
        let read = |path: PathBuf| private_file::read(&path, LIMIT_BYTES).ok()?.map(Bytes::from);
        [self.path(&id), self.amendment_path(&id)].into_iter().filter_map(read).collect()
    }

    /// The newest snapshot, and the newest amendment if that came later.
    fn remembered(&self, id: RepositoryId) -> Result<Vec<StoredRecord>, StateError> {
        let snapshot = self.newest(&id.to_string())?;
        let amendment = read(&self.amendment_path(&id.to_string()))?;
        let last = snapshot.as_ref().map(|stored| &stored.record.head);
        // What came in between, the snapshot follows.
        let amendment = amendment.filter(|stored| {
            let head = &stored.record.head;
            last.is_none_or(|last| last.machine == head.machine && last.sequence < head.sequence)
        });
        Ok(snapshot.into_iter().chain(amendment).collect())
    }

    fn newest(&self, repository: &str) -> Result<Option<StoredRecord>, StateError> {
        read(&self.path(repository))
    }

    fn amendment_path(&self, repository: &str) -> PathBuf {
        self.folder.join(format!("{repository}.amendment"))
    }

    fn path(&self, repository: &str) -> PathBuf {
        self.folder.join(repository)
    }
}

fn remove(path: &Path) -> Result<(), StateError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(StateError::io(format!("removing {}", path.display()))(error))
        }
        _ => Ok(()),
    }
}

fn read(path: &Path) -> Result<Option<StoredRecord>, StateError> {
    let read = private_file::read_kind(StateFile::Receipt, path, LIMIT_BYTES)?;
    let Some(bytes) = read else { return Ok(None) };
    let stored = StoredRecord::decode(&bytes);
    Ok(Some(stored.map_err(|error| StateError::damaged(StateFile::Receipt, path, error))?))
}

/// What became of a record that is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is there, or damaged, which whoever needs it tells.
    There,
    /// It was let go; whether there is a newer one of its series, or no snapshot any more that it amends.
    LetGo(TombstoneReason, bool),
    /// Nothing tells.
    Unknown,
}

impl Fate {
    /// By a list that was opened.
    fn among(listed: &Listed, remembered: &StoredRecord) -> Self {
        let (id, position) = (remembered.record.hash(), remembered.receipt.log_position);
        let has_snapshot = |id| listed.snapshots.iter().any(|snapshot| snapshot.id == id);
        if has_snapshot(id)
            || listed.amendments.contains(&id)
            || listed.damaged.iter().any(|damaged| damaged.position == position)
        {
            return Self::There;
        }
        let head = &remembered.record.head;
        let is_later = |snapshot: &Snapshot| {
            (snapshot.machine, snapshot.series) == (head.machine, head.series)
                && snapshot.sequence > head.sequence
        };
        let is_followed = match head.amends {
            Some(amended) => !has_snapshot(amended),
            None => listed.snapshots.iter().any(is_later),
        };
        let tombstone = listed.forgotten.iter().find(|gone| gone.id == id);
        tombstone.map_or(Self::Unknown, |gone| Self::LetGo(gone.reason, is_followed))
    }

    /// Takes in the sealed record at its place, and those behind it.
    fn learn(&mut self, listed: &ListedRecord, remembered: &StoredRecord) {
        match self {
            Self::Unknown if listed.position == remembered.receipt.log_position => {
                *self = Self::of(listed, remembered);
            }
            Self::LetGo(_, is_followed) => {
                let later = StoredRecord::decode(&listed.stored);
                *is_followed |=
                    later.is_ok_and(|later| follows(&later.record.head, &remembered.record.head));
            }
            _ => {}
        }
    }

    /// By what lies in its place. Without a key it is not looked whether an amendment's snapshot is there.
    fn of(listed: &ListedRecord, remembered: &StoredRecord) -> Self {
        let id = remembered.record.hash();
        if Tombstone::is_begun_by(&listed.stored) {
            return match Tombstone::decode_signed(&listed.stored) {
                Ok((tombstone, _)) if tombstone.record == id => {
                    Self::LetGo(tombstone.reason, remembered.record.head.amends.is_some())
                }
                Ok(_) => Self::Unknown,
                Err(_) => Self::There,
            };
        }
        match StoredRecord::decode(&listed.stored) {
            Ok(stored) if stored.record.hash() != id => Self::Unknown,
            _ => Self::There,
        }
    }
}

/// Whether a record is a newer snapshot of the same series.
fn follows(later: &RecordHead, head: &RecordHead) -> bool {
    (later.machine, later.series) == (head.machine, head.series)
        && later.sequence > head.sequence
        && later.kind == RecordKind::Snapshot
        && later.amends.is_none()
}

fn judged(remembered: &StoredRecord, fate: Fate) -> Result<(), StateError> {
    let (record, is_amendment) =
        (remembered.record.hash(), remembered.record.head.amends.is_some());
    let reason = match fate {
        Fate::There | Fate::LetGo(TombstoneReason::Request, _) | Fate::LetGo(_, true) => {
            return Ok(());
        }
        Fate::LetGo(..) if is_amendment => {
            "the repository says that its rules for keeping let it go, and its snapshot is there"
        }
        Fate::LetGo(..) => {
            "the repository says that its rules for keeping let it go, and none lets the newest \
             snapshot of a series go"
        }
        Fate::Unknown => NOT_THERE,
    };
    Err(StateError::Gone(Gone { record, is_amendment, reason }))
}

/// How it is known that a record is gone, and what that means.
pub const NOT_THERE: &str = "this machine has its receipt, and the repository does not have it: it was rolled back \
                                    to an older state, or hides it";
