//! What has to be there after a crash, and whether it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bytes::Bytes;
use holdall_format::{ObjectId, RecordHash, RecordKind, StoredRecord, Tombstone};
use holdall_protocol::{CommitAnswer, RecordQuery, Repository, RepositoryError, SessionPurpose};

use crate::machine::{forge, open};
use crate::plan::{Commit, Step, again};
use crate::script::read_notes;

/// What was promised, and what was on its way.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    is_made: bool,
    blocks: BTreeMap<ObjectId, Bytes>,
    /// What was put since the last snapshot.
    since: BTreeSet<ObjectId>,
    committed: Vec<Commit>,
    /// The record whose commit was not answered.
    on_its_way: Option<Commit>,
    /// Whose forgetting was acknowledged.
    forgotten: BTreeSet<RecordHash>,
    /// Whose forgetting was begun.
    may_be_forgotten: BTreeSet<RecordHash>,
    wrappings: Vec<Bytes>,
}

impl Expected {
    /// What is promised by a plan whose notes say so much.
    pub(crate) fn after(plan: &[Step], said: &str) -> Self {
        let (begun, done) = read_notes(said);
        let mut expected = Self::default();
        plan.iter().take(done).for_each(|step| expected.acknowledge(step));
        if let Some(step) = begun.and_then(|begun| plan.get(begun)) {
            expected.begin(step);
        }
        expected
    }

    fn acknowledge(&mut self, step: &Step) {
        self.begin(step);
        match step {
            Step::Create => {
                self.is_made = true;
                self.wrappings = vec![forge().wrappings(1)];
            }
            Step::Put(puts) | Step::PutTogether(puts) => {
                for put in puts {
                    self.since.extend(&put.ids);
                }
            }
            Step::Commit(commit) => {
                self.on_its_way = None;
                if commit.kind == RecordKind::Snapshot {
                    self.since.clear();
                }
                self.committed.push(commit.clone());
            }
            Step::Forget(hash) => drop(self.forgotten.insert(*hash)),
            Step::Wrappings(bytes) => self.wrappings = vec![bytes.clone()],
            Step::Prune | Step::Compact | Step::Restart => {}
        }
    }

    /// What may have happened once a step was asked for.
    fn begin(&mut self, step: &Step) {
        match step {
            Step::Put(puts) | Step::PutTogether(puts) => {
                for put in puts {
                    self.blocks.extend(put.ids.iter().map(|id| (*id, put.block.clone())));
                }
            }
            Step::Commit(commit) => self.on_its_way = Some(commit.clone()),
            Step::Forget(hash) => drop(self.may_be_forgotten.insert(*hash)),
            Step::Prune => {
                let checkpoints = self.committed.iter().rev().skip(1);
                let superseded = checkpoints.filter(|one| one.kind == RecordKind::Checkpoint);
                self.may_be_forgotten.extend(superseded.map(|one| one.hash));
            }
            Step::Wrappings(bytes) => self.wrappings.push(bytes.clone()),
            Step::Create | Step::Compact | Step::Restart => {}
        }
    }

    /// What the snapshots reach that nobody asked to be forgotten, with the blocks it was put in.
    pub(crate) fn needed(&self) -> BTreeMap<ObjectId, Bytes> {
        let is_there = |one: &&Commit| !self.may_be_forgotten.contains(&one.hash);
        let snapshots = self.committed.iter().filter(|one| one.kind == RecordKind::Snapshot);
        let reached = snapshots.filter(is_there).flat_map(|one| &one.reaches);
        reached.map(|id| (*id, self.blocks[id].clone())).collect()
    }

