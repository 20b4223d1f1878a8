//! Bytes on their way to who asked for them: read on a plain thread, a piece at a time, and never ahead by more than a few.
//!
//! What is read for them may keep a directory's backups out. So who takes nothing for a while is cut off, where
//! the bytes cannot be read on later; and what is cut is told on the next page, as browsers say little of it.

use std::io::{self, ErrorKind, Write};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use hyper::body::Frame;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::error::SendTimeoutError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::problem::Problem;

/// Pieces that were read and not taken.
const PIECES_AHEAD: usize = 4;
/// Bytes of a piece that an archive is sent in.
const PIECE_BYTES: usize = 256 << 10;

/// A body that is sent in pieces, whose end is `None`. Where that does not come the connection is cut, so that no client
/// takes a part for the whole.
struct Pieces(Receiver<Option<Bytes>>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.0.poll_recv(context).map(|piece| match piece {
            Some(piece) => piece.map(|piece| Ok(Frame::data(piece))),
            None => Some(Err(ErrorKind::UnexpectedEof.into())),
        })
    }
}

/// Where the pieces go.
pub(crate) struct Sink {
    to: Sender<Option<Bytes>>,
    /// How long a piece may wait for room.
    patience: Option<Duration>,
    runtime: Handle,
}

impl Sink {
    /// Sends a piece, once there is room for it.
    ///
    /// # Errors
    /// If nobody wants it any more, or for a while.
    pub(crate) fn send(&self, piece: Bytes) -> io::Result<()> {
        let Some(patience) = self.patience else {
            return self.to.blocking_send(Some(piece)).map_err(|_| ErrorKind::BrokenPipe.into());
        };
        let sent = self.runtime.block_on(self.to.send_timeout(Some(piece), patience));
        sent.map_err(|error| match error {
            SendTimeoutError::Closed(_) => ErrorKind::BrokenPipe.into(),
            SendTimeoutError::Timeout(_) => {
                let reason = format!(
                    "nothing of it was taken for {} seconds, and the repository is needed for backups",
                    patience.as_secs()
                );
                io::Error::new(ErrorKind::TimedOut, reason)
            }
        })
    }

    /// Whether somebody still wants it.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.to.is_closed()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(Bytes::copy_from_slice(bytes)).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Gathers what is written into pieces of some size.
pub(crate) fn gathered(sink: Sink) -> io::BufWriter<Sink> {
    io::BufWriter::with_capacity(PIECE_BYTES, sink)
}

/// A body that `work` fills on a thread of its own, for as long as the permit is held. Who takes nothing of it for longer
/// than `patience` is cut off. `tell` is told why it was cut, unless whoever wanted it is gone.
///
/// # Errors
/// [`Problem`] if there is no other thread.
pub(crate) fn body(
    permit: OwnedSemaphorePermit,
    patience: Option<Duration>,
    work: impl FnOnce(Sink) -> Result<(), String> + Send + 'static,
    tell: impl FnOnce(String) + Send + 'static,
) -> Result<Body, Problem> {
    let (to, pieces) = channel(PIECES_AHEAD);
    let ending = to.clone();
    let sink = Sink { to, patience, runtime: Handle::current() };
    let fill = move || {
        match work(sink) {
            // Who is gone is not told.
            Ok(()) => drop(ending.blocking_send(None)),
            Err(_) if ending.is_closed() => {}
            Err(why) => tell(why),
        }
        drop(permit);
    };
    holdall_sys::thread::start_alone(fill).map_err(|_| Problem::busy())?;
    Ok(Body::new(Pieces(pieces)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use tokio::sync::Semaphore;

    async fn permit() -> OwnedSemaphorePermit {
        Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap()
    }

    /// What came, and what was told.
    async fn collected(
        work: impl FnOnce(&Sink) -> Result<(), String> + Send + 'static,
    ) -> (Result<Bytes, axum::Error>, Option<String>) {
        let (tell, told) = std::sync::mpsc::channel();
        let send = |sink: Sink| {
            sink.send(Bytes::from_static(b"a part")).unwrap();
            work(&sink)
        };
        let body = body(permit().await, None, send, move |why| tell.send(why).unwrap()).unwrap();
        (axum::body::to_bytes(body, 100).await, told.recv().ok())
    }

    #[tokio::test]
    async fn what_fails_is_cut_off_and_told_and_never_taken_for_the_whole() {
        let two =
            |sink: &Sink| sink.send(Bytes::from_static(b" and more")).map_err(|_| String::new());
        let (came, told) = collected(two).await;
        assert_eq!((&came.unwrap()[..], told), (&b"a part and more"[..], None));
        let (came, told) = collected(|_| Err("it is damaged".to_owned())).await;
        assert_eq!((came.is_err(), told.as_deref()), (true, Some("it is damaged")));
        assert!(collected(|_| panic!("on purpose")).await.0.is_err());
    }

    fn endless(sink: Sink) -> Result<(), String> {
        loop {
            sink.send(Bytes::from_static(b"more")).map_err(|error| error.to_string())?;
        }
    }

    #[tokio::test]
    async fn who_is_gone_is_sent_nothing_more_and_nothing_is_told_of_it() {
        let (tell, told) = std::sync::mpsc::channel();
        drop(body(permit().await, None, endless, move |why| tell.send(why).unwrap()).unwrap());
        assert!(told.recv().is_err());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn who_takes_nothing_for_a_while_is_cut_off_and_that_is_told() {
        let (tell, told) = std::sync::mpsc::channel();
        let patience = Some(Duration::from_millis(10));
        let body =
            body(permit().await, patience, endless, move |why| tell.send(why).unwrap()).unwrap();
        let why = told.recv().unwrap();
        assert!(why.contains("nothing of it was taken"), "{why}");
        axum::body::to_bytes(body, 100).await.unwrap_err();
    }
}
