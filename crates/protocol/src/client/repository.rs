//! A repository on a server.

use bytes::Bytes;
use holdall_format::{Block, ObjectId, RecordHash, SessionId, proves_slice};

use super::body::{Sink, Whole};
use super::call::{Asking, Question, Tried, UNKNOWN_REQUEST, broken_answer};
use super::{Caller, ClientOptions, ServerAddress, Weight};
use crate::wire::{self, Frames, OWN_REPOSITORY, RepositoryVerb, Route, RunReport, ScrubGathering};
use crate::{
    AdminToken, Announced, AskedPrune, BlockPage, BlockProbe, CommitAnswer, Compacting,
    Description, Fetched, ListedRecord, MAX_IDS, MAX_PROBES, MAX_PUT_BYTES, MAX_RECORDS,
    MachineIdentity, NewRepository, ReadSessions, RecordQuery, Repository, RepositoryError,
    RequestTimes, ScrubProgress, ScrubReport, ServedRepository, SessionGrant, SessionPurpose,
    SparseBlock, Superseding, Traffic, Usage, WaitingDeletion,
};

/// Asks a holdall server over TLS.
pub struct HttpRepository {
    caller: Caller,
    address: ServerAddress,
    reading: ReadSessions,
}

impl HttpRepository {
    /// Reaches the server. Whether the machine may do anything there shows with the first request.
    ///
    /// # Errors
    /// [`RepositoryError::Unreachable`] once [`ClientOptions::reach_for`] is over, or after one attempt;
    /// [`RepositoryError::WrongServer`]; [`RepositoryError::Refused`] for a name that no repository
    /// can have.
    pub fn connect(
        address: ServerAddress,
        identity: &MachineIdentity,
        options: ClientOptions,
    ) -> Result<Self, RepositoryError> {
        if let Some(name) = address.repository.as_deref().filter(|n| !wire::is_repository_name(n)) {
            let reason = format!("{name:?} cannot be a repository's name");
            return Err(RepositoryError::Refused { reason });
        }
        let caller = Caller::new(&address, identity, options)
            .map_err(|error| RepositoryError::Refused { reason: error.to_string() })?;
        caller.reach()?;
        Ok(Self { caller, address, reading: ReadSessions::default() })
    }

    /// The one of the address's hosts that answered last.
    pub fn host_reached(&self) -> &str {
        self.caller.host_reached()
    }

    fn route(&self, verb: RepositoryVerb) -> Route {
        let name = self.address.repository.clone().unwrap_or_else(|| OWN_REPOSITORY.into());
        Route::Repository { name, verb }
    }

    fn ask<T>(
        &self,
        verb: RepositoryVerb,
        body: Frames,
        weight: (Weight, usize),
        decode: impl FnOnce(Bytes) -> Result<T, holdall_format::FormatError>,
    ) -> Result<T, RepositoryError> {
        let asked = self.caller.ask(&self.route(verb), &body, weight, decode);
        asked.map_err(|error| self.with_own_place(error))
    }

    /// The server knows its repositories by name; the caller knows this one by its address.
    fn with_own_place(&self, error: RepositoryError) -> RepositoryError {
        let place = self.address.to_string();
        match error {
            RepositoryError::NoRepository { .. } => RepositoryError::NoRepository { place },
            RepositoryError::AlreadyExists { .. } => RepositoryError::AlreadyExists { place },
            RepositoryError::InUse { holder, .. } => RepositoryError::InUse { place, holder },
            RepositoryError::NoRoom { place: there } => {
                RepositoryError::NoRoom { place: format!("{place}, {there}") }
            }
            other => other,
        }
    }

