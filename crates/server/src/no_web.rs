//! What stands in the place of the pages where this was built without them: nothing.

use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Request, Response};

use holdall_format::PublicKey;
use rustls::ServerConfig;

use crate::ServerError;
use crate::auth::acme::Acme;
use crate::bounds::source::Source;
use crate::data_folder::DataFolder;
use crate::state::ServerState;

/// Threads that only pages need.
pub(crate) const WORKERS: usize = 0;

/// Nobody is told. Never ends.
pub(crate) async fn watch(_: &Arc<ServerState>) {
    std::future::pending().await
}

/// No certificates of an authority.
pub(crate) enum Renewal {}

impl Renewal {
    pub(crate) fn begin(_: &DataFolder, _: Acme, _: &PublicKey) -> Result<Self, ServerError> {
        Err(ServerError::refused(
            "this holdall was built without its pages; build it with `--features web`",
        ))
    }

    pub(crate) fn web_config(&self) -> Result<ServerConfig, ServerError> {
        match *self {}
    }

    pub(crate) fn challenge_config(&self) -> Result<ServerConfig, ServerError> {
        match *self {}
    }

    pub(crate) async fn keep(&self, _: &ServerState) {
        match *self {}
    }
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
