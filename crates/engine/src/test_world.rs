//! A repository in memory that a test can damage, and trees written entry by entry.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use holdall_crypto::{
    KeyRing, PlainObject, RecordSecret, RepositoryKeys, Sealer, SigningKey, SystemEntropy,
};
use holdall_format::{
    Block, BlockKind, MachineId, ObjectId, Receipt, Record, RecordHash, RecordHead, RecordKind,
    RepositoryId, SeriesId, SessionId, SignedContext, StoredRecord, Suite, prove_slice,
};
use holdall_protocol::{
    BlockPage, BlockProbe, CommitAnswer, Description, FETCH_TARGET_BYTES, Fetched, ListedRecord,
    NewRepository, RecordQuery, RecordsDigest, Repository, RepositoryError, RequestTimes,
    ScrubProgress, ScrubReport, SessionGrant, SessionPurpose, Traffic, Usage,
};
use holdall_tree::{BuiltNode, ChunkRef, Content, Entry, EntryKind, PathKey, TreeBuilder};

use crate::backup::{BackupOptions, Source, backup};
use crate::records::snapshots::snapshots;
use crate::run::lock;
use crate::{EngineError, Run, Snapshot, UnlockedRepository};

/// Keeps blocks and records, and forgets or breaks them when told to.
pub(crate) struct MemoryRepository {
    signing: Arc<SigningKey>,
    stored: Mutex<Stored>,
}

#[derive(Default)]
struct Stored {
    blocks: Vec<Bytes>,
    places: HashMap<ObjectId, Vec<usize>>,
    records: Vec<Bytes>,
    head: Option<(RecordHash, u64)>,
    fetches: usize,
    records_given: usize,
    head_moves: bool,
    /// Whether it cannot be reached when it is to prove something.
    away_for_proofs: bool,
    /// Blocks as they were, which it proves with and gives nobody.
    proven_with: Vec<Bytes>,
    /// How many objects it was said to lack, if it says so at every commit.
    lacks: Option<u64>,
    /// Blocks that are taken before it has no more room, if that is limited.
    room_blocks: Option<usize>,
}

impl MemoryRepository {
    fn new(signing: Arc<SigningKey>) -> Self {
        Self { signing, stored: Mutex::default() }
    }

    /// Stores one block as it is.
    pub(crate) fn put(&self, bytes: Bytes) {
        let ids = Block::decode(bytes.clone()).expect("a whole block");
        let ids: Vec<_> = ids.table().entries.iter().map(|entry| entry.id).collect();
        let mut stored = lock(&self.stored);
        let at = stored.blocks.len();
        stored.blocks.push(bytes);
        ids.into_iter().for_each(|id| stored.places.entry(id).or_default().push(at));
    }

    /// Flips a bit in the payload of every block that holds an object.
    pub(crate) fn damage(&self, id: &ObjectId) {
        let mut stored = lock(&self.stored);
        for at in stored.places.get(id).cloned().unwrap_or_default() {
            let mut bytes = stored.blocks[at].to_vec();
            *bytes.last_mut().expect("not empty") ^= 1;
            stored.blocks[at] = bytes.into();
        }
    }

    /// The same once for each block that holds any of certain objects.
    pub(crate) fn damage_all(&self, is_hit: impl Fn(&ObjectId) -> bool) {
        let mut stored = lock(&self.stored);
        let hit = stored.places.iter().filter(|(id, _)| is_hit(id));
        let hit: HashSet<usize> = hit.flat_map(|(_, at)| at.iter().copied()).collect();
        for at in hit {
            let mut bytes = stored.blocks[at].to_vec();
            *bytes.last_mut().expect("not empty") ^= 1;
            stored.blocks[at] = bytes.into();
        }
    }

    /// Cannot be reached for proofs from now on, or can.
    pub(crate) fn be_away_for_proofs(&self, away: bool) {
        lock(&self.stored).away_for_proofs = away;
    }

    /// Proves from now on what it has now, whatever becomes of what it has.
    pub(crate) fn keep_what_proves(&self) {
        let mut stored = lock(&self.stored);
        stored.proven_with = stored.blocks.clone();
    }

    /// Answers every commit from now on with another object that it does not have.
    pub(crate) fn lack_ever_more(&self) {
        lock(&self.stored).lacks = Some(0);
    }

    /// How many commits it answered so.
    pub(crate) fn lacks(&self) -> Option<u64> {
        lock(&self.stored).lacks
    }

