//! One request: who asks, may it, what is read, what is answered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdall_format::limits::BLOCK_MAX_BYTES;
use holdall_format::{FormatError, PublicKey, RecordHash, SessionId};
use holdall_protocol::wire::{
    self, ErrorAnswer, Frames, LabTaken, LabVerb, LabWritten, PairAnswer, PairRequest,
    RepositoryVerb, Route, WireError,
};
use holdall_protocol::{
    AdminToken, Fetched, RecordQuery, Repository, RepositoryError, RequestTimes,
};
use holdall_repository::EmbeddedRepository;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::ServerError;
use crate::admin::Administration;
use crate::body::{self, Answer};
use crate::measuring;
use crate::put::{Put, Puts};
use crate::records::read_records;
use crate::rights::{self, Permit, Role};
use crate::scrub;
use crate::source::Source;
use crate::state::ServerState;
use crate::taking::{Admitted, Taken, take, wipe, with_waiting};
use crate::work::Rooms;

const JSON: &str = "application/json";
const BYTES: &str = "application/octet-stream";
const LINES: &str = "application/x-ndjson";
const TEXT: &str = "text/plain; charset=utf-8";

/// Answers one request of a connection whose peer proved to hold `key`, or showed none, and is at `source`.
pub(crate) async fn answer(
    state: Arc<ServerState>,
    (key, source): (Option<PublicKey>, Source),
    request: Request<Incoming>,
    puts: &Puts,
) -> Response<Answer> {
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("", |path| path.as_str());
    if let Some(text) = open_page(head.method.as_str(), path) {
        return respond(TEXT, Frames::plain(text.into()), None);
    }
    let (mut body, mut is_last) = (Some(body), false);
    let answered = match (Route::parse(head.method.as_str(), path), key) {
        (Some(route), Some(key)) => {
            let verb = route.verb().name;
            let is_pairing = matches!(route, Route::Pair);
            let answered = asked(&state, key, route, &mut body, puts).await;
            if let Err(error) = &answered {
                state.log_failure(verb, (&key, source), error);
                is_last = is_pairing && !state.delay_refused_pairing(source).await;
            }
            answered
        }
        (None, _) | (_, None) => Err(WireError::NoSuchRoute),
    };
    match answered {
        Ok(response) => response,
        Err(error) => {
            if let Some(unread) = body {
                body::drain(unread, wire::MAX_PUT_BODY_BYTES).await;
            }
            let mut response = respond_error(error);
            if is_last {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            response
        }
    }
}

/// What is open to everybody.
fn open_page(method: &str, path: &str) -> Option<&'static str> {
    match (method, path) {
        ("GET", "/healthz") => Some("ok\n"),
        ("GET", "/") => Some("This is a holdall server. Machines are let in by `holdall pair`.\n"),
        _ => None,
    }
}

