//! A repository and its only client, that puts what is missing as a real one does.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use holdall_format::{ObjectId, Record, RecordHash, RecordKind, SessionId};
use holdall_protocol::contract::Forge;
use holdall_protocol::{CommitAnswer, OwnedRepository, PruneReport, Repository, SessionPurpose};
use holdall_repository::{EmbeddedRepository, Store};

use crate::world::{MACHINE, MACHINE_SEED, World, signer};

/// The id of what is called that.
pub(crate) fn id(name: &str) -> ObjectId {
    ObjectId::from_bytes(*blake3::hash(name.as_bytes()).as_bytes())
}

/// A repository and what its client remembers.
pub(crate) struct House {
    pub(crate) world: World,
    pub(crate) forge: Forge,
    pub(crate) head: Option<(RecordHash, u64)>,
}

impl House {
    pub(crate) fn new() -> Self {
        let world = World::new();
        let forge = Forge::new(1, MACHINE, &MACHINE_SEED);
        world.handle().create(&forge.new_repository()).unwrap();
        Self { world, forge, head: None }
    }

    pub(crate) fn repository(&self) -> Arc<EmbeddedRepository> {
        self.world.handle()
    }

    pub(crate) fn session(&self, parents: &[RecordHash]) -> SessionId {
        let purpose = SessionPurpose::Backup { parents: parents.to_vec() };
        self.repository().open_session(&purpose).unwrap().session
    }

    /// Puts what is missing of these chunks, a block of so many bytes each, and a root over them.
    pub(crate) fn put(&self, session: &SessionId, root: &str, chunks: &[String], bytes: usize) {
        let ids: Vec<ObjectId> = chunks.iter().map(|chunk| id(chunk)).collect();
        let missing = self.repository().missing(session, &ids).unwrap();
        for (chunk, _) in ids.iter().zip(missing).filter(|(_, is_missing)| *is_missing) {
            let block = self.forge.chunks_of_bytes(&[*chunk], bytes);
            self.repository().put_blocks(session, &[block]).unwrap();
        }
        if self.repository().missing(session, &[id(root)]).unwrap()[0] {
            let node = self.forge.nodes(&[(id(root), &ids)]);
            self.repository().put_blocks(session, &[node]).unwrap();
        }
    }

    pub(crate) fn try_commit(
        &mut self,
        session: &SessionId,
        root: &str,
    ) -> Result<RecordHash, Vec<ObjectId>> {
        let bytes = self.forge.record(RecordKind::Snapshot, id(root), self.head);
        match self.repository().commit(session, &bytes).unwrap() {
            CommitAnswer::Missing(missing) => Err(missing),
            CommitAnswer::Committed(_) => {
                let record = Record::decode(&bytes).unwrap();
                self.head = Some((record.hash(), record.head.sequence));
                Ok(record.hash())
            }
        }
    }

    /// A snapshot of a root over these chunks.
    pub(crate) fn snapshot(&mut self, root: &str, chunks: &[String], bytes: usize) -> RecordHash {
        let session = self.session(&[]);
        self.put(&session, root, chunks, bytes);
        self.try_commit(&session, root).unwrap()
    }

    /// A snapshot of so many nodes that one that is not needed stays beside them.
    pub(crate) fn snapshot_of_nodes(&mut self, root: &str) {
        let session = self.session(&[]);
        let leaves: Vec<ObjectId> = (0..10).map(|number| id(&format!("leaf {number}"))).collect();
        for leaf in &leaves {
            self.repository().put_blocks(&session, &[self.forge.nodes(&[(*leaf, &[])])]).unwrap();
        }
        let node = self.forge.nodes(&[(id(root), &leaves)]);
        self.repository().put_blocks(&session, &[node]).unwrap();
        self.try_commit(&session, root).unwrap();
    }

    pub(crate) fn prune(&self) -> PruneReport {
        self.repository().prune(false).unwrap()
    }

    /// Whether an object can be fetched.
    pub(crate) fn has(&self, object: ObjectId) -> bool {
        let session = self.repository().open_session(&SessionPurpose::Read).unwrap().session;
        let fetched = self.repository().fetch_objects(&session, &[object], 0);
        self.repository().close_session(&session).unwrap();
        fetched.is_ok_and(|fetched| fetched.blocks.len() == 1)
    }

    pub(crate) fn assert_whole(&self) {
        assert_eq!(self.repository().scrub(&mut |_| {}).unwrap().damaged, []);
    }

    /// The directory opened as a server does, which prunes with a grace.
    pub(crate) fn store(&mut self) -> Arc<Store> {
        self.world.close();
        let (dir, cache) = (self.world.dir(), self.world.cache_dir());
        Store::open(&dir, &cache, signer(), self.world.clock.clone()).unwrap()
    }
}

/// Names of chunks.
pub(crate) fn names(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| format!("chunk {number}")).collect()
}

/// Copies the files of a folder.
pub(crate) fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap().map(|file| file.unwrap()) {
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}
