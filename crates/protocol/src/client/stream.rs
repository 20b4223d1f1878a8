//! One connection, driven by whoever uses it.

use std::future::{Future, poll_fn};
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep};
use tokio_rustls::client::TlsStream;

use super::body::{Parts, Sink, Whole};
use super::dial::{DialError, Dialer};
use super::pace::WireMeter;
use super::socket::Socket;
use super::turns::Turn;
use crate::wire::{Frames, HELD_FIELD, Held, MAX_ERROR_BYTES};

/// How often an interruption and a stall are looked for while an answer is awaited.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A connection on which no byte moves for this long while some should is given up.
const STALLED_AFTER: Duration = Duration::from_secs(60);

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum StreamError {
    /// The connection could not be made or was lost; asking again may help.
    Lost(String),
    /// No connection could be made, since this process has no more of what one takes; asking again may help.
    Lacking(std::io::Error),
    /// The server's key is not the pinned one.
    WrongServer,
    /// The caller is ending.
    Interrupted,
    /// The answer breaks the protocol.
    Broken(String),
}

impl StreamError {
    /// Whether asking again may help.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Lacking(_))
    }
}

impl From<DialError> for StreamError {
    fn from(error: DialError) -> Self {
        match error {
            DialError::WrongServer => Self::WrongServer,
            DialError::Unreachable(reason) => Self::Lost(reason),
            DialError::Lacking(error) => Self::Lacking(error),
        }
    }
}

impl From<hyper::Error> for StreamError {
    fn from(error: hyper::Error) -> Self {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        Self::Lost(cause.unwrap_or_else(|| error.to_string()))
    }
}

/// What is asked, apart from the body.
pub(super) struct Head<'a> {
    pub(super) method: &'static str,
    pub(super) path: &'a str,
    pub(super) host: &'a str,
    /// How long the server may work on what it was sent without a byte of an answer.
    pub(super) patience: Duration,
}

/// How an exchange ended, if it did: the status, and the body of an answer that is no success. The
/// body of a success went to the sink.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) failure: Bytes,
}

type Connection = http1::Connection<TokioIo<TlsStream<Socket>>, Parts>;

/// A connection with its own runtime. Only one exchange happens on it at a time.
pub(super) struct Stream {
    /// The path that it was opened for.
    pub(super) path: usize,
    runtime: Option<Runtime>,
    sender: http1::SendRequest<Parts>,
    connection: Pin<Box<Connection>>,
    /// The connection's future has ended and must not be polled again.
    over: bool,
    moved_bytes: Arc<AtomicU64>,
    /// The address of this computer that it goes out from.
    own: Option<IpAddr>,
    wire: WireMeter,
}