    /// Those of these blocks of which the server proves nothing: where a connection was cut, it keeps what had
    /// come whole. One that refuses to tell is sent all of them again.
    ///
    /// # Errors
    /// [`RepositoryError::Unreachable`] and the like once asking has taken its time.
    fn not_there(
        &self,
        session: &SessionId,
        mut blocks: Vec<Bytes>,
        asking: &mut Asking,
    ) -> Result<Vec<Bytes>, RepositoryError> {
        let probes: Vec<Option<BlockProbe>> = blocks.iter().map(first_slice).collect();
        let asked: Vec<BlockProbe> = probes.iter().flatten().copied().collect();
        let mut proofs = Vec::new();
        for some in asked.chunks(MAX_PROBES) {
            proofs.extend(self.proofs_after_a_loss(session, some, asking)?);
        }
        let (mut probes, mut proofs) = (probes.into_iter(), proofs.into_iter());
        blocks.retain(|block| {
            let Some(probe) = probes.next().flatten() else { return true };
            let proof = proofs.next().flatten();
            !proof.is_some_and(|proof| proves_slice(&probe.block, block.len(), probe.slice, &proof))
        });
        Ok(blocks)
    }

    fn proofs_after_a_loss(
        &self,
        session: &SessionId,
        probes: &[BlockProbe],
        asking: &mut Asking,
    ) -> Result<Vec<Option<Bytes>>, RepositoryError> {
        let route = self.route(RepositoryVerb::ProveBlocks(*session));
        let question = Question::about_a_lost_one(&route);
        let body = Frames::plain(wire::encode_probes(probes));
        loop {
            let mut answer = Whole::new(wire::MAX_PROOFS_ANSWER_BYTES);
            let proofs = match self.caller.ask_once(asking, &question, &body, &mut answer) {
                Ok(Tried::Answered) => wire::decode_proofs(&answer.into_bytes(), probes.len()).ok(),
                Ok(Tried::Busy | Tried::Lost) => continue,
                Err(
                    error @ (RepositoryError::Unreachable { .. }
                    | RepositoryError::WrongServer { .. }
                    | RepositoryError::Interrupted),
                ) => return Err(error),
                Err(_) => None,
            };
            return Ok(proofs.unwrap_or_else(|| vec![None; probes.len()]));
        }
    }

    /// Asks in a session to read in, or in one that takes its place.
    fn read_in<T>(
        &self,
        session: &SessionId,
        ask: impl Fn(&SessionId) -> Result<T, RepositoryError>,
    ) -> Result<T, RepositoryError> {
        self.reading.ask(session, || self.open_session(&SessionPurpose::Read), ask)
    }
}

const LIGHT: (Weight, usize) = (Weight::Light, wire::MAX_CONTROL_BYTES);

impl Repository for HttpRepository {
    fn create(&self, new: &NewRepository) -> Result<(), RepositoryError> {
        let (body, lost) = (wire::encode_new_repository(new), self.caller.lost());
        match self.ask(RepositoryVerb::Create, body, LIGHT, |_| Ok(())) {
            // An attempt whose answer was lost may have made it.
            Err(RepositoryError::AlreadyExists { place }) if self.caller.lost() > lost => {
                let there = self.describe()?;
                match there.config == new.config && there.wrappings == new.wrappings {
                    true => Ok(()),
                    false => Err(RepositoryError::AlreadyExists { place }),
                }
            }
            made => made,
        }
    }

    fn put_back(&self, known: &NewRepository) -> Result<(), RepositoryError> {
        let body = wire::encode_new_repository(known);
        self.ask(RepositoryVerb::PutBack, body, LIGHT, |_| Ok(()))
    }

    fn put_back_record(&self, stored: &Bytes) -> Result<(), RepositoryError> {
        let body = Frames::plain(stored.clone());
        self.ask(RepositoryVerb::PutBackRecord, body, LIGHT, |_| Ok(()))
    }

