//! A real server, for targets whose input is what is asked of it.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use holdall_format::RecordKind;
use holdall_protocol::contract::Forge;
use holdall_protocol::{
    ClientOptions, HttpRepository, MachineIdentity, Repository, SessionPurpose, pair,
};
use holdall_server::{InviteRequest, Limits, Server, ServerOptions, admin};
use holdall_testkit::FakeClock;
use tempfile::TempDir;

use super::id;

const NOW_SECS: i64 = 1_900_000_000;
const LAPSED_NS: i64 = 8 * 24 * 3600 * 1_000_000_000;

/// A server, and a machine that has a repository there with a node and a chunk.
pub struct Served {
    /// It listens on loopback.
    pub server: Server,
    /// As the machine sees it.
    pub repository: HttpRepository,
    /// Its name at the server.
    pub name: String,
    /// Makes what the machine stores.
    pub forge: Forge,
    /// The server's.
    /// Moves on when there are as many sessions or invites as there may be in a week.
    pub clock: Arc<FakeClock>,
    /// The server's data; goes when the server has ended.
    pub folder: TempDir,
}

impl Served {
    /// What the machine's key is made of.
    pub const SEED: [u8; 32] = [5; 32];

    /// Starts it, and has the machine back up.
    pub fn start() -> Self {
        // A server makes each put durable, which takes no time here.
        let folder = holdall_testkit::memory().expect("a folder");
        let clock = Arc::new(FakeClock::at(NOW_SECS));
        let server = Server::start(ServerOptions {
            detail: 0,
            web_names: Vec::new(),
            web_certificate: None,
            web_acme: None,
            data_dir: folder.path().to_owned(),
            listen: "127.0.0.1:0".parse().expect("an address"),
            clock: clock.clone(),
            limits: Limits::default(),
            log: Arc::new(|_| ()),
        });
        let server = server.expect("a server");
        let invite = admin::Invite { request: InviteRequest::default() };
        let invited = admin::ask(folder.path(), &invite, clock.clone());
        let invite = invited.expect("an invite").invite;
        let identity = MachineIdentity::from_seed(&Self::SEED).expect("a key");
        let paired = pair(&invite, "desk", &identity, ClientOptions::default());
        let paired = paired.expect("it is let in");
        let (name, forge) = (paired.repository, Forge::new(1, paired.machine, &Self::SEED));
        let connected =
            HttpRepository::connect(paired.address, &identity, ClientOptions::default());
        let repository = connected.expect("it listens");
        let served = Self { server, repository, name, forge, clock, folder };
        served.back_up();
        served
    }

    fn back_up(&self) {
        self.repository.create(&self.forge.new_repository()).expect("it is made");
        let purpose = SessionPurpose::Backup { parents: Vec::new() };
        let session = self.repository.open_session(&purpose).expect("a session").session;
        self.repository.put_blocks(&session, &self.blocks()).expect("they are stored");
        let record = self.forge.record(RecordKind::Snapshot, id(1), None);
        self.repository.commit(&session, &record).expect("it is committed");
    }

    /// A block with the chunk, and one with the node.
    pub fn blocks(&self) -> [Bytes; 2] {
        [self.forge.chunks(&[id(2)]), self.forge.nodes(&[(id(1), &[id(2)])])]
    }

    /// What is given now, or once there is room for it again.
    pub fn or_in_a_week<T, E: Debug>(&self, ask: impl Fn() -> Result<T, E>) -> T {
        let asked = ask().or_else(|_| {
            self.clock.advance_ns(LAPSED_NS);
            ask()
        });
        asked.expect("in a week at the latest")
    }
}
