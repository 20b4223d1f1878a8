//! Bodies: requests into one buffer each, answers out of many.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use holdall_format::PublicKey;
use holdall_protocol::RepositoryError;
use holdall_protocol::wire::{Frames, WireError};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::sync::mpsc;
use tokio::time::{Interval, interval, timeout};

use crate::bandwidth::{Bandwidth, PIECE_BYTES, Way};
use crate::bounds::buffers::Buffers;
use crate::bounds::limits::{SMALL_BODY_BYTES, slowest_body};

use super::idle_socket::Movement;

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

/// As much of a body as came before it ended.
pub(crate) struct Came {
    pub(crate) bytes: Bytes,
    /// Whether that is all that was declared.
    pub(crate) is_whole: bool,
}

impl Came {
    /// All of the body.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`] if it ended early.
    pub(crate) fn whole(self) -> Result<Bytes, WireError> {
        match self.is_whole {
            true => Ok(self.bytes),
            false => Err(refused("the body was cut short")),
        }
    }
}

/// Reads a body of declared length into one buffer of that length. Gives up when no byte comes for
/// `stalled`, or all of it too slowly. With a `rate`, it comes as that lets bytes of a machine pass.
///
/// # Errors
/// [`RepositoryError::Refused`] if it is given up.
pub(crate) async fn read(
    mut body: Incoming,
    declared_bytes: u64,
    stalled: Duration,
    buffers: &Buffers,
    rate: Option<(&Bandwidth, &PublicKey)>,
) -> Result<Came, WireError> {
    let length = usize::try_from(declared_bytes).unwrap_or(usize::MAX);
    let slowest = slowest_body(declared_bytes);
    let too_slow = |_| refused("the body came too slowly");
    let reading = async {
        let mut came = buffers.take(length);
        while let Some(frame) = timeout(stalled, body.frame()).await.map_err(too_slow)? {
            // Behind an error nothing comes, and the length tells.
            let Ok(frame) = frame else { break };
            if let Ok(piece) = frame.into_data() {
                came.extend_from_slice(&piece);
                if let Some((bandwidth, key)) = rate {
                    bandwidth.pass(Way::Taken, key, piece.len()).await;
                }
            }
        }
        Ok(Came { is_whole: came.len() == length, bytes: came.freeze() })
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

/// An answer's body, and what it holds until it was sent or is given up.
pub(crate) struct Answer {
    content: Content,
    held: Held,
    rate: Option<Rate>,
}

/// A rate that an answer's parts are sent at.
struct Rate {
    bandwidth: Arc<Bandwidth>,
    key: PublicKey,
    movement: Arc<Movement>,
    /// Waits until the next piece may be sent; `None` when it may, or nobody asked.
    waiting: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

enum Content {
    /// Parts that are all there.
    Parts { left: VecDeque<Bytes>, left_bytes: u64 },
    /// Lines as they come, with blank ones in between while there is nothing to say.
    Lines { lines: mpsc::Receiver<Bytes>, beat: Interval },
}

/// Anything that is given back by dropping it.
type Held = Option<Arc<dyn Send + Sync>>;

/// A part on its way to the socket. The connection forgets an answer when it took the last part, not
/// when that was sent, so each part holds what the answer holds.
struct Part {
    bytes: Bytes,
    _held: Held,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Answer {
    pub(crate) fn new(body: Frames) -> Self {
        let left_bytes = body.total_bytes();
        let content = Content::Parts { left: body.into_parts().into(), left_bytes };
        Self { content, held: None, rate: None }
    }

    /// Lines until their sender is dropped.
    pub(crate) fn lines(lines: mpsc::Receiver<Bytes>) -> Self {
        let mut beat = interval(BEAT);
        beat.reset();
        Self { content: Content::Lines { lines, beat }, held: None, rate: None }
    }

    /// Has it sent as `bandwidth` lets bytes of a machine pass, unless it is a small one. `movement` is told that the peer
    /// waits meanwhile.
    pub(crate) fn keep_rate(
        &mut self,
        bandwidth: Arc<Bandwidth>,
        key: PublicKey,
        movement: Arc<Movement>,
    ) {
        if let Content::Parts { left_bytes, .. } = self.content
            && left_bytes > SMALL_BODY_BYTES
        {
            self.rate = Some(Rate { bandwidth, key, movement, waiting: None });
        }
    }

    /// Keeps `what` until the answer was sent or is given up.
    pub(crate) fn hold(&mut self, what: impl Send + Sync + 'static) {
        self.held = Some(Arc::new((self.held.take(), what)));
    }

    /// How long sending it may take from now on; without end for lines, which come when they come.
    pub(crate) fn slowest(&self, stalled: Duration) -> Option<Duration> {
        match self.content {
            Content::Parts { left_bytes, .. } => Some(stalled + slowest_body(left_bytes)),
            Content::Lines { .. } => None,
        }
    }
}

impl Rate {
    /// The next piece once it may be sent; those that follow wait for their own turn.
    fn poll_piece(
        &mut self,
        left: &mut VecDeque<Bytes>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Bytes>> {
        let Some(part) = left.front_mut() else { return Poll::Ready(None) };
        let length = part.len().min(PIECE_BYTES);
        let waiting = self.waiting.get_or_insert_with(|| {
            let (bandwidth, key) = (Arc::clone(&self.bandwidth), self.key);
            let working = self.movement.working();
            Box::pin(async move {
                let _working = working;
                bandwidth.pass(Way::Given, &key, length).await;
            })
        });
        ready!(waiting.as_mut().poll(cx));
        self.waiting = None;
        let piece = part.split_to(length);
        if part.is_empty() {
            left.pop_front();
        }
        Poll::Ready(Some(piece))
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Self { content, rate, held } = &mut *self;
        let part = match content {
            Content::Parts { left, left_bytes } => {
                let part = match rate {
                    Some(rate) => ready!(rate.poll_piece(left, cx)),
                    None => left.pop_front(),
                };
                *left_bytes = left_bytes.saturating_sub(part.as_ref().map_or(0, Bytes::len) as u64);
                Poll::Ready(part)
            }
            Content::Lines { lines, beat } => match lines.poll_recv(cx) {
                Poll::Ready(line) => Poll::Ready(line),
                Poll::Pending => beat.poll_tick(cx).map(|_| Some(Bytes::from_static(b"\n"))),
            },
        };
        part.map(|part| {
            let bytes = part?;
            let part = Bytes::from_owner(Part { bytes, _held: held.clone() });
            Some(Ok(Frame::data(part)))
        })
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, Content::Parts { left, .. } if left.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self.content {
            Content::Parts { left_bytes, .. } => SizeHint::with_exact(left_bytes),
            Content::Lines { .. } => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn next(answer: &mut Answer) -> Option<Bytes> {
        answer.frame().await.map(|frame| frame.unwrap().into_data().unwrap())
    }

    #[tokio::test]
    async fn what_an_answer_holds_is_given_back_when_its_last_part_was_sent() {
        let (first, second) = (Arc::new(()), Arc::new(()));
        let mut answer = Answer::new(Frames::plain(Bytes::from_static(b"abc")));
        answer.hold(Arc::clone(&first));
        answer.hold(Arc::clone(&second));
        let held = || (Arc::strong_count(&first), Arc::strong_count(&second));
        let part = next(&mut answer).await.unwrap();
        assert_eq!(part, "abc");
        assert!(answer.is_end_stream());
        drop(answer);
        assert_eq!(held(), (2, 2), "given back before it was sent");
        drop(part);
        assert_eq!(held(), (1, 1));
    }

    #[test]
    fn what_an_answer_holds_is_given_back_when_it_is_given_up() {
        let what = Arc::new(());
        let mut answer = Answer::new(Frames::plain(Bytes::from_static(b"abc")));
        answer.hold(Arc::clone(&what));
        drop(answer);
        assert_eq!(Arc::strong_count(&what), 1);
    }

    #[tokio::test]
    async fn the_time_to_send_an_answer_grows_with_its_size_and_lines_have_no_end() {
        let stalled = Duration::from_secs(60);
        let answer = Answer::new(Frames::plain(vec![0; 3 << 10].into()));
        assert_eq!(answer.slowest(stalled), Some(Duration::from_secs(63)));
        assert_eq!(Answer::lines(mpsc::channel(1).1).slowest(stalled), None);
    }
}
