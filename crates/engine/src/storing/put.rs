//! Putting objects that a repository lost and nobody else asks about: filled into blocks, sealed,
//! opened again and sent, one block after the other.
//!
//! Nothing is asked before: what a repository lost it may still believe to have, if its copy is
//! damaged. A second copy does no harm where the first is sound after all.

use bytes::Bytes;
use holdall_crypto::{Sealer, SystemEntropy};
use holdall_format::{ObjectId, SessionId};
use holdall_tree::NodeKind;

use super::seal::SelfCheck;
use super::store::{Lane, OpenBlocks, PlainBlock};
use crate::audit::Remembering;
use crate::run::Amount;
use crate::{EngineError, UnlockedRepository};

/// zstd's level: what is put is little, and stays.
const LEVEL: i32 = 3;

/// Puts objects in a session that may put.
pub(crate) struct Putter<'a> {
    access: &'a UnlockedRepository,
    session: SessionId,
    sealer: Sealer,
    check: SelfCheck,
    open: OpenBlocks,
    /// What is asked for again later.
    remembering: Remembering,
    /// What was sent.
    sealed_bytes: u64,
}

impl<'a> Putter<'a> {
    pub(crate) fn new(access: &'a UnlockedRepository, session: SessionId) -> Self {
        let (keys, config) = (access.keys.sealing(), &access.config);
        let entropy = Box::new(SystemEntropy);
        let sealer = Sealer::new(keys, config.suite, LEVEL, entropy);
        let (check, open) = (SelfCheck::new(access), OpenBlocks::default());
        let remembering = Remembering::within(&access.cache);
        Self { access, session, sealer, check, open, remembering, sealed_bytes: 0 }
    }

    /// Puts a chunk. Its id must have been compared with its bytes.
    ///
    /// # Errors
    /// As for [`Putter::finish`].
    pub(crate) fn chunk(&mut self, id: ObjectId, bytes: &[u8]) -> Result<(), EngineError> {
        self.add(Lane::of(bytes), id, Vec::new(), bytes)
    }

    /// Puts a node. Its id must have been compared with the rest.
    ///
    /// # Errors
    /// As for [`Putter::finish`].
    pub(crate) fn node(
        &mut self,
        kind: NodeKind,
        id: ObjectId,
        refs: Vec<ObjectId>,
        body: &[u8],
    ) -> Result<(), EngineError> {
        self.add(Lane::of_node(kind), id, refs, body)
    }

    /// Sends what is left, and says how many sealed bytes were sent. When it returns, everything is
    /// durable.
    ///
    /// # Errors
    /// [`EngineError::SelfCheck`]; what the repository answers. What was put until then stays.
    pub(crate) fn finish(mut self) -> Result<u64, EngineError> {
        let mut rest = std::mem::take(&mut self.open).into_blocks();
        rest.try_for_each(|block| self.send(&block))?;
        Ok(self.sealed_bytes)
    }

    fn add(
        &mut self,
        lane: Lane,
        id: ObjectId,
        refs: Vec<ObjectId>,
        bytes: &[u8],
    ) -> Result<(), EngineError> {
        let complete = self.open.add(lane, id, refs, bytes, Amount::default());
        complete.iter().flatten().try_for_each(|block| self.send(block))
    }

    fn send(&mut self, block: &PlainBlock) -> Result<(), EngineError> {
        let sealed = self.sealer.seal(block.kind, &block.objects, &block.plain)?;
        self.check.check(block, &sealed)?;
        let sealed = [Bytes::from(sealed.into_bytes())];
        self.access.repository.put_blocks(&self.session, &sealed)?;
        self.remembering.remember(&sealed);
        self.sealed_bytes += sealed.iter().map(|block| block.len() as u64).sum::<u64>();
        Ok(())
    }
}
