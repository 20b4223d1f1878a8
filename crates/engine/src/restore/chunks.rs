//! Chunks by id: fetched in whole blocks, opened, and checked before anybody sees them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use bytes::Bytes;
use crossbeam_channel::Receiver;
use holdall_crypto::{IdKeys, Opener};
use holdall_format::{Block, BlockKind, ObjectId, SessionId};
use holdall_meter::{Layer, StageCounters, StageMeter};
use holdall_protocol::{MAX_IDS, Repository, RepositoryError};
use holdall_tree::ChunkRef;

use super::chunk_cache::{ChunkCache, Opened, Slot};
use super::order::{Chunk, Order};
use super::share_of_memory;
use crate::error::is_damage;
use crate::pipeline::request_meters::RequestMeters;
use crate::run::lock;
use crate::{EngineError, UnlockedRepository};

/// Most copies of a chunk that are tried.
const COPIES_TRIED: u32 = 4;
/// Plain bytes of opened blocks that are kept.
const CACHE_BYTES: usize = 24 << 20;
/// The front of a window that most likely lies in the last block of the window before, and is asked for once that
/// came.
const FRONT_BYTES: u64 = 1 << 20;
/// The same while much comes twice: a block reaches far where it holds only some of the files, such as those that
/// do not compress. Less is on its way at once then.
const LONG_FRONT_BYTES: u64 = 3 << 20;
/// Much is more than one of so many bytes.
const MUCH: u64 = 16;

/// Threads that fetch and open side by side: one request is on its way while another block opens.
pub(crate) const FETCHERS: usize = 4;

/// Where chunks come from. Shared by threads; each brings its own [`Opener`].
pub(crate) struct Chunks {
    repository: Arc<dyn Repository>,
    session: SessionId,
    ids: IdKeys,
    cache: Mutex<ChunkCache>,
    /// Windows whose blocks are on their way.
    fetching: Mutex<BTreeSet<u64>>,
    fetched: Condvar,
    /// Bytes of blocks that came, and of those that were here already.
    came: AtomicU64,
    came_twice: AtomicU64,
    pub(crate) meters: Arc<ChunkMeters>,
}

/// What getting chunks counts.
pub(crate) struct ChunkMeters {
    pub(crate) fetch: RequestMeters,
    open: StageMeter,
}

impl ChunkMeters {
    /// What was counted so far.
    pub(crate) fn snapshot(&self) -> Vec<StageCounters> {
        let mut stages = self.fetch.snapshot().to_vec();
        stages.push(self.open.snapshot());
        stages
    }
}

/// A window is on its way; the next one need not ask for what they share.
pub(crate) struct Arriving<'a> {
    chunks: &'a Chunks,
    window: u64,
}

/// Chunks that are being got.
struct Wanted<'w> {
    wanted: &'w [ChunkRef],
    /// Positions of those that were not found yet, ascending.
    pending: Vec<usize>,
    found: Vec<Option<Chunk>>,
}

impl Chunks {
    pub(crate) fn new(access: &UnlockedRepository, session: SessionId) -> Self {
        Self {
            repository: Arc::clone(&access.repository),
            session,
            ids: access.keys.ids().clone(),
            cache: Mutex::new(ChunkCache::new(CACHE_BYTES / share_of_memory())),
            fetching: Mutex::default(),
            fetched: Condvar::new(),
            came: AtomicU64::new(0),
            came_twice: AtomicU64::new(0),
            meters: Arc::new(ChunkMeters {
                fetch: RequestMeters::new("fetch", FETCHERS as u32),
                open: StageMeter::new("open", Layer::ClientCpu, FETCHERS as u32),
            }),
        }
    }

    /// An opener for a thread.
    pub(crate) fn opener(access: &UnlockedRepository) -> Opener {
        Opener::new(access.keys.sealing(), access.config.repository)
    }

