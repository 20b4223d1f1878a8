//! A request of a repository that was allowed: what is read, what is asked of the repository, and what is answered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdall_format::limits::BLOCK_MAX_BYTES;
use holdall_format::{FormatError, SessionId};
use holdall_protocol::wire::{self, Frames, RepositoryVerb, WireError};
use holdall_protocol::{
    AdminToken, Fetched, RecordQuery, Repository, RepositoryError, RequestTimes, SessionPurpose,
};
use holdall_repository::EmbeddedRepository;
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use tokio::sync::OwnedSemaphorePermit;

use super::body::Answer;
use super::put::{Put, Puts};
use super::read_body::{AdmittedBody, ReadBody, read_body, wipe, with_waiting};
use super::records::read_records;
use super::respond::{BYTES, JSON, LINES, done, respond};
use super::scrub;
use crate::ServerError;
use crate::admin::Administration;
use crate::auth::actor::Actor;
use crate::auth::rights::Permit;
use crate::bounds::source::Source;
use crate::bounds::work::BufferPermits;
use crate::state::ServerState;
use crate::stores::Stores;

/// A request that may be answered.
pub(super) struct RepositoryRequest<'a> {
    pub(super) state: &'a Arc<ServerState>,
    pub(super) permit: Permit,
    /// Where the machine is.
    pub(super) source: Source,
    /// Of the machine's requests.
    pub(super) slot: Arc<OwnedSemaphorePermit>,
    pub(super) body: &'a mut Option<Incoming>,
    pub(super) puts: &'a Puts,
}

