//! Bodies on their way out and in.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, SizeHint};

use super::turns::Turn;
use crate::wire::Frames;

/// The parts of a request's body, handed to the socket as they are.
pub(super) struct Parts {
    left: VecDeque<Bytes>,
    left_bytes: u64,
    /// Set when the last part is on its way.
    handed_out: Arc<AtomicBool>,
    /// Given up at that moment.
    turn: Option<Turn>,
}

impl Parts {
    pub(super) fn new(body: Frames, turn: Option<Turn>, handed_out: Arc<AtomicBool>) -> Self {
        let left_bytes = body.total_bytes();
        let left = VecDeque::from(body.into_parts());
        handed_out.store(left.is_empty(), Ordering::Relaxed);
        Self { left, left_bytes, handed_out, turn }
    }
}

impl Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = self.left.pop_front();
        let bytes = part.as_ref().map_or(0, Bytes::len) as u64;
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
        if self.left.is_empty() {
            self.handed_out.store(true, Ordering::Relaxed);
            self.turn = None;
        }
        Poll::Ready(part.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left_bytes)
    }
}

/// Takes an answer's body, piece by piece.
pub(crate) trait Sink {
    /// Tells of the length that the answer declares.
    fn expect_bytes(&mut self, _declared_bytes: u64) {}

    /// Takes the next piece, or says which rule the answer breaks.
    fn take(&mut self, piece: &[u8]) -> Result<(), String>;
}

/// Gathers a body in one buffer of limited length.
pub(super) struct Whole {
    body: BytesMut,
    limit_bytes: usize,
}

impl Whole {
    pub(super) fn new(limit_bytes: usize) -> Self {
        Self { body: BytesMut::new(), limit_bytes }
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.body.freeze()
    }
}

impl Sink for Whole {
    fn expect_bytes(&mut self, declared_bytes: u64) {
        let declared = usize::try_from(declared_bytes).unwrap_or(usize::MAX);
        self.body.reserve(declared.min(self.limit_bytes));
    }

    fn take(&mut self, piece: &[u8]) -> Result<(), String> {
        if self.body.len().saturating_add(piece.len()) > self.limit_bytes {
            return Err(format!("the answer is over {} bytes", self.limit_bytes));
        }
        self.body.extend_from_slice(piece);
        Ok(())
    }
}
