//! Tails: where blocks lie whole until their pack closes.
//!
//! ```text
//! KIND.N.payload   | payload 0 | payload 1 | ...            becomes the pack, nothing is copied
//! KIND.N.journal   | front | entry 0 | entry 1 | ...        becomes the footer, then goes
//! ```
//!
//! Appending is done by one thread at a time, under the lock of whoever owns the tail; making
//! durable is shared by all who wait ([`GroupCommit`]). An object is found through the tail only
//! once it is durable.

use std::collections::BTreeSet;
use std::io;
#[cfg(test)]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use holdall_format::limits::{PACK_MAX_BLOCKS, PACK_TARGET_BYTES, PACK_TARGET_TABLE_BYTES};
use holdall_format::{BLOCK_HEADER_BYTES, FooterBlock, RepositoryId, Table};
use holdall_protocol::RepositoryError;

use crate::storage::layout::{Layout, TailName};
use crate::storage::publish::failed;
use crate::storage::{GrowingFile, Landed, ReadAt};
use crate::tails::checked_block::Checked;
use crate::tails::group_commit::GroupCommit;
use crate::tails::journal::{self, JOURNAL_HEADER_BYTES, JournalKey};
use crate::tails::objects::{Mark, TailObject, TailObjects};

#[derive(Debug)]
struct Written {
    blocks: Vec<Arc<FooterBlock>>,
    payload_end: u64,
    journal_end: u64,
    table_bytes: usize,
}

/// One tail.
#[derive(Debug)]
pub(crate) struct Tail {
    name: TailName,
    layout: Layout,
    payload: Box<dyn GrowingFile>,
    journal: Box<dyn GrowingFile>,
    journal_key: JournalKey,
    written: Mutex<Written>,
    objects: Mutex<TailObjects>,
    group: GroupCommit,
    durable_journal: AtomicU64,
    /// Has the next sync fail.
    #[cfg(test)]
    pub(crate) fails: AtomicBool,
}

/// What could be read of a tail with a hole.
#[derive(Debug)]
pub(crate) struct Salvaged {
    /// The tail.
    pub(crate) name: TailName,
    /// Its payloads.
    pub(crate) payload: Box<dyn GrowingFile>,
    /// The blocks whose bytes are those of their names.
    pub(crate) blocks: Vec<FooterBlock>,
    /// Whether the files may go once all blocks are copied; else they are put aside.
    pub(crate) is_whole: bool,
}

impl Tail {
    /// Makes an empty tail. The front of its journal is durable before anything follows it: one that
    /// has entries and no front was damaged, and did not lose it to a crash.
    pub(crate) fn create(
        layout: &Layout,
        name: TailName,
        repository: &RepositoryId,
    ) -> Result<Self, RepositoryError> {
        let make = |path: &Landed| path.create_new().map_err(failed("making", path));
        let payload = make(&layout.payload(name))?;
        let journal_path = layout.journal(name);
        let journal = make(&journal_path)?;
        let journal_key = JournalKey::draw()?;
        journal
            .write_at(&journal::encode_header(repository, name.kind(), &journal_key), 0)
            .and_then(|()| journal.sync_data())
            .map_err(failed("writing", &journal_path))?;
        layout.tails().sync()?;
        Ok(Self::of_files(layout, name, payload, journal, journal_key, Vec::new()))
    }

