//! Commit: the check that a record is its machine's next one and that all it reaches is stored,
//! then its publication and receipt.

use bytes::Bytes;
use holdall_format::{
    BlockKind, MachineId, PublicKey, Receipt, Record, RecordHash, RecordHead, RecordKind,
    SessionId, SignedContext, StoredRecord,
};
use holdall_protocol::{CommitAnswer, RepositoryError};

use crate::closure::{Closed, descend};
use crate::store::{CommitGuard, Store};

/// What a machine's first record has as its previous one.
const NO_RECORD: RecordHash = RecordHash::from_bytes([0; RecordHash::LEN]);

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
        self.sessions().check_backup(session, machine, self.now_ns())?;
        self.appender()?;
        self.check_chain(&record.head)?;
        self.check_root(&commit, &record.head)?;
        // An attempt that failed half-way may have left marks.
        self.index().drop_tentative();
        let missing = descend(self, &commit, record.head.root, Closed::Stops);
        if !matches!(&missing, Ok(missing) if missing.is_empty()) {
            self.index().drop_tentative();
            return missing.map(CommitAnswer::Missing);
        }
        let stored = self.receipt(record);
        let published = self.records().publish(&stored);
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
            let reason = "a machine commits records of its own, signed by its own key".into();
            return Err(RepositoryError::NotAllowed { reason });
        }
        if head.kind == RecordKind::Amendment {
            return Err(refused("amendments are not known to this version"));
        }
        Ok(())
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
        let receipt = Receipt {
            clock_sure: true,
            repository: self.repository(),
            record: record.hash(),
            log_position: self.log().take(),
            received_ns: self.now_ns(),
            signer: self.signer().public(),
        };
        let signature = self.signer().sign(SignedContext::Receipt, &receipt.signed_bytes());
        StoredRecord::new(record, receipt, &signature)
    }
}