    /// Takes so many blocks from now on, or any number.
    pub(crate) fn limit_room(&self, blocks: Option<usize>) {
        lock(&self.stored).room_blocks = blocks;
    }

    /// All blocks.
    pub(crate) fn blocks(&self) -> Vec<Bytes> {
        lock(&self.stored).blocks.clone()
    }

    /// All blocks, which are not here any more.
    pub(crate) fn take_blocks(&self) -> Vec<Bytes> {
        let mut stored = lock(&self.stored);
        stored.places.clear();
        std::mem::take(&mut stored.blocks)
    }

    /// Loses an object.
    pub(crate) fn lose(&self, id: &ObjectId) {
        lock(&self.stored).places.remove(id);
    }

    /// Whether a block of that kind holds the object.
    pub(crate) fn is_in(&self, id: &ObjectId, kind: BlockKind) -> bool {
        let stored = lock(&self.stored);
        let blocks = stored.places.get(id).into_iter().flatten().map(|at| &stored.blocks[*at]);
        blocks.into_iter().any(|block| {
            Block::decode(block.clone()).is_ok_and(|block| block.header().kind == kind)
        })
    }

    /// Lists the last record once more, with a receipt that somebody else signed for it.
    pub(crate) fn forge_receipt(&self, signer: &SigningKey) {
        let mut stored = lock(&self.stored);
        let last = StoredRecord::decode(stored.records.last().expect("a record")).expect("whole");
        let log_position = last.receipt.log_position + 1;
        let receipt = Receipt { log_position, signer: signer.public(), ..last.receipt };
        let signature = signer.sign(SignedContext::Receipt, &receipt.signed_bytes());
        stored.records.push(StoredRecord::new(last.record, receipt, &signature).encode().into());
    }

    /// Lists the last record once more, as it is.
    pub(crate) fn list_again(&self) {
        let mut stored = lock(&self.stored);
        let last = stored.records.last().expect("a record").clone();
        stored.records.push(last);
    }

    /// Refuses the next record as one that does not go on from the head.
    pub(crate) fn move_head_once(&self) {
        lock(&self.stored).head_moves = true;
    }

    /// Loses a record, counted from 0.
    pub(crate) fn lose_record(&self, at: usize) {
        lock(&self.stored).records.remove(at);
    }

    /// Flips a bit at the end of a record, counted from 0.
    pub(crate) fn damage_record(&self, at: usize) {
        let mut stored = lock(&self.stored);
        let mut bytes = stored.records[at].to_vec();
        *bytes.last_mut().expect("not empty") ^= 1;
        stored.records[at] = bytes.into();
    }

    /// How many records were listed.
    pub(crate) fn records_given(&self) -> usize {
        lock(&self.stored).records_given
    }

    /// How often blocks were asked for.
    pub(crate) fn fetches(&self) -> usize {
        lock(&self.stored).fetches
    }

    /// Ids of all objects.
    pub(crate) fn ids(&self) -> Vec<ObjectId> {
        lock(&self.stored).places.keys().copied().collect()
    }
}

fn refused(reason: &str) -> RepositoryError {
    RepositoryError::Refused { reason: reason.to_owned() }
}

impl Repository for MemoryRepository {
    fn create(&self, _: &NewRepository) -> Result<(), RepositoryError> {
        Err(refused("it is made"))
    }

    fn put_back(&self, _: &NewRepository) -> Result<(), RepositoryError> {
        Err(refused("not needed"))
    }

    fn put_back_record(&self, _: &Bytes) -> Result<(), RepositoryError> {
        Err(refused("not needed"))
    }

    fn describe(&self) -> Result<Description, RepositoryError> {
        Err(refused("not needed"))
    }

    fn put_wrappings(&self, _: &Bytes) -> Result<(), RepositoryError> {
        Err(refused("not needed"))
    }

    fn open_session(&self, _: &SessionPurpose) -> Result<SessionGrant, RepositoryError> {
        let head = lock(&self.stored).head;
        Ok(SessionGrant {
            session: SessionId::from_bytes([9; 16]),
            head: head.map(|(head, _)| head),
            sequence: head.map_or(0, |(_, sequence)| sequence),
        })
    }

    fn missing(&self, _: &SessionId, ids: &[ObjectId]) -> Result<Vec<bool>, RepositoryError> {
        let stored = lock(&self.stored);
        Ok(ids.iter().map(|id| !stored.places.contains_key(id)).collect())
    }