    /// Says that the chunks of a window are about to be asked for. Windows are numbered in order.
    pub(crate) fn arriving(&self, window: u64) -> Arriving<'_> {
        lock(&self.fetching).insert(window);
        Arriving { chunks: self, window }
    }

    /// Fills one order after the other until there are no more. Orders that are `unwanted` by now, and
    /// those that `fail` because the repository cannot be asked, are dropped: whoever waits for one
    /// finds its reply closed.
    pub(crate) fn fill(
        &self,
        access: &UnlockedRepository,
        orders: &Mutex<Receiver<Order>>,
        unwanted: impl Fn() -> bool,
        fail: impl Fn(EngineError),
    ) {
        let mut opener = Self::opener(access);
        loop {
            let order = self.meters.fetch.waiting_in(|| {
                let orders = lock(orders);
                let order = orders.recv().ok()?;
                // Before the next order is taken, so that it is known there.
                Some((self.arriving(order.window), order))
            });
            let Some((arriving, order)) = order else { return };
            if unwanted() {
                continue;
            }
            match self.get(&mut opener, &order.chunks, Some(arriving)) {
                // Nobody waits for it any more if the run ended.
                Ok(chunks) => drop(order.reply.send(chunks)),
                Err(error) => fail(error),
            }
        }
    }

    /// Gets chunks, in order. One that is damaged or missing is an error in its place.
    ///
    /// # Errors
    /// [`EngineError::Repository`] if the repository cannot be asked.
    pub(crate) fn get(
        &self,
        opener: &mut Opener,
        wanted: &[ChunkRef],
        arriving: Option<Arriving<'_>>,
    ) -> Result<Vec<Chunk>, EngineError> {
        let mut chunks = Wanted {
            wanted,
            pending: (0..wanted.len()).collect(),
            found: vec![None; wanted.len()],
        };
        self.take_cached(opener, &mut chunks)?;
        if let Some(arriving) = arriving.as_ref().filter(|arriving| arriving.before_arrives()) {
            self.fetch_from(opener, &mut chunks, front(wanted, self.front_bytes()))?;
            self.meters.fetch.waiting_in(|| arriving.wait_for_before());
            self.take_cached(opener, &mut chunks)?;
        }
        self.fetch_from(opener, &mut chunks, 0)?;
        let missing = || Err("it was not found".to_owned());
        Ok(chunks.found.into_iter().map(|chunk| chunk.unwrap_or_else(missing)).collect())
    }

    /// Fetches everything pending from that position on.
    fn fetch_from(
        &self,
        opener: &mut Opener,
        chunks: &mut Wanted<'_>,
        from: usize,
    ) -> Result<(), EngineError> {
        loop {
            let skipped = chunks.pending.partition_point(|at| *at < from);
            let asked = chunks.pending.get(skipped..).unwrap_or_default();
            let Some(&first) = asked.first() else { return Ok(()) };
            let ids: Vec<ObjectId> =
                asked.iter().take(MAX_IDS).map(|at| chunks.wanted[*at].id).collect();
            self.fetch(opener, &ids, chunks)?;
            self.take_cached(opener, chunks)?;
            if let Ok(at) = chunks.pending.binary_search(&first) {
                // It did not come, or its block does not open.
                chunks.found[first] = Some(self.other_copies(opener, &chunks.wanted[first])?);
                chunks.pending.remove(at);
            }
        }
    }

    /// Takes what opened blocks have out of `pending`.
    fn take_cached(&self, opener: &mut Opener, chunks: &mut Wanted<'_>) -> Result<(), EngineError> {
        let slots: Vec<Option<Arc<Slot>>> = {
            let cache = lock(&self.cache);
            chunks.pending.iter().map(|at| cache.find(&chunks.wanted[*at].id)).collect()
        };
        let pending = std::mem::take(&mut chunks.pending);
        let mut left = Vec::new();
        let mut rest = pending.iter().copied().zip(slots).peekable();
        while let Some((at, slot)) = rest.next() {
            let Some(slot) = slot else {
                left.push(at);
                continue;
            };
            let mut of_slot = vec![at];
            while let Some((at, _)) = rest
                .next_if(|(_, other)| other.as_ref().is_some_and(|other| Arc::ptr_eq(other, &slot)))
            {
                of_slot.push(at);
            }
            let Some(opened) = slot.wait() else {
                left.extend(of_slot);
                continue;
            };
            lock(&self.cache).touch(&slot);
            for at in self.take_from(opened, of_slot, chunks) {
                // The block may be here for another object, and hold a later copy of this one.
                chunks.found[at] = Some(self.other_copies(opener, &chunks.wanted[at])?);
            }
        }
        chunks.pending = left;
        Ok(())
    }

    /// Takes what is pending out of a block that was opened just now. What it has wrong stays pending:
    /// it may come with another one.
    fn take_opened(&self, slot: &Slot, chunks: &mut Wanted<'_>) {
        let Some(opened) = slot.wait() else { return };
        let pending = std::mem::take(&mut chunks.pending);
        let is_in = |at: &usize| opened.find(&chunks.wanted[*at].id).is_some();
        let (here, mut left): (Vec<_>, Vec<_>) = pending.into_iter().partition(is_in);
        left.extend(self.take_from(opened, here, chunks));
        left.sort_unstable();
        chunks.pending = left;
    }

    /// Takes chunks out of one block, and gives back the positions of those that it has wrong. They share
    /// its memory if they are a good part of it.
    fn take_from(
        &self,
        opened: &Opened,
        positions: Vec<usize>,
        chunks: &mut Wanted<'_>,
    ) -> Vec<usize> {
        let lens = positions.iter().map(|at| chunks.wanted[*at].len_bytes as usize);
        let scattered = lens.sum::<usize>() * 2 < opened.plain_bytes();
        let mut wrong = Vec::new();
        self.meters.open.working(|| {
            for at in positions {
                let chunk = &chunks.wanted[at];
                match opened.find(&chunk.id).filter(|plain| self.is_right(chunk, plain)) {
                    Some(plain) if scattered => {
                        chunks.found[at] = Some(Ok(Bytes::copy_from_slice(&plain)));
                    }
                    Some(plain) => chunks.found[at] = Some(Ok(plain)),
                    None => wrong.push(at),
                }
            }
        });
        wrong
    }

    fn is_right(&self, chunk: &ChunkRef, plain: &[u8]) -> bool {
        plain.len() == chunk.len_bytes as usize && self.ids.chunk_id(plain) == chunk.id
    }

    /// Fetches the blocks of some of the ids, at least of the first one if it can be had, opens them into
    /// the cache, and takes what is pending out of each before the next: all of an answer may be more
    /// than the cache holds.
    fn fetch(
        &self,
        opener: &mut Opener,
        ids: &[ObjectId],
        chunks: &mut Wanted<'_>,
    ) -> Result<(), EngineError> {
        let fetch = || self.repository.fetch_objects(&self.session, ids, 0);
        let blocks = match self.meters.fetch.fetching(fetch) {
            Err(error) if is_damage(&error) => return Ok(()),
            fetched => fetched?.blocks,
        };
        let mut coming = Vec::with_capacity(blocks.len());
        for bytes in blocks {
            let len = bytes.len() as u64;
            self.came.fetch_add(len, Relaxed);
            // A block whose clear part is broken is as good as none: other copies are asked for.
            let Ok(block) = self.meters.open.working(|| Block::decode(bytes)) else { continue };
            let ids = block.table().entries.iter().map(|entry| entry.id).collect();
            match lock(&self.cache).announce(ids) {
                Some(slot) => coming.push((slot, block)),
                None => drop(self.came_twice.fetch_add(len, Relaxed)),
            }
        }
        for (slot, block) in coming {
            let opened = self.meters.open.working(|| opener.open(&block, BlockKind::Chunks).ok());
            lock(&self.cache).fill(&slot, opened.map(Opened::new));
            self.take_opened(&slot, chunks);
        }
        Ok(())
    }

    /// How much of a window waits for the window before.
    fn front_bytes(&self) -> u64 {
        let is_much = self.came_twice.load(Relaxed) * MUCH > self.came.load(Relaxed);
        if is_much { LONG_FRONT_BYTES } else { FRONT_BYTES }
    }

    /// Looks for a good copy of one chunk.
    fn other_copies(&self, opener: &mut Opener, chunk: &ChunkRef) -> Result<Chunk, EngineError> {
        let mut reason = "no copy of it opens to its id".to_owned();
        for copy in 0..COPIES_TRIED {
            let fetch = || self.repository.fetch_objects(&self.session, &[chunk.id], copy);
            let blocks = match self.meters.fetch.fetching(fetch) {
                Err(RepositoryError::MissingObjects { .. }) => {
                    if copy == 0 {
                        reason = "the repository does not have it".to_owned();
                    }
                    break;
                }
                Err(error) if is_damage(&error) => {
                    reason = error.to_string();
                    continue;
                }
                fetched => fetched?.blocks,
            };
            let good = blocks.into_iter().find_map(|bytes| {
                let block = Block::decode(bytes).ok()?;
                let opened = Opened::new(opener.open(&block, BlockKind::Chunks).ok()?);
                opened.find(&chunk.id).filter(|plain| self.is_right(chunk, plain))
            });
            if let Some(plain) = good {
                return Ok(Ok(Bytes::copy_from_slice(&plain)));
            }
        }
        Ok(Err(format!("chunk {} is damaged: {reason}", chunk.id)))
    }
}