impl RepositoryRequest<'_> {
    pub(super) async fn handle(self, verb: RepositoryVerb) -> Result<Response<Answer>, WireError> {
        let is_closing = matches!(verb, RepositoryVerb::CloseSession(_));
        if let Some(session) = verb.session().filter(|_| !is_closing) {
            self.state.activities.check((self.permit.key(), session))?;
        }
        match verb {
            RepositoryVerb::Create => self.create().await,
            RepositoryVerb::Describe => self.describe().await,
            RepositoryVerb::PutWrappings => self.put_wrappings().await,
            RepositoryVerb::PutBack => self.put_back().await,
            RepositoryVerb::PutBackRecord => self.put_back_record().await,
            RepositoryVerb::OpenSession => self.open_session().await,
            RepositoryVerb::Missing(session) => self.missing(session).await,
            RepositoryVerb::PutBlocks(session) => self.put_blocks(session).await,
            RepositoryVerb::Commit(session) => self.commit(session).await,
            RepositoryVerb::CloseSession(session) => self.close_session(session).await,
            RepositoryVerb::Records(query) => self.records(query).await,
            RepositoryVerb::Fetch(session, copy) => self.fetch(session, copy).await,
            RepositoryVerb::ReadBlocks(session, cursor) => self.read_blocks(session, cursor).await,
            RepositoryVerb::ProveBlocks(session) => self.prove_blocks(session).await,
            RepositoryVerb::Scrub => self.scrub().await,
            RepositoryVerb::Usage => self.usage().await,
            RepositoryVerb::Deletions => Ok(self.deletions()),
            RepositoryVerb::ReportRun => self.report_run().await,
            RepositoryVerb::Forget => self.forget().await,
            RepositoryVerb::Prune(dry_run) => self.prune(dry_run).await,
            RepositoryVerb::SparseBlocks(from) => self.sparse_blocks(from).await,
            RepositoryVerb::Supersede(session) => self.supersede(session).await,
        }
    }

    async fn create(self) -> Result<Response<Answer>, WireError> {
        let (state, name) = (self.state, self.permit.repository().to_owned());
        self.change(wire::decode_new_repository, Stores::create).await?;
        state.log(&format!("made repository {name}"));
        Ok(respond(JSON, done(), None))
    }

    async fn describe(self) -> Result<Response<Answer>, WireError> {
        let describe =
            |repository: &EmbeddedRepository| Ok(wire::encode_description(&repository.describe()?));
        self.call_for(BYTES, describe).await
    }

    async fn put_wrappings(self) -> Result<Response<Answer>, WireError> {
        let (state, name) = (self.state, self.permit.repository().to_owned());
        self.change(|body| Ok(body.clone()), Stores::put_wrappings).await?;
        state.log(&format!("changed the keys of {name}"));
        Ok(respond(JSON, done(), None))
    }

    async fn put_back(self) -> Result<Response<Answer>, WireError> {
        self.change(wire::decode_new_repository, Stores::put_back).await?;
        Ok(respond(JSON, done(), None))
    }

    async fn put_back_record(self) -> Result<Response<Answer>, WireError> {
        let put_back = |repository: &EmbeddedRepository, record: Bytes| {
            repository.put_back_record(&record).map(|()| done())
        };
        self.call_with_body(JSON, |body| Ok(body.clone()), put_back).await
    }

    async fn missing(self, session: SessionId) -> Result<Response<Answer>, WireError> {
        let missing = move |repository: &EmbeddedRepository, ids: Vec<_>| {
            Ok(Frames::plain(wire::encode_bitmap(&repository.missing(&session, &ids)?)))
        };
        self.call_with_body(BYTES, |body| wire::decode_ids(body), missing).await
    }

    async fn commit(self, session: SessionId) -> Result<Response<Answer>, WireError> {
        let (inner, key) = (Arc::clone(self.state), self.permit.key());
        let commit = move |repository: &EmbeddedRepository, record: Bytes| {
            let answer = repository.commit(&session, &record)?;
            inner.stores.note_newest(&answer);
            inner.activities.committed((key, session), &answer);
            Ok(wire::encode_commit_answer(&answer))
        };
        self.call_with_body(BYTES, |body| Ok(body.clone()), commit).await
    }

    async fn close_session(self, session: SessionId) -> Result<Response<Answer>, WireError> {
        let (inner, key) = (Arc::clone(self.state), self.permit.key());
        let close = move |repository: &EmbeddedRepository| {
            repository.close_session(&session)?;
            inner.activities.closed((key, session));
            Ok(done())
        };
        self.call_for(JSON, close).await
    }

    async fn records(mut self, query: RecordQuery) -> Result<Response<Answer>, WireError> {
        self.read_body().await?;
        let records = move |repository: &EmbeddedRepository| read_records(repository, &query);
        self.call_for_large(wire::MAX_RECORDS_ANSWER_BYTES, records).await
    }

    async fn read_blocks(
        mut self,
        session: SessionId,
        cursor: u64,
    ) -> Result<Response<Answer>, WireError> {
        self.read_body().await?;
        let (inner, key) = (Arc::clone(self.state), self.permit.key());
        let page = move |repository: &EmbeddedRepository| {
            let page = wire::encode_block_page(&repository.read_blocks(&session, cursor)?);
            let (bytes, times) = (page.total_bytes() as u64, RequestTimes::default());
            inner.activities.gave((key, session), bytes, &times);
            Ok(page)
        };
        self.call_for_large(wire::MAX_FETCH_ANSWER_BYTES, page).await
    }

    async fn prove_blocks(mut self, session: SessionId) -> Result<Response<Answer>, WireError> {
        let probes = wire::decode_probes(&self.read_body().await?.bytes)?;
        let prove = move |repository: &EmbeddedRepository| {
            Ok(Frames::plain(wire::encode_proofs(&repository.prove_blocks(&session, &probes)?)))
        };
        self.state.stored(&self.permit.key()).await;
        // A block is read at a time.
        let most = BLOCK_MAX_BYTES + wire::MAX_PROOFS_ANSWER_BYTES;
        self.call_for_large(most, prove).await
    }

    async fn usage(self) -> Result<Response<Answer>, WireError> {
        let usage = |repository: &EmbeddedRepository| {
            Ok(Frames::plain(wire::encode_usage(&repository.usage()?)))
        };
        self.call_for(JSON, usage).await
    }

    fn deletions(self) -> Response<Answer> {
        let announced =
            self.state.administration(&Actor::server()).announced(self.permit.repository());
        respond(BYTES, Frames::plain(wire::encode_announced(&announced)), None)
    }

    async fn report_run(mut self) -> Result<Response<Answer>, WireError> {
        let ReadBody { bytes, permits, .. } = self.read_body().await?;
        let report = wire::decode_run_report(&bytes)?;
        let (state, permit, slot) = (Arc::clone(self.state), self.permit, self.slot);
        let note = move || {
            let _held = (permits, slot);
            let name = state.accounts.current_name(permit.repository());
            permit.check_again(&state.accounts.role(&permit.key()), &name)?;
            state.accounts.note_run(permit.machine(), report)?;
            state.run_was_told.notify_one();
            Ok(())
        };
        self.state.work.run(note).await?;
        Ok(respond(JSON, done(), None))
    }

    async fn forget(self) -> Result<Response<Answer>, WireError> {
        self.administer(wire::decode_forget, |administration, name, snapshots| {
            let waiting = administration.ask_forget(name, &snapshots)?;
            Ok(wire::encode_deletions(&[waiting]))
        })
        .await
    }

    async fn prune(self, dry_run: bool) -> Result<Response<Answer>, WireError> {
        self.administer(wire::decode_forget, move |administration, name, _| {
            Ok(wire::encode_pruned(&administration.ask_prune(name, dry_run)?))
        })
        .await
    }

    async fn sparse_blocks(self, from: u64) -> Result<Response<Answer>, WireError> {
        self.administer(wire::decode_supersede, move |administration, name, _| {
            Ok(wire::encode_sparse(&administration.ask_sparse(name, from)?))
        })
        .await
    }

    async fn supersede(self, session: SessionId) -> Result<Response<Answer>, WireError> {
        let machine = self.permit.machine();
        self.administer(wire::decode_supersede, move |administration, name, blocks| {
            let gave_way = administration.ask_supersede(name, &machine, &session, &blocks)?;
            Ok(wire::encode_superseding(&gave_way))
        })
        .await
    }

    /// Reads the body, within the limit of its verb.
    async fn read_body(&mut self) -> Result<ReadBody, WireError> {
        let limit_bytes = self.permit.max_body_bytes();
        read_body(self.state, &self.permit.key(), self.body, limit_bytes).await
    }

    /// Waits for the memory of an answer of at most `bytes`, and tells for how long.
    async fn answer_permits(&self, bytes: usize) -> Result<(BufferPermits, Duration), WireError> {
        let begun = Instant::now();
        let permits = self.state.answer_permits(&self.permit.key(), bytes as u64).await?;
        Ok((permits, begun.elapsed()))
    }

    /// Calls the repository, on a thread for that.
    async fn call<T: Send + 'static>(
        self,
        call: impl FnOnce(EmbeddedRepository) -> Result<T, RepositoryError> + Send + 'static,
    ) -> Result<(T, Duration), WireError> {
        let Self { state, permit, slot, .. } = self;
        let inner = Arc::clone(state);
        // A call goes on without its connection, and has the slot until it ends.
        let call = move || {
            let _slot = slot;
            call(inner.stores.repository(&permit)?)
        };
        state.work.run(call).await
    }

    /// Answers what the repository says.
    async fn call_for(
        self,
        content_type: &'static str,
        call: impl FnOnce(&EmbeddedRepository) -> Result<Frames, RepositoryError> + Send + 'static,
    ) -> Result<Response<Answer>, WireError> {
        let (body, _) = self.call(move |repository| call(&repository)).await?;
        Ok(respond(content_type, body, None))
    }

    /// Answers what the repository says to what is in the body.
    async fn call_with_body<A: Send + 'static>(
        mut self,
        content_type: &'static str,
        decode: impl FnOnce(&Bytes) -> Result<A, FormatError>,
        call: impl FnOnce(&EmbeddedRepository, A) -> Result<Frames, RepositoryError> + Send + 'static,
    ) -> Result<Response<Answer>, WireError> {
        let ReadBody { bytes, permits, .. } = self.read_body().await?;
        let asked = decode(&bytes)?;
        let call = move |repository: &EmbeddedRepository| {
            let _permits = permits;
            call(repository, asked)
        };
        self.call_for(content_type, call).await
    }

    /// Answers what the repository says, which may be so large that there has to be memory for it first.
    async fn call_for_large(
        self,
        max_bytes: usize,
        call: impl FnOnce(&EmbeddedRepository) -> Result<Frames, RepositoryError> + Send + 'static,
    ) -> Result<Response<Answer>, WireError> {
        let (mut permits, _) = self.answer_permits(max_bytes).await?;
        let call = move |repository: EmbeddedRepository| {
            let body = call(&repository)?;
            permits.shrink_to(body.total_bytes());
            Ok((body, permits))
        };
        let ((body, permits), _) = self.call(call).await?;
        Ok(respond(BYTES, body, Some(permits)))
    }

    /// Changes what the repository is, as the body says.
    async fn change<A: Send + 'static>(
        mut self,
        decode: impl FnOnce(&Bytes) -> Result<A, FormatError>,
        change: impl FnOnce(&Stores, &Permit, &A) -> Result<(), RepositoryError> + Send + 'static,
    ) -> Result<(), WireError> {
        let ReadBody { bytes, permits, .. } = self.read_body().await?;
        let wanted = decode(&bytes)?;
        let (state, permit, slot) = (Arc::clone(self.state), self.permit, self.slot);
        let call = move || {
            let _held = (permits, slot);
            change(&state.stores, &permit, &wanted)
        };
        self.state.work.run(call).await?;
        Ok(())
    }

    /// Does what an administrator's token in the body allows with what is named behind it, on a thread
    /// for that.
    async fn administer<N: Send + 'static>(
        mut self,
        decode: impl FnOnce(&[u8]) -> Result<(AdminToken, N), FormatError>,
        call: impl FnOnce(Administration<'_>, &str, N) -> Result<Bytes, ServerError> + Send + 'static,
    ) -> Result<Response<Answer>, WireError> {
        let body = self.read_body().await?;
        let decoded = decode(&body.bytes);
        wipe(body.bytes);
        let (token, named) = decoded?;
        let (state, permit, slot) = (Arc::clone(self.state), self.permit, self.slot);
        let source = self.source;
        let allowed = move || {
            let (name, _slot) = (state.accounts.current_name(permit.repository()), slot);
            permit.check_again(&state.accounts.role(&permit.key()), &name)?;
            state.accounts.check_token(&token, &name)?;
            let actor = Actor::machine(&state.accounts.shown(&permit.key()), source);
            Ok(state.administer(&actor, |administration| call(administration, &name, named))?)
        };
        let (answer, _) = self.state.work.run(allowed).await?;
        Ok(respond(BYTES, Frames::plain(answer), None))
    }

    async fn open_session(mut self) -> Result<Response<Answer>, WireError> {
        let body = self.read_body().await?;
        let purpose = wire::decode_session_request(&body.bytes)?;
        self.permit.check_purpose(&purpose)?;
        let (inner, key, source) = (Arc::clone(self.state), self.permit.key(), self.source);
        let name = self.permit.repository().to_owned();
        let open = move |repository: &EmbeddedRepository| {
            let grant = repository.open_session(&purpose)?;
            let who = inner.accounts.shown(&key);
            let what = match purpose {
                SessionPurpose::Backup { .. } => "back up",
                SessionPurpose::Read => "read",
            };
            inner.detail(1, || format!("{who} at {source}: begins to {what}"));
            inner.activities.opened((key, grant.session), (name, &who), source);
            Ok(Frames::plain(wire::encode_session_answer(&grant)))
        };
        self.call_for(JSON, open).await
    }

    async fn put_blocks(self, session: SessionId) -> Result<Response<Answer>, WireError> {
        let Self { state, permit, slot, body, puts, .. } = self;
        let begun = state.pressure.begin();
        let limit_bytes = permit.max_body_bytes();
        let admitted = AdmittedBody::wait(state, &permit.key(), body.as_ref(), limit_bytes).await?;
        let state = Arc::clone(state);
        let put = Put { state, permit, slot, session, begun, admitted };
        let times = puts.carry_out(put, body.take()).await?;
        Ok(respond(JSON, Frames::plain(wire::encode_times(&times)), None))
    }

    async fn fetch(mut self, session: SessionId, copy: u32) -> Result<Response<Answer>, WireError> {
        let begun = self.state.pressure.begin();
        let ReadBody { bytes, permits: asked_permits, queued, received } = self.read_body().await?;
        let ids = wire::decode_ids(&bytes)?;
        let (mut permits, also_queued) = self.answer_permits(wire::MAX_FETCH_ANSWER_BYTES).await?;
        let call = move |repository: EmbeddedRepository| {
            let _asked_permits = asked_permits;
            let fetched = repository.fetch_objects(&session, &ids, copy)?;
            permits.shrink_to(wire::encode_fetched(&fetched).total_bytes());
            Ok((fetched, permits))
        };
        let (state, key) = (self.state, self.permit.key());
        let ((fetched, permits), waited) = self.call(call).await?;
        let times = with_waiting(fetched.times, received, queued + also_queued + waited);
        let times = state.pressure.reattribute_cpu_wait(&begun, times);
        let fetched = Fetched { times, ..fetched };
        let answer = wire::encode_fetched(&fetched);
        state.activities.gave((key, session), answer.total_bytes() as u64, &times);
        Ok(respond(BYTES, answer, Some(permits)))
    }

    async fn scrub(self) -> Result<Response<Answer>, WireError> {
        let state = self.state;
        let slots = state.scrub_slots(&self.permit.key())?;
        let (repository, _) = self.call(Ok).await?;
        let lines = scrub::start(repository, slots, Arc::clone(&state.pressure.own_work));
        let mut response = Response::new(Answer::lines(lines));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(LINES));
        Ok(response)
    }
}
