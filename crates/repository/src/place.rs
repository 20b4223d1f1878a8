//! A repository in a temporary folder, for tests of what is behind its face.

use std::sync::Arc;

use holdall_format::{MachineId, ObjectId, RecordHash, RecordHead, RecordKind, SessionId};
use holdall_protocol::contract::{Forge, TestKey};
use holdall_protocol::{CommitAnswer, Repository, SessionPurpose};
use holdall_testkit::FakeClock;

use crate::embedded::EmbeddedRepository;
use crate::store::Store;

pub(crate) const MACHINE: MachineId = MachineId::from_bytes([7; 16]);

/// A repository with one machine.
pub(crate) struct Place {
    dir: tempfile::TempDir,
    pub(crate) forge: Forge,
    pub(crate) clock: Arc<FakeClock>,
    pub(crate) store: Arc<Store>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let forge = Forge::new(1, MACHINE, &[8; 32]);
        let clock = Arc::new(FakeClock::at(1));
        Store::create(&dir.path().join("repository"), &forge.new_repository()).unwrap();
        let store = open(&dir, &clock);
        Self { dir, forge, clock, store }
    }

    /// The same repository, opened again with an empty cache.
    pub(crate) fn opened_without_cache(self) -> Self {
        let Self { dir, forge, clock, store } = self;
        drop(store);
        std::fs::remove_dir_all(dir.path().join("cache")).unwrap();
        let store = open(&dir, &clock);
        Self { dir, forge, clock, store }
    }

    pub(crate) fn machine(&self) -> EmbeddedRepository {
        self.store.for_machine(MACHINE, self.forge.key.public())
    }

    /// A new session to back up that builds on nothing.
    pub(crate) fn session(&self) -> SessionId {
        self.session_on(&[])
    }

    /// A new session to back up that builds on these.
    pub(crate) fn session_on(&self, parents: &[RecordHash]) -> SessionId {
        let purpose = SessionPurpose::Backup { parents: parents.to_vec() };
        self.machine().open_session(&purpose).unwrap().session
    }

    /// Commits a snapshot with that root.
    pub(crate) fn commit_root(&self, session: &SessionId, root: ObjectId) {
        self.commit_changed(session, root, |_| ());
    }

    /// Commits a snapshot with that root whose head was changed before it was signed.
    pub(crate) fn commit_changed(
        &self,
        session: &SessionId,
        root: ObjectId,
        change: impl FnOnce(&mut RecordHead),
    ) {
        let newest = self.store.records().head(&MACHINE).map(|head| (head.hash, head.sequence));
        let mut head = self.forge.record_head(RecordKind::Snapshot, root, newest);
        change(&mut head);
        let answer = self.machine().commit(session, &self.forge.sign(head)).unwrap();
        assert!(matches!(answer, CommitAnswer::Committed(_)), "{answer:?}");
    }
}

fn open(dir: &tempfile::TempDir, clock: &Arc<FakeClock>) -> Arc<Store> {
    let (repository, cache) = (dir.path().join("repository"), dir.path().join("cache"));
    let signer = Arc::new(TestKey::from_seed(&[9; 32]));
    Store::open(&repository, &cache, signer, clock.clone()).unwrap()
}

/// An object of that number.
pub(crate) fn id(number: u32) -> ObjectId {
    ObjectId::from_bytes(*blake3::hash(&number.to_le_bytes()).as_bytes())
}
