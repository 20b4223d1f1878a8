//! A connection's socket that notes when bytes pass, so that one on which nothing moves can be told.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// When the answers that are being sent have to be with the peer, in the order of sending.
    due: Mutex<VecDeque<Instant>>,
}

/// Says that the peer waits for the server, and not the other way round.
pub(crate) struct Working(Arc<Movement>);

/// Says that an answer is being sent; dropped when it was.
pub(crate) struct Sending(Arc<Movement>);

impl Movement {
    pub(crate) fn working(self: &Arc<Self>) -> Working {
        self.working.fetch_add(1, Ordering::Relaxed);
        Working(Arc::clone(self))
    }

    /// Notes an answer that has to be with the peer within `slowest`. Answers are sent, and so
    /// their notes dropped, in the order in which they are noted.
    pub(crate) fn sending(self: &Arc<Self>, slowest: Duration) -> Sending {
        self.due().push_back(Instant::now() + slowest);
        Sending(Arc::clone(self))
    }

    fn due(&self) -> MutexGuard<'_, VecDeque<Instant>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends when nothing moved for `patience` although the peer could have moved something, or when
    /// an answer was not taken in its time.
    pub(crate) async fn stalled(&self, patience: Duration) {
        let mut last = (self.moved_bytes.load(Ordering::Relaxed), Instant::now());
        loop {
            sleep(patience / 4).await;
            let moved = self.moved_bytes.load(Ordering::Relaxed);
            if moved != last.0 || self.working.load(Ordering::Relaxed) > 0 {
                last = (moved, Instant::now());
            }
            let is_late = self.due().front().is_some_and(|due| *due <= Instant::now());
            if is_late || last.1.elapsed() >= patience {
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

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.due().pop_front();
    }
}

pub(crate) struct IdleSocket {
    tcp: TcpStream,
    movement: Arc<Movement>,
}

impl IdleSocket {
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

impl AsyncRead for IdleSocket {
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

impl AsyncWrite for IdleSocket {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_that_is_not_taken_in_its_time_is_given_up_although_bytes_may_move() {
        let movement = Arc::new(Movement::default());
        // Nothing counts as stalled while the server works, so only lateness can end the wait.
        let _working = movement.working();
        let sent = movement.sending(Duration::from_secs(3600));
        let _late = movement.sending(Duration::ZERO);
        drop(sent);
        movement.stalled(Duration::from_millis(4)).await;
    }

    #[test]
    fn an_answer_that_was_sent_is_due_no_more() {
        let movement = Arc::new(Movement::default());
        drop(movement.sending(Duration::ZERO));
        assert!(movement.due().is_empty());
    }
}
