//! The newest record of this machine in each repository, with its receipt, as it was acknowledged.
//!
//! It lies in the state folder, not in the cache: a repository that no longer has it was rolled
//! back, or lies, and that must not look like an empty list.

use std::path::{Path, PathBuf};

use anyhow::Result;
use bytes::Bytes;
use holdall_engine::{Access, Listed, each_record_behind};
use holdall_format::{
    MachineId, RecordHash, RecordHead, RecordKind, RepositoryId, StoredRecord, Tombstone,
    TombstoneReason,
};
use holdall_protocol::{ListedRecord, Repository};

use crate::exit::{Exit, Refusal};
use crate::private_file;

/// More than any stored record has.
const LIMIT_BYTES: u64 = 4 << 20;

/// The last receipts.
pub(crate) struct Receipts {
    folder: PathBuf,
}

impl Receipts {
    /// Those in a state folder.
    pub(crate) fn in_state(state: &Path) -> Self {
        Self { folder: state.join("receipts") }
    }

    /// Remembers a record as the repository stored it.
    ///
    /// # Errors
    /// If it can not be written.
    pub(crate) fn remember(&self, access: &Access, stored: &[u8]) -> Result<()> {
        private_file::replace(&self.path(&access.config().repository.to_string()), stored)
    }

    /// Checks that the newest remembered snapshot is among those that the repository lists, or
    /// where one of them is damaged, or that somebody asked for it to be forgotten. Rules let the
    /// newest one go only once there is a newer one.
    ///
    /// # Errors
    /// [`Exit::Damage`] if it is not.
    pub(crate) fn check(&self, access: &Access, listed: &Listed) -> Result<()> {
        let repository = access.config().repository.to_string();
        let Some(stored) = self.newest(&repository)? else { return Ok(()) };
        judged(&stored, Fate::among(listed, &stored))
    }

    /// The same for who has no key, by what the records of a repository tell without one.
    ///
    /// # Errors
    /// [`Exit::Damage`] as for [`Self::check`]; if the records can not be listed.
    pub(crate) fn check_sealed(&self, repository: &dyn Repository, id: RepositoryId) -> Result<()> {
        let Some(stored) = self.newest(&id.to_string())? else { return Ok(()) };
        let mut fate = Fate::Unknown;
        let before = stored.receipt.log_position.saturating_sub(1);
        each_record_behind(repository, before, None, |listed| {
            fate.learn(&listed, &stored);
            Ok(())
        })?;
        judged(&stored, fate)
    }

    /// Which machine this computer was when it made its newest snapshot in the repository of that id.
    ///
    /// # Errors
    /// If the receipt can not be read.
    pub(crate) fn machine(&self, repository: &str) -> Result<Option<MachineId>> {
        Ok(self.newest(repository)?.map(|stored| stored.record.head.machine))
    }

    /// The id of the newest snapshot that this computer made in the repository of that id.
    ///
    /// # Errors
    /// If the receipt can not be read.
    pub(crate) fn newest_id(&self, repository: &str) -> Result<Option<RecordHash>> {
        Ok(self.newest(repository)?.map(|stored| stored.record.hash()))
    }

    /// The newest snapshot that this computer made there, as it was stored; `None` if it is not known.
    pub(crate) fn newest_stored(&self, id: RepositoryId) -> Option<Bytes> {
        private_file::read(&self.path(&id.to_string()), LIMIT_BYTES).ok()?.map(Bytes::from)
    }

    fn newest(&self, repository: &str) -> Result<Option<StoredRecord>> {
        let path = self.path(repository);
        let Some(bytes) = private_file::read(&path, LIMIT_BYTES)? else { return Ok(None) };
        let stored = StoredRecord::decode(&bytes).map_err(|error| {
            Refusal::new(Exit::Failed, format!("{} is damaged: {error}", path.display())).hint(
                "put back a copy of it; without it a repository that was rolled back can not be \
                 told: look at `holdall snapshots`, and move it away",
            )
        })?;
        Ok(Some(stored))
    }

    fn path(&self, repository: &str) -> PathBuf {
        self.folder.join(repository)
    }
}

/// What became of the newest snapshot that is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is there, or damaged, which whoever needs it tells.
    There,
    /// It was let go; whether there is a newer one of its series.
    LetGo(TombstoneReason, bool),
    /// Nothing tells.
    Unknown,
}

impl Fate {
    /// By a list that was opened.
    fn among(listed: &Listed, remembered: &StoredRecord) -> Self {
        let (id, position) = (remembered.record.hash(), remembered.receipt.log_position);
        if listed.snapshots.iter().any(|snapshot| snapshot.id == id)
            || listed.damaged.iter().any(|damaged| damaged.position == position)
        {
            return Self::There;
        }
        let head = &remembered.record.head;
        let is_followed = listed.snapshots.iter().any(|snapshot| {
            (snapshot.machine, snapshot.series) == (head.machine, head.series)
                && snapshot.sequence > head.sequence
        });
        let tombstone = listed.forgotten.iter().find(|gone| gone.id == id);
        tombstone.map_or(Self::Unknown, |gone| Self::LetGo(gone.reason, is_followed))
    }

    /// Takes in the sealed record at its place, and those behind it.
    fn learn(&mut self, listed: &ListedRecord, remembered: &StoredRecord) {
        match self {
            Self::Unknown if listed.position == remembered.receipt.log_position => {
                *self = Self::of(listed, remembered.record.hash());
            }
            Self::LetGo(_, is_followed) => {
                let later = StoredRecord::decode(&listed.stored);
                *is_followed |=
                    later.is_ok_and(|later| follows(&later.record.head, &remembered.record.head));
            }
            _ => {}
        }
    }

    /// By what lies in the place of the record of that id.
    fn of(listed: &ListedRecord, id: RecordHash) -> Self {
        if Tombstone::is_begun_by(&listed.stored) {
            return match Tombstone::decode_signed(&listed.stored) {
                Ok((tombstone, _)) if tombstone.record == id => {
                    Self::LetGo(tombstone.reason, false)
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

fn judged(remembered: &StoredRecord, fate: Fate) -> Result<()> {
    let id = remembered.record.hash();
    match fate {
        Fate::There | Fate::LetGo(TombstoneReason::Request, _) | Fate::LetGo(_, true) => Ok(()),
        Fate::LetGo(..) => Err(gone_since(
            &id,
            "the repository says that its rules for keeping let it go, and none lets the newest \
             snapshot of a series go",
        )
        .into()),
        Fate::Unknown => Err(gone_since(
            &id,
            "this machine has its receipt, and the repository does not have it: it was rolled back \
             to an older state, or hides it",
        )
        .hint(
            "if the repository was set back to an older copy, `holdall backup` goes on from there; \
             what came after that copy is lost, unless whoever keeps the repository has it still",
        )
        .into()),
    }
}

fn gone_since(id: &RecordHash, reason: &str) -> Refusal {
    Refusal::new(Exit::Damage, format!("snapshot {id} is gone: {reason}"))
}
