//! Taking a request's body: within its limit, once there is memory for it, and with what was waited for.

use std::time::{Duration, Instant};

use bytes::Bytes;
use holdall_format::PublicKey;
use holdall_protocol::RequestTimes;
use holdall_protocol::wire::WireError;
use hyper::body::Incoming;
use zeroize::Zeroize;

use super::body::{self, Came};
use crate::bounds::work::BufferPermits;
use crate::state::ServerState;

/// The times of a repository's call, and what was waited for before it.
pub(crate) fn with_waiting(
    times: RequestTimes,
    received: Duration,
    queued: Duration,
) -> RequestTimes {
    RequestTimes {
        receive_seconds: times.receive_seconds + received.as_secs_f64(),
        queue_seconds: times.queue_seconds + queued.as_secs_f64(),
        ..times
    }
}

/// Reads a body within its limit, and tells how long memory for it and its bytes were waited for.
pub(crate) async fn read_body(
    state: &ServerState,
    key: &PublicKey,
    body: &mut Option<Incoming>,
    limit_bytes: usize,
) -> Result<ReadBody, WireError> {
    let admitted = AdmittedBody::wait(state, key, body.as_ref(), limit_bytes).await?;
    let (came, received) = admitted.read(state, key, body.take()).await?;
    let AdmittedBody { permits, queued, .. } = admitted;
    Ok(ReadBody { bytes: came.whole()?, permits, queued, received })
}

/// A body that is within its limit and has memory.
pub(crate) struct AdmittedBody {
    declared_bytes: u64,
    /// `None` for a small one.
    pub(crate) permits: Option<BufferPermits>,
    /// How long they were waited for.
    pub(crate) queued: Duration,
}

impl AdmittedBody {
    /// Waits for the memory of a body.
    ///
    /// # Cancel safety
    /// Nothing is held when it is dropped.
    pub(crate) async fn wait(
        state: &ServerState,
        key: &PublicKey,
        body: Option<&Incoming>,
        limit_bytes: usize,
    ) -> Result<Self, WireError> {
        let declared = body.map_or(Ok(0), |body| body::declared_bytes(body, limit_bytes));
        let (declared_bytes, begun) = (declared?, Instant::now());
        let permits = state.body_permits(key, declared_bytes).await?;
        Ok(Self { declared_bytes, permits, queued: begun.elapsed() })
    }

    /// Reads the body, at the rate that machines keep unless it is a small one, and tells how long that took.
    pub(crate) async fn read(
        &self,
        state: &ServerState,
        key: &PublicKey,
        body: Option<Incoming>,
    ) -> Result<(Came, Duration), WireError> {
        let begun = Instant::now();
        let Some(body) = body else {
            return Ok((Came { bytes: Bytes::new(), is_whole: true }, Duration::ZERO));
        };
        let stalled = state.limits.stalled;
        let rate = self.permits.as_ref().map(|_| (&*state.bandwidth, key));
        let came = body::read(body, self.declared_bytes, stalled, &state.buffers, rate).await?;
        Ok((came, begun.elapsed()))
    }
}

/// Wipes a body that had a secret. What TLS and HTTP had of it on the way is not in reach.
pub(crate) fn wipe(body: Bytes) {
    if let Ok(mut body) = body.try_into_mut() {
        body[..].zeroize();
    }
}

/// A body that is there, and what it waited for.
pub(crate) struct ReadBody {
    pub(crate) bytes: Bytes,
    /// `None` for a small one.
    pub(crate) permits: Option<BufferPermits>,
    pub(crate) queued: Duration,
    pub(crate) received: Duration,
}
