//! Bodies: requests into one buffer each, answers out of many.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use holdall_protocol::RepositoryError;
use holdall_protocol::wire::{Frames, WireError};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::sync::mpsc;
use tokio::time::{Interval, interval, timeout};

use crate::limits::LEAST_BYTES_PER_SECOND;
use crate::work::Room;

/// How often an answer of lines shows that it is alive.
const BEAT: Duration = Duration::from_secs(10);

/// The length that a request declares for its body, if that is within the limit.
///
/// # Errors
/// [`WireError::TooLarge`]; [`RepositoryError::Refused`] for a body without a declared length.
pub(crate) fn declared_bytes(body: &Incoming, limit_bytes: usize) -> Result<u64, WireError> {
    let limit_bytes = limit_bytes as u64;
    match body.size_hint().exact() {
        Some(bytes) if bytes <= limit_bytes => Ok(bytes),
        Some(_) => Err(WireError::TooLarge { limit_bytes }),
        None => Err(refused("a body needs its length declared")),
    }
}

/// Reads a body of declared length into one buffer of that length. Gives up when no byte comes for
/// `stalled`, or all of it too slowly.
///
/// # Errors
/// [`RepositoryError::Refused`] if it ends early or is given up.
pub(crate) async fn read(
    mut body: Incoming,
    declared_bytes: u64,
    stalled: Duration,
) -> Result<Bytes, WireError> {
    let length = usize::try_from(declared_bytes).unwrap_or(usize::MAX);
    let slowest = Duration::from_secs(declared_bytes / LEAST_BYTES_PER_SECOND);
    let too_slow = |_| refused("the body came too slowly");
    let reading = async {
        let mut whole = BytesMut::with_capacity(length);
        while let Some(frame) = timeout(stalled, body.frame()).await.map_err(too_slow)? {
            let frame = frame.map_err(|_| refused("the body was cut short"))?;
            if let Ok(piece) = frame.into_data() {
                whole.extend_from_slice(&piece);
            }
        }
        match whole.len() == length {
            true => Ok(whole.freeze()),
            false => Err(refused("the body was cut short")),
        }
    };
    timeout(stalled + slowest, reading).await.map_err(too_slow)?
}

/// Reads a body and forgets it, so that an answer that comes before its end is not lost with the
/// connection. Gives up after `limit_bytes` or 10 seconds.
pub(crate) async fn drain(mut body: Incoming, limit_bytes: usize) {
    let draining = async {
        let mut left = limit_bytes;
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                break;
            }
        }
    };
    // Whether it got to the end makes no difference to the answer.
    let _ = timeout(Duration::from_secs(10), draining).await;
}

fn refused(reason: &str) -> WireError {
    WireError::Repository(RepositoryError::Refused { reason: reason.into() })
}

/// An answer's body.
pub(crate) enum Answer {
    /// Parts that are all there, and the room that they take.
    Parts { left: VecDeque<Bytes>, left_bytes: u64, _room: Option<Room> },
    /// Lines as they come, with blank ones in between while there is nothing to say.
    Lines { lines: mpsc::Receiver<Bytes>, beat: Interval },
}

impl Answer {
    pub(crate) fn new(body: Frames, room: Option<Room>) -> Self {
        let left_bytes = body.total_bytes();
        Self::Parts { left: body.into_parts().into(), left_bytes, _room: room }
    }

    /// Lines until their sender is dropped.
    pub(crate) fn lines(lines: mpsc::Receiver<Bytes>) -> Self {
        let mut beat = interval(BEAT);
        beat.reset();
        Self::Lines { lines, beat }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = match &mut *self {
            Self::Parts { left, left_bytes, .. } => {
                let part = left.pop_front();
                *left_bytes = left_bytes.saturating_sub(part.as_ref().map_or(0, Bytes::len) as u64);
                Poll::Ready(part)
            }
            Self::Lines { lines, beat } => match lines.poll_recv(cx) {
                Poll::Ready(line) => Poll::Ready(line),
                Poll::Pending => beat.poll_tick(cx).map(|_| Some(Bytes::from_static(b"\n"))),
            },
        };
        part.map(|part| part.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Parts { left, .. } if left.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Parts { left_bytes, .. } => SizeHint::with_exact(*left_bytes),
            Self::Lines { .. } => SizeHint::default(),
        }
    }
}