    /// What these reach, and what was put since the last snapshot.
    fn reached<'a>(&self, listed: impl Iterator<Item = &'a Commit>) -> BTreeSet<ObjectId> {
        let reached = listed.flat_map(|commit| commit.reaches.iter());
        reached.chain(&self.since).copied().collect()
    }

    /// Opens what is on `disk` as after a reboot and compares it with what was promised, then goes
    /// on with it.
    pub(crate) fn check(&self, disk: &Path) -> Result<(), String> {
        let repository = open(disk);
        match repository.describe() {
            Ok(description) if self.is_made => {
                if !self.wrappings.contains(&description.wrappings) {
                    return Err("the wrappings are not those that were put last".into());
                }
            }
            Ok(_) => {}
            Err(error) if self.is_made => return Err(format!("it does not open: {error}")),
            // It was being made: it can be made now.
            Err(RepositoryError::NoRepository { .. }) => {
                repository.create(&forge().new_repository()).map_err(said("making it"))?;
            }
            Err(error) => return Err(format!("half made: {error}")),
        }
        let listed = self.check_list(&repository)?;
        self.check_objects(&repository, &listed)?;
        let report = repository.scrub(&mut |_| {}).map_err(said("scrubbing"))?;
        if !report.damaged.is_empty() {
            return Err(format!("a false alarm: {:?}", report.damaged));
        }
        self.go_on(&repository, &listed)?;
        drop(repository);
        let repository = open(disk);
        let again = repository.scrub(&mut |_| {}).map_err(said("scrubbing again"))?;
        if again.damaged.is_empty() { Ok(()) } else { Err(format!("later: {:?}", again.damaged)) }
    }

    /// What is listed, which is what was committed and not forgotten, and nothing else.
    fn check_list(&self, repository: &dyn Repository) -> Result<Vec<Commit>, String> {
        let query = RecordQuery { limit: 100, ..RecordQuery::default() };
        let mut known = self.committed.iter().chain(&self.on_its_way);
        let mut found = Vec::new();
        for one in repository.records(&query).map_err(said("listing"))? {
            let (hash, is_tombstone) = if Tombstone::is_begun_by(&one.stored) {
                let (tombstone, _) =
                    Tombstone::decode_signed(&one.stored).map_err(|error| error.to_string())?;
                (tombstone.record, true)
            } else {
                let stored =
                    StoredRecord::decode(&one.stored).map_err(|error| error.to_string())?;
                (stored.record.hash(), false)
            };
            let Some(commit) = known.next().filter(|commit| commit.hash == hash) else {
                return Err(format!("record {hash} is listed out of its turn"));
            };
            if is_tombstone && !self.may_be_forgotten.contains(&hash) {
                return Err(format!("record {hash} was forgotten by nobody"));
            }
            if !is_tombstone && self.forgotten.contains(&hash) {
                return Err(format!("record {hash} was forgotten and is there"));
            }
            found.push((commit.clone(), is_tombstone));
        }
        if found.len() < self.committed.len() {
            return Err(format!("{} of {} records", found.len(), self.committed.len()));
        }
        let there = found.into_iter().filter(|(_, is_tombstone)| !is_tombstone);
        Ok(there.map(|(commit, _)| commit).collect())
    }

    /// Everything that is listed can be fetched and is what was put.
    fn check_objects(&self, repository: &dyn Repository, listed: &[Commit]) -> Result<(), String> {
        let read = SessionPurpose::Read;
        let session = repository.open_session(&read).map_err(said("reading"))?.session;
        for id in self.reached(listed.iter()) {
            let fetched = repository
                .fetch_objects(&session, &[id], 0)
                .map_err(|error| format!("{id} cannot be fetched: {error}"))?;
            let is_put =
                self.blocks.get(&id).is_some_and(|block| fetched.blocks == [block.clone()]);
            if !is_put && fetched.blocks != [again(id)] {
                return Err(format!("{id} is not what was put"));
            }
        }
        repository.close_session(&session).map_err(said("closing"))
    }

    /// The next backup works: what was on its way is committed, and a new snapshot behind it.
    fn go_on(&self, repository: &dyn Repository, listed: &[Commit]) -> Result<(), String> {
        let purpose = SessionPurpose::Backup { parents: vec![] };
        let session = repository.open_session(&purpose).map_err(said("a session"))?.session;
        let since: Vec<ObjectId> = self.since.iter().copied().collect();
        let missing = repository.missing(&session, &since).map_err(said("asking"))?;
        if self.is_made && missing.contains(&true) {
            return Err("what was put is to be sent again".into());
        }
        let mut committed: Vec<&Commit> = self.committed.iter().collect();
        if let Some(commit) = &self.on_its_way {
            let again = repository.commit(&session, &commit.bytes).map_err(said("committing"))?;
            if !matches!(again, CommitAnswer::Committed(_)) {
                return Err("what was on its way cannot be committed".into());
            }
            committed.push(commit);
        }
        let head = committed.last().map(|last| (last.hash, committed.len() as u64));
        let purpose = SessionPurpose::Backup { parents: vec![] };
        let session = repository.open_session(&purpose).map_err(said("a session"))?.session;
        let (chunk, root) = (new_id("chunk"), new_id("root"));
        // Salts of its own: no block of the plan is like these.
        let forge = forge();
        let chunks = forge.chunks_of_bytes(&[chunk], 5000);
        let reach: Vec<ObjectId> = listed.iter().flat_map(|one| one.reaches.clone()).collect();
        let node = forge.nodes(&[(root, &[vec![chunk], reach].concat())]);
        repository.put_blocks(&session, &[chunks, node]).map_err(said("putting"))?;
        let record = forge.record(RecordKind::Snapshot, root, head);
        match repository.commit(&session, &record).map_err(said("committing"))? {
            CommitAnswer::Committed(_) => Ok(()),
            CommitAnswer::Missing(missing) => Err(format!("a new snapshot misses {missing:?}")),
        }
    }
}

fn new_id(name: &str) -> ObjectId {
    ObjectId::from_bytes(*blake3::hash(name.as_bytes()).as_bytes())
}

fn said(what: &'static str) -> impl Fn(RepositoryError) -> String {
    move |error| format!("{what}: {error}")
}
