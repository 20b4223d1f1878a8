//! A script of what a client does, drawn from a seed: every process that is given the seed makes the
//! same blocks and records, so that all that has to be told of a run is how far it came.

use bytes::Bytes;
use holdall_format::{ObjectId, Record, RecordHash, RecordKind};
use holdall_protocol::contract::Forge;
use holdall_testkit::Random;

use crate::machine::forge;

/// A block, and the objects in it.
#[derive(Debug, Clone)]
pub(crate) struct Put {
    pub(crate) ids: Vec<ObjectId>,
    pub(crate) block: Bytes,
}

/// A record, and what it reaches.
#[derive(Debug, Clone)]
pub(crate) struct Commit {
    pub(crate) bytes: Bytes,
    pub(crate) hash: RecordHash,
    pub(crate) kind: RecordKind,
    pub(crate) reaches: Vec<ObjectId>,
}

/// One thing that is asked of the repository, and acknowledged.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Create,
    /// Opens the repository anew.
    Restart,
    Put(Vec<Put>),
    /// By so many threads at once.
    PutTogether(Vec<Put>),
    Commit(Commit),
    Forget(RecordHash),
    Prune,
    /// Puts what is needed of sparse blocks again, and has them give way.
    Compact,
    Wrappings(Bytes),
}

/// The block that a chunk is put into again when the one that it is in gives way.
pub(crate) fn again(chunk: ObjectId) -> Bytes {
    forge().chunks(&[chunk])
}

/// Draws a script.
struct Drawing {
    random: Random,
    forge: Forge,
    steps: Vec<Step>,
    head: Option<(RecordHash, u64)>,
    /// What the next snapshot reaches: what is put for it, and some of what the one before reaches, so
    /// that blocks stay of which little is needed.
    since: Vec<ObjectId>,
    snapshots: Vec<RecordHash>,
    next_id: u32,
    generation: u64,
}

/// The script of a seed: a repository is made, and then so many rounds of a backup and what comes
/// between backups.
pub(crate) fn plan(seed: u64, rounds: u32) -> Vec<Step> {
    let mut drawing = Drawing {
        random: Random::new(seed),
        forge: forge(),
        steps: vec![Step::Create],
        head: None,
        since: Vec::new(),
        snapshots: Vec::new(),
        next_id: 0,
        generation: 1,
    };
    for round in 0..rounds {
        drawing.backup();
        drawing.between(round);
    }
    drawing.steps
}

impl Drawing {
    fn backup(&mut self) {
        for number in 0..2 + self.random.below(3) {
            let put = self.put();
            match self.random.below(3) {
                0 => {
                    let others = [self.put(), self.put()];
                    self.steps.push(Step::PutTogether([vec![put], others.to_vec()].concat()));
                }
                _ => self.steps.push(Step::Put(vec![put])),
            }
            if number == 1 {
                let root = self.root(&self.since.clone());
                self.commit(root, RecordKind::Checkpoint);
            }
            if self.random.one_in(6) {
                self.steps.push(Step::Restart);
            }
        }
        let root = self.root(&self.since.clone());
        self.commit(root, RecordKind::Snapshot);
        self.since.drain(..self.since.len() - 1);
    }

    /// Forgetting, pruning and changing keys.
    fn between(&mut self, round: u32) {
        if self.snapshots.len() > 1 {
            let at = self.random.index(self.snapshots.len() - 1);
            let forgotten = self.snapshots.remove(at);
            self.steps.push(Step::Forget(forgotten));
            self.steps.push(Step::Prune);
            self.steps.push(Step::Compact);
        }
        match round % 3 {
            0 => {
                self.generation += 1;
                self.steps.push(Step::Wrappings(self.forge.wrappings(self.generation)));
            }
            1 => self.steps.push(Step::Restart),
            _ => {}
        }
    }

    fn id(&mut self) -> ObjectId {
        self.next_id += 1;
        ObjectId::from_bytes(*blake3::hash(&self.next_id.to_le_bytes()).as_bytes())
    }

    fn put(&mut self) -> Put {
        let ids: Vec<ObjectId> = (0..1 + self.random.below(3)).map(|_| self.id()).collect();
        // Some go over sectors; a repository of them is still small enough to turn every bit of it.
        let most = if self.random.one_in(5) { 1200 } else { 100 };
        let bytes = 16 + self.random.index(most);
        let block = self.forge.chunks_of_bytes(&ids, bytes);
        self.since.extend(&ids);
        Put { ids, block }
    }

    /// Puts a node over these chunks.
    fn root(&mut self, over: &[ObjectId]) -> ObjectId {
        let id = self.id();
        let chunks: Vec<ObjectId> = over.to_vec();
        let block = self.forge.nodes(&[(id, &chunks)]);
        self.steps.push(Step::Put(vec![Put { ids: vec![id], block }]));
        id
    }

    fn commit(&mut self, root: ObjectId, kind: RecordKind) {
        let bytes = self.forge.record(kind, root, self.head);
        let record = Record::decode(&bytes).unwrap();
        let hash = record.hash();
        self.head = Some((hash, record.head.sequence));
        let reaches = [self.since.clone(), vec![root]].concat();
        if kind == RecordKind::Snapshot {
            self.snapshots.push(hash);
        }
        self.steps.push(Step::Commit(Commit { bytes, hash, kind, reaches }));
    }
}
