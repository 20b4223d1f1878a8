//! A put, which goes on when its connection is cut: blocks that came whole until then are stored, so that
//! the client, which asks which are there, need not send them again.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use holdall_format::SessionId;
use holdall_format::limits::BLOCK_MAX_BYTES;
use holdall_protocol::wire::{WireError, decode_frames, decode_whole_frames};
use holdall_protocol::{MAX_PUT_BYTES, Repository, RequestTimes};
use hyper::body::Incoming;
use tokio::sync::{Mutex, OwnedSemaphorePermit};
use tokio::task::JoinSet;

use super::body::Came;
use super::read_body::{AdmittedBody, with_waiting};
use crate::auth::rights::Permit;
use crate::bounds::work;
use crate::measure::pressure::Reading;
use crate::state::ServerState;

/// The puts of a connection: the one that is under way, if any.
#[derive(Default)]
pub(crate) struct Puts {
    running: Mutex<JoinSet<Result<RequestTimes, WireError>>>,
}

impl Puts {
    /// Carries out a put, on a task of its own: the one that asks is dropped with its connection.
    ///
    /// # Cancel safety
    /// What came whole is stored all the same; the answer is lost.
    pub(crate) async fn carry_out(
        &self,
        put: Put,
        body: Option<Incoming>,
    ) -> Result<RequestTimes, WireError> {
        let mut running = self.running.lock().await;
        running.spawn(put.store(body));
        let done = running.join_next().await.and_then(Result::ok);
        done.unwrap_or_else(|| Err(work::ended_unexpectedly()))
    }

    /// Waits for the one that a cut connection left.
    pub(crate) async fn end(&self) {
        while self.running.lock().await.join_next().await.is_some() {}
    }
}

/// A put for whose body there is memory.
pub(crate) struct Put {
    pub(crate) state: Arc<ServerState>,
    pub(crate) permit: Permit,
    /// Of the machine's requests: one that was cut has it until it ends.
    pub(crate) slot: Arc<OwnedSemaphorePermit>,
    pub(crate) session: SessionId,
    pub(crate) begun: Reading,
    pub(crate) admitted: AdmittedBody,
}

impl Put {
    async fn store(self, body: Option<Incoming>) -> Result<RequestTimes, WireError> {
        let Self { state, permit, slot, session, begun, admitted } = self;
        let (came, received) = admitted.read(&state, &permit.key(), body).await?;
        let blocks = blocks_of(&came)?;
        if blocks.is_empty() && !came.is_whole {
            return came.whole().map(|_| RequestTimes::default());
        }
        let AdmittedBody { permits, queued, .. } = admitted;
        let ended = Instant::now();
        let storing = state.storing(&permit.key()).await;
        let queued = queued + ended.elapsed();
        let of = (permit.key(), session);
        let bytes = blocks.iter().map(|block| block.len() as u64).sum();
        let inner = Arc::clone(&state);
        let call = move || {
            let _held = (permits, slot, storing);
            inner.stores.repository(&permit)?.put_blocks(&session, &blocks)
        };
        let (times, waited) = state.work.run(call).await?;
        state.buffers.give_back(came.whole()?);
        let times = with_waiting(times, received, queued + waited);
        let times = state.pressure.reattribute_cpu_wait(&begun, times);
        state.activities.took(of, bytes, &times);
        Ok(times)
    }
}

/// The blocks of a body; of one that was cut, those before the cut.
fn blocks_of(came: &Came) -> Result<Vec<Bytes>, WireError> {
    let decode = if came.is_whole { decode_frames } else { decode_whole_frames };
    let blocks = decode(&came.bytes, BLOCK_MAX_BYTES)?;
    match blocks.iter().map(Bytes::len).sum::<usize>() {
        bytes if bytes > MAX_PUT_BYTES => {
            Err(WireError::TooLarge { limit_bytes: MAX_PUT_BYTES as u64 })
        }
        _ => Ok(blocks),
    }
}
