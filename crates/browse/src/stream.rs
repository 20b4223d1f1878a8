//! Bytes on their way to who asked for them: read on a plain thread, a piece at a time, and never ahead by more than a few.

use std::io::{self, ErrorKind, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::Frame;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::problem::Problem;

/// Pieces that were read and not taken.
const PIECES_AHEAD: usize = 4;
/// Bytes of a piece that an archive is sent in.
const PIECE_BYTES: usize = 256 << 10;

/// A piece, or the end: where neither comes, who was to send it failed.
type Piece = Result<Option<Bytes>, io::Error>;

/// A body that is sent in pieces. If a piece fails, the connection is cut, so that no client takes a part for the whole.
struct Pieces(Receiver<Piece>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.0.poll_recv(context).map(|piece| match piece {
            Some(Ok(piece)) => piece.map(|piece| Ok(Frame::data(piece))),
            Some(Err(error)) => Some(Err(error)),
            None => Some(Err(ErrorKind::UnexpectedEof.into())),
        })
    }
}

/// Where the pieces go.
pub(crate) struct Sink(Sender<Piece>);

impl Sink {
    /// Sends a piece, once there is room for it.
    ///
    /// # Errors
    /// If nobody wants it any more.
    pub(crate) fn send(&self, piece: Bytes) -> io::Result<()> {
        self.0.blocking_send(Ok(Some(piece))).map_err(|_| ErrorKind::BrokenPipe.into())
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

/// A body that `work` fills on a thread of its own, for as long as the permit is held.
///
/// # Errors
/// [`Problem`] if there is no other thread.
pub(crate) fn body(
    permit: OwnedSemaphorePermit,
    work: impl FnOnce(Sink) -> Result<(), String> + Send + 'static,
) -> Result<Body, Problem> {
    let (to, pieces) = channel(PIECES_AHEAD);
    let ending = to.clone();
    let fill = move || {
        let ended = work(Sink(to)).map(|()| None).map_err(io::Error::other);
        // Who is gone is not told.
        let _ = ending.blocking_send(ended);
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

    async fn collected(
        work: impl FnOnce(&Sink) -> Result<(), String> + Send + 'static,
    ) -> Result<Bytes, axum::Error> {
        let permit = Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap();
        let send = |sink: Sink| {
            sink.send(Bytes::from_static(b"a part")).unwrap();
            work(&sink)
        };
        axum::body::to_bytes(body(permit, send).unwrap(), 100).await
    }

    #[tokio::test]
    async fn what_fails_is_cut_off_and_never_taken_for_the_whole() {
        let two =
            |sink: &Sink| sink.send(Bytes::from_static(b" and more")).map_err(|_| String::new());
        assert_eq!(collected(two).await.unwrap(), "a part and more");
        collected(|_| Err("it is damaged".to_owned())).await.unwrap_err();
        collected(|_| panic!("on purpose")).await.unwrap_err();
    }

    #[tokio::test]
    async fn who_is_gone_is_sent_nothing_more() {
        let permit = Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let endless = move |sink: Sink| {
            while sink.send(Bytes::from_static(b"more")).is_ok() {}
            tell.send(()).map_err(|error| error.to_string())
        };
        drop(body(permit, endless).unwrap());
        told.recv().unwrap();
    }
}
