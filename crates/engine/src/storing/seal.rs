//! Sealing: plain blocks are compressed and encrypted, several at a time.

use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender};
use holdall_crypto::Sealer;
use holdall_format::BlockKind;

use super::meters::StoringMeters;
use super::store::PlainBlock;
use crate::EngineError;
use crate::blocks::SharedNodeCache;
use crate::run::lock;

/// Seals blocks until there are no more: the body of a sealing thread. Nodes go into the cache on
/// this machine too, so that the next run finds them there.
///
/// # Errors
/// What the seal refuses.
pub(super) fn seal(
    mut sealer: Sealer,
    cache: &SharedNodeCache,
    blocks: &Receiver<PlainBlock>,
    to_senders: &Sender<Bytes>,
    meters: &StoringMeters,
) -> Result<(), EngineError> {
    while let Ok(block) = meters.seal.waiting_in(|| blocks.recv()) {
        let sealed =
            meters.seal.working(|| sealer.seal(block.kind, &block.objects, &block.plain))?;
        if block.kind == BlockKind::Nodes
            && let Some(cache) = lock(cache).as_mut()
        {
            // A cache that can not be written is a slower next run, nothing more.
            let _ = cache.add(&sealed);
        }
        let bytes = Bytes::from(sealed.into_bytes());
        meters.seal.waiting_out(|| to_senders.send(bytes)).map_err(|_| EngineError::Interrupted)?;
    }
    Ok(())
}