    fn put_blocks(&self, _: &SessionId, blocks: &[Bytes]) -> Result<RequestTimes, RepositoryError> {
        for block in blocks {
            if let Some(room) = &mut lock(&self.stored).room_blocks {
                let full = || RepositoryError::NoRoom { place: "memory".to_owned() };
                *room = room.checked_sub(1).ok_or_else(full)?;
            }
            self.put(block.clone());
        }
        Ok(RequestTimes::default())
    }

    fn commit(&self, _: &SessionId, bytes: &Bytes) -> Result<CommitAnswer, RepositoryError> {
        let record = Record::decode(bytes)?;
        let mut stored = lock(&self.stored);
        if std::mem::take(&mut stored.head_moves) {
            return Err(RepositoryError::HeadMoved { head: stored.head.map(|(head, _)| head) });
        }
        if let Some(lacks) = &mut stored.lacks {
            *lacks += 1;
            let id = ObjectId::from_bytes(*blake3::hash(&lacks.to_le_bytes()).as_bytes());
            return Ok(CommitAnswer::Missing(vec![id]));
        }
        let receipt = Receipt {
            clock_sure: true,
            repository: record.head.repository,
            record: record.hash(),
            log_position: stored.records.len() as u64 + 1,
            received_ns: stored.records.len() as i64 + 1,
            signer: self.signing.public(),
        };
        let signature = self.signing.sign(SignedContext::Receipt, &receipt.signed_bytes());
        stored.head = Some((record.hash(), record.head.sequence));
        let answer = Bytes::from(StoredRecord::new(record, receipt, &signature).encode());
        stored.records.push(answer.clone());
        Ok(CommitAnswer::Committed(answer))
    }

    fn close_session(&self, _: &SessionId) -> Result<(), RepositoryError> {
        Ok(())
    }

    fn records(&self, query: &RecordQuery) -> Result<Vec<ListedRecord>, RepositoryError> {
        let after = usize::try_from(query.after_position).unwrap_or(usize::MAX);
        let mut stored = lock(&self.stored);
        let records = (1..).zip(stored.records.iter());
        let listed =
            |(position, stored): (_, &Bytes)| ListedRecord { position, stored: stored.clone() };
        let records: Vec<_> = records.map(listed).collect();
        let (before, behind) = records.split_at(after.min(records.len()));
        if query.known.is_some_and(|known| known != RecordsDigest::of(before)) {
            return Err(RepositoryError::OtherRecords);
        }
        let given: Vec<_> = behind.iter().take(query.limit).cloned().collect();
        stored.records_given += given.len();
        Ok(given)
    }

    fn fetch_objects(
        &self,
        _: &SessionId,
        ids: &[ObjectId],
        copy: u32,
    ) -> Result<Fetched, RepositoryError> {
        let mut stored = lock(&self.stored);
        stored.fetches += 1;
        let (mut blocks, mut given, mut bytes) = (Vec::new(), HashSet::new(), 0);
        for id in ids {
            let Some(&at) = stored.places.get(id).and_then(|at| at.get(copy as usize)) else {
                if blocks.is_empty() {
                    return Err(RepositoryError::MissingObjects { ids: vec![*id] });
                }
                break;
            };
            if given.insert(at) {
                bytes += stored.blocks[at].len();
                blocks.push(stored.blocks[at].clone());
            }
            if bytes >= FETCH_TARGET_BYTES {
                break;
            }
        }
        Ok(Fetched { blocks, times: RequestTimes::default() })
    }

    fn read_blocks(&self, _: &SessionId, cursor: u64) -> Result<BlockPage, RepositoryError> {
        let stored = lock(&self.stored);
        let block = stored.blocks.get(cursor as usize).cloned();
        let next = (cursor as usize + 1 < stored.blocks.len()).then_some(cursor + 1);
        Ok(BlockPage { blocks: block.into_iter().collect(), damaged: Vec::new(), next })
    }

