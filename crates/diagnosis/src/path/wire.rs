//! A repository whose requests go over the wire, and leave nothing there.
//!
//! What a backup asks of a server is asked of a temporary repository here, and for each request as
//! many bytes go to the server as the request, or its answer, has. Blocks are written to the server's
//! disk and made durable there, as a put would be. So the backup waits for this wire and this disk, and
//! the server's snapshots stay what they are.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use holdall_format::{ObjectId, SessionId};
use holdall_protocol::wire::{Frames, encode_ids};
use holdall_protocol::{
    BlockPage, BlockProbe, CommitAnswer, Description, Fetched, ListedRecord, MeasuredServer,
    NewRepository, RecordQuery, Repository, RepositoryError, RequestTimes, ScrubProgress,
    ScrubReport, SessionGrant, SessionPurpose, Traffic, Usage,
};

/// What is asked first, to see how fast the wire is and whether the server writes.
const TRIAL_BYTES: usize = 1 << 20;

/// The way to a server.
pub(super) struct Wire {
    server: Arc<MeasuredServer>,
    /// Whether the server writes what it gets to its disk: older ones do not.
    writes: bool,
    /// What the server told last of its process and the processor.
    cpu: Mutex<Option<ServerCpu>>,
}

/// What a server told of its process and the processor.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerCpu {
    /// When it told.
    pub(super) at: Instant,
    /// What the process had used since it began.
    pub(super) seconds: f64,
    /// How many cores it may keep busy; older servers do not tell.
    pub(super) cores: Option<f64>,
}

impl Wire {
    /// Tries the wire: how many bytes it carries in a second, more or less.
    ///
    /// # Errors
    /// What the server says.
    pub(super) fn tried(server: Arc<MeasuredServer>) -> Result<(Self, f64), RepositoryError> {
        let trial = Frames::plain(Bytes::from(vec![0x5a; TRIAL_BYTES]));
        let writes = match server.write(&trial) {
            Ok(_) => true,
            Err(
                RepositoryError::Refused { .. }
                | RepositoryError::Io { .. }
                | RepositoryError::NotAllowed { .. },
            ) => false,
            Err(error) => return Err(error),
        };
        let begun = Instant::now();
        server.take(&trial)?;
        let rate = TRIAL_BYTES as f64 / begun.elapsed().as_secs_f64();
        Ok((Self { server, writes, cpu: Mutex::default() }, rate))
    }

    /// Whether the server writes what it gets to its disk.
    pub(super) fn writes(&self) -> bool {
        self.writes
    }

    /// What the server told last of its process and the processor.
    pub(super) fn server_cpu(&self) -> Option<ServerCpu> {
        *self.cpu.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has bytes written there; where the time went.
    ///
    /// # Errors
    /// What the server says.
    pub(super) fn write(&self, pieces: &Frames) -> Result<RequestTimes, RepositoryError> {
        if !self.writes {
            self.server.take(pieces)?;
            return Ok(RequestTimes::default());
        }
        let written = self.server.write(pieces)?;
        let told = Some(ServerCpu {
            at: Instant::now(),
            seconds: written.process_cpu_seconds,
            cores: written.cores,
        });
        *self.cpu.lock().unwrap_or_else(PoisonError::into_inner) = told;
        Ok(RequestTimes {
            receive_seconds: 0.0,
            queue_seconds: written.queue_seconds,
            cpu_seconds: written.cpu_seconds,
            disk_seconds: written.disk_seconds,
        })
    }

    /// There and back, with nothing.
    fn trip(&self) -> Result<(), RepositoryError> {
        self.server.give(0)
    }
}

/// A temporary repository behind a wire.
pub(super) struct Through {
    inner: Arc<dyn Repository>,
    wire: Arc<Wire>,
    /// What had crossed the wire before.
    before: Traffic,
}

impl Through {
    /// `inner` behind `wire`.
    pub(super) fn new(inner: Arc<dyn Repository>, wire: Arc<Wire>) -> Self {
        let before = wire.server.traffic();
        Self { inner, wire, before }
    }
}

/// Where a put's time went: what a server's processor would do with the blocks is done here. This computer's disk is
/// no part of the path, so that it is not waited for while the bytes are on their way, and counts for nothing.
fn as_at_a_server(there: RequestTimes, here: RequestTimes) -> RequestTimes {
    RequestTimes { cpu_seconds: there.cpu_seconds + here.cpu_seconds, ..there }
}

impl Repository for Through {
    fn create(&self, new: &NewRepository) -> Result<(), RepositoryError> {
        self.inner.create(new)
    }

