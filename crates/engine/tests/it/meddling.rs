//! A repository that does something to the sources in the middle of a backup.
//!
//! When the first block is put, what the bounds on bytes in flight allow is read, and nothing
//! beyond: no clock decides what a test meets.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use holdall_format::{ObjectId, SessionId};
use holdall_protocol::{
    BlockPage, BlockProbe, CommitAnswer, Description, Fetched, ListedRecord, NewRepository,
    RecordQuery, Repository, RepositoryError, RequestTimes, ScrubProgress, ScrubReport,
    SessionGrant, SessionPurpose, Traffic, Usage,
};

type Deed = Box<dyn FnOnce() + Send>;

/// Does one deed before the first block is stored.
pub(crate) struct Meddling {
    inner: Arc<dyn Repository>,
    deed: Mutex<Option<Deed>>,
}

impl Meddling {
    pub(crate) fn new(
        inner: Arc<dyn Repository>,
        deed: impl FnOnce() + Send + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { inner, deed: Mutex::new(Some(Box::new(deed))) })
    }
}

impl Repository for Meddling {
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

    fn open_session(&self, purpose: &SessionPurpose) -> Result<SessionGrant, RepositoryError> {
        self.inner.open_session(purpose)
    }

    fn missing(&self, session: &SessionId, ids: &[ObjectId]) -> Result<Vec<bool>, RepositoryError> {
        self.inner.missing(session, ids)
    }

    fn put_blocks(
        &self,
        session: &SessionId,
        blocks: &[Bytes],
    ) -> Result<RequestTimes, RepositoryError> {
        let mut deed = self.deed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(deed) = deed.take() {
            deed();
        }
        // Nobody puts anything while it is being done.
        drop(deed);
        self.inner.put_blocks(session, blocks)
    }

    fn commit(&self, session: &SessionId, record: &Bytes) -> Result<CommitAnswer, RepositoryError> {
        self.inner.commit(session, record)
    }

    fn close_session(&self, session: &SessionId) -> Result<(), RepositoryError> {
        self.inner.close_session(session)
    }

    fn records(&self, query: &RecordQuery) -> Result<Vec<ListedRecord>, RepositoryError> {
        self.inner.records(query)
    }

    fn fetch_objects(
        &self,
        session: &SessionId,
        ids: &[ObjectId],
        copy: u32,
    ) -> Result<Fetched, RepositoryError> {
        self.inner.fetch_objects(session, ids, copy)
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

    fn put_wrappings(&self, wrappings: &Bytes) -> Result<(), RepositoryError> {
        self.inner.put_wrappings(wrappings)
    }

    fn usage(&self) -> Result<Usage, RepositoryError> {
        self.inner.usage()
    }

    fn traffic(&self) -> Traffic {
        self.inner.traffic()
    }
}