impl Arriving<'_> {
    /// Whether the window before this one is still on its way.
    fn before_arrives(&self) -> bool {
        self.window
            .checked_sub(1)
            .is_some_and(|before| lock(&self.chunks.fetching).contains(&before))
    }

    fn wait_for_before(&self) {
        let Some(before) = self.window.checked_sub(1) else { return };
        let mut fetching = lock(&self.chunks.fetching);
        while fetching.contains(&before) {
            fetching = self.chunks.fetched.wait(fetching).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Arriving<'_> {
    fn drop(&mut self) {
        lock(&self.chunks.fetching).remove(&self.window);
        self.chunks.fetched.notify_all();
    }
}

/// How many chunks are in the first so many bytes of a window.
fn front(wanted: &[ChunkRef], front_bytes: u64) -> usize {
    let mut bytes = 0;
    let within = |chunk: &&ChunkRef| {
        bytes += u64::from(chunk.len_bytes);
        bytes <= front_bytes
    };
    wanted.iter().take_while(within).count()
}

#[cfg(test)]
mod tests {
    use holdall_crypto::PlainObject;

    use super::*;
    use crate::test_world::World;

    const SESSION: SessionId = SessionId::from_bytes([9; 16]);

    fn with_cache(world: &World, limit_bytes: usize) -> Chunks {
        let cache = Mutex::new(ChunkCache::new(limit_bytes));
        Chunks { cache, ..Chunks::new(&world.access, SESSION) }
    }

    fn get(chunks: &Chunks, world: &World, wanted: &[ChunkRef]) -> Vec<Chunk> {
        chunks.get(&mut Chunks::opener(&world.access), wanted, None).unwrap()
    }

    #[test]
    fn an_answer_that_unpacks_to_more_than_the_cache_holds_is_fetched_once() {
        let world = World::new();
        let contents = |block: u8| [0, 1, 2].map(|part| vec![block * 3 + part; 1000]);
        let blocks: Vec<_> = (0..20).map(contents).collect();
        let stored = |contents: &[Vec<u8>; 3]| {
            world.chunks(&contents.each_ref().map(|content| &content[..]))
        };
        let stored: Vec<_> = blocks.iter().map(stored).collect();
        let chunks = with_cache(&world, 5 * 3000);
        // The front of each block, and then the rest of it.
        let wanted: Vec<_> =
            [0, 2].iter().flat_map(|part| stored.iter().map(|refs| refs[*part])).collect();
        let found = get(&chunks, &world, &wanted);
        let expected: Vec<Chunk> = [0, 2]
            .iter()
            .flat_map(|part| blocks.iter().map(|contents| Ok(contents[*part].clone().into())))
            .collect();
        assert_eq!(found, expected);
        assert_eq!(world.repository.fetches(), 1);
        assert!(lock(&chunks.cache).plain_bytes() <= 5 * 3000);
    }

    #[test]
    fn windows_wait_for_more_of_the_ones_before_while_much_comes_twice() {
        let world = World::new();
        let stored: Vec<_> = (0..40).map(|byte| world.chunks(&[&[byte; 1000][..]])[0]).collect();
        let chunks = with_cache(&world, 1 << 20);
        let mut opener = Chunks::opener(&world.access);
        let mut front_after = |fetched: &[ChunkRef]| {
            for chunk in fetched {
                let wanted = std::slice::from_ref(chunk);
                let mut wanted = Wanted { wanted, pending: vec![0], found: vec![None] };
                chunks.fetch(&mut opener, &[chunk.id], &mut wanted).unwrap();
            }
            chunks.front_bytes()
        };
        assert_eq!(front_after(&stored[..20]), FRONT_BYTES);
        assert_eq!(front_after(&stored[..1]), FRONT_BYTES, "one of 21");
        assert_eq!(front_after(&stored[1..2]), LONG_FRONT_BYTES, "two of 22");
        assert_eq!(front_after(&stored[20..]), FRONT_BYTES, "two of 42");
    }

    #[test]
    fn a_later_copy_that_is_wrong_hides_no_first_one_that_is_good() {
        let world = World::new();
        let good = world.chunks(&[b"what was stored"])[0];
        let (other, plain) = (&b"another"[..], &b"anotherwhat is wrong!"[..]);
        let id = world.access.keys.ids().chunk_id(other);
        let object = |id, len| PlainObject { id, refs: Vec::new(), len };
        world.seal(BlockKind::Chunks, &[object(id, 7), object(good.id, 14)], plain);
        let chunks = with_cache(&world, 1 << 20);
        let other = ChunkRef { id, len_bytes: 7 };
        assert_eq!(get(&chunks, &world, &[other]), [Ok("another".into())]);
        // It is in the block that is cached, where it is wrong.
        assert_eq!(get(&chunks, &world, &[good]), [Ok("what was stored".into())]);
    }
}
