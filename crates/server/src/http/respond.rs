//! Responses: what a body is, and errors as JSON.

use bytes::Bytes;
use holdall_protocol::wire::{ErrorAnswer, Frames, WireError};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

use super::body::Answer;
use crate::bounds::work::BufferPermits;

pub(super) const JSON: &str = "application/json";
pub(super) const BYTES: &str = "application/octet-stream";
pub(super) const LINES: &str = "application/x-ndjson";
pub(super) const TEXT: &str = "text/plain; charset=utf-8";

/// Answers a body; `permits` for the memory that it takes are given back once it was sent.
pub(super) fn respond(
    content_type: &'static str,
    body: Frames,
    permits: Option<BufferPermits>,
) -> Response<Answer> {
    let mut response = Response::new(Answer::new(body));
    if let Some(permits) = permits {
        response.body_mut().hold(permits);
    }
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// What is answered in JSON when something was done.
pub(super) fn done() -> Frames {
    Frames::plain(Bytes::from_static(b"{}"))
}

pub(super) fn respond_error(error: WireError) -> Response<Answer> {
    let ErrorAnswer { status, body } = ErrorAnswer::new(error);
    let mut response = respond(JSON, Frames::plain(body), None);
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}
