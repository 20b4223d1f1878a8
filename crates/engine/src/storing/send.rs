//! Sending: sealed blocks go to the repository, several requests at a time, each acknowledged when
//! its blocks are durable.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crossbeam_channel::Receiver;
use holdall_format::SessionId;
use holdall_protocol::Repository;

use super::meters::StoringMeters;
use super::pace::Pace;
use super::seal::SealedBlock;
use super::shared::Shared;
use super::width::Width;
use crate::EngineError;
use crate::audit::Remembering;

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
    pub(super) width: &'a Width,
}

impl Senders<'_> {
    /// Sends blocks until there are no more: the body of a sending thread.
    ///
    /// # Errors
    /// What the repository answers.
    pub(super) fn run(&self, blocks: &Receiver<SealedBlock>) -> Result<(), EngineError> {
        let mut pace = Pace::default();
        while let Ok(first) = self.meters.send.waiting_in(|| blocks.recv()) {
            let SealedBlock { bytes: first, mut stands_for } = first;
            let mut bytes = first.len();
            let mut put = vec![first];
            while bytes < pace.target_bytes()
                && let Ok(next) = blocks.try_recv()
            {
                bytes += next.bytes.len();
                stands_for += next.stands_for;
                put.push(next.bytes);
            }
            let under_way = self.meters.send.waiting_for_the_line(|| self.width.enter(bytes));
            // Another one may have failed meanwhile.
            self.shared.check()?;
            let begun = Instant::now();
            let put_blocks = || self.repository.put_blocks(&self.session, &put);
            let times = self.meters.talk.during(put_blocks)?;
            self.remembering.remember(&put);
            let took = begun.elapsed();
            self.meters.send.count(took, &times);
            under_way.took(took, &times);
            pace.note(bytes, took, &times);
            self.stored_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            self.shared.run.done(stands_for);
            self.shared.land(put.len() as u64);
        }
        Ok(())
    }
}