    /// A tail whose files hold exactly these blocks, durably.
    pub(crate) fn of_files(
        layout: &Layout,
        name: TailName,
        payload: Box<dyn GrowingFile>,
        journal: Box<dyn GrowingFile>,
        journal_key: JournalKey,
        blocks: Vec<FooterBlock>,
    ) -> Self {
        let table_bytes = blocks.iter().map(|block| block.table_bytes.len()).sum();
        let entries = blocks.len() * journal::ENTRY_BYTES + table_bytes;
        let journal_end = (JOURNAL_HEADER_BYTES + entries) as u64;
        let payload_end =
            blocks.last().map_or(0, |last| last.offset + u64::from(last.header.payload_bytes));
        let group = GroupCommit::starting_at(blocks.len() as u64);
        let blocks = blocks.into_iter().map(Arc::new).collect();
        Self {
            name,
            layout: layout.clone(),
            payload,
            journal,
            journal_key,
            written: Mutex::new(Written { blocks, payload_end, journal_end, table_bytes }),
            objects: Mutex::new(TailObjects::default()),
            group,
            durable_journal: AtomicU64::new(journal_end),
            #[cfg(test)]
            fails: AtomicBool::new(false),
        }
    }

    /// Its blocks, to be copied to another tail.
    pub(crate) fn into_salvaged(self) -> Salvaged {
        let blocks = self.all_clear().iter().map(|block| FooterBlock::clone(block)).collect();
        Salvaged { name: self.name, payload: self.payload, blocks, is_whole: true }
    }

    pub(crate) fn name(&self) -> TailName {
        self.name
    }

    /// Whether its pack is to be closed.
    pub(crate) fn is_full(&self) -> bool {
        is_full(&self.written())
    }

    /// Whether a sync failed, so that only what was durable before counts.
    pub(crate) fn has_failed(&self) -> bool {
        self.group.has_failed()
    }

    /// How many blocks are durable.
    pub(crate) fn durable_blocks(&self) -> usize {
        let synced = usize::try_from(self.group.synced()).unwrap_or(usize::MAX);
        synced.min(self.block_count())
    }

    /// How many blocks were appended.
    pub(crate) fn block_count(&self) -> usize {
        self.written().blocks.len()
    }

    /// Length of all payloads.
    pub(crate) fn payload_bytes(&self) -> u64 {
        self.written().payload_end
    }

