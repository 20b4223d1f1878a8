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
    memory_kib: Arc<Semaphore>,
    memory_max_kib: usize,
}

/// Room for a body; given back when dropped.
#[derive(Debug)]
pub(crate) struct Room {
    permit: OwnedSemaphorePermit,
}

impl Room {
    /// Gives back all but `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: u64) {
        let kept = usize::try_from(bytes.div_ceil(1024)).unwrap_or(usize::MAX);
        let surplus = self.permit.num_permits().saturating_sub(kept);
        drop(self.permit.split(surplus));
    }
}

impl Work {
    pub(crate) fn new(threads: usize, body_bytes: usize) -> Self {
        let memory_max_kib = (body_bytes / 1024).max(1);
        Self {
            threads: Arc::new(Semaphore::new(threads.max(1))),
            memory_kib: Arc::new(Semaphore::new(memory_max_kib)),
            memory_max_kib,
        }
    }

    /// Waits for room for a body of at most `bytes`.
    ///
    /// # Cancel safety
    /// Nothing is held when it is dropped.
    pub(crate) async fn room(&self, bytes: u64) -> Result<Room, WireError> {
        let kib = usize::try_from(bytes.div_ceil(1024)).unwrap_or(usize::MAX);
        let kib = u32::try_from(kib.min(self.memory_max_kib)).unwrap_or(u32::MAX);
        let memory = Arc::clone(&self.memory_kib);
        let permit = memory.acquire_many_owned(kib).await.map_err(|_| WireError::Busy)?;
        Ok(Room { permit })
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
            Err(_) => Err(WireError::Repository(RepositoryError::Io {
                what: "the request".into(),
                source: std::io::Error::other("the server's worker ended unexpectedly"),
            })),
        }
    }
}
