//! Requests of a machine to its repository on a real server, over TLS: whatever they carry, each is
//! answered, unless it is cut, and never with a failure of the server's own.

#![no_main]

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use holdall_format::{BlockName, RecordKind, SessionId};
use holdall_fuzz::id;
use holdall_protocol::contract::Forge;
use holdall_protocol::wire::{
    Frames, OWN_REPOSITORY, RepositoryVerb, Route, encode_forget, encode_ids,
    encode_new_repository, encode_probes, encode_session_request, encode_supersede,
};
use holdall_protocol::{
    AdminToken, BlockProbe, ClientOptions, HttpRepository, MachineIdentity, RecordQuery,
    Repository, SessionPurpose, pair, tls,
};
use holdall_repository::Clock;
use holdall_server::{InviteRequest, Limits, Server, ServerOptions, admin};
use libfuzzer_sys::fuzz_target;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use tempfile::TempDir;

const SEED: [u8; 32] = [5; 32];
const NOW_NS: i64 = 1_900_000_000_000_000_000;
const LAPSED_NS: i64 = 8 * 24 * 3600 * 1_000_000_000;

/// A clock that moves on when a machine has as many sessions as it may have in a week.
struct Moving(AtomicI64);

impl Clock for Moving {
    fn now_ns(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A server, and a machine that has a repository there with a node and a chunk.
struct World {
    server: Server,
    repository: HttpRepository,
    /// Its name at the server.
    name: String,
    forge: Forge,
    tls: Arc<ClientConfig>,
    clock: Arc<Moving>,
    /// Goes when the server has ended.
    folder: TempDir,
}

/// What a request is made with.
struct Rights {
    session: SessionId,
    token: AdminToken,
}

thread_local! {
    static WORLD: (World, RefCell<Option<Rights>>) = (World::new(), RefCell::default());
}

impl World {
    fn new() -> Self {
        // A server makes each put durable, which takes no time here.
        let folder = holdall_testkit::memory().expect("a folder");
        let clock = Arc::new(Moving(AtomicI64::new(NOW_NS)));
        let server = Server::start(ServerOptions {
            data_dir: folder.path().to_owned(),
            listen: "127.0.0.1:0".parse().expect("an address"),
            clock: clock.clone(),
            limits: Limits::default(),
            log: Arc::new(|_| ()),
        });
        let server = server.expect("a server");
        let invited = admin::invite(folder.path(), &InviteRequest::default(), clock.clone());
        let invite = invited.expect("an invite").invite;
        let identity = MachineIdentity::from_seed(&SEED).expect("a key");
        let paired = pair(&invite, "desk", &identity, ClientOptions::default());
        let paired = paired.expect("it is let in");
        let (name, forge) = (paired.repository, Forge::new(1, paired.machine, &SEED));
        let connected =
            HttpRepository::connect(paired.address, &identity, ClientOptions::default());
        let repository = connected.expect("it listens");
        repository.create(&forge.new_repository()).expect("it is made");
        let tls = Arc::new(tls::client_config(&SEED, server.identity()).expect("a configuration"));
        let world = Self { server, repository, name, forge, tls, clock, folder };
        let Rights { session, .. } = world.rights();
        world.repository.put_blocks(&session, &world.blocks()).expect("they are stored");
        let record = world.forge.record(RecordKind::Snapshot, id(1), None);
        world.repository.commit(&session, &record).expect("it is committed");
        world
    }

    fn rights(&self) -> Rights {
        let purpose = SessionPurpose::Backup { parents: Vec::new() };
        let opened = self.repository.open_session(&purpose).or_else(|_| {
            self.clock.0.fetch_add(LAPSED_NS, Ordering::SeqCst);
            self.repository.open_session(&purpose)
        });
        let session = opened.expect("a session").session;
        let token = admin::token(self.folder.path(), &self.name, self.clock.clone());
        Rights { session, token: token.expect("a token").0 }
    }

    fn holds(&self, rights: &Rights) -> bool {
        self.repository.missing(&rights.session, &[]).is_ok()
    }

    fn blocks(&self) -> [Bytes; 2] {
        [self.forge.chunks(&[id(2)]), self.forge.nodes(&[(id(1), &[id(2)])])]
    }

    /// A kind of request, and the body that an honest client sends with it.
    fn request(&self, kind: u8, rights: &Rights) -> (RepositoryVerb, Bytes) {
        let (Self { forge, .. }, Rights { session, token }) = (self, rights);
        let session = *session;
        let [chunk, _] = &self.blocks();
        let name = BlockName::from_bytes(*blake3::hash(chunk).as_bytes());
        let probe = BlockProbe { object: id(2), block: name, slice: 0 };
        let ids = || encode_ids(&[id(1), id(2)]);
        let query = RecordQuery { limit: 9, ..RecordQuery::default() };
        let purpose = SessionPurpose::Backup { parents: Vec::new() };
        let requests = [
            (RepositoryVerb::Create, encode_new_repository(&forge.new_repository()).concat()),
            (RepositoryVerb::Describe, Bytes::new()),
            (RepositoryVerb::PutWrappings, forge.wrappings(2)),
            (RepositoryVerb::OpenSession, encode_session_request(&purpose)),
            (RepositoryVerb::Missing(session), ids()),
            (RepositoryVerb::PutBlocks(session), Frames::framed(&self.blocks()).concat()),
            (RepositoryVerb::Commit(session), forge.record(RecordKind::Checkpoint, id(1), None)),
            (RepositoryVerb::CloseSession(session), Bytes::new()),
            (RepositoryVerb::Records(query), Bytes::new()),
            (RepositoryVerb::Fetch(session, 0), ids()),
            (RepositoryVerb::ReadBlocks(session, 0), Bytes::new()),
            (RepositoryVerb::ProveBlocks(session), encode_probes(&[probe])),
            (RepositoryVerb::Scrub, Bytes::new()),
            (RepositoryVerb::Usage, Bytes::new()),
            (RepositoryVerb::Deletions, Bytes::new()),
            (RepositoryVerb::Forget, encode_forget(token, &[])),
            (RepositoryVerb::Prune(true), encode_forget(token, &[])),
            (RepositoryVerb::SparseBlocks(0), encode_supersede(token, &[])),
            (RepositoryVerb::Supersede(session), encode_supersede(token, &[1, 2])),
        ];
        let at = usize::from(kind) % requests.len();
        requests.into_iter().nth(at).expect("one of them")
    }

    /// Asks, and gives the answer; one that is cut announces a byte that never comes.
    fn ask(&self, verb: RepositoryVerb, body: &[u8], is_cut: bool) -> String {
        let route = Route::Repository { name: OWN_REPOSITORY.into(), verb };
        let tls = ClientConnection::new(Arc::clone(&self.tls), tls::server_name());
        let tcp = TcpStream::connect(self.server.local_addr()).expect("it listens");
        tcp.set_nodelay(true).expect("it is open");
        let mut stream = StreamOwned::new(tls.expect("a configuration"), tcp);
        let (method, path, length) =
            (route.method().name(), route.path(), body.len() + usize::from(is_cut));
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        // A server that has seen enough answers before all of it was sent.
        let _ = stream.write_all(&[head.as_bytes(), body].concat());
        let _ = stream.flush();
        if is_cut {
            let _ = stream.sock.shutdown(Shutdown::Write);
        }
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

/// A good body of which bytes are others, or is cut: of each four a place (u16), a byte, and whether it ends
/// there.
fn edited(good: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut body = good.to_vec();
    let (edits, _) = edits.as_chunks::<4>();
    for [low, high, byte, ends] in edits {
        let at = usize::from(u16::from_le_bytes([*low, *high])) % (body.len() + 1);
        match body.get_mut(at) {
            Some(place) if *ends < 0xF0 => *place = *byte,
            _ => body.truncate(at),
        }
    }
    body
}

fuzz_target!(|data: &[u8]| {
    let Some(([kind, how], rest)) = data.split_first_chunk() else { return };
    WORLD.with(|(world, rights)| {
        let mut rights = rights.borrow_mut();
        // A request may end the session.
        let held = rights.take().filter(|rights| world.holds(rights));
        let rights = rights.insert(held.unwrap_or_else(|| world.rights()));
        let (verb, good) = world.request(*kind, rights);
        let (is_edited, is_cut) = (how & 1 == 1, how & 6 == 6);
        let body = if is_edited { edited(&good, rest) } else { rest.to_vec() };
        let answer = world.ask(verb.clone(), &body, is_cut);
        let is_answered = answer.starts_with("HTTP/1.1 2") || answer.starts_with("HTTP/1.1 4");
        let is_left = is_cut && answer.is_empty();
        let is_fine = (is_answered || is_left) && !answer.contains("\"failed\"");
        assert!(is_fine, "{verb:?}: {answer}");
    });
});