    fn prove_blocks(
        &self,
        _: &SessionId,
        probes: &[BlockProbe],
    ) -> Result<Vec<Option<Bytes>>, RepositoryError> {
        let stored = lock(&self.stored);
        if stored.away_for_proofs {
            let (address, reason) = ("memory".to_owned(), "it is away".to_owned());
            return Err(RepositoryError::Unreachable { address, reason });
        }
        let of = |probe: &BlockProbe| {
            let here = stored.places.get(&probe.object)?.iter().map(|at| &stored.blocks[*at]);
            let mut blocks = here.chain(&stored.proven_with);
            let block =
                blocks.find(|block| blake3::hash(block).as_bytes() == probe.block.as_bytes())?;
            prove_slice(block, probe.slice).map(Bytes::from)
        };
        Ok(probes.iter().map(of).collect())
    }

    fn scrub(&self, _: &mut dyn FnMut(ScrubProgress)) -> Result<ScrubReport, RepositoryError> {
        Ok(ScrubReport::default())
    }

    fn usage(&self) -> Result<Usage, RepositoryError> {
        Err(refused("not needed"))
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
}

/// A repository with its keys, and a cache folder that goes with it.
pub(crate) struct World {
    pub(crate) access: UnlockedRepository,
    pub(crate) repository: Arc<MemoryRepository>,
    _cache: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_secret([3; 32])
    }

    /// One with keys of its own.
    pub(crate) fn with_secret(secret: [u8; 32]) -> Self {
        let keys = Arc::new(RepositoryKeys::derive(&KeyRing::from_master(secret)));
        let signing = Arc::new(SigningKey::from_seed(&[4; 32]));
        let repository = Arc::new(MemoryRepository::new(Arc::clone(&signing)));
        let config = keys.new_config(Suite::Aes256Gcm, 3, 128).expect("within the limits");
        let config = keys.check_config(&config).expect("its own");
        let cache = tempfile::tempdir().expect("a folder");
        let access = UnlockedRepository {
            repository: Arc::clone(&repository) as Arc<dyn Repository>,
            keys,
            config,
            machine: MachineId::from_bytes([5; 16]),
            receipts_from: signing.public(),
            signing,
            cache: cache.path().to_owned(),
            traffic_told: Mutex::default(),
        };
        Self { access, repository, _cache: cache }
    }

    /// All snapshots, of which some may be damaged.
    pub(crate) fn snapshots(&self) -> Vec<Snapshot> {
        snapshots(&self.access).expect("records").snapshots
    }

    /// Backs up a folder as a new snapshot.
    pub(crate) fn back_up(&self, folder: &std::path::Path) -> Snapshot {
        self.back_up_known(folder);
        self.snapshots().pop().expect("the new one")
    }

    /// The same, listing nothing but what is not known.
    pub(crate) fn back_up_known(&self, folder: &std::path::Path) {
        let path = folder.to_str().expect("an ordinary path").as_bytes().to_vec();
        let source = Source { path: path.clone(), read_at: path };
        let options = BackupOptions::new(vec![source], "host".to_owned());
        backup(&self.access, &options, &Arc::new(Run::new())).expect("nothing fails");
    }

    /// Stores a block of objects, whose bytes lie one behind the other in `plain`.
    pub(crate) fn seal(&self, kind: BlockKind, objects: &[PlainObject], plain: &[u8]) {
        let entropy = Box::new(SystemEntropy);
        let keys = self.access.keys.sealing();
        let mut sealer = Sealer::new(keys, Suite::Aes256Gcm, 1, entropy);
        let block = sealer.seal(kind, objects, plain).expect("it can be sealed");
        self.repository.put(block.into_bytes().into());
    }

    /// Stores contents as chunks of one block.
    pub(crate) fn chunks(&self, contents: &[&[u8]]) -> Vec<ChunkRef> {
        let id = |plain: &[u8]| self.access.keys.ids().chunk_id(plain);
        let objects = contents.iter().map(|plain| PlainObject {
            id: id(plain),
            refs: Vec::new(),
            len: plain.len(),
        });
        self.seal(BlockKind::Chunks, &objects.collect::<Vec<_>>(), &contents.concat());
        let chunk = |plain: &&[u8]| ChunkRef { id: id(plain), len_bytes: plain.len() as u32 };
        contents.iter().map(chunk).collect()
    }

    /// Stores a chunk whose block says that it has another id: a lie that only the key finds out.
    pub(crate) fn false_chunk(&self, id: ObjectId, plain: &[u8]) {
        self.seal(
            BlockKind::Chunks,
            &[PlainObject { id, refs: Vec::new(), len: plain.len() }],
            plain,
        );
    }

