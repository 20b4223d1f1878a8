//! Requests of a machine to a real server, over TLS, to its repository, to be let in and to measure: whatever
//! they carry, each is answered, unless it is cut, and never with a failure of the server's own.

#![no_main]

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use bytes::Bytes;
use holdall_format::{BlockName, RecordKind, SessionId};
use holdall_fuzz::{Served, edited, id};
use holdall_protocol::wire::{
    ConfirmRequest, ExchangeRequest, Frames, LabVerb, OWN_REPOSITORY, PairRequest, RepositoryVerb,
    Route, encode_forget, encode_ids, encode_new_repository, encode_probes, encode_session_request,
    encode_supersede,
};
use holdall_protocol::{
    AdminToken, BlockProbe, FormerAccount, Invite, RecordQuery, Repository, SessionPurpose, tls,
};
use holdall_server::{InviteRequest, admin};
use libfuzzer_sys::fuzz_target;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

/// A server with a machine and its repository, and how to reach it.
struct World {
    served: Served,
    tls: Arc<ClientConfig>,
}

/// What a request is made with.
struct Rights {
    invite: Invite,
    session: SessionId,
    token: AdminToken,
}

thread_local! {
    static WORLD: (World, RefCell<Option<Rights>>) = (World::new(), RefCell::default());
}

impl World {
    fn new() -> Self {
        let served = Served::start();
        let tls = tls::client_config(&Served::SEED, served.server.identity());
        Self { served, tls: Arc::new(tls.expect("a configuration")) }
    }

    fn rights(&self) -> Rights {
        let Served { folder, clock, name, .. } = &self.served;
        let purpose = SessionPurpose::Backup { parents: Vec::new() };
        let request = InviteRequest::default();
        let asked = admin::Invite { request };
        let invite = || admin::ask(folder.path(), &asked, clock.clone());
        let invite = self.served.or_in_a_week(invite).invite;
        let session = self.served.or_in_a_week(|| self.served.repository.open_session(&purpose));
        let asked = admin::MakeToken { repository: name.clone() };
        let token = admin::ask(folder.path(), &asked, clock.clone());
        Rights { invite, session: session.session, token: token.expect("a token").token }
    }

    fn holds(&self, rights: &Rights) -> bool {
        self.served.repository.missing(&rights.session, &[]).is_ok()
    }

    /// A kind of request, and the body that an honest client sends with it.
    fn request(&self, kind: u8, rights: &Rights) -> (Route, Bytes) {
        let own = |(verb, body)| (Route::Repository { name: OWN_REPOSITORY.into(), verb }, body);
        let all = self.of_repository(rights).into_iter().map(own).chain(self.others(rights));
        let all: Vec<_> = all.collect();
        let at = usize::from(kind) % all.len();
        all.into_iter().nth(at).expect("one of them")
    }

    /// To be let in once more, and as one whose account was lost; and what measures, but where that needs room
    /// on a disk.
    fn others(&self, rights: &Rights) -> [(Route, Bytes); 6] {
        let pairing = || PairRequest::new(&rights.invite.secret, "desk");
        let machine = self.served.forge.machine;
        let former = FormerAccount { machine, repository: self.served.name.clone() };
        [
            (Route::Pair, pairing().encode()),
            (Route::Pair, pairing().again(&former).encode()),
            (Route::BeginCode, ExchangeRequest::new([0x41; 33]).encode()),
            (Route::ConfirmCode, ConfirmRequest::new([0; 32]).encode()),
            (Route::Lab(LabVerb::Take), Bytes::from_static(b"some bytes")),
            (Route::Lab(LabVerb::Give(1000)), Bytes::new()),
        ]
    }

    fn of_repository(&self, rights: &Rights) -> [(RepositoryVerb, Bytes); 19] {
        let (Served { forge, .. }, Rights { session, token, .. }) = (&self.served, rights);
        let session = *session;
        let blocks = self.served.blocks();
        let [chunk, _] = &blocks;
        let name = BlockName::from_bytes(*blake3::hash(chunk).as_bytes());
        let probe = BlockProbe { object: id(2), block: name, slice: 0 };
        let ids = || encode_ids(&[id(1), id(2)]);
        let query = RecordQuery { limit: 9, ..RecordQuery::default() };
        let purpose = SessionPurpose::Backup { parents: Vec::new() };
        [
            (RepositoryVerb::Create, encode_new_repository(&forge.new_repository()).concat()),
            (RepositoryVerb::Describe, Bytes::new()),
            (RepositoryVerb::PutWrappings, forge.wrappings(2)),
            (RepositoryVerb::OpenSession, encode_session_request(&purpose)),
            (RepositoryVerb::Missing(session), ids()),
            (RepositoryVerb::PutBlocks(session), Frames::framed(&blocks).concat()),
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
        ]
    }

    /// Asks, and gives the answer; one that is cut announces a byte that never comes.
    fn ask(&self, route: &Route, body: &[u8], is_cut: bool) -> String {
        let tls = ClientConnection::new(Arc::clone(&self.tls), tls::server_name());
        let tcp = TcpStream::connect(self.served.server.local_addr()).expect("it listens");
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

fuzz_target!(|data: &[u8]| {
    let Some(([kind, how], rest)) = data.split_first_chunk() else { return };
    WORLD.with(|(world, rights)| {
        let mut rights = rights.borrow_mut();
        // A request may end the session.
        let held = rights.take().filter(|rights| world.holds(rights));
        let rights = rights.insert(held.unwrap_or_else(|| world.rights()));
        let (route, good) = world.request(*kind, rights);
        let (is_edited, is_cut) = (how & 1 == 1, how & 6 == 6);
        let body = if is_edited { edited(&good, rest, how >> 3 & 3) } else { rest.to_vec() };
        let answer = world.ask(&route, &body, is_cut);
        let is_answered = answer.starts_with("HTTP/1.1 2") || answer.starts_with("HTTP/1.1 4");
        let is_left = is_cut && answer.is_empty();
        let is_fine = (is_answered || is_left) && !answer.contains("\"failed\"");
        assert!(is_fine, "{route:?}: {answer}");
    });
});
