//! Where waiting meets work: the one place from which blocking calls are made.
//!
//! Repository calls read, hash, write and fsync on threads of their own, a bounded number at a
//! time. A request that is given up by its client still ends its call; its permits go with the call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdall_protocol::RepositoryError;
use holdall_protocol::wire::WireError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A bounded number of threads for blocking calls, and a bounded number of bytes for bodies.
pub(crate) struct Work {
    threads: Arc<Semaphore>,
    /// For what comes, which takes as long as its sender takes.
    pub(crate) bodies: Memory,
    /// For what goes: a restore does not wait for those who send.
    pub(crate) answers: Memory,
}

/// A bounded number of bytes.
pub(crate) struct Memory {
    kib: Arc<Semaphore>,
    max_kib: usize,
}

/// Memory for a body; given back when dropped.
#[derive(Debug)]
pub(crate) struct BufferPermit {
    permit: OwnedSemaphorePermit,
}

/// Memory of one machine's share, and as much of what all have together.
#[derive(Debug)]
pub(crate) struct BufferPermits {
    pub(crate) of_machine: BufferPermit,
    pub(crate) of_all: BufferPermit,
}

impl BufferPermits {
    /// Gives back all but `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: u64) {
        self.of_machine.shrink_to(bytes);
        self.of_all.shrink_to(bytes);
    }
}

impl BufferPermit {
    fn shrink_to(&mut self, bytes: u64) {
        let kept = usize::try_from(bytes.div_ceil(1024)).unwrap_or(usize::MAX);
        let surplus = self.permit.num_permits().saturating_sub(kept);
        drop(self.permit.split(surplus));
    }
}

impl Memory {
    /// So many bytes, at least one KiB.
    pub(crate) fn new(bytes: usize) -> Self {
        let max_kib = (bytes / 1024).max(1);
        Self { kib: Arc::new(Semaphore::new(max_kib)), max_kib }
    }

    /// Waits for memory for a body of at most `bytes`.
    ///
    /// # Cancel safety
    /// Nothing is held when it is dropped.
    pub(crate) async fn permit(&self, bytes: u64) -> Result<BufferPermit, WireError> {
        let kib = usize::try_from(bytes.div_ceil(1024)).unwrap_or(usize::MAX);
        let kib = u32::try_from(kib.min(self.max_kib)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.kib).acquire_many_owned(kib).await;
        Ok(BufferPermit { permit: permit.map_err(|_| WireError::Busy)? })
    }
}

impl Work {
    /// So many threads, and so many bytes for bodies that come, and for those that go.
    pub(crate) fn new(threads: usize, body_bytes: usize) -> Self {
        Self {
            threads: Arc::new(Semaphore::new(threads.max(1))),
            bodies: Memory::new(body_bytes),
            answers: Memory::new(body_bytes),
        }
    }

    /// Runs a blocking call, and tells how long it waited for its turn.
    ///
    /// # Cancel safety
    /// A call that began is carried out to its end; its answer is lost.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> Result<T, RepositoryError> + Send + 'static,
    ) -> Result<(T, Duration), WireError> {
        let queued = Instant::now();
        let threads = Arc::clone(&self.threads);
        let turn = threads.acquire_owned().await.map_err(|_| WireError::Busy)?;
        let working = tokio::task::spawn_blocking(move || {
            let waited = queued.elapsed();
            let done = call();
            drop(turn);
            done.map(|done| (done, waited))
        });
        match working.await {
            Ok(done) => Ok(done?),
            Err(_) => Err(ended_unexpectedly()),
        }
    }
}

/// What is told of a request whose thread or task has panicked.
pub(crate) fn ended_unexpectedly() -> WireError {
    WireError::Repository(RepositoryError::Io {
        what: "the request".into(),
        source: std::io::Error::other("the server's worker ended unexpectedly"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    /// The permit, if it need not be waited for.
    fn at_once(memory: &Memory, bytes: u64) -> Option<BufferPermit> {
        match pin!(memory.permit(bytes)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => Some(permit.unwrap()),
            Poll::Pending => None,
        }
    }

    #[test]
    fn what_an_answer_does_not_fill_is_there_for_others() {
        let work = Work::new(1, 1 << 20);
        let mut answer = at_once(&work.answers, 9 << 20).unwrap();
        assert!(at_once(&work.answers, 512 << 10).is_none());
        answer.shrink_to(256 << 10);
        assert!(at_once(&work.answers, 512 << 10).is_some());
        drop(answer);
        assert!(at_once(&work.answers, 1 << 20).is_some());
    }
}