    fn describe(&self) -> Result<Description, RepositoryError> {
        let limits = (Weight::Light, wire::MAX_REPOSITORY_BODY_BYTES);
        let decode = |body: Bytes| wire::decode_description(&body);
        let described = self.ask(RepositoryVerb::Describe, Frames::new(), limits, decode)?;
        if described.signer != self.address.identity {
            let what = format!("what {} says of itself", self.address);
            let reason = "its receipts are signed by another key than its own".into();
            return Err(RepositoryError::Damaged { what, reason });
        }
        Ok(described)
    }

    fn put_wrappings(&self, wrappings: &Bytes) -> Result<(), RepositoryError> {
        let body = Frames::plain(wrappings.clone());
        self.ask(RepositoryVerb::PutWrappings, body, LIGHT, |_| Ok(()))
    }

    fn open_session(&self, purpose: &SessionPurpose) -> Result<SessionGrant, RepositoryError> {
        let body = Frames::plain(wire::encode_session_request(purpose));
        let decode = |body: Bytes| wire::decode_session_answer(&body);
        let grant = self.ask(RepositoryVerb::OpenSession, body, LIGHT, decode)?;
        self.reading.opened(purpose, &grant);
        Ok(grant)
    }

    fn missing(&self, session: &SessionId, ids: &[ObjectId]) -> Result<Vec<bool>, RepositoryError> {
        check_count(ids.len())?;
        let body = Frames::plain(wire::encode_ids(ids));
        let decode = |body: Bytes| wire::decode_bitmap(&body, ids.len());
        self.ask(RepositoryVerb::Missing(*session), body, LIGHT, decode)
    }

    fn put_blocks(
        &self,
        session: &SessionId,
        blocks: &[Bytes],
    ) -> Result<RequestTimes, RepositoryError> {
        let bytes: usize = blocks.iter().map(Bytes::len).sum();
        if bytes > MAX_PUT_BYTES || blocks.len() > wire::MAX_FRAMES {
            let reason = format!("a put of {bytes} bytes is over its limit");
            return Err(RepositoryError::Refused { reason });
        }
        let question =
            Question::new(&self.route(RepositoryVerb::PutBlocks(*session)), Weight::Puts);
        let (mut asking, mut left) = (Asking::new(), blocks.to_vec());
        loop {
            let (body, mut answer) = (Frames::framed(&left), Whole::new(wire::MAX_CONTROL_BYTES));
            let tried = self.caller.ask_once(&mut asking, &question, &body, &mut answer);
            match tried.map_err(|error| self.with_own_place(error))? {
                Tried::Answered => {
                    return wire::decode_times(&answer.into_bytes()).map_err(broken_answer);
                }
                Tried::Busy => continue,
                Tried::Lost => {}
            }
            let sent = left.len();
            left = self.not_there(session, left, &mut asking)?;
            if left.len() < sent {
                self.caller.note_part(&mut asking);
            }
            if left.is_empty() {
                return Ok(RequestTimes::default());
            }
        }
    }

    fn commit(&self, session: &SessionId, record: &Bytes) -> Result<CommitAnswer, RepositoryError> {
        let limits = (Weight::Light, wire::MAX_IDS_BODY_BYTES + 1);
        let decode = |body: Bytes| wire::decode_commit_answer(&body, record);
        self.ask(RepositoryVerb::Commit(*session), Frames::plain(record.clone()), limits, decode)
    }

    fn close_session(&self, session: &SessionId) -> Result<(), RepositoryError> {
        let session = self.reading.closed(session);
        self.ask(RepositoryVerb::CloseSession(session), Frames::new(), LIGHT, |_| Ok(()))
    }