    /// A file whose content is those chunks.
    pub(crate) fn file(&self, chunks: &[ChunkRef]) -> Entry {
        let content = Content::Chunks(chunks.to_vec());
        Entry { size: content.len_bytes(), content, ..owned(EntryKind::File, 0o644) }
    }

    /// Stores a tree; each node is a block.
    pub(crate) fn snapshot(&self, entries: &[(&str, Entry)]) -> Snapshot {
        self.snapshot_of(entries, |body| body)
    }

    /// Stores a tree of one node, which is sealed as `change` leaves it: nobody checks what somebody
    /// seals who has the keys.
    pub(crate) fn snapshot_of(
        &self,
        entries: &[(&str, Entry)],
        change: impl Fn(Vec<u8>) -> Vec<u8>,
    ) -> Snapshot {
        let mut entries: Vec<_> = entries
            .iter()
            .map(|(path, entry)| (PathKey::from_absolute(path.as_bytes()).expect("a path"), entry))
            .collect();
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        let keys = &self.access.keys;
        let mut builder = TreeBuilder::new(keys.ids().clone(), *keys.boundary_key(), 3);
        let mut root_id = None;
        let mut sink = |node: BuiltNode| {
            let body = change(node.body);
            let id = keys.ids().node_id(&node.refs, &body);
            let object = PlainObject { id, refs: node.refs, len: body.len() };
            self.seal(BlockKind::Nodes, &[object], &body);
            root_id = Some(id);
            Ok::<(), EngineError>(())
        };
        for (path, entry) in &entries {
            builder.push(path, entry, &mut sink).expect("it fits");
        }
        let root = builder.finish(&mut sink).expect("it is whole");
        Snapshot {
            id: RecordHash::from_bytes([1; 32]),
            machine: self.access.machine,
            series: SeriesId::from_bytes([2; 16]),
            sequence: 1,
            received_ns: 0,
            received_sure: true,
            log_position: 1,
            // The last node that a builder gives.
            root: root_id.unwrap_or(root.id),
            checkpoint: false,
            pinned: false,
            secret: RecordSecret { items: root.items, bytes: root.bytes, ..Default::default() },
        }
    }
}

/// A machine's record with the receipt of a keeper, alone in the log.
pub(crate) fn stored_record(
    machine: &SigningKey,
    keeper: &SigningKey,
    log_position: u64,
) -> StoredRecord {
    let head = RecordHead {
        kind: RecordKind::Snapshot,
        pinned: false,
        repository: RepositoryId::from_bytes([3; 16]),
        machine: MachineId::from_bytes([5; 16]),
        key: machine.public(),
        series: SeriesId::from_bytes([2; 16]),
        sequence: log_position,
        root: ObjectId::from_bytes([6; 32]),
        previous: RecordHash::from_bytes([0; 32]),
        sealed_hash: *blake3::hash(&[]).as_bytes(),
        tags: Vec::new(),
        amends: None,
        taken_ns: None,
    };
    let signature = machine.sign(SignedContext::Record, &head.signed_bytes());
    let record = Record::new(head, &signature, Vec::new());
    let receipt = Receipt {
        clock_sure: true,
        repository: record.head.repository,
        record: record.hash(),
        log_position,
        received_ns: 1,
        signer: keeper.public(),
    };
    let signature = keeper.sign(SignedContext::Receipt, &receipt.signed_bytes());
    StoredRecord::new(record, receipt, &signature)
}

/// An entry of this process's user with those permissions.
pub(crate) fn owned(kind: EntryKind, mode: u32) -> Entry {
    Entry {
        mode,
        uid: holdall_sys::users::effective_uid(),
        gid: holdall_sys::users::effective_gid(),
        mtime: holdall_tree::Time { secs: 1_000_000_000, nanos: 7 },
        ..Entry::empty(kind)
    }
}

/// A directory.
pub(crate) fn directory() -> Entry {
    owned(EntryKind::Directory, 0o755)
}

/// A file whose content lies in its entry.
pub(crate) fn small_file(content: &[u8]) -> Entry {
    let size = content.len() as u64;
    Entry { size, content: Content::Inline(content.to_vec()), ..owned(EntryKind::File, 0o644) }
}

/// A symbolic link.
pub(crate) fn symlink(target: &str) -> Entry {
    let content = Content::Inline(target.as_bytes().to_vec());
    Entry { content, ..owned(EntryKind::Symlink, 0o777) }
}
