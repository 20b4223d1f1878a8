//! What machines ask for with an administrator's token, and what all of them are told.

use std::collections::BTreeSet;

use holdall_format::{MachineId, RecordHash, SessionId};
use holdall_protocol::{
    Announced, AskedPrune, RepositoryError, SparseBlock, Superseding, WaitingDeletion,
};

use super::administration::Administration;
use super::entries::{IssuedToken, PrunedEntry, SnapshotEntry};
use crate::ServerError;
use crate::accounts::Deletion;

const HOUR_NS: i64 = 3600 * 1_000_000_000;

impl Administration<'_> {
    /// Makes a token with which deletions can be asked for in that repository.
    pub(super) fn token(&self, repository: &str) -> Result<IssuedToken, ServerError> {
        self.check_name(repository)?;
        let (token, expires_ns) = self.accounts.make_token(repository)?;
        self.log(&format!("made a token for deletions in {repository}"));
        Ok(IssuedToken { token, expires_ns })
    }

    /// Asks for snapshots to be deleted.
    pub(crate) fn ask_forget(
        &self,
        name: &str,
        snapshots: &[RecordHash],
    ) -> Result<WaitingDeletion, ServerError> {
        if snapshots.is_empty() {
            return Err(refused("no snapshot is named".to_owned()));
        }
        let there = self.judge(&*self.stores.store(name)?, name);
        let there: BTreeSet<RecordHash> = there.iter().map(|one| one.id).collect();
        if let Some(unknown) = snapshots.iter().find(|id| !there.contains(id)) {
            return Err(refused(format!("{unknown} is no snapshot of this repository")));
        }
        let ids: BTreeSet<String> = snapshots.iter().map(ToString::to_string).collect();
        let ids = ids.into_iter().collect();
        let deletion = self.accounts.ask_deletion(name, ids, None, None)?;
        self.log(&format!("deletion {} of {name} was requested by its machine", deletion.number));
        self.note_asked("forget", &deletion);
        Ok(waiting(deletion))
    }

    /// Tells which blocks are mostly dead.
    pub(crate) fn ask_sparse(
        &self,
        name: &str,
        from: u64,
    ) -> Result<Vec<SparseBlock>, ServerError> {
        Ok(self.stores.store(name)?.sparse_blocks(from)?)
    }

    /// Has blocks give way to later copies, which a machine put in a session that ends by it, and asks
    /// for their deletion. Until that is due they stay, and once it is cancelled they count first again.
    pub(crate) fn ask_supersede(
        &self,
        name: &str,
        machine: &MachineId,
        session: &SessionId,
        blocks: &[u64],
    ) -> Result<Superseding, ServerError> {
        let store = self.stores.store(name)?;
        // Else a prune could take it for cancelled before it is noted that it waits.
        let asking = self.accounts.asking(name);
        let _asking = asking.hold();
        self.accounts.check_room_for_deletion(name)?;
        let superseded = store.supersede(blocks, true)?;
        store.end_session(machine, session)?;
        let Some(superseded) = superseded else {
            return Ok(Superseding { blocks: 0, waiting: None });
        };
        let deletion = self.accounts.ask_deletion(name, Vec::new(), Some(superseded), None)?;
        self.log(&format!(
            "deletion {} of {name} was requested by its machine: {} blocks were compacted",
            deletion.number, superseded.blocks
        ));
        self.note_asked("supersede", &deletion);
        Ok(Superseding { blocks: superseded.blocks, waiting: Some(waiting(deletion)) })
    }

    /// Notes what a machine has asked for. There are only so many deletions that wait, so that it cannot have older entries
    /// forgotten: what is refused is in the log alone.
    fn note_asked(&self, what: &str, deletion: &Deletion) {
        let fields = serde_json::json!({
            "repository": deletion.repository,
            "deletion": deletion.number,
            "snapshots": deletion.snapshots.len(),
            "blocks": deletion.superseded.map_or(0, |superseded| superseded.blocks),
        });
        self.note(what, &fields, None);
    }

    /// Applies rules and deletions that are due, and prunes.
    pub(crate) fn ask_prune(&self, name: &str, dry_run: bool) -> Result<AskedPrune, ServerError> {
        let mut entry = PrunedEntry { repository: name.to_owned(), dry_run, ..Default::default() };
        if let Some(report) = self.try_prune(name, dry_run, &mut entry)? {
            let hash = |one: &SnapshotEntry| Some((one.id.parse().ok()?, one.received_ns));
            let forgotten = entry.forgotten.iter().filter_map(hash).collect();
            return Ok(AskedPrune { report, forgotten, alarm: entry.alarm });
        }
        let left_ns = entry.frozen_until_ns.unwrap_or_default() - self.stores.now_ns();
        let hours = left_ns.max(0) / HOUR_NS + 1;
        Err(ServerError::refused(format!(
            "nothing is deleted for {hours} hours more, since the server's clock was set, or it was \
             off for long"
        )))
    }

    /// What is told to whoever uses a repository: its deletions that wait, and rules that keep less.
    pub(crate) fn announced(&self, name: &str) -> Announced {
        let deletions = self.accounts.deletions().into_iter();
        let deletions = deletions.filter(|one| one.repository == name).map(waiting).collect();
        let then = self.accounts.keeping(name).then;
        Announced { deletions, fewer_kept_from_ns: then.map(|(_, from_ns)| from_ns) }
    }
}

fn refused(reason: String) -> ServerError {
    RepositoryError::Refused { reason }.into()
}

fn waiting(deletion: Deletion) -> WaitingDeletion {
    let Deletion { number, snapshots, superseded, removes, asked_ns, due_ns, .. } = deletion;
    let blocks = superseded.map_or(0, |superseded| superseded.blocks);
    let snapshots = snapshots.iter().filter_map(|id| id.parse().ok()).collect();
    WaitingDeletion { number, snapshots, blocks, whole: removes.is_some(), asked_ns, due_ns }
}
