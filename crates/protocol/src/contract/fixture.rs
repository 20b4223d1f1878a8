//! A made repository with one machine, and the steps that most cases begin with.

use std::sync::Arc;

use bytes::Bytes;
use holdall_format::{ObjectId, Record, RecordHash, RecordKind, SessionId, StoredRecord};

use super::ContractWorld;
use super::forge::Forge;
use crate::{CommitAnswer, ListedRecord, RecordQuery, Repository, RepositoryError, SessionPurpose};

/// What a chain goes on from: hash and sequence number of the machine's newest record.
pub(super) type Head = Option<(RecordHash, u64)>;

/// A repository that was just made.
pub(super) struct Fixture<'a> {
    world: &'a mut dyn ContractWorld,
    /// The machine's handle.
    pub(super) repository: Arc<dyn Repository>,
    /// Forges for this repository.
    pub(super) forge: Forge,
}

impl<'a> Fixture<'a> {
    pub(super) fn new(world: &'a mut dyn ContractWorld) -> Self {
        let forge = Forge::new(1, world.machine(), &world.machine_seed());
        let repository = world.repository();
        repository.create(&forge.new_repository()).expect("an empty place takes a repository");
        Self { world, repository, forge }
    }

    /// Stops and starts what keeps the repository.
    pub(super) fn restarted(self) -> Self {
        drop(self.repository);
        self.world.restart();
        let repository = self.world.repository();
        Self { repository, ..self }
    }

    /// A new backup session.
    pub(super) fn session(&self) -> SessionId {
        let purpose = SessionPurpose::Backup { parents: vec![] };
        self.repository.open_session(&purpose).expect("nobody else writes").session
    }

    pub(super) fn put(&self, session: &SessionId, blocks: &[Bytes]) {
        self.repository.put_blocks(session, blocks).expect("good blocks are taken");
    }

    pub(super) fn missing(&self, session: &SessionId, ids: &[ObjectId]) -> Vec<bool> {
        self.repository.missing(session, ids).expect("the question is allowed")
    }

    /// Commits and expects it to be done.
    pub(super) fn commit(&self, session: &SessionId, record: &Bytes) -> StoredRecord {
        match self.repository.commit(session, record).expect("the record is right") {
            CommitAnswer::Committed(stored) => StoredRecord::decode(&stored).expect("it decodes"),
            CommitAnswer::Missing(ids) => panic!("{} objects are said to be missing", ids.len()),
        }
    }

    /// Commits and expects objects to be missing.
    pub(super) fn commit_lacks(&self, session: &SessionId, record: &Bytes) -> Vec<ObjectId> {
        match self.repository.commit(session, record).expect("the record is right") {
            CommitAnswer::Committed(_) => panic!("an open snapshot was committed"),
            CommitAnswer::Missing(mut ids) => {
                ids.sort_unstable();
                ids
            }
        }
    }

    /// Puts one node over `chunks`, which are put too, and commits a snapshot of it.
    pub(super) fn snapshot(&self, name: &str, chunks: &[ObjectId], head: Head) -> Head {
        let session = self.session();
        let root = super::forge::id(name);
        self.put(&session, &[self.forge.chunks(chunks), self.forge.nodes(&[(root, chunks)])]);
        let record = self.forge.record(RecordKind::Snapshot, root, head);
        self.commit(&session, &record);
        head_after(&record)
    }

    pub(super) fn all_records(&self) -> Vec<StoredRecord> {
        let query = RecordQuery { limit: 100, ..RecordQuery::default() };
        let records = self.repository.records(&query).expect("records are listed");
        records.iter().map(stored).collect()
    }
}

/// A listed record, which is whole and where it says that it is.
pub(super) fn stored(listed: &ListedRecord) -> StoredRecord {
    let stored = StoredRecord::decode(&listed.stored).expect("it decodes");
    assert_eq!(stored.receipt.log_position, listed.position);
    stored
}

/// What the next record goes on from.
pub(super) fn head_after(record: &Bytes) -> Head {
    let record = Record::decode(record).expect("the forge makes good records");
    Some((record.hash(), record.head.sequence))
}

/// Checks that a request was refused by a rule, not by an accident.
pub(super) fn assert_refused<T: std::fmt::Debug>(answer: Result<T, RepositoryError>) {
    match answer {
        Err(RepositoryError::Refused { .. } | RepositoryError::NotAllowed { .. }) => {}
        other => panic!("expected to be refused, got {other:?}"),
    }
}

/// Checks that the session was not accepted.
pub(super) fn assert_no_session<T: std::fmt::Debug>(answer: Result<T, RepositoryError>) {
    assert!(matches!(answer, Err(RepositoryError::NoSession { .. })), "got {answer:?}");
}
