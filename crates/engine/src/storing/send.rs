//! Sending: sealed blocks go to the repository, several requests at a time, each acknowledged when
//! its blocks are durable.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use crossbeam_channel::Receiver;
use holdall_format::SessionId;
use holdall_protocol::Repository;

use super::meters::StoringMeters;
use super::shared::Shared;
use crate::EngineError;
use crate::audit::Remembering;

/// A request with blocks takes what is ready, up to this many bytes.
pub const PUT_TARGET_BYTES: usize = 3 << 20;

/// What the sending threads share.
#[derive(Clone, Copy)]
pub(super) struct Senders<'a> {
    pub(super) repository: &'a dyn Repository,
    pub(super) session: SessionId,
    pub(super) shared: &'a Shared<'a>,
    pub(super) meters: &'a StoringMeters,
    /// Sealed bytes that were acknowledged.
    pub(super) stored_bytes: &'a AtomicU64,
    pub(super) remembering: &'a Remembering,
}

impl Senders<'_> {
    /// Sends blocks until there are no more: the body of a sending thread.
    ///
    /// # Errors
    /// What the repository answers.
    pub(super) fn run(&self, blocks: &Receiver<Bytes>) -> Result<(), EngineError> {
        while let Ok(first) = self.meters.send.waiting_in(|| blocks.recv()) {
            let mut bytes = first.len();
            let mut put = vec![first];
            while bytes < PUT_TARGET_BYTES
                && let Ok(next) = blocks.try_recv()
            {
                bytes += next.len();
                put.push(next);
            }
            let begun = Instant::now();
            let put_blocks = || self.repository.put_blocks(&self.session, &put);
            let times = self.meters.talk.during(put_blocks)?;
            self.remembering.remember(&put);
            self.meters.send.count(begun.elapsed(), &times);
            self.stored_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            self.shared.land(put.len() as u64);
        }
        Ok(())
    }
}
