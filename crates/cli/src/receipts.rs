//! The newest record of this machine in each repository, with its receipt, as it was acknowledged.
//!
//! It lies in the state folder, not in the cache: a repository that no longer has it was rolled
//! back, or lies, and that must not look like an empty list.

use std::path::{Path, PathBuf};

use anyhow::Result;
use holdall_engine::{Access, Listed};
use holdall_format::{MachineId, RecordHash, StoredRecord, TombstoneReason};

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
        let (id, position) = (stored.record.hash(), stored.receipt.log_position);
        if listed.snapshots.iter().any(|snapshot| snapshot.id == id)
            || listed.damaged.iter().any(|damaged| damaged.position == position)
        {
            return Ok(());
        }
        let head = &stored.record.head;
        let followed = listed.snapshots.iter().any(|snapshot| {
            (snapshot.machine, snapshot.series) == (head.machine, head.series)
                && snapshot.sequence > head.sequence
        });
        match listed.forgotten.iter().find(|gone| gone.id == id) {
            Some(gone) if followed || gone.reason == TombstoneReason::Request => Ok(()),
            Some(_) => Err(gone_since(
                &id,
                "the repository says that its rules for keeping let it go, and none lets the newest \
                 snapshot of a series go",
            )
            .into()),
            None => Err(gone_since(
                &id,
                "this machine has its receipt, and the repository does not have it: it was rolled \
                 back to an older state, or hides it",
            )
            .hint(
                "if the repository was set back to an older copy, `holdall backup` goes on from there; \
                 what came after that copy is lost, unless whoever keeps the repository has it still",
            )
            .into()),
        }
    }

    /// Which machine this computer was when it made its newest snapshot in the repository of that id.
    ///
    /// # Errors
    /// If the receipt can not be read.
    pub(crate) fn machine(&self, repository: &str) -> Result<Option<MachineId>> {
        Ok(self.newest(repository)?.map(|stored| stored.record.head.machine))
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

fn gone_since(id: &RecordHash, reason: &str) -> Refusal {
    Refusal::new(Exit::Damage, format!("snapshot {id} is gone: {reason}"))
}
