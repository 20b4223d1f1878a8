//! Compacting: what is needed of blocks that are mostly dead is stored again, and they give way to it.
//!
//! A block is sealed as a whole, so that its keeper can let it go only when nothing in it is needed any
//! more. Where snapshots go one by one, blocks stay for a few objects each. Only whoever has the keys can
//! open them, take out what is needed, and seal that again. What is put is what was there: every object
//! is compared with its id first, and every new block is opened again before it leaves. And what will count
//! then is fetched and opened before anything gives way: somebody who may put could have put other copies
//! before, and a keeper cannot tell them from the right ones.

use std::collections::HashSet;

use bytes::Bytes;
use holdall_crypto::{OpenedBlock, Opener};
use holdall_format::{Block, BlockKind, ObjectId, SessionId};
use holdall_protocol::{
    Compacting, FETCH_TARGET_BYTES, MAX_IDS, SessionPurpose, SparseBlock, WaitingDeletion,
};
use holdall_tree::NodeKind;

use crate::error::is_damaged;
use crate::restore::ChunkSource;
use crate::storing::Putter;
use crate::{EngineError, Run, UnlockedRepository};

/// Blocks give way in portions of so many, and a page of as many: each portion costs the keeper a mark.
const PORTION_BLOCKS: usize = 4096;
/// The same for objects, of which the ids are kept: 8 MiB.
const PORTION_OBJECTS: usize = 256 << 10;
/// Blocks that are asked for at once.
const FETCH_BLOCKS: usize = 16;
/// Plain bytes whose next copies are asked for at once: fewer than an answer has room for.
const CHECKED_BYTES: usize = 3 << 20;

/// What was compacted, or would be.
#[derive(Debug, Clone, Default)]
pub struct CompactReport {
    /// Blocks of which at most half of the objects are needed.
    pub sparse_blocks: u64,
    /// Objects in them.
    pub objects: u64,
    /// Those that are needed.
    pub living_objects: u64,
    /// Blocks that gave way.
    pub blocks: u64,
    /// Sealed bytes of the blocks that what is needed was taken out of.
    pub before_bytes: u64,
    /// Sealed bytes of those that it was put into.
    pub after_bytes: u64,
    /// Blocks that do not open, or in which something is not what its id says: they stay as they are.
    pub damaged_blocks: u64,
    /// What waits on a server until the blocks are deleted.
    pub waiting: Vec<WaitingDeletion>,
}

/// Has blocks that are mostly dead give way to others, where their keeper lets `keeper` do that; with `dry_run`, only
/// counts them.
///
/// # Errors
/// As for [`Compacting::sparse_blocks`]; [`EngineError::Interrupted`]. What gave way
/// until then did, and calling again goes on from there.
pub fn compact(
    access: &UnlockedRepository,
    keeper: &dyn Compacting,
    dry_run: bool,
    run: &Run,
) -> Result<CompactReport, EngineError> {
    if dry_run {
        return count(keeper, run);
    }
    let opener = ChunkSource::opener(access);
    let (report, ready) = Default::default();
    let mut compaction = Compaction { access, keeper, run, opener, report, ready };
    let mut from = Some(0);
    while let Some(next) = from {
        from = compaction.portion(next)?;
    }
    Ok(compaction.report)
}

fn count(keeper: &dyn Compacting, run: &Run) -> Result<CompactReport, EngineError> {
    let mut report = CompactReport::default();
    let mut from = 0;
    while let Some(next) = report.add(&page(keeper, from)?) {
        run.check()?;
        from = next;
    }
    Ok(report)
}

/// Blocks from that position on; none of them comes before it.
fn page(keeper: &dyn Compacting, from: u64) -> Result<Vec<SparseBlock>, EngineError> {
    let mut sparse = keeper.sparse_blocks(from)?;
    sparse.truncate(PORTION_BLOCKS);
    if sparse.first().is_some_and(|first| first.arrival < from) {
        let reason = "blocks are listed that came before those that were asked for";
        return Err(EngineError::damaged("the list of sparse blocks", reason));
    }
    Ok(sparse)
}

impl CompactReport {
    /// Counts a page of blocks, and says from where on to ask for the next one.
    fn add(&mut self, sparse: &[SparseBlock]) -> Option<u64> {
        self.sparse_blocks += sparse.len() as u64;
        self.objects += sparse.iter().map(|block| block.objects).sum::<u64>();
        self.living_objects += sparse.iter().map(|block| block.living.len() as u64).sum::<u64>();
        sparse.last().map(|last| last.arrival.saturating_add(1))
    }
}