fn respond(content_type: &'static str, body: Frames, rooms: Option<Rooms>) -> Response<Answer> {
    let mut response = Response::new(Answer::new(body));
    if let Some(rooms) = rooms {
        response.body_mut().hold(rooms);
    }
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn respond_error(error: WireError) -> Response<Answer> {
    let ErrorAnswer { status, body } = ErrorAnswer::new(error);
    let mut response = respond(JSON, Frames::plain(body), None);
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

/// Checks the right and carries out the verb. Takes the body out of `body` when it reads it.
async fn asked(
    state: &Arc<ServerState>,
    key: PublicKey,
    route: Route,
    body: &mut Option<Incoming>,
    puts: &Puts,
) -> Result<Response<Answer>, WireError> {
    let (name, verb) = match route {
        Route::Pair => return pair(state, key, body).await,
        Route::Lab(verb) => return measure(state, key, verb, body).await,
        Route::Repository { name, verb } => (name, verb),
    };
    let permit = rights::check(&state.accounts.role(&key), key, &name, verb.verb())?;
    let turn = Arc::new(state.turn_of(&key)?);
    let asked = Asked { state, permit, turn: Arc::clone(&turn), body, puts };
    let mut response = asked.carry_out(verb).await?;
    response.body_mut().hold(turn);
    Ok(response)
}

/// Writes a body to the disk as a put does, and keeps nothing of it.
async fn write_to_measure(
    state: &Arc<ServerState>,
    key: &PublicKey,
    turn: Arc<OwnedSemaphorePermit>,
    body: &mut Option<Incoming>,
) -> Result<LabWritten, WireError> {
    let begun = state.pressure.begin();
    let Taken { bytes, room, queued, received } =
        take(state, key, body, LabVerb::Write.verb().max_body_bytes).await?;
    let (inner, written) = (Arc::clone(state), bytes.clone());
    let call = move || {
        let _held = (room, turn);
        inner.measuring.write(&inner.stores.folder_of_all(), &written)
    };
    let (disk, waited) = state.work.run(call).await?;
    let times = state.pressure.honest(
        &begun,
        RequestTimes {
            receive_seconds: received.as_secs_f64(),
            queue_seconds: (queued + waited).as_secs_f64(),
            cpu_seconds: 0.0,
            disk_seconds: disk.as_secs_f64(),
        },
    );
    let length = bytes.len() as u64;
    state.buffers.give_back(bytes);
    Ok(LabWritten {
        bytes: length,
        queue_seconds: times.queue_seconds,
        cpu_seconds: times.cpu_seconds,
        disk_seconds: times.disk_seconds,
        process_cpu_seconds: holdall_sys::cpu::process_cpu_seconds(),
    })
}

/// Reads as much as that from a file on the disk, which is there for as long as the measurement.
async fn read_to_measure(
    state: &Arc<ServerState>,
    key: &PublicKey,
    turn: Arc<OwnedSemaphorePermit>,
    bytes: u64,
) -> Result<Response<Answer>, WireError> {
    let rooms = state.answer_room(key, bytes).await?;
    let inner = Arc::clone(state);
    let call = move || {
        let read = inner.measuring.read(&inner.stores.folder_of_all(), bytes)?;
        drop(turn);
        Ok((read, rooms))
    };
    let ((read, rooms), _) = state.work.run(call).await?;
    Ok(respond(BYTES, Frames::plain(read), Some(rooms)))
}

async fn pair(
    state: &Arc<ServerState>,
    key: PublicKey,
    body: &mut Option<Incoming>,
) -> Result<Response<Answer>, WireError> {
    let taking = take(state, &key, body, Route::Pair.verb().max_body_bytes);
    let taken = timeout(state.limits.idle_stranger, taking).await;
    let taken = taken.map_err(|_| refused("the invite came too slowly"))??;
    let request = PairRequest::decode(&taken.bytes);
    wipe(taken.bytes);
    let request = request?;
    let secret = request.secret().ok_or_else(|| refused("not an invite's secret"))?;
    // Who has no invite takes no turn and no thread.
    let wants_proof = state.accounts.wants_proof(&secret, key).map_err(RepositoryError::from)?;
    let former = request.former().filter(|_| wants_proof);
    let _turn = match former {
        Some(_) => Some(state.proof_turn().await?),
        None => None,
    };
    let was_paired = matches!(state.accounts.role(&key), Role::Machine { .. });
    let inner = Arc::clone(state);
    let call = move || {
        if let Some(former) = &former {
            inner.stores.prove(former, key)?;
        }
        let is_stored = |name: &str| inner.stores.is_stored(name);
        let (name, former) = (&request.name, former.as_ref());
        Ok(inner.accounts.pair(&secret, key, name, former, is_stored)?)
    };
    let (account, _) = state.work.run(call).await?;
    if !was_paired {
        state.log(&format!("paired {} as machine {}", account.name, account.machine));
    }
    let answer =
        PairAnswer::new(account.machine, account.name, account.repository, state.name.clone());
    Ok(respond(JSON, Frames::plain(answer.encode()), None))
}

/// Takes or gives bytes that nobody needs.
async fn measure(
    state: &Arc<ServerState>,
    key: PublicKey,
    verb: LabVerb,
    body: &mut Option<Incoming>,
) -> Result<Response<Answer>, WireError> {
    rights::check_measuring(&state.accounts.role(&key), verb.verb())?;
    state.measuring.go_on(key, Instant::now())?;
    let turn = Arc::new(state.turn_of(&key)?);
    let mut response = match verb {
        LabVerb::Take => {
            let bytes = match body.take() {
                Some(body) => measuring::forget(body).await?,
                None => 0,
            };
            let version = Some(env!("CARGO_PKG_VERSION").to_owned());
            let taken = wire::encode_lab_taken(&LabTaken { bytes, version });
            respond(JSON, Frames::plain(taken), None)
        }
        LabVerb::Write => {
            let written = write_to_measure(state, &key, Arc::clone(&turn), body).await?;
            respond(JSON, Frames::plain(wire::encode_lab_written(&written)), None)
        }
        LabVerb::Give(bytes) => respond(BYTES, measuring::bytes(bytes), None),
        LabVerb::Read(bytes) => read_to_measure(state, &key, Arc::clone(&turn), bytes).await?,
    };
    response.body_mut().hold(turn);
    Ok(response)
}

fn refused(reason: &str) -> WireError {
    WireError::Repository(RepositoryError::Refused { reason: reason.into() })
}

/// A request that may be carried out.
struct Asked<'a> {
    state: &'a Arc<ServerState>,
    permit: Permit,
    turn: Arc<OwnedSemaphorePermit>,
    body: &'a mut Option<Incoming>,
    puts: &'a Puts,
}

impl Asked<'_> {
    async fn carry_out(self, verb: RepositoryVerb) -> Result<Response<Answer>, WireError> {
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
            RepositoryVerb::Deletions => Ok(self.announced()),
            RepositoryVerb::Forget => self.forget().await,
            RepositoryVerb::Prune(dry_run) => self.prune(dry_run).await,
            RepositoryVerb::SparseBlocks(from) => self.sparse_blocks(from).await,
            RepositoryVerb::Supersede(session) => self.supersede(session).await,
        }
    }

    /// Reads the body, within the limit of its verb.
    async fn take(&mut self) -> Result<Taken, WireError> {
        take(self.state, &self.permit.key(), self.body, self.permit.max_body_bytes()).await
    }

    /// Waits for room for an answer of at most `bytes`, and tells for how long.
    async fn answer_room(&self, bytes: usize) -> Result<(Rooms, Duration), WireError> {
        let begun = Instant::now();
        let rooms = self.state.answer_room(&self.permit.key(), bytes as u64).await?;
        Ok((rooms, begun.elapsed()))
    }

    /// Calls the repository, on a thread for that.
    async fn call<T: Send + 'static>(
        self,
        call: impl FnOnce(EmbeddedRepository) -> Result<T, RepositoryError> + Send + 'static,
    ) -> Result<(T, Duration), WireError> {
        let Self { state, permit, turn, .. } = self;
        let inner = Arc::clone(state);
        // A call goes on without its connection, and has the turn until it ends.
        let call = move || {
            let _turn = turn;
            call(inner.stores.repository(&permit)?)
        };
        state.work.run(call).await
    }

    async fn create(mut self) -> Result<Response<Answer>, WireError> {
        let Taken { bytes, room, .. } = self.take().await?;
        let new = wire::decode_new_repository(&bytes)?;
        let (state, permit, turn) = (Arc::clone(self.state), self.permit, self.turn);
        let name = permit.repository().to_owned();
        let call = move || {
            let _held = (room, turn);
            state.stores.create(&permit, &new)
        };
        self.state.work.run(call).await?;
        self.state.log(&format!("made repository {name}"));
        Ok(respond(JSON, Frames::plain(Bytes::from_static(b"{}")), None))
    }

    async fn put_back(mut self) -> Result<Response<Answer>, WireError> {
        let Taken { bytes, room, .. } = self.take().await?;
        let known = wire::decode_new_repository(&bytes)?;
        let (state, permit, turn) = (Arc::clone(self.state), self.permit, self.turn);
        let call = move || {
            let _held = (room, turn);
            state.stores.put_back(&permit, &known)
        };
        self.state.work.run(call).await?;
        Ok(respond(JSON, Frames::plain(Bytes::from_static(b"{}")), None))
    }

    async fn put_back_record(mut self) -> Result<Response<Answer>, WireError> {
        let Taken { bytes, room, .. } = self.take().await?;
        let call = move |repository: EmbeddedRepository| {
            let _room = room;
            repository.put_back_record(&bytes)
        };
        self.call(call).await?;
        Ok(respond(JSON, Frames::plain(Bytes::from_static(b"{}")), None))
    }

    async fn describe(self) -> Result<Response<Answer>, WireError> {
        let (description, _) = self.call(|repository| repository.describe()).await?;
        Ok(respond(BYTES, wire::encode_description(&description), None))
    }

    async fn put_wrappings(mut self) -> Result<Response<Answer>, WireError> {
        let Taken { bytes, room, .. } = self.take().await?;
        let (state, permit, turn) = (Arc::clone(self.state), self.permit, self.turn);
        let name = permit.repository().to_owned();
        let call = move || {
            let _held = (room, turn);
            state.stores.put_wrappings(&permit, &bytes)
        };
        self.state.work.run(call).await?;
        self.state.log(&format!("changed the keys of {name}"));
        Ok(respond(JSON, Frames::plain(Bytes::from_static(b"{}")), None))
    }

    async fn open_session(mut self) -> Result<Response<Answer>, WireError> {
        let taken = self.take().await?;
        let purpose = wire::decode_session_request(&taken.bytes)?;
        self.permit.check_purpose(&purpose)?;
        let (grant, _) = self.call(move |repository| repository.open_session(&purpose)).await?;
        Ok(respond(JSON, Frames::plain(wire::encode_session_answer(&grant)), None))
    }

    async fn missing(mut self, session: SessionId) -> Result<Response<Answer>, WireError> {
        let Taken { bytes, room, .. } = self.take().await?;
        let ids = wire::decode_ids(&bytes)?;
        let call = move |repository: EmbeddedRepository| {
            let _room = room;
            repository.missing(&session, &ids)
        };
        let (missing, _) = self.call(call).await?;
        Ok(respond(BYTES, Frames::plain(wire::encode_bitmap(&missing)), None))
    }

    async fn put_blocks(self, session: SessionId) -> Result<Response<Answer>, WireError> {
        let Self { state, permit, turn, body, puts } = self;
        let begun = state.pressure.begin();
        let limit_bytes = permit.max_body_bytes();
        let admitted = Admitted::wait(state, &permit.key(), body.as_ref(), limit_bytes).await?;
        let state = Arc::clone(state);
        let put = Put { state, permit, turn, session, begun, admitted };
        let times = puts.carry_out(put, body.take()).await?;
        Ok(respond(JSON, Frames::plain(wire::encode_times(&times)), None))
    }

    async fn commit(mut self, session: SessionId) -> Result<Response<Answer>, WireError> {
        let Taken { bytes, room, .. } = self.take().await?;
        let call = move |repository: EmbeddedRepository| {
            let _room = room;
            repository.commit(&session, &bytes)
        };
        let (answer, _) = self.call(call).await?;
        Ok(respond(BYTES, wire::encode_commit_answer(&answer), None))
    }

    async fn close_session(self, session: SessionId) -> Result<Response<Answer>, WireError> {
        self.call(move |repository| repository.close_session(&session)).await?;
        Ok(respond(JSON, Frames::plain(Bytes::from_static(b"{}")), None))
    }

    async fn records(mut self, query: RecordQuery) -> Result<Response<Answer>, WireError> {
        self.take().await?;
        let (mut rooms, _) = self.answer_room(wire::MAX_RECORDS_ANSWER_BYTES).await?;
        let call = move |repository: EmbeddedRepository| {
            let body = read_records(&repository, &query)?;
            rooms.shrink_to(body.total_bytes());
            Ok((body, rooms))
        };
        let ((body, rooms), _) = self.call(call).await?;
        Ok(respond(BYTES, body, Some(rooms)))
    }

    async fn fetch(mut self, session: SessionId, copy: u32) -> Result<Response<Answer>, WireError> {
        let begun = self.state.pressure.begin();
        let taken = self.take().await?;
        let Taken { bytes, room: asked_room, queued, received } = taken;
        let ids = wire::decode_ids(&bytes)?;
        let (mut rooms, also_queued) = self.answer_room(wire::MAX_FETCH_ANSWER_BYTES).await?;
        let call = move |repository: EmbeddedRepository| {
            let _asked_room = asked_room;
            let fetched = repository.fetch_objects(&session, &ids, copy)?;
            rooms.shrink_to(wire::encode_fetched(&fetched).total_bytes());
            Ok((fetched, rooms))
        };
        let state = self.state;
        let ((fetched, rooms), waited) = self.call(call).await?;
        let times = with_waiting(fetched.times, received, queued + also_queued + waited);
        let fetched = Fetched { times: state.pressure.honest(&begun, times), ..fetched };
        Ok(respond(BYTES, wire::encode_fetched(&fetched), Some(rooms)))
    }

    async fn prove_blocks(mut self, session: SessionId) -> Result<Response<Answer>, WireError> {
        let Taken { bytes, .. } = self.take().await?;
        let probes = wire::decode_probes(&bytes)?;
        self.state.stored(&self.permit.key()).await;
        // A block is read at a time.
        let (mut rooms, _) =
            self.answer_room(BLOCK_MAX_BYTES + wire::MAX_PROOFS_ANSWER_BYTES).await?;
        let call = move |repository: EmbeddedRepository| {
            let body =
                Frames::plain(wire::encode_proofs(&repository.prove_blocks(&session, &probes)?));
            rooms.shrink_to(body.total_bytes());
            Ok((body, rooms))
        };
        let ((body, rooms), _) = self.call(call).await?;
        Ok(respond(BYTES, body, Some(rooms)))
    }

    async fn read_blocks(
        mut self,
        session: SessionId,
        cursor: u64,
    ) -> Result<Response<Answer>, WireError> {
        self.take().await?;
        let (mut rooms, _) = self.answer_room(wire::MAX_FETCH_ANSWER_BYTES).await?;
        let call = move |repository: EmbeddedRepository| {
            let page = repository.read_blocks(&session, cursor)?;
            let body = wire::encode_block_page(&page);
            rooms.shrink_to(body.total_bytes());
            Ok((body, rooms))
        };
        let ((body, rooms), _) = self.call(call).await?;
        Ok(respond(BYTES, body, Some(rooms)))
    }

    async fn usage(self) -> Result<Response<Answer>, WireError> {
        let (usage, _) = self.call(|repository| repository.usage()).await?;
        Ok(respond(JSON, Frames::plain(wire::encode_usage(&usage)), None))
    }

    fn announced(self) -> Response<Answer> {
        let announced = self.state.administration().announced(self.permit.repository());
        respond(BYTES, Frames::plain(wire::encode_announced(&announced)), None)
    }

    async fn forget(self) -> Result<Response<Answer>, WireError> {
        let call = |administration: Administration<'_>, name: &str, snapshots: Vec<RecordHash>| {
            administration.ask_forget(name, &snapshots)
        };
        let decode = wire::decode_forget;
        let waiting = self.administer(decode, call).await?;
        Ok(respond(BYTES, Frames::plain(wire::encode_deletions(&[waiting])), None))
    }

    async fn prune(self, dry_run: bool) -> Result<Response<Answer>, WireError> {
        let call = move |administration: Administration<'_>, name: &str, _| {
            administration.ask_prune(name, dry_run)
        };
        let decode = wire::decode_forget;
        let pruned = self.administer(decode, call).await?;
        Ok(respond(BYTES, Frames::plain(wire::encode_pruned(&pruned)), None))
    }

    async fn sparse_blocks(self, from: u64) -> Result<Response<Answer>, WireError> {
        let call = move |administration: Administration<'_>, name: &str, _| {
            administration.ask_sparse(name, from)
        };
        let decode = wire::decode_supersede;
        let sparse = self.administer(decode, call).await?;
        Ok(respond(BYTES, Frames::plain(wire::encode_sparse(&sparse)), None))
    }

    async fn supersede(self, session: SessionId) -> Result<Response<Answer>, WireError> {
        let machine = self.permit.machine();
        let call = move |administration: Administration<'_>, name: &str, blocks: Vec<u64>| {
            administration.ask_supersede(name, &machine, &session, &blocks)
        };
        let decode = wire::decode_supersede;
        let superseding = self.administer(decode, call).await?;
        Ok(respond(BYTES, Frames::plain(wire::encode_superseding(&superseding)), None))
    }

    /// Does what an administrator's token in the body allows with what is named behind it, on a thread
    /// for that.
    async fn administer<N: Send + 'static, T: Send + 'static>(
        mut self,
        decode: impl FnOnce(&[u8]) -> Result<(AdminToken, N), FormatError>,
        call: impl FnOnce(Administration<'_>, &str, N) -> Result<T, ServerError> + Send + 'static,
    ) -> Result<T, WireError> {
        let taken = self.take().await?;
        let decoded = decode(&taken.bytes);
        wipe(taken.bytes);
        let (token, named) = decoded?;
        let (state, permit, turn) = (Arc::clone(self.state), self.permit, self.turn);
        let allowed = move || {
            let (name, _turn) = (permit.repository(), turn);
            permit.check_again(&state.accounts.role(&permit.key()))?;
            state.accounts.check_token(&token, name)?;
            Ok(state.administer(|administration| call(administration, name, named))?)
        };
        Ok(self.state.work.run(allowed).await?.0)
    }

    async fn scrub(self) -> Result<Response<Answer>, WireError> {
        let state = self.state;
        let turn = state.scrub_turn(&self.permit.key())?;
        let (repository, _) = self.call(Ok).await?;
        let lines = scrub::start(repository, turn, Arc::clone(&state.pressure.own_work));
        let mut response = Response::new(Answer::lines(lines));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(LINES));
        Ok(response)
    }
}
