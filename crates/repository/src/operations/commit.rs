//! Commit: the check that a record is its machine's next one and that all it reaches is stored,
//! then its publication and receipt.
//!
//! An amendment reaches what the snapshot that it amends reached when it was committed. It is
//! compared with that snapshot and nothing is walked, so that also a snapshot that was damaged since
//! can be tagged.

use bytes::Bytes;
use holdall_format::{
    BlockKind, MachineId, ObjectId, PublicKey, Receipt, Record, RecordHash, RecordHead, RecordKind,
    SessionId, SignedContext, StoredRecord,
};
use holdall_protocol::{CommitAnswer, Denial, RepositoryError};

use crate::opening::open::set_aside;
use crate::reachability::closure::Descend;
use crate::records::entry::NO_RECORD;
use crate::store::{CommitGuard, Store};

/// The start of 2023, in nanoseconds since 1970 UTC. A clock that says an earlier time was never
/// set: nothing of this is older.
pub const EARLIEST_NS: i64 = 1_672_531_200_000_000_000;

fn refused(reason: impl Into<String>) -> RepositoryError {
    RepositoryError::Refused { reason: reason.into() }
}

impl Store {
    /// Answers [`holdall_protocol::Repository::commit`] for a machine whose records that key signs.
    pub(crate) fn commit(
        &self,
        machine: &MachineId,
        key: &PublicKey,
        session: &SessionId,
        bytes: &Bytes,
    ) -> Result<CommitAnswer, RepositoryError> {
        let record = Record::decode(bytes)?;
        self.check_origin(&record.head, machine, key)?;
        let commit = self.lock_commit();
        if let Some(stored) = self.records().find(&record.hash())? {
            return Ok(CommitAnswer::Committed(stored));
        }
        self.check_session(&record.head, session)?;
        self.appender()?;
        self.check_chain(&record.head)?;
        set_aside(self.layout(), self.log())?;
        // An attempt that failed half-way may have left marks.
        self.index().drop_tentative();
        let missing = self.missing_of(&commit, &record.head);
        if !matches!(&missing, Ok(missing) if missing.is_empty()) {
            self.index().drop_tentative();
            return missing.map(CommitAnswer::Missing);
        }
        let _place = self.room().take_reserved(bytes.len() as u64, || self.quota_used_bytes())?;
        let stored = self.receipt(record);
        let published = self.records().publish(&stored, || self.lease().renew());
        let Ok(answer) = published else {
            self.index().drop_tentative();
            return published.map(CommitAnswer::Committed);
        };
        self.index().close_tentative(stored.receipt.log_position);
        self.tend_index();
        if stored.record.head.kind == RecordKind::Snapshot {
            // The record is published whatever comes of this; a session that stays, lapses.
            let _ = self.sessions().end(session);
        }
        Ok(CommitAnswer::Committed(answer))
    }

    /// Checks that a record is of this repository and of the machine that sends it.
    fn check_origin(
        &self,
        head: &RecordHead,
        machine: &MachineId,
        key: &PublicKey,
    ) -> Result<(), RepositoryError> {
        if head.repository != self.repository() {
            return Err(refused("the record is of another repository"));
        }
        if head.machine != *machine || head.key != *key {
            let reason = "a machine commits records of its own, signed by its own key";
            return Err(RepositoryError::denied(Denial::Other, reason));
        }
        Ok(())
    }

    /// Checks the session. Nothing was put for an amendment, so it may have been opened to read.
    fn check_session(&self, head: &RecordHead, session: &SessionId) -> Result<(), RepositoryError> {
        match head.kind {
            RecordKind::Amendment => self.sessions().check(session, &head.machine, self.clock()),
            RecordKind::Snapshot | RecordKind::Checkpoint => {
                self.sessions().check_backup(session, &head.machine, self.clock())
            }
        }
    }

    /// Which objects lack for the record to be published; marks those that it reaches.
    fn missing_of(
        &self,
        commit: &CommitGuard<'_>,
        head: &RecordHead,
    ) -> Result<Vec<ObjectId>, RepositoryError> {
        if let Some(amended) = &head.amends {
            return self.check_amended(amended, head).map(|()| Vec::new());
        }
        self.check_root(commit, head)?;
        self.descend(commit, head.root, Descend::UnmarkedOnly)
    }

    /// Checks that an amendment is of a snapshot of this repository, and has its root.
    fn check_amended(
        &self,
        amended: &RecordHash,
        head: &RecordHead,
    ) -> Result<(), RepositoryError> {
        match self.records().entry(amended) {
            Some(entry) if entry.kind != RecordKind::Snapshot => {
                Err(refused("only a snapshot can be amended"))
            }
            Some(entry) if entry.root != head.root => {
                Err(refused("the amendment's root is not that of the snapshot"))
            }
            Some(_) => Ok(()),
            None => Err(refused(format!("there is no snapshot {amended} to amend"))),
        }
    }

    /// Checks that a record goes on from its machine's head.
    fn check_chain(&self, head: &RecordHead) -> Result<(), RepositoryError> {
        let newest = self.records().head(&head.machine);
        let (hash, sequence) = newest.map_or((None, 0), |head| (Some(head.hash), head.sequence));
        if head.previous != hash.unwrap_or(NO_RECORD) {
            return Err(RepositoryError::HeadMoved { head: hash });
        }
        if Some(head.sequence) != sequence.checked_add(1) {
            let reason = format!("sequence number {} does not follow {sequence}", head.sequence);
            return Err(refused(reason));
        }
        Ok(())
    }

    /// Checks that the root, if it is there, is a node.
    fn check_root(
        &self,
        commit: &CommitGuard<'_>,
        head: &RecordHead,
    ) -> Result<(), RepositoryError> {
        let lookup = self.lookup_holding(commit, vec![head.root])?;
        match lookup.copies_of(0).first() {
            Some(first) if lookup.kind(first) != BlockKind::Nodes => {
                Err(refused("the record's root is no node"))
            }
            _ => Ok(()),
        }
    }

    fn receipt(&self, record: Record) -> StoredRecord {
        let received_ns = self.now_ns();
        let receipt = Receipt {
            clock_sure: received_ns >= EARLIEST_NS,
            repository: self.repository(),
            record: record.hash(),
            log_position: self.log().take(),
            received_ns,
            signer: self.signer().public(),
        };
        let signature = self.signer().sign(SignedContext::Receipt, &receipt.signed_bytes());
        StoredRecord::new(record, receipt, &signature)
    }
}
