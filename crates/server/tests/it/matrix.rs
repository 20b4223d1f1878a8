//! Who may ask what of which repository: every kind of key, every request and every object, spoken
//! by hand, against the tables of `docs/protocol.md`.

use std::collections::BTreeSet;

use bytes::Bytes;
use holdall_format::{ObjectId, RecordKind, SessionId};
use holdall_protocol::wire::{LabVerb, PairRequest, RepositoryVerb, Route, encode_ids};
use holdall_protocol::{
    HttpRepository, ListedRecord, RecordQuery, Repository, SessionPurpose, Usage,
};
use holdall_server::{InviteRequest, Right, admin};

use crate::raw;
use crate::world::{Machine, World, identity, quick, recovery_seed, session};

/// What an answer is, by its status and kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    NoSuchRoute,
    UnknownKey,
    NotAllowed,
    /// Carried out, or not possible for a reason that has nothing to do with rights.
    Served,
}

impl Answer {
    /// How such an answer looks; `served` is that of a request that may be made.
    fn shown(self, served: (u16, &'static str)) -> (u16, &'static str) {
        match self {
            Self::NoSuchRoute => (404, "no-such-route"),
            Self::UnknownKey => (401, "unknown-machine"),
            Self::NotAllowed => (403, "not-allowed"),
            Self::Served => served,
        }
    }
}

use Answer::{NoSuchRoute, NotAllowed, Served, UnknownKey};

/// The rights of `docs/protocol.md`. Columns: no certificate, unknown key, revoked key, machine with
/// the right to back up, machine with the right to read, recovery kit.
const WRITING: [Answer; 6] = [NoSuchRoute, UnknownKey, NotAllowed, Served, NotAllowed, NotAllowed];
const READING: [Answer; 6] = [NoSuchRoute, UnknownKey, NotAllowed, Served, Served, Served];
const WITH_TOKEN: [Answer; 6] = [NoSuchRoute, UnknownKey, NotAllowed, Served, Served, NotAllowed];
/// Whatever is asked of another's repository, or of one that does not exist.
const ELSEWHERE: [Answer; 6] =
    [NoSuchRoute, UnknownKey, NotAllowed, NotAllowed, NotAllowed, NotAllowed];

/// The rows of the table of requests in `docs/protocol.md`.
fn rows_of_the_document() -> BTreeSet<String> {
    let text = include_str!("../../../../docs/protocol.md");
    let requests = text.split("\n## ").find(|part| part.starts_with("Requests")).unwrap();
    let first_cell = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    requests.lines().filter_map(first_cell).collect()
}

/// A request with a body that is right for one repository.
struct Request {
    verb: RepositoryVerb,
    body: Vec<u8>,
    rights: [Answer; 6],
    /// What whoever may ask it is answered: the status and, for an error, its kind.
    served: (u16, &'static str),
}

const DONE: (u16, &str) = (200, "");

const RUN: &[u8] = br#"{"kind":"backup","started_ns":1,"milliseconds":2,"exit_code":0,"items":3,"bytes":4,"sent_bytes":5,
    "problems":0,"limited_by":"network"}"#;

/// Every request, as it would be made of a repository whose parts `forge` makes.
fn requests(machine: &Machine, session: SessionId) -> Vec<Request> {
    let forge = machine.forge();
    let of = |verb, body: &[u8], rights, served| {
        let body = body.to_vec();
        Request { verb, body, rights, served }
    };
    let (node, chunk) = (node(), chunk());
    let new = framed(&[&forge.config(), &forge.wrappings(1)]);
    let blocks = framed(&[&forge.chunks(&[chunk])]);
    let record = forge.record(RecordKind::Checkpoint, node, None);
    let query = RecordQuery { limit: 10, ..RecordQuery::default() };
    // Nobody's, since closing one that is unknown does no harm and is no error.
    let nobody_s = SessionId::from_bytes([0xee; 16]);
    let to_back_up = br#"{"purpose":"backup","parents":[]}"#;
    let exists = (409, "already-exists");
    let no_receipt = (400, "refused");
    // A token that no administrator made; what a good one does is tested where it is used.
    let no_token = (403, "not-allowed");
    vec![
        of(RepositoryVerb::Create, &new, WRITING, exists),
        of(RepositoryVerb::Describe, &[], READING, DONE),
        of(RepositoryVerb::PutWrappings, &forge.wrappings(2), WRITING, DONE),
        of(RepositoryVerb::PutBack, &new, WRITING, DONE),
        of(RepositoryVerb::PutBackRecord, &record, WRITING, no_receipt),
        of(RepositoryVerb::OpenSession, to_back_up, WRITING, DONE),
        of(RepositoryVerb::OpenSession, br#"{"purpose":"read"}"#, READING, DONE),
        of(RepositoryVerb::Missing(session), &encode_ids(&[chunk]), READING, DONE),
        of(RepositoryVerb::PutBlocks(session), &blocks, WRITING, DONE),
        of(RepositoryVerb::Commit(session), &record, WRITING, DONE),
        of(RepositoryVerb::CloseSession(nobody_s), &[], READING, DONE),
        of(RepositoryVerb::Records(query), &[], READING, DONE),
        of(RepositoryVerb::Fetch(session, 0), &encode_ids(&[chunk]), READING, DONE),
        of(RepositoryVerb::ReadBlocks(session, 0), &[], READING, DONE),
        of(RepositoryVerb::ProveBlocks(session), &[7; 68], READING, DONE),
        of(RepositoryVerb::Scrub, &[], READING, DONE),
        of(RepositoryVerb::Usage, &[], READING, DONE),
        of(RepositoryVerb::Deletions, &[], READING, DONE),
        of(RepositoryVerb::ReportRun, RUN, WRITING, DONE),
        of(RepositoryVerb::Forget, &[7; 64], WITH_TOKEN, no_token),
        of(RepositoryVerb::Prune(false), &[7; 32], WITH_TOKEN, no_token),
        of(RepositoryVerb::SparseBlocks(0), &[7; 32], WITH_TOKEN, no_token),
        of(RepositoryVerb::Supersede(session), &[7; 40], WITH_TOKEN, no_token),
    ]
}

fn node() -> ObjectId {
    ObjectId::from_bytes([1; 32])
}

fn chunk() -> ObjectId {
    ObjectId::from_bytes([2; 32])
}

/// Byte strings one after another, each behind its length.
fn framed(frames: &[&[u8]]) -> Vec<u8> {
    let one = |frame: &&[u8]| [&u32::try_from(frame.len()).unwrap().to_le_bytes(), *frame].concat();
    frames.iter().flat_map(one).collect()
}

/// Somebody who asks.
struct Actor {
    name: &'static str,
    /// The column of the tables.
    column: usize,
    /// What the key is made of; none for no certificate.
    seed: Option<[u8; 32]>,
    /// Whose repository it asks for where it asks for its own.
    machine: Machine,
    session: SessionId,
}

impl Actor {
    /// Asks by hand, and returns the status, the kind of an error, and the whole answer.
    fn ask(&self, world: &World, route: &Route, body: &[u8]) -> (u16, String, String) {
        let mut raw = match &self.seed {
            Some(seed) => raw::machine(world, seed),
            None => raw::browser(world, &[]).0,
        };
        let (method, path, length) = (route.method().name(), route.path(), body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        let answer = raw::exchange(&mut raw, &[head.as_bytes(), body].concat()).unwrap();
        let status = answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or_default();
        let kind = answer.split_once("\"error\":\"").and_then(|(_, rest)| rest.split_once('"'));
        let kind = kind.filter(|_| status != 200).map(|(kind, _)| kind.to_owned());
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
        (status, kind.unwrap_or_default(), body.unwrap_or_default())
    }

    fn ask_of(&self, world: &World, name: &str, request: &Request) -> (u16, String, String) {
        let (name, verb) = (name.to_owned(), request.verb.clone());
        self.ask(world, &Route::Repository { name, verb }, &request.body)
    }
}

/// Machines with repositories that hold one snapshot's worth of blocks, and all kinds of keys.
struct Stage {
    world: World,
    actors: Vec<Actor>,
    /// Whose repository nobody else may even ask for.
    victim: Machine,
    victim_session: SessionId,
}

/// A machine whose repository holds a node and a chunk, and its session.
fn filled(world: &World, number: u8) -> (Machine, SessionId) {
    let machine = world.machine(number);
    let (forge, repository) = (machine.forge(), machine.connect());
    let session = session(&repository);
    let blocks = [forge.chunks(&[chunk()]), forge.nodes(&[(node(), &[chunk()])])];
    repository.put_blocks(&session, &blocks).unwrap();
    (machine, session)
}

impl Stage {
    fn new() -> Self {
        let world = World::new();
        let (victim, victim_session) = filled(&world, 9);
        let actor =
            |name, column, seed, (machine, session)| Actor { name, column, seed, machine, session };
        let machine = |number: u8| filled(&world, number);
        let (reading, kit_s) = (machine(2), machine(5));
        let kit = HttpRepository::connect(
            kit_s.0.paired.address.clone(),
            &identity(&recovery_seed(5)),
            quick(),
        );
        let kit_session = kit.unwrap().open_session(&SessionPurpose::Read).unwrap().session;
        let actors = vec![
            actor("no certificate", 0, None, machine(6)),
            actor("unknown key", 1, Some([77; 32]), machine(7)),
            actor("revoked key", 2, Some([4; 32]), machine(4)),
            actor("right to back up", 3, Some([1; 32]), machine(1)),
            actor("right to read", 4, Some([2; 32]), reading),
            actor("recovery kit", 5, Some(recovery_seed(5)), (kit_s.0, kit_session)),
        ];
        world.admin(&admin::Revoke { machine: "machine 4".into() }).unwrap();
        let (machine, right) = ("machine 2".into(), Some(Right::Read));
        world.admin(&admin::Rights { machine, right }).unwrap();
        Self { world, actors, victim, victim_session }
    }

    fn actor(&self, name: &str) -> &Actor {
        self.actors.iter().find(|actor| actor.name == name).unwrap()
    }
}

/// What a repository holds, and what opens it.
fn holds(machine: &Machine) -> (Usage, Vec<ListedRecord>, Bytes) {
    let repository = machine.connect();
    let records =
        repository.records(&RecordQuery { limit: 100, ..RecordQuery::default() }).unwrap();
    (repository.usage().unwrap().without_room(), records, repository.describe().unwrap().wrappings)
}

#[test]
fn every_row_of_the_document_is_asked_and_every_request_is_in_the_document() {
    let world = World::new();
    let asked = requests(&world.machine(1), SessionId::from_bytes([1; 16]));
    let asked: BTreeSet<_> = asked.iter().map(|request| request.verb.verb().request()).collect();
    assert_eq!(asked, rows_of_the_document());
}

#[test]
fn every_role_may_ask_of_every_repository_what_the_tables_say_and_nothing_else() {
    let stage = Stage::new();
    let untouched = ["right to read", "recovery kit"].map(|name| &stage.actor(name).machine);
    let before = (holds(&stage.victim), untouched.map(holds));
    for actor in &stage.actors {
        let own = actor.machine.paired.repository.clone();
        for request in requests(&actor.machine, actor.session) {
            let right = request.rights[actor.column];
            for name in [&own[..], "~"] {
                let (status, kind, _) = actor.ask_of(&stage.world, name, &request);
                let expected = right.shown(request.served);
                assert_eq!(
                    (status, &kind[..]),
                    expected,
                    "{} {:?} {name}",
                    actor.name,
                    request.verb
                );
            }
        }
        let elsewhere = ELSEWHERE[actor.column].shown(DONE);
        for request in requests(&stage.victim, stage.victim_session) {
            let there = actor.ask_of(&stage.world, &stage.victim.paired.repository, &request);
            let nowhere = actor.ask_of(&stage.world, "nothing", &request);
            assert_eq!((there.0, &there.1[..]), elsewhere, "{} {:?}", actor.name, request.verb);
            assert_eq!(there, nowhere, "{}: whether it exists is told", actor.name);
        }
    }
    assert_eq!((holds(&stage.victim), untouched.map(holds)), before, "something was written");
    // Nor was the victim's session closed.
    let block = stage.victim.forge().chunks(&[ObjectId::from_bytes([3; 32])]);
    stage.victim.connect().put_blocks(&stage.victim_session, &[block]).unwrap();
}

#[test]
fn a_session_of_another_machine_is_no_session() {
    let stage = Stage::new();
    let of_kit = &stage.actor("recovery kit").machine;
    let in_use = session(&of_kit.connect());
    let others = [
        // Another repository's; and of the same repository, that of the machine whose kit it is.
        ("right to back up", stage.victim_session),
        ("right to read", stage.victim_session),
        ("recovery kit", in_use),
    ];
    for (name, foreign) in others {
        let actor = stage.actor(name);
        let may_ask = |request: &Request| request.rights[actor.column] == Served;
        for request in requests(&actor.machine, foreign).iter().filter(|one| may_ask(one)) {
            // What ends a session asks for none: it may have ended before.
            let ends_it = matches!(
                request.verb,
                RepositoryVerb::CloseSession(_) | RepositoryVerb::Supersede(_)
            );
            let needs_one = request.verb.verb().path.contains("/sessions/ID/") && !ends_it;
            let expected = if needs_one { (404, "no-session") } else { request.served };
            let (status, kind, _) = actor.ask_of(&stage.world, "~", request);
            assert_eq!((status, &kind[..]), expected, "{name} {:?}", request.verb);
        }
        let close = RepositoryVerb::CloseSession(foreign);
        let close = Request { verb: close, body: vec![], rights: READING, served: DONE };
        assert_eq!(actor.ask_of(&stage.world, "~", &close).0, 200);
    }
    for (machine, session) in [(&stage.victim, stage.victim_session), (of_kit, in_use)] {
        let block = machine.forge().chunks(&[ObjectId::from_bytes([3; 32])]);
        machine.connect().put_blocks(&session, &[block]).unwrap();
    }
}

#[test]
fn what_is_of_another_repository_is_neither_there_nor_taken() {
    let stage = Stage::new();
    let actor = stage.actor("right to back up");
    let before = holds(&actor.machine);
    let secret = ObjectId::from_bytes([3; 32]);
    let victim = stage.victim.forge();
    stage.victim.connect().put_blocks(&stage.victim_session, &[victim.chunks(&[secret])]).unwrap();

    let session = actor.session;
    let ids = encode_ids(&[secret]);
    let block = framed(&[&victim.chunks(&[chunk()])]);
    let record = victim.record(RecordKind::Checkpoint, node(), None);
    for (verb, body, expected) in [
        (RepositoryVerb::Fetch(session, 0), &ids[..], (404, "missing-objects")),
        (RepositoryVerb::PutBlocks(session), &block[..], (400, "refused")),
        (RepositoryVerb::Commit(session), &record[..], (400, "refused")),
    ] {
        let request = Request { verb, body: body.to_vec(), rights: WRITING, served: DONE };
        let (status, kind, _) = actor.ask_of(&stage.world, "~", &request);
        assert_eq!((status, &kind[..]), expected, "{:?}", request.verb);
    }
    let verb = RepositoryVerb::Missing(session);
    let request = Request { verb, body: ids.to_vec(), rights: READING, served: DONE };
    let (status, _, body) = actor.ask_of(&stage.world, "~", &request);
    assert_eq!((status, &body[..]), (200, "\u{1}"), "it is said to be there");
    assert_eq!(holds(&actor.machine), before);
}

#[test]
fn machines_measure_the_path_one_at_a_time_and_nobody_else_does() {
    let stage = Stage::new();
    let world = &stage.world;
    let body = [7; 1000];
    let taken = concat!("{\"bytes\":1000,\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}");
    let asked: [(LabVerb, &[u8], &str); 4] = [
        (LabVerb::Take, &body, taken),
        (LabVerb::Write, &body, ""),
        (LabVerb::Give(5), &[], "ZZZZZ"),
        (LabVerb::Read(5), &[], ""),
    ];
    for (name, answer) in [
        ("no certificate", NoSuchRoute),
        ("unknown key", UnknownKey),
        ("revoked key", NotAllowed),
        ("recovery kit", NotAllowed),
        ("right to read", Served),
    ] {
        for (verb, body, said) in asked {
            // Who may only read has nothing written for it.
            let is_written = matches!(verb, LabVerb::Write | LabVerb::Read(_));
            let is_refused = answer == Served && is_written;
            let answer = if is_refused { NotAllowed } else { answer };
            let (status, kind, text) = stage.actor(name).ask(world, &Route::Lab(verb), body);
            assert_eq!((status, &kind[..]), answer.shown(DONE), "{name}: {text}");
            assert!(answer != Served || text.starts_with(said), "{name}: {text}");
        }
    }
    let may = stage.actor("right to back up");
    for (verb, body, _) in asked {
        let asked = may.ask(world, &Route::Lab(verb), body);
        assert_eq!((asked.0, &asked.1[..]), (429, "too-many-requests"), "two measure at once");
    }
}

#[test]
fn who_may_back_up_may_have_the_server_s_disk_measured() {
    let stage = Stage::new();
    let write = Route::Lab(LabVerb::Write);
    let (status, _, said) = stage.actor("right to back up").ask(&stage.world, &write, &[7; 1000]);
    assert!(status == 200 && said.starts_with("{\"bytes\":1000,\"queue_seconds\":"), "{said}");
    let read = Route::Lab(LabVerb::Read(5));
    let (status, kind, said) = stage.actor("right to back up").ask(&stage.world, &read, &[]);
    assert!(status == 200 && !said.is_empty(), "{kind}: {said}");
}

#[test]
fn pairing_is_for_unknown_keys_and_for_machines_that_come_back() {
    let stage = Stage::new();
    let world = &stage.world;
    let invite_for = |machine: &str| {
        let for_machine = Some(machine.to_owned());
        world.invite_as(&InviteRequest { for_machine, ..InviteRequest::default() })
    };
    // Columns: a plain invite, one for the victim, one for the actor's own machine.
    let table = [
        ("no certificate", [NoSuchRoute; 3]),
        ("revoked key", [NotAllowed, NotAllowed, Served]),
        ("right to back up", [Served, NotAllowed, Served]),
        ("right to read", [Served, NotAllowed, Served]),
        ("recovery kit", [NotAllowed; 3]),
    ];
    for (name, row) in table {
        let actor = stage.actor(name);
        let victim = &stage.victim.paired.name;
        let own = &actor.machine.paired.name;
        let invites = [world.invite(), invite_for(victim), invite_for(own)];
        for (invite, answer) in invites.iter().zip(row) {
            let body = PairRequest::new(&invite.secret, "").encode();
            let (status, kind, text) = actor.ask(world, &Route::Pair, &body);
            assert_eq!((status, &kind[..]), answer.shown(DONE), "{name}: {text}");
            if answer == Served {
                assert!(text.contains(&actor.machine.paired.repository), "{name}: {text}");
            }
        }
    }
    let (stranger, unused) = (stage.actor("unknown key"), world.invite());
    let ask = |secret: &[u8; 16]| {
        stranger.ask(world, &Route::Pair, &PairRequest::new(secret, "stranger").encode())
    };
    assert_eq!(ask(&[0; 16]).0, 403, "let in without an invite");
    assert_eq!(ask(&unused.secret).0, 200);
    assert_eq!(stage.victim.connect().describe().unwrap().machine, stage.victim.id());
}