    fn records(&self, query: &RecordQuery) -> Result<Vec<ListedRecord>, RepositoryError> {
        let limits = (Weight::Light, wire::MAX_RECORDS_ANSWER_BYTES);
        let (mut found, mut after) = (Vec::new(), Some(query.after_position));
        let (wanted, mut known) = (query.limit.min(MAX_RECORDS), query.known);
        while let (Some(after_position), true) = (after, found.len() < wanted) {
            let limit = wanted - found.len();
            let part = RecordQuery { after_position, limit, known: known.take() };
            let decode = |body: Bytes| wire::decode_records(&body);
            let (records, next) =
                self.ask(RepositoryVerb::Records(part), Frames::new(), limits, decode)?;
            after = next.filter(|next| *next > after_position);
            if records.is_empty() && after.is_some() {
                let reason =
                    "the server's answer is not valid: records without any, and more behind";
                return Err(RepositoryError::Refused { reason: reason.into() });
            }
            found.extend(records);
        }
        found.truncate(wanted);
        Ok(found)
    }

    fn fetch_objects(
        &self,
        session: &SessionId,
        ids: &[ObjectId],
        copy: u32,
    ) -> Result<Fetched, RepositoryError> {
        check_count(ids.len())?;
        let limits = (Weight::Fetches, wire::MAX_FETCH_ANSWER_BYTES);
        self.read_in(session, |session| {
            let body = Frames::plain(wire::encode_ids(ids));
            let decode = |body: Bytes| wire::decode_fetched(&body);
            self.ask(RepositoryVerb::Fetch(*session, copy), body, limits, decode)
        })
    }

    fn read_blocks(&self, session: &SessionId, cursor: u64) -> Result<BlockPage, RepositoryError> {
        let limits = (Weight::Fetches, wire::MAX_FETCH_ANSWER_BYTES);
        self.read_in(session, |session| {
            let decode = |body: Bytes| wire::decode_block_page(&body);
            self.ask(RepositoryVerb::ReadBlocks(*session, cursor), Frames::new(), limits, decode)
        })
    }

    fn prove_blocks(
        &self,
        session: &SessionId,
        probes: &[BlockProbe],
    ) -> Result<Vec<Option<Bytes>>, RepositoryError> {
        let limits = (Weight::Light, wire::MAX_PROOFS_ANSWER_BYTES);
        let body = Frames::plain(wire::encode_probes(probes));
        let decode = |body: Bytes| wire::decode_proofs(&body, probes.len());
        self.ask(RepositoryVerb::ProveBlocks(*session), body, limits, decode)
    }

    fn scrub(
        &self,
        progress: &mut dyn FnMut(ScrubProgress),
    ) -> Result<ScrubReport, RepositoryError> {
        let route = self.route(RepositoryVerb::Scrub);
        let progress = std::cell::RefCell::new(progress);
        let fresh = || Watching { gathering: ScrubGathering::default(), progress: &progress };
        let watched = self.caller.ask_into(&route, &Frames::new(), Weight::Light, fresh);
        let watched = watched.map_err(|error| self.with_own_place(error))?;
        match watched.gathering.finish() {
            Some(Ok(report)) => Ok(report),
            Some(Err(wire::WireError::Repository(error))) => Err(self.with_own_place(error)),
            Some(Err(_)) | None => {
                Err(RepositoryError::Refused { reason: "the scrub was ended by the server".into() })
            }
        }
    }

    fn usage(&self) -> Result<Usage, RepositoryError> {
        let decode = |body: Bytes| wire::decode_usage(&body);
        self.ask(RepositoryVerb::Usage, Frames::new(), LIGHT, decode)
    }

    fn is_asking(&self) -> bool {
        self.caller.is_asking()
    }

    fn traffic(&self) -> Traffic {
        self.caller.traffic()
    }
}

impl ServedRepository for HttpRepository {
    fn ask_forget(
        &self,
        token: &AdminToken,
        snapshots: &[RecordHash],
    ) -> Result<WaitingDeletion, RepositoryError> {
        check_count(snapshots.len())?;
        let body = Frames::plain(wire::encode_forget(token, snapshots));
        let limits = (Weight::Light, wire::MAX_DELETIONS_ANSWER_BYTES);
        let decode = |body: Bytes| wire::decode_deletion(&body);
        self.ask(RepositoryVerb::Forget, body, limits, decode)
    }