    /// Length of both files.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let written = self.written();
        written.payload_end + written.journal_end
    }

    /// A block's clear half.
    pub(crate) fn clear(&self, block: u32) -> Option<Arc<FooterBlock>> {
        self.written().blocks.get(block as usize).cloned()
    }

    /// All clear halves, in order.
    pub(crate) fn all_clear(&self) -> Vec<Arc<FooterBlock>> {
        self.written().blocks.clone()
    }

    /// The objects that are durable here.
    pub(crate) fn objects(&self) -> MutexGuard<'_, TailObjects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Length of the payloads of blocks that hold nothing so marked and are not kept, by arrival position.
    pub(crate) fn unneeded_bytes(&self, mark: Mark, is_kept: impl Fn(u64) -> bool) -> u64 {
        let objects = self.objects();
        let needed: BTreeSet<u32> =
            objects.iter().filter(|(_, one)| mark.is_on(one)).map(|(_, one)| one.block).collect();
        drop(objects);
        let blocks = self.all_clear();
        let unneeded = blocks
            .iter()
            .zip(0..)
            .filter(|(block, number)| !needed.contains(number) && !is_kept(block.arrival));
        unneeded.map(|(block, _)| u64::from(block.header.payload_bytes)).sum()
    }

    /// Appends blocks until the tail is full; the caller alone appends. Returns how many were
    /// taken. After an error nothing was appended.
    pub(crate) fn append(
        &self,
        blocks: &[Checked],
        mut next_arrival: impl FnMut() -> u64,
    ) -> Result<usize, RepositoryError> {
        let mut written = self.written();
        let durable = self.durable_journal.load(Ordering::Acquire);
        let mut entries = Vec::new();
        let mut clear = Vec::new();
        let mut table_bytes = written.table_bytes;
        let mut offset = written.payload_end;
        for checked in blocks {
            if full(offset, table_bytes, written.blocks.len() + clear.len()) {
                break;
            }
            let payload = checked.block.payload();
            let path = self.layout.payload(self.name);
            self.payload.write_at(payload, offset).map_err(failed("writing", &path))?;
            let block = checked.footer_block(offset, next_arrival());
            journal::encode_entry(&mut entries, &self.journal_key, &block, durable);
            offset += payload.len() as u64;
            table_bytes += block.table_bytes.len();
            clear.push(Arc::new(block));
        }
        let path = self.layout.journal(self.name);
        self.journal.write_at(&entries, written.journal_end).map_err(failed("writing", &path))?;
        let taken = clear.len();
        written.journal_end += entries.len() as u64;
        written.payload_end = offset;
        written.table_bytes = table_bytes;
        written.blocks.extend(clear);
        self.group.announce(written.blocks.len() as u64);
        Ok(taken)
    }

    /// Waits until the first `count` blocks are durable, by a sync of its own if need be.
    pub(crate) fn wait_durable(&self, count: usize) -> Result<(), RepositoryError> {
        let path = self.layout.payload(self.name);
        self.group.wait(count as u64, || self.sync()).map_err(failed("syncing", &path))
    }

    fn sync(&self) -> io::Result<()> {
        #[cfg(test)]
        if self.fails.load(Ordering::Acquire) {
            return Err(io::Error::other("the disk failed"));
        }
        let journal_end = self.written().journal_end;
        self.payload.sync_data()?;
        self.journal.sync_data()?;
        self.durable_journal.fetch_max(journal_end, Ordering::AcqRel);
        Ok(())
    }

    /// Makes the objects of a durable block known.
    pub(crate) fn list_objects(&self, block: u32, arrival: u64, table: &Table) {
        let mut objects = self.objects();
        for entry in &table.entries {
            let fresh = TailObject { arrival, block, closed: false, tentative: false };
            objects.insert(entry.id, fresh);
        }
    }

    /// Writes a footer and trailer behind the payloads and makes the file durable: a whole pack. Nothing is
    /// written after a failed sync: whoever took the lease over may have published what an earlier attempt left.
    pub(crate) fn finish_pack(&self, end: &[u8]) -> Result<u64, RepositoryError> {
        let payload_end = self.payload_bytes();
        let path = self.layout.payload(self.name);
        if self.has_failed() {
            return Err(failed("finishing", &path)(io::Error::other("an earlier sync failed")));
        }
        self.payload
            .set_len(payload_end)
            .and_then(|()| self.payload.write_at(end, payload_end))
            .map_err(failed("writing", &path))?;
        // One more ticket than there are blocks: the footer counts as an append of its own.
        let ticket = self.group.announce_one();
        self.group.wait(ticket, || self.sync()).map_err(failed("syncing", &path))?;
        Ok(payload_end + end.len() as u64)
    }

    /// Reads a whole block; whether it is sound, its name tells.
    pub(crate) fn read_block(&self, block: &FooterBlock) -> io::Result<Bytes> {
        read_whole(&self.payload, block)
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Joins a block from its clear half and the payload in a file.
pub(crate) fn read_whole(
    payload: &(impl ReadAt + ?Sized),
    block: &FooterBlock,
) -> io::Result<Bytes> {
    let mut bytes = Vec::with_capacity(block.header.block_bytes());
    bytes.extend_from_slice(&block.header.encode());
    bytes.extend_from_slice(&block.table_bytes);
    payload.append_at(&mut bytes, block.header.payload_bytes as usize, block.offset)?;
    Ok(bytes.into())
}

fn is_full(written: &Written) -> bool {
    full(written.payload_end, written.table_bytes, written.blocks.len())
}

/// What a footer holds of a block beside its table.
const FOOTER_BLOCK_BYTES: usize = 48 + BLOCK_HEADER_BYTES;

fn full(payload_bytes: u64, table_bytes: usize, blocks: usize) -> bool {
    payload_bytes >= PACK_TARGET_BYTES
        || table_bytes + blocks * FOOTER_BLOCK_BYTES >= PACK_TARGET_TABLE_BYTES
        || blocks >= PACK_MAX_BLOCKS
}