struct Compaction<'a> {
    access: &'a UnlockedRepository,
    keeper: &'a dyn Compacting,
    run: &'a Run,
    opener: Opener,
    report: CompactReport,
    /// Blocks of which everything that is needed was handed to the putter.
    ready: Vec<Ready>,
}

impl Compaction<'_> {
    /// Has a portion of blocks give way, in a session of its own; says from where on to go on.
    fn portion(&mut self, from: u64) -> Result<Option<u64>, EngineError> {
        let purpose = SessionPurpose::Backup { parents: Vec::new() };
        let session = self.access.repository.open_session(&purpose)?.session;
        let gone_through = self.give_way(from, &session);
        // It ended where blocks gave way; else what was put lapses with it.
        let _ = self.access.repository.close_session(&session);
        gone_through
    }

    fn give_way(&mut self, from: u64, session: &SessionId) -> Result<Option<u64>, EngineError> {
        let mut putter = Putter::new(self.access, *session);
        let mut from = Some(from);
        while let Some(next) = from.filter(|_| !self.is_full()) {
            let sparse = page(self.keeper, next)?;
            from = self.report.add(&sparse);
            for blocks in sparse.chunks(FETCH_BLOCKS) {
                self.store_again(blocks, session, &mut putter)?;
            }
        }
        // Everything that is needed of them is durable elsewhere then.
        self.report.after_bytes += putter.finish()?;
        let ready = self.with_right_copies(session)?;
        if !ready.is_empty() {
            let gave_way = self.keeper.supersede(session, &ready)?;
            self.report.blocks += gave_way.blocks;
            self.report.waiting.extend(gave_way.waiting);
        }
        Ok(from)
    }

    fn is_full(&self) -> bool {
        let objects: usize = self.ready.iter().map(|block| block.objects.len()).sum();
        self.ready.len() >= PORTION_BLOCKS || objects >= PORTION_OBJECTS
    }

    /// Those blocks that are ready and of which the next copy of each object that is needed, which counts
    /// once they gave way, is what its id says.
    fn with_right_copies(&mut self, session: &SessionId) -> Result<Vec<u64>, EngineError> {
        let ready = std::mem::take(&mut self.ready);
        let objects: Vec<(ObjectId, usize)> =
            ready.iter().flat_map(|block| block.objects.iter().copied()).collect();
        let mut wrong = HashSet::new();
        let mut rest = objects.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |(_, length): &&(ObjectId, usize)| {
                let fits = bytes < CHECKED_BYTES;
                bytes += length;
                fits
            };
            let (now, behind) = rest.split_at(rest.iter().take(MAX_IDS).take_while(fits).count());
            self.check_next_copies(session, now, &mut wrong)?;
            rest = behind;
        }
        let is_wrong = |block: &Ready| block.objects.iter().any(|(id, _)| wrong.contains(id));
        let (bad, good): (Vec<_>, Vec<_>) = ready.into_iter().partition(is_wrong);
        self.report.damaged_blocks += bad.len() as u64;
        Ok(good.into_iter().map(|block| block.arrival).collect())
    }

    /// Finds those of these objects whose next copy cannot be had, or is not what its id says. An answer
    /// that may have been cut short is asked for again in two halves: an object may lie in a block that
    /// was sent for another one, and only the block that is sent for itself tells which copy counts.
    fn check_next_copies(
        &mut self,
        session: &SessionId,
        objects: &[(ObjectId, usize)],
        wrong: &mut HashSet<ObjectId>,
    ) -> Result<(), EngineError> {
        self.run.check()?;
        let ids: Vec<ObjectId> = objects.iter().map(|(id, _)| *id).collect();
        let fetched = self.access.repository.fetch_objects(session, &ids, 1);
        let blocks = match fetched.map_err(EngineError::from) {
            Err(error) if is_damaged(&error) => Vec::new(),
            fetched => fetched?.blocks,
        };
        let mut is_cut = blocks.iter().map(Bytes::len).sum::<usize>() >= FETCH_TARGET_BYTES;
        let mut missing: HashSet<ObjectId> = ids.iter().copied().collect();
        for bytes in blocks {
            let Some(Fetched { kind, opened, .. }) = self.open(bytes) else {
                is_cut = true;
                continue;
            };
            for object in ids.iter().filter_map(|id| opened.find_object(id)) {
                missing.remove(&object.id);
                if opened.check_id(object, self.access.keys.ids(), kind).is_err() {
                    wrong.insert(object.id);
                }
            }
        }
        if ids.len() > 1 && (is_cut || !missing.is_empty()) {
            let (first, second) = objects.split_at(objects.len() / 2);
            self.check_next_copies(session, first, wrong)?;
            return self.check_next_copies(session, second, wrong);
        }
        wrong.extend(missing);
        Ok(())
    }

    /// Stores again what is needed of these blocks.
    fn store_again(
        &mut self,
        blocks: &[SparseBlock],
        session: &SessionId,
        putter: &mut Putter<'_>,
    ) -> Result<(), EngineError> {
        let mut rest = blocks;
        while !rest.is_empty() {
            self.run.check()?;
            let fetched = self.fetch(rest, session)?;
            let (now, behind) = rest.split_at(fetched.len().clamp(1, rest.len()));
            let mut fetched = fetched.into_iter();
            for sparse in now {
                match fetched.next().flatten() {
                    Some(fetched) => self.take(sparse, &fetched, putter)?,
                    None => self.report.damaged_blocks += 1,
                }
            }
            rest = behind;
        }
        Ok(())
    }

    /// Fetches some of these blocks, from the first one on, by the first object that is needed of each,
    /// whose copy there is the one that counts. `None` for what does not open, and nothing if the first
    /// cannot be had.
    fn fetch(
        &mut self,
        blocks: &[SparseBlock],
        session: &SessionId,
    ) -> Result<Vec<Option<Fetched>>, EngineError> {
        let firsts: Vec<ObjectId> =
            blocks.iter().filter_map(|block| block.living.first().copied()).collect();
        let fetched = self.access.repository.fetch_objects(session, &firsts, 0);
        let blocks = match fetched.map_err(EngineError::from) {
            Err(error) if is_damaged(&error) => return Ok(Vec::new()),
            fetched => fetched?.blocks,
        };
        Ok(blocks.into_iter().map(|bytes| self.open(bytes)).collect())
    }

    fn open(&mut self, bytes: Bytes) -> Option<Fetched> {
        let sealed_bytes = bytes.len() as u64;
        let block = Block::decode(bytes).ok()?;
        let kind = block.header().kind;
        let opened = self.opener.open(&block, kind).ok()?;
        Some(Fetched { kind, opened, sealed_bytes })
    }

    /// Hands on what is needed of a block, if that is worth it.
    fn take(
        &mut self,
        sparse: &SparseBlock,
        fetched: &Fetched,
        putter: &mut Putter<'_>,
    ) -> Result<(), EngineError> {
        let Fetched { kind, opened, sealed_bytes } = fetched;
        let ids = self.access.keys.ids();
        let found = sparse.living.iter().map(|id| opened.find_object(id));
        let right = found.map(|found| found.filter(|one| opened.check_id(one, ids, *kind).is_ok()));
        let Some(living) = right.collect::<Option<Vec<_>>>() else {
            self.report.damaged_blocks += 1;
            return Ok(());
        };
        let lengths: Vec<usize> = living.iter().map(|object| object.range.len()).collect();
        if lengths.iter().sum::<usize>() * 2 > opened.plain.len() {
            return Ok(());
        }
        for object in living {
            let body = opened.body(object);
            match kind {
                // Which kind of node it is only matters for what it lies beside.
                BlockKind::Nodes => {
                    putter.node(NodeKind::Leaf, object.id, object.refs.clone(), body)?;
                }
                _ => putter.chunk(object.id, body)?,
            }
        }
        self.report.before_bytes += sealed_bytes;
        let objects = sparse.living.iter().copied().zip(lengths).collect();
        self.ready.push(Ready { arrival: sparse.arrival, objects });
        Ok(())
    }
}

/// A block of which everything that is needed was stored again.
struct Ready {
    arrival: u64,
    /// What is needed of it, with plain lengths.
    objects: Vec<(ObjectId, usize)>,
}

/// A block that was fetched and opened.
struct Fetched {
    kind: BlockKind,
    opened: OpenedBlock,
    sealed_bytes: u64,
}
