//! What stands in the place of the pages where this was built without them: nothing.

use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Request, Response};

use crate::ServerError;
use crate::bounds::source::Source;
use crate::state::ServerState;

/// Threads that only pages need.
pub(crate) const WORKERS: usize = 0;

/// Nobody is told. Never ends.
pub(crate) async fn watch(_: &Arc<ServerState>) {
    std::future::pending().await
}

/// No pages.
pub(crate) struct Web;

impl Web {
    pub(crate) fn new(_: &Arc<ServerState>, _: Vec<String>) -> Result<Self, ServerError> {
        Ok(Self)
    }

    /// Gives every request back.
    pub(crate) async fn answer(
        &self,
        _: Source,
        request: Request<Incoming>,
    ) -> Result<Response<Bytes>, Request<Incoming>> {
        Err(request)
    }
}
