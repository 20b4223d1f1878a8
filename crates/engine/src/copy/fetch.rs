//! Fetching: chunks come in whole blocks from the source, are opened and checked, and get the ids
//! that the destination's keys give them.

use std::sync::{Arc, Mutex};

use crossbeam_channel::Receiver;
use holdall_crypto::{IdKeys, Opener};
use holdall_tree::ChunkRef;

use super::known::Known;
use super::meters::Meters;
use super::window::{Copied, Order};
use crate::EngineError;
use crate::pipeline::budget::Grant;
use crate::restore::{Chunk, ChunkArriving, ChunkSource};
use crate::run::lock;
use crate::storing::{NewChunk, Shared};

/// What the fetching threads share.
pub(super) struct Fetching<'a> {
    pub(super) source: &'a ChunkSource,
    /// The destination's.
    pub(super) ids: &'a IdKeys,
    pub(super) known: &'a Known,
    pub(super) shared: &'a Shared<'a>,
    pub(super) meters: &'a Meters,
}

impl Fetching<'_> {
    /// Gets the chunks of one window after the other: the body of a fetching thread. After a
    /// failure it only lets go of what is still ordered.
    ///
    /// # Errors
    /// None: it tells of failures as they come.
    pub(super) fn run(
        &self,
        opener: &mut Opener,
        orders: &Mutex<Receiver<Order>>,
    ) -> Result<(), EngineError> {
        loop {
            let next = self.source.meters.fetch.waiting_in(|| {
                let orders = lock(orders);
                let order = orders.recv().ok()?;
                // Before the next order is taken, so that it is known there.
                Some((self.source.arriving(order.window), order))
            });
            let Some((arriving, order)) = next else { return Ok(()) };
            if self.shared.failed() {
                continue;
            }
            match self.get(opener, &order, arriving) {
                // Nobody waits for it any more if the run ended.
                Ok(copied) => drop(order.reply.send(copied)),
                Err(error) => self.shared.fail(error),
            }
        }
    }

    fn get(
        &self,
        opener: &mut Opener,
        order: &Order,
        arriving: ChunkArriving<'_>,
    ) -> Result<Vec<Copied>, EngineError> {
        let bytes = order.chunks.iter().map(|chunk| chunk.len_bytes as usize).sum();
        let room = || self.shared.budget.grant(order.window, bytes);
        let grant = self.source.meters.fetch.waiting_out(room).ok_or(EngineError::Interrupted)?;
        let chunks = self.source.get(opener, &order.chunks, Some(arriving))?;
        let grant = Arc::new(grant);
        let named = |chunk| self.named(chunk, &grant);
        let copied: Vec<_> = self.meters.hash.working(|| chunks.into_iter().map(named).collect());
        self.known.extend(order.chunks.iter().zip(&copied).filter_map(|(from, to)| {
            let id = to.as_ref().ok()?.id;
            Some((from.id, ChunkRef { id, len_bytes: from.len_bytes }))
        }));
        Ok(copied)
    }

    fn named(&self, chunk: Chunk, grant: &Arc<Grant>) -> Copied {
        let bytes = chunk?;
        let id = self.ids.chunk_id(&bytes);
        Ok(NewChunk { id, bytes, _grant: Arc::clone(grant) })
    }
}
