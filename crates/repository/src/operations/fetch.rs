//! Handing out blocks: those that hold certain objects, all of them, and proofs that they are there.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdall_format::{MachineId, ObjectId, SessionId, prove_slice};
use holdall_protocol::{
    BlockPage, BlockProbe, FETCH_TARGET_BYTES, Fetched, MAX_PROBES, RepositoryError, RequestTimes,
    ScrubDamage,
};

use crate::index::{Holder, Lookup, ObjectCopy, State};
use crate::operations::put::limit_ids;
use crate::reachability::read::ReadBlock;
use crate::storage::retry::is_of_this_process;
use crate::store::Store;

impl Store {
    /// Answers [`holdall_protocol::Repository::fetch_objects`] for a machine.
    pub(crate) fn fetch_objects(
        &self,
        machine: &MachineId,
        session: &SessionId,
        ids: &[ObjectId],
        copy: u32,
    ) -> Result<Fetched, RepositoryError> {
        let began = Instant::now();
        self.sessions().check(session, machine, self.clock())?;
        limit_ids(ids)?;
        let lookup = self.lookup_stored(ids.to_vec())?;
        let mut disk = Duration::ZERO;
        let mut blocks: Vec<Bytes> = Vec::new();
        let mut sent = BTreeSet::new();
        let mut bytes = 0;
        for id in ids {
            let copies = lookup.copies_of_id(id).get(copy as usize..).unwrap_or_default();
            if copies.first().is_some_and(|first| sent.contains(&(first.holder, first.block))) {
                continue;
            }
            if bytes >= FETCH_TARGET_BYTES {
                break;
            }
            let read = match ids {
                [_] => self.read_first_sound(&lookup, id, copies, &mut disk),
                _ => self.read_first(&lookup, id, copies, &mut disk),
            };
            match read {
                Ok((place, block)) => {
                    if sent.insert(place) {
                        bytes += block.len();
                        blocks.push(block);
                    }
                }
                Err(error) if blocks.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        let times = RequestTimes {
            cpu_seconds: began.elapsed().saturating_sub(disk).as_secs_f64(),
            disk_seconds: disk.as_secs_f64(),
            ..RequestTimes::default()
        };
        Ok(Fetched { blocks, times })
    }

    /// Reads the block of the first of these copies that is sound, and adds the time for which the disk
    /// was waited for.
    fn read_first_sound(
        &self,
        lookup: &Lookup,
        id: &ObjectId,
        copies: &[ObjectCopy],
        disk: &mut Duration,
    ) -> Result<((Holder, u32), Bytes), RepositoryError> {
        self.first_good(lookup, id, copies, disk, ReadBlock::checked)
    }

    /// The same of the first that can be read. Whoever opens it will see whether it is sound; hashing
    /// it here too would be a sixth of the server's time for a restore of large files.
    fn read_first(
        &self,
        lookup: &Lookup,
        id: &ObjectId,
        copies: &[ObjectCopy],
        disk: &mut Duration,
    ) -> Result<((Holder, u32), Bytes), RepositoryError> {
        self.first_good(lookup, id, copies, disk, |block| Ok(block.unchecked()))
    }

    fn first_good(
        &self,
        lookup: &Lookup,
        id: &ObjectId,
        copies: &[ObjectCopy],
        disk: &mut Duration,
        look: impl Fn(ReadBlock) -> Result<Bytes, RepositoryError>,
    ) -> Result<((Holder, u32), Bytes), RepositoryError> {
        let mut failure = RepositoryError::MissingObjects { ids: vec![*id] };
        for copy in copies {
            let reading = Instant::now();
            let read = self.blocks().read_unchecked(&lookup.state, copy.holder, copy.block);
            *disk += reading.elapsed();
            match read.and_then(&look) {
                Ok(bytes) => return Ok(((copy.holder, copy.block), bytes)),
                Err(error @ RepositoryError::Damaged { .. }) => failure = error,
                Err(error) if is_of_this_process(&error) => return Err(error),
                Err(error) => {
                    let (what, reason) = (format!("object {id}"), error.to_string());
                    failure = RepositoryError::Damaged { what, reason };
                }
            }
        }
        Err(failure)
    }

    /// Answers [`holdall_protocol::Repository::read_blocks`] for a machine. The cursor is an arrival
    /// position, so that nothing that is put, closed or moved meanwhile disturbs it.
    pub(crate) fn read_blocks(
        &self,
        machine: &MachineId,
        session: &SessionId,
        cursor: u64,
    ) -> Result<BlockPage, RepositoryError> {
        self.sessions().check(session, machine, self.clock())?;
        let state = self.index().state();
        let mut page = BlockPage::default();
        if cursor == 0 {
            let unreadable_files = self.unreadable_files().into_iter();
            page.damaged
                .extend(unreadable_files.map(|(path, reason)| self.file_damage(&path, reason)));
        }
        let mut walk = Walk::new(self, &state, cursor);
        let mut bytes = 0;
        while let Some(next) = walk.next(&mut page.damaged)? {
            if bytes >= FETCH_TARGET_BYTES {
                page.next = Some(next.arrival);
                break;
            }
            match self.blocks().read_block(&state, next.holder, next.block) {
                Ok(block) => {
                    bytes += block.len();
                    page.blocks.push(block);
                }
                Err(error) if is_of_this_process(&error) => return Err(error),
                Err(error) => page.damaged.push(self.block_damage(&state, &next, &error)),
            }
        }
        Ok(page)
    }

    /// Answers [`holdall_protocol::Repository::prove_blocks`] for a machine.
    pub(crate) fn prove_blocks(
        &self,
        machine: &MachineId,
        session: &SessionId,
        probes: &[BlockProbe],
    ) -> Result<Vec<Option<Bytes>>, RepositoryError> {
        self.sessions().check(session, machine, self.clock())?;
        if probes.len() > MAX_PROBES {
            let reason =
                format!("{} blocks in one question; the limit is {MAX_PROBES}", probes.len());
            return Err(RepositoryError::Refused { reason });
        }
        let lookup = self.lookup_stored(probes.iter().map(|probe| probe.object).collect())?;
        Ok(probes.iter().map(|probe| self.prove(&lookup, probe)).collect())
    }

    fn prove(&self, lookup: &Lookup, probe: &BlockProbe) -> Option<Bytes> {
        let copies = lookup.copies_of_id(&probe.object).iter();
        let named = copies.filter(|copy| {
            self.block_name(&lookup.state, copy.holder, copy.block) == Some(probe.block)
        });
        let mut proofs = named.filter_map(|copy| {
            let block = self.blocks().read_block(&lookup.state, copy.holder, copy.block).ok()?;
            prove_slice(&block, probe.slice)
        });
        proofs.next().map(Bytes::from)
    }

    fn file_damage(&self, path: &Path, reason: String) -> ScrubDamage {
        let name = path.display().to_string();
        if path.starts_with(self.layout().records().path()) {
            ScrubDamage::Record { record: name, reason }
        } else {
            ScrubDamage::Pack { pack: name, reason }
        }
    }

    fn block_damage(&self, state: &State, next: &Next, error: &RepositoryError) -> ScrubDamage {
        let reason = error.to_string();
        let pack = match next.holder {
            Holder::Pack(pack) => state.packs.get(pack as usize).map(|pack| pack.name),
            Holder::Tail(_) => None,
        };
        match self.block_name(state, next.holder, next.block) {
            Some(block) => ScrubDamage::Block { block, pack, reason },
            None => ScrubDamage::Pack {
                pack: pack.map_or_else(String::new, |pack| pack.to_string()),
                reason,
            },
        }
    }

    fn block_name(
        &self,
        state: &State,
        holder: Holder,
        block: u32,
    ) -> Option<holdall_format::BlockName> {
        match holder {
            Holder::Tail(tail) => Some(state.tails.get(tail as usize)?.clear(block)?.name),
            Holder::Pack(pack) => {
                let pack = self.packs().get(&state.packs.get(pack as usize)?.name).ok()?;
                Some(pack.blocks().get(block as usize)?.name)
            }
        }
    }
}

/// A block on a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    arrival: u64,
    holder: Holder,
    block: u32,
}

/// Goes through all blocks in order of arrival, opening packs only when their turn comes.
struct Walk<'a> {
    store: &'a Store,
    state: &'a State,
    cursor: u64,
    /// Packs that were not opened yet, by first arrival, the first one last.
    waiting: Vec<(u64, u32)>,
    ready: BinaryHeap<Reverse<Next>>,
}

