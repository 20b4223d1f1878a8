//! Opening every block.

use std::sync::Mutex;

use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender, bounded};
use holdall_crypto::Opener;
use holdall_format::{Block, BlockKind, BlockName, ObjectId, SessionId};
use holdall_protocol::ScrubDamage;
use holdall_sys::thread;

use super::{VerifyProgress, VerifyReport};
use crate::run::lock;
use crate::{EngineError, Run, UnlockedRepository};

/// Blocks that were read and wait to be opened.
const WAITING_BLOCKS: usize = 8;

/// What was found in all blocks.
pub(crate) struct Opened {
    pub(super) report: VerifyReport,
    pub(crate) good: GoodIds,
}

/// The ids of objects of which a good copy was opened: 8 bytes for each.
///
/// Ids are keyed hashes, so 8 bytes of one are as good as random: among a hundred million objects,
/// a missing one is taken for another with odds of one in 10^11.
#[derive(Default)]
pub(crate) struct GoodIds {
    nodes: Vec<u64>,
    chunks: Vec<u64>,
}

impl GoodIds {
    fn add(&mut self, id: &ObjectId, kind: BlockKind) {
        match kind {
            BlockKind::Nodes => self.nodes.push(fingerprint(id)),
            BlockKind::Chunks | BlockKind::Record => self.chunks.push(fingerprint(id)),
        }
    }

    fn add_all(&mut self, other: &mut Self) {
        self.nodes.append(&mut other.nodes);
        self.chunks.append(&mut other.chunks);
    }

    pub(crate) fn sort(&mut self) {
        for ids in [&mut self.nodes, &mut self.chunks] {
            ids.sort_unstable();
            ids.dedup();
        }
    }

    pub(crate) fn has_node(&self, id: &ObjectId) -> bool {
        self.nodes.binary_search(&fingerprint(id)).is_ok()
    }

    pub(crate) fn has_chunk(&self, id: &ObjectId) -> bool {
        self.chunks.binary_search(&fingerprint(id)).is_ok()
    }
}

fn fingerprint(id: &ObjectId) -> u64 {
    id.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Reads and opens all blocks of the repository.
///
/// # Errors
/// [`EngineError::Repository`] if they cannot be read on; [`EngineError::Interrupted`].
pub(crate) fn open_all(
    access: &UnlockedRepository,
    session: SessionId,
    run: &Run,
    progress: &mut dyn FnMut(VerifyProgress),
) -> Result<Opened, EngineError> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let found = Mutex::new(Opened { report: VerifyReport::default(), good: GoodIds::default() });
    let (to_open, blocks) = bounded(WAITING_BLOCKS);
    let read = std::thread::scope(|scope| {
        for number in 0..threads {
            let (blocks, found) = (blocks.clone(), &found);
            let started = thread::start(scope, move || open(access, blocks, found));
            if number == 0 {
                started.map_err(|error| EngineError::io("starting a thread", error))?;
            }
        }
        drop(blocks);
        read_all(access, session, run, to_open, &found, progress)
    });
    read?;
    let mut found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    found.good.sort();
    Ok(found)
}

fn read_all(
    access: &UnlockedRepository,
    session: SessionId,
    run: &Run,
    to_open: Sender<Bytes>,
    found: &Mutex<Opened>,
    progress: &mut dyn FnMut(VerifyProgress),
) -> Result<(), EngineError> {
    let mut cursor = Some(0);
    while let Some(at) = cursor {
        run.check()?;
        let page = access.repository.read_blocks(&session, at)?;
        if page.next.is_some_and(|next| next <= at) {
            return Err(EngineError::damaged("the repository's list of blocks", "it does not end"));
        }
        cursor = page.next;
        for block in page.blocks {
            run.advance(1, block.len() as u64);
            // The receivers live until this sender is dropped, or a panic of theirs ends all.
            let _ = to_open.send(block);
        }
        let mut found = lock(found);
        found.report.damaged.extend(page.damaged);
        progress(found.report.progress());
    }
    Ok(())
}

/// Opens blocks until there are no more.
fn open(access: &UnlockedRepository, blocks: Receiver<Bytes>, found: &Mutex<Opened>) {
    let mut opener = Opener::new(access.keys.sealing(), access.config.repository);
    let mut good = GoodIds::default();
    for bytes in blocks {
        let (len, name) = (bytes.len() as u64, *blake3::hash(&bytes).as_bytes());
        let (objects, reason) = check(access, &mut opener, bytes, &mut good);
        let mut found = lock(found);
        found.report.blocks += 1;
        found.report.objects += objects;
        found.report.bytes += len;
        if let Some(reason) = reason {
            let block = BlockName::from_bytes(name);
            found.report.damaged.push(ScrubDamage::Block { block, pack: None, reason });
        }
    }
    lock(found).good.add_all(&mut good);
}

/// Opens one block and checks its ids; gives their number and what is wrong.
pub(crate) fn check(
    access: &UnlockedRepository,
    opener: &mut Opener,
    bytes: Bytes,
    good: &mut GoodIds,
) -> (u64, Option<String>) {
    let block = match Block::decode(bytes) {
        Ok(block) => block,
        Err(error) => return (0, Some(error.to_string())),
    };
    let kind = block.header().kind;
    if kind == BlockKind::Record {
        return (0, Some("a record lies among the blocks".to_owned()));
    }
    let opened = match opener.open(&block, kind) {
        Ok(opened) => opened,
        Err(error) => return (0, Some(error.to_string())),
    };
    let mut reason = None;
    for object in &opened.objects {
        match opened.check_id(object, access.keys.ids(), kind) {
            Ok(()) => good.add(&object.id, kind),
            Err(error) => reason = Some(error.to_string()),
        }
    }
    (opened.objects.len() as u64, reason)
}
