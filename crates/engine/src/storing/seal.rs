//! Sealing: plain blocks are compressed and encrypted, several at a time, and opened again before
//! they leave.
//!
//! A bit that flips in memory, or a compressor that errs, makes a block that authenticates and is
//! not what was read: nothing behind this place could tell, until somebody restores. So each block
//! is opened as a restore would, and its objects' ids, which were computed when their bytes were
//! read, are computed once more from what came out.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender};
use holdall_crypto::{CryptoError, IdKeys, Opener, Overhead, Sealer};
use holdall_format::{Block, BlockKind};

use super::level::Level;
use super::meters::StoringMeters;
use super::store::PlainBlock;
use crate::blocks::SharedNodeCache;
use crate::run::{Amount, lock};
use crate::{EngineError, UnlockedRepository};

/// Opens what was sealed. Each sealing thread has one.
pub(super) struct SelfCheck {
    opener: Opener,
    ids: IdKeys,
}

impl SelfCheck {
    pub(super) fn new(access: &UnlockedRepository) -> Self {
        let opener = Opener::new(access.keys.sealing(), access.config.repository);
        Self { opener, ids: access.keys.ids().clone() }
    }

    /// Checks that a sealed block opens to the objects that were to be sealed.
    pub(super) fn check(
        &mut self,
        plain: &PlainBlock,
        sealed: &Block<Vec<u8>>,
    ) -> Result<(), EngineError> {
        let checked = self.opener.check(sealed, plain.kind, &self.ids);
        let ids = checked.map_err(|error: CryptoError| EngineError::self_check(error))?;
        if ids.into_iter().eq(plain.objects.iter().map(|object| object.id)) {
            return Ok(());
        }
        Err(EngineError::self_check("it has other objects than were to be sealed"))
    }
}

/// A block on its way, and what counts as done when it is durable.
pub(super) struct SealedBlock {
    pub(super) bytes: Bytes,
    pub(super) stands_for: Amount,
}

/// What a sealing thread works with.
pub(super) struct Sealing<'a> {
    pub(super) sealer: Sealer,
    pub(super) level: Arc<Level>,
    pub(super) overhead: &'a Mutex<Overhead>,
    /// `None` where the user wants none.
    pub(super) check: Option<SelfCheck>,
    pub(super) cache: &'a SharedNodeCache,
    pub(super) meters: &'a StoringMeters,
}

impl Sealing<'_> {
    /// Seals blocks until there are no more: the body of a sealing thread. Nodes go into the cache on
    /// this machine too, so that the next run finds them there.
    ///
    /// # Errors
    /// What the seal refuses; [`EngineError::SelfCheck`].
    pub(super) fn run(
        mut self,
        blocks: &Receiver<PlainBlock>,
        to_senders: &Sender<SealedBlock>,
    ) -> Result<(), EngineError> {
        let meter = &self.meters.seal;
        while let Ok(block) = meter.waiting_in(|| blocks.recv()) {
            let begun = Instant::now();
            let sealed = meter.working(|| self.seal(&block))?;
            let sealed_at = Instant::now();
            if block.kind == BlockKind::Nodes
                && let Some(cache) = lock(self.cache).as_mut()
            {
                // A cache that cannot be written is a slower next run, nothing more.
                let _ = cache.add(&sealed);
            }
            let bytes = Bytes::from(sealed.into_bytes());
            let sealed = SealedBlock { bytes, stands_for: block.stands_for };
            meter.waiting_out(|| to_senders.send(sealed)).map_err(|_| EngineError::Interrupted)?;
            self.level.note(sealed_at - begun, sealed_at.elapsed());
        }
        Ok(())
    }

    fn seal(&mut self, block: &PlainBlock) -> Result<Block<Vec<u8>>, EngineError> {
        self.sealer.set_level(self.level.now());
        let sealed = self.sealer.seal(block.kind, &block.objects, &block.plain)?;
        *lock(self.overhead) += self.sealer.take_overhead();
        if let Some(check) = &mut self.check {
            check.check(block, &sealed)?;
        }
        Ok(sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_world::World;
    use crossbeam_channel::unbounded;
    use holdall_crypto::{PlainObject, SystemEntropy};
    use holdall_format::Suite;

    /// Seals a chunk, of whose bytes one bit flipped in memory behind its id if so wished; gives
    /// what became of it, and how many blocks left.
    fn sealed(flipped: bool, checked: bool) -> (Result<(), EngineError>, usize) {
        let world = World::new();
        let keys = &world.access.keys;
        let mut plain = b"what was read".to_vec();
        let object =
            PlainObject { id: keys.ids().chunk_id(&plain), refs: Vec::new(), len: plain.len() };
        plain[3] ^= u8::from(flipped) << 5;
        let (to_seal, blocks) = unbounded();
        let block = PlainBlock {
            kind: BlockKind::Chunks,
            objects: vec![object],
            plain,
            stands_for: Amount::default(),
        };
        to_seal.send(block).unwrap();
        drop(to_seal);
        let entropy = Box::new(SystemEntropy);
        let sealing = Sealing {
            sealer: Sealer::new(keys.sealing(), Suite::Aes256Gcm, 1, entropy),
            level: Level::new(),
            overhead: &Mutex::default(),
            check: checked.then(|| SelfCheck::new(&world.access)),
            cache: &Arc::new(Mutex::new(None)),
            meters: &StoringMeters::new(1, 1),
        };
        let (to_senders, left) = unbounded();
        (sealing.run(&blocks, &to_senders), left.len())
    }

    #[test]
    fn a_bit_that_flips_before_the_seal_ends_the_run_and_nothing_leaves() {
        let (ended, left) = sealed(true, true);
        let told = ended.unwrap_err();
        assert!(matches!(told, EngineError::SelfCheck { .. }), "{told}");
        assert_eq!(left, 0);
    }

    #[test]
    fn what_is_whole_leaves_and_so_does_what_nobody_wants_checked() {
        for (flipped, checked) in [(false, true), (false, false), (true, false)] {
            let (ended, left) = sealed(flipped, checked);
            ended.unwrap();
            assert_eq!(left, 1, "{flipped} {checked}");
        }
    }
}