/// What a connection runs on.
///
/// # Errors
/// What the system lacks.
pub(super) fn runtime() -> io::Result<Runtime> {
    /// What it opens, some of it where it panics if it cannot.
    const FILES: usize = 8;
    holdall_sys::thread::test_files(FILES)?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

impl Stream {
    /// Connects, over `path` if that can be.
    pub(super) fn open(
        dialer: &Dialer,
        path: usize,
        interrupt: &AtomicBool,
    ) -> Result<Self, StreamError> {
        let runtime = runtime().map_err(DialError::of)?;
        let opened = runtime.block_on(async {
            tokio::select! {
                opened = connect(dialer, path) => opened,
                () = interrupted(interrupt) => Err(StreamError::Interrupted),
            }
        });
        match opened {
            Ok((sender, connection, moved_bytes, own)) => {
                let connection = Box::pin(connection);
                Ok(Self {
                    path,
                    runtime: Some(runtime),
                    sender,
                    connection,
                    over: false,
                    moved_bytes,
                    own,
                    wire: dialer.wire_meter(),
                })
            }
            Err(error) => {
                // A look-up of a name may hang for longer than anybody waits for it.
                runtime.shutdown_background();
                Err(error)
            }
        }
    }

    /// Whether the connection may serve another request.
    pub(super) fn is_usable(&self) -> bool {
        !self.over && !self.sender.is_closed()
    }

    /// Sends a request and gives the body of its success to `sink`; `turn` is given up when the
    /// request's body is on its way. After an error, or an answer that came before the request was
    /// sent, the connection is of no more use.
    pub(super) fn exchange(
        &mut self,
        head: &Head<'_>,
        body: Frames,
        turn: Option<Turn>,
        sink: &mut impl Sink,
        interrupt: &AtomicBool,
    ) -> Result<Answer, StreamError> {
        let Some(runtime) = self.runtime.take() else {
            return Err(StreamError::Lost("the connection is closed".into()));
        };
        let ended = runtime.block_on(self.run(head, body, turn, sink, interrupt));
        self.runtime = Some(runtime);
        ended
    }

    async fn run(
        &mut self,
        head: &Head<'_>,
        body: Frames,
        turn: Option<Turn>,
        sink: &mut impl Sink,
        interrupt: &AtomicBool,
    ) -> Result<Answer, StreamError> {
        let handed_out = Arc::new(AtomicBool::new(false));
        let request = request(head, Parts::new(body, turn, Arc::clone(&handed_out)))?;
        let answering = AtomicBool::new(false);
        let (sender, wire) = (&mut self.sender, &self.wire);
        let work = async {
            sender.ready().await?;
            let response = sender.send_request(request).await?;
            answering.store(true, Ordering::Relaxed);
            held(&response).into_iter().for_each(|held| wire.note_server_limit(held));
            read_answer(response, sink).await
        };
        let patience = || {
            let works = handed_out.load(Ordering::Relaxed) && !answering.load(Ordering::Relaxed);
            if works { head.patience } else { STALLED_AFTER }
        };
        let answer = tokio::select! {
            biased;
            answer = drive(&mut self.connection, &mut self.over, work) => answer?,
            () = interrupted(interrupt) => return Err(StreamError::Interrupted),
            why = stalled(&self.moved_bytes, self.own, patience) => {
                return Err(StreamError::Lost(why.into()));
            }
        };
        if !handed_out.load(Ordering::Relaxed) {
            self.over = true;
        }
        Ok(answer)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

type Opened = (http1::SendRequest<Parts>, Connection, Arc<AtomicU64>, Option<IpAddr>);

async fn connect(dialer: &Dialer, path: usize) -> Result<Opened, StreamError> {
    let tls = dialer.dial(path).await?;
    let (moved_bytes, own) = (tls.get_ref().0.moved_bytes(), tls.get_ref().0.own_address());
    let (sender, connection) = http1::handshake(TokioIo::new(tls)).await?;
    Ok((sender, connection, moved_bytes, own))
}

fn request(head: &Head<'_>, body: Parts) -> Result<Request<Parts>, StreamError> {
    Request::builder()
        .method(head.method)
        .uri(head.path)
        .header(hyper::header::HOST, head.host)
        .body(body)
        .map_err(|error| StreamError::Broken(error.to_string()))
}

/// What an answer says of a limit of the server's.
fn held(response: &Response<Incoming>) -> Option<Held> {
    Held::decode(response.headers().get(HELD_FIELD)?.to_str().ok()?)
}

async fn read_answer(
    response: Response<Incoming>,
    sink: &mut impl Sink,
) -> Result<Answer, StreamError> {
    let status = response.status();
    let mut body = response.into_body();
    let mut failure = Whole::new(MAX_ERROR_BYTES);
    if let (true, Some(bytes)) = (status.is_success(), body.size_hint().exact()) {
        sink.expect_bytes(bytes);
    }
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else { continue };
        let taken = if status.is_success() { sink.take(&piece) } else { failure.take(&piece) };
        taken.map_err(StreamError::Broken)?;
    }
    Ok(Answer { status: status.as_u16(), failure: failure.into_bytes() })
}

/// Polls the connection on behalf of `work` until `work` is done.
async fn drive<T>(
    connection: &mut Pin<Box<Connection>>,
    over: &mut bool,
    work: impl Future<Output = Result<T, StreamError>>,
) -> Result<T, StreamError> {
    let mut work = pin!(work);
    poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(done);
        }
        if *over {
            return Poll::Pending;
        }
        let Poll::Ready(ended) = connection.as_mut().poll(cx) else { return Poll::Pending };
        *over = true;
        match (work.as_mut().poll(cx), ended) {
            (Poll::Ready(Err(StreamError::Lost(_))), Err(error)) => Poll::Ready(Err(error.into())),
            (Poll::Ready(done), _) => Poll::Ready(done),
            (Poll::Pending, Err(error)) => Poll::Ready(Err(error.into())),
            (Poll::Pending, Ok(())) => Poll::Ready(Err(StreamError::Lost("closed".into()))),
        }
    })
    .await
}

/// Ends when the caller is to end.
pub(super) async fn interrupted(interrupt: &AtomicBool) {
    while !interrupt.load(Ordering::Relaxed) {
        sleep(LOOK_EVERY).await;
    }
}

/// Ends when nothing moved for longer than `patience` allows then, or when nothing moves and this computer has another
/// address than `own`, as in another network. Says which.
async fn stalled(
    moved_bytes: &AtomicU64,
    own: Option<IpAddr>,
    patience: impl Fn() -> Duration,
) -> &'static str {
    let mut last = (moved_bytes.load(Ordering::Relaxed), Instant::now());
    loop {
        sleep(LOOK_EVERY * 10).await;
        let moved = moved_bytes.load(Ordering::Relaxed);
        if moved != last.0 {
            last = (moved, Instant::now());
            continue;
        }
        if last.1.elapsed() > patience() {
            return "nothing came for too long";
        }
        if own.is_some_and(is_gone) {
            return "the network changed";
        }
    }
}

/// Whether this computer has an address no more. Where the system does not tell, it has it.
fn is_gone(own: IpAddr) -> bool {
    let now = holdall_sys::host::own_addresses(Path::new("/"));
    !own.is_loopback() && !now.is_empty() && !now.contains(&own)
}