impl<'a> Walk<'a> {
    fn new(store: &'a Store, state: &'a State, cursor: u64) -> Self {
        let packs = state.packs.iter().zip(0..);
        let mut waiting: Vec<(u64, u32)> = packs
            .filter(|(_, number)| !state.is_condemned(Holder::Pack(*number)))
            .filter(|(pack, _)| pack.last_arrival >= cursor)
            .map(|(pack, number)| (pack.first_arrival, number))
            .collect();
        waiting.sort_unstable_by_key(|place| Reverse(*place));
        let mut walk = Self { store, state, cursor, waiting, ready: BinaryHeap::new() };
        for (tail, number) in state.tails.iter().zip(0..) {
            let durable = tail.durable_blocks();
            let blocks = tail.all_clear();
            walk.add(Holder::Tail(number), blocks.iter().take(durable).map(|block| block.arrival));
        }
        walk
    }

    fn add(&mut self, holder: Holder, arrivals: impl Iterator<Item = u64>) {
        for (arrival, block) in arrivals.zip(0..) {
            if arrival >= self.cursor {
                self.ready.push(Reverse(Next { arrival, holder, block }));
            }
        }
    }

    fn next(&mut self, damaged: &mut Vec<ScrubDamage>) -> Result<Option<Next>, RepositoryError> {
        while let Some(&(first, pack)) = self.waiting.last() {
            if self.ready.peek().is_some_and(|Reverse(next)| next.arrival < first) {
                break;
            }
            self.waiting.pop();
            self.open(first, pack, damaged)?;
        }
        Ok(self.ready.pop().map(|Reverse(next)| next))
    }

    fn open(
        &mut self,
        first: u64,
        pack: u32,
        damaged: &mut Vec<ScrubDamage>,
    ) -> Result<(), RepositoryError> {
        let Some(info) = self.state.packs.get(pack as usize) else { return Ok(()) };
        match self.store.packs().get(&info.name) {
            Ok(file) => {
                let arrivals = file.blocks().iter().map(|block| block.arrival);
                self.add(Holder::Pack(pack), arrivals);
            }
            Err(error) if is_of_this_process(&error) => return Err(error),
            // Told once: on the page on which the pack would begin.
            Err(error) if first >= self.cursor => damaged
                .push(ScrubDamage::Pack { pack: info.name.to_string(), reason: error.to_string() }),
            Err(_) => {}
        }
        Ok(())
    }
}
