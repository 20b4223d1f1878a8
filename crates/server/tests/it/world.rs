//! A server with its data folder, and machines that are paired with it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdall_format::MachineId;
use holdall_protocol::contract::{Forge, TestKey};
use holdall_protocol::{
    ClientOptions, HttpRepository, Invite, MachineIdentity, NewRepository, Paired, Repository,
    RepositoryError, ServerAddress, SessionPurpose, pair,
};
use holdall_server::admin::{self, AdminCommand};
use holdall_server::{InviteRequest, Limits, LogSink, Server, ServerError, ServerOptions};
use holdall_testkit::FakeClock;
use tempfile::TempDir;

pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) clock: Arc<FakeClock>,
    pub(crate) log: Arc<Mutex<Vec<String>>>,
    server: Option<Server>,
    address: SocketAddr,
}

/// What is refused is told at once.
fn no_delay() -> Limits {
    Limits { refused_pairing_delay: Duration::ZERO, ..Limits::default() }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_limits(no_delay())
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(FakeClock::at(1_700_000_000));
        let address = "127.0.0.1:0".parse().unwrap();
        let mut world = Self { folder, clock, log: Arc::default(), server: None, address };
        world.start_with(limits);
        world
    }

    pub(crate) fn options(&self, limits: Limits) -> ServerOptions {
        let lines = Arc::clone(&self.log);
        let log: LogSink = Arc::new(move |line| lines.lock().unwrap().push(line.to_owned()));
        ServerOptions {
            detail: 0,
            web_names: Vec::new(),
            web_certificate: None,
            web_acme: None,
            data_dir: self.folder.path().to_owned(),
            listen: self.address,
            clock: self.clock.clone(),
            limits,
            log,
        }
    }

    pub(crate) fn start(&mut self) {
        self.start_with(no_delay());
    }

    pub(crate) fn start_with(&mut self, limits: Limits) {
        let server = Server::start(self.options(limits)).unwrap();
        self.address = server.local_addr();
        self.server = Some(server);
    }

    pub(crate) fn stop(&mut self) {
        self.server.take().unwrap().shutdown();
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn server_address(&self) -> ServerAddress {
        let hosts = vec![self.address.to_string()];
        ServerAddress { hosts, identity: self.server().identity(), repository: None }
    }

    pub(crate) fn invite(&self) -> Invite {
        self.invite_as(&InviteRequest::default())
    }

    pub(crate) fn invite_as(&self, request: &InviteRequest) -> Invite {
        self.admin(&admin::Invite { request: request.clone() }).unwrap().invite
    }

    /// Has a command of an administrator carried out.
    pub(crate) fn admin<C: AdminCommand>(&self, command: &C) -> Result<C::Reply, ServerError> {
        admin::ask(self.folder.path(), command, self.clock.clone())
    }

    /// A machine of that number, paired and with its repository made, which has a recovery
    /// identity of its own.
    pub(crate) fn machine(&self, number: u8) -> Machine {
        let machine = self.paired(number);
        let (forge, kit) = (machine.forge(), TestKey::from_seed(&recovery_seed(number)));
        let wrappings = forge.wrappings_for_kits(1, &[kit]);
        let new = NewRepository { wrappings, ..forge.new_repository() };
        machine.connect().create(&new).unwrap();
        machine
    }

    /// A machine of that number, paired.
    pub(crate) fn paired(&self, number: u8) -> Machine {
        let seed = [number; 32];
        let paired =
            pair(&self.invite(), &format!("machine {number}"), &identity(&seed), quick()).unwrap();
        Machine { seed, number, paired }
    }
}

/// The seed of a machine's recovery identity.
pub(crate) fn recovery_seed(number: u8) -> [u8; 32] {
    [number + 100; 32]
}

pub(crate) fn identity(seed: &[u8; 32]) -> MachineIdentity {
    MachineIdentity::from_seed(seed).unwrap()
}

/// Options of a client that does not try again.
pub(crate) fn quick() -> ClientOptions {
    ClientOptions { retry_for: Duration::ZERO, ..ClientOptions::default() }
}

pub(crate) struct Machine {
    pub(crate) seed: [u8; 32],
    pub(crate) paired: Paired,
    number: u8,
}

impl Machine {
    pub(crate) fn id(&self) -> MachineId {
        self.paired.machine
    }

    pub(crate) fn forge(&self) -> Forge {
        Forge::new(self.number, self.id(), &self.seed)
    }

    pub(crate) fn connect(&self) -> HttpRepository {
        self.connect_to(self.paired.address.clone(), quick()).unwrap()
    }

    pub(crate) fn connect_to(
        &self,
        address: ServerAddress,
        options: ClientOptions,
    ) -> Result<HttpRepository, RepositoryError> {
        HttpRepository::connect(address, &identity(&self.seed), options)
    }
}

/// A new session to back up.
pub(crate) fn session(repository: &dyn Repository) -> holdall_format::SessionId {
    let purpose = SessionPurpose::Backup { parents: vec![] };
    repository.open_session(&purpose).unwrap().session
}