    fn ask_prune(&self, token: &AdminToken, dry_run: bool) -> Result<AskedPrune, RepositoryError> {
        let body = Frames::plain(wire::encode_forget(token, &[]));
        let limits = (Weight::Light, wire::MAX_PRUNED_ANSWER_BYTES);
        let decode = |body: Bytes| wire::decode_pruned(&body);
        self.ask(RepositoryVerb::Prune(dry_run), body, limits, decode)
    }

    fn announced(&self) -> Result<Announced, RepositoryError> {
        let limits = (Weight::Light, wire::MAX_DELETIONS_ANSWER_BYTES);
        let decode = |body: Bytes| wire::decode_announced(&body);
        match self.ask(RepositoryVerb::Deletions, Frames::new(), limits, decode) {
            // An older server announces nothing.
            Err(RepositoryError::Refused { reason }) if reason == UNKNOWN_REQUEST => {
                Ok(Announced::default())
            }
            announced => announced,
        }
    }

    fn report_run(&self, report: &RunReport) -> Result<(), RepositoryError> {
        let body = Frames::plain(wire::encode_run_report(report));
        match self.ask(RepositoryVerb::ReportRun, body, LIGHT, |_| Ok(())) {
            // An older server keeps nothing of it.
            Err(RepositoryError::Refused { reason }) if reason == UNKNOWN_REQUEST => Ok(()),
            reported => reported,
        }
    }

    fn compacting<'a>(&'a self, token: &'a AdminToken) -> Box<dyn Compacting + 'a> {
        Box::new(WithToken { server: self, token })
    }
}

/// A repository on a server, for whoever has an administrator's token for it.
struct WithToken<'a> {
    server: &'a HttpRepository,
    token: &'a AdminToken,
}

impl Compacting for WithToken<'_> {
    fn sparse_blocks(&self, from: u64) -> Result<Vec<SparseBlock>, RepositoryError> {
        let body = Frames::plain(wire::encode_supersede(self.token, &[]));
        let limits = (Weight::Light, wire::MAX_SPARSE_ANSWER_BYTES);
        let decode = |body: Bytes| wire::decode_sparse(&body);
        self.server.ask(RepositoryVerb::SparseBlocks(from), body, limits, decode)
    }

    fn supersede(
        &self,
        session: &SessionId,
        blocks: &[u64],
    ) -> Result<Superseding, RepositoryError> {
        check_count(blocks.len())?;
        let body = Frames::plain(wire::encode_supersede(self.token, blocks));
        let limits = (Weight::Light, wire::MAX_DELETIONS_ANSWER_BYTES);
        let decode = |body: Bytes| wire::decode_superseding(&body);
        self.server.ask(RepositoryVerb::Supersede(*session), body, limits, decode)
    }
}

fn check_count(count: usize) -> Result<(), RepositoryError> {
    if count <= MAX_IDS {
        return Ok(());
    }
    let reason = format!("{count} ids in one question; the limit is {MAX_IDS}");
    Err(RepositoryError::Refused { reason })
}

/// The question for a block that was put; none for what is no block.
fn first_slice(block: &Bytes) -> Option<BlockProbe> {
    let block = Block::decode(block.clone()).ok()?;
    let object = block.table().entries.first()?.id;
    Some(BlockProbe { object, block: block.name(), slice: 0 })
}

/// Tells of a scrub's progress while its answer arrives.
struct Watching<'a, 'b> {
    gathering: ScrubGathering,
    progress: &'a std::cell::RefCell<&'b mut dyn FnMut(ScrubProgress)>,
}

impl Sink for Watching<'_, '_> {
    fn take(&mut self, piece: &[u8]) -> Result<(), String> {
        let mut progress = self.progress.borrow_mut();
        self.gathering.push(piece, &mut **progress).map_err(|error| error.to_string())
    }
}
