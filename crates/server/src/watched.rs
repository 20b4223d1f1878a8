//! A connection's socket that notes when bytes pass, so that one on which nothing moves can be told.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

/// What is known of a connection from outside.
#[derive(Debug, Default)]
pub(crate) struct Movement {
    moved_bytes: AtomicU64,
    /// Requests on whose repository call the peer waits.
    working: AtomicUsize,
}

/// Says that the peer waits for the server, and not the other way round.
pub(crate) struct Working(Arc<Movement>);

impl Movement {
    pub(crate) fn working(self: &Arc<Self>) -> Working {
        self.working.fetch_add(1, Ordering::Relaxed);
        Working(Arc::clone(self))
    }

    /// Ends when nothing moved for `patience` although the peer could have moved something.
    pub(crate) async fn stalled(&self, patience: Duration) {
        let mut last = (self.moved_bytes.load(Ordering::Relaxed), Instant::now());
        loop {
            sleep(patience / 4).await;
            let moved = self.moved_bytes.load(Ordering::Relaxed);
            if moved != last.0 || self.working.load(Ordering::Relaxed) > 0 {
                last = (moved, Instant::now());
            }
            if last.1.elapsed() >= patience {
                return;
            }
        }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.working.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) struct Watched {
    tcp: TcpStream,
    movement: Arc<Movement>,
}

impl Watched {
    pub(crate) fn new(tcp: TcpStream) -> Self {
        Self { tcp, movement: Arc::default() }
    }

    pub(crate) fn movement(&self) -> Arc<Movement> {
        Arc::clone(&self.movement)
    }

    fn note(&self, bytes: usize) {
        self.movement.moved_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.tcp).poll_read(cx, into);
        self.note(into.filled().len().saturating_sub(before));
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.tcp).poll_write(cx, from);
        written.map_ok(|bytes| {
            self.note(bytes);
            bytes
        })
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.tcp).poll_write_vectored(cx, from);
        written.map_ok(|bytes| {
            self.note(bytes);
            bytes
        })
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