    fn put_back(&self, known: &NewRepository) -> Result<(), RepositoryError> {
        self.inner.put_back(known)
    }

    fn put_back_record(&self, stored: &Bytes) -> Result<(), RepositoryError> {
        self.inner.put_back_record(stored)
    }

    fn describe(&self) -> Result<Description, RepositoryError> {
        self.inner.describe()
    }

    fn put_wrappings(&self, wrappings: &Bytes) -> Result<(), RepositoryError> {
        self.inner.put_wrappings(wrappings)
    }

    fn open_session(&self, purpose: &SessionPurpose) -> Result<SessionGrant, RepositoryError> {
        self.wire.trip()?;
        self.inner.open_session(purpose)
    }

    fn missing(&self, session: &SessionId, ids: &[ObjectId]) -> Result<Vec<bool>, RepositoryError> {
        self.wire.server.take(&Frames::plain(encode_ids(ids)))?;
        self.inner.missing(session, ids)
    }

    fn put_blocks(
        &self,
        session: &SessionId,
        blocks: &[Bytes],
    ) -> Result<RequestTimes, RepositoryError> {
        let (there, here) = std::thread::scope(|scope| {
            let here = scope.spawn(|| self.inner.put_blocks(session, blocks));
            (self.wire.write(&Frames::framed(blocks)), here.join())
        });
        let failed = |_| {
            let source = std::io::Error::other("the thread that stores failed");
            Err(RepositoryError::Io { what: "storing here".to_owned(), source })
        };
        Ok(as_at_a_server(there?, here.unwrap_or_else(failed)?))
    }

    fn commit(&self, session: &SessionId, record: &Bytes) -> Result<CommitAnswer, RepositoryError> {
        self.wire.server.take(&Frames::plain(record.clone()))?;
        self.inner.commit(session, record)
    }

    fn close_session(&self, session: &SessionId) -> Result<(), RepositoryError> {
        self.wire.trip()?;
        self.inner.close_session(session)
    }

    fn records(&self, query: &RecordQuery) -> Result<Vec<ListedRecord>, RepositoryError> {
        self.wire.trip()?;
        self.inner.records(query)
    }

    fn fetch_objects(
        &self,
        session: &SessionId,
        ids: &[ObjectId],
        copy: u32,
    ) -> Result<Fetched, RepositoryError> {
        let fetched = self.inner.fetch_objects(session, ids, copy)?;
        self.wire.server.give(fetched.blocks.iter().map(|block| block.len() as u64).sum())?;
        Ok(fetched)
    }

    fn read_blocks(&self, session: &SessionId, cursor: u64) -> Result<BlockPage, RepositoryError> {
        self.inner.read_blocks(session, cursor)
    }

    fn prove_blocks(
        &self,
        session: &SessionId,
        probes: &[BlockProbe],
    ) -> Result<Vec<Option<Bytes>>, RepositoryError> {
        self.inner.prove_blocks(session, probes)
    }

    fn scrub(
        &self,
        progress: &mut dyn FnMut(ScrubProgress),
    ) -> Result<ScrubReport, RepositoryError> {
        self.inner.scrub(progress)
    }

    fn usage(&self) -> Result<Usage, RepositoryError> {
        self.inner.usage()
    }

    fn traffic(&self) -> Traffic {
        let now = self.wire.server.traffic();
        Traffic {
            sent_bytes: now.sent_bytes.saturating_sub(self.before.sent_bytes),
            received_bytes: now.received_bytes.saturating_sub(self.before.received_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_computers_disk_is_no_time_of_a_server() {
        let times = |cpu_seconds, disk_seconds| RequestTimes {
            cpu_seconds,
            disk_seconds,
            ..RequestTimes::default()
        };
        assert_eq!(as_at_a_server(times(0.25, 0.5), times(0.125, 8.0)), times(0.375, 0.5));
    }
}
