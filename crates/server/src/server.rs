//! Starting and ending.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use holdall_format::{OneLine, PublicKey};
use holdall_sys::Clock;
use rustix::io::Errno;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::accounts::{Accounts, CertificateStatus};
use crate::addresses::host_name;
use crate::admin_listener::AdminSocket;
use crate::auth::acme::Acme;
use crate::auth::actor::Actor;
use crate::auth::identity::{ServerIdentity, TlsConfigs, web_config};
use crate::auth::own_certificate::{OwnCertificate, own_web_config};
use crate::bounds::failures::Whose;
use crate::bounds::limits::Limits;
use crate::bounds::source::Source;
use crate::bounds::stranger_slots::StrangerSlots;
use crate::data_folder::DataFolder;
use crate::http::{Serving, serve, watch_left};
use crate::state::{QUICK_WORKERS, SCRUBS, ServerState};
use crate::stores::Stores;
use crate::web::{self, Renewal, Web};
use crate::{LogSink, ServerError};

/// Threads that wait on sockets.
const WAITING_THREADS: usize = 2;
/// The runtime opens so many files, some of them where it panics if it cannot.
const FILES: usize = 8;
/// How soon after the start the rules for keeping are applied for the first time.
const FIRST_HOUSE: Duration = Duration::from_secs(600);
/// How long ending may take beyond what requests under way are given.
const ENDING: Duration = Duration::from_millis(500);

/// What a server needs to start.
pub struct ServerOptions {
    /// Where everything of it is kept; made if it is not there.
    pub data_dir: PathBuf,
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What it may be made to hold and wait for.
    pub limits: Limits,
    /// Gets one line for each event, from any thread.
    pub log: LogSink,
    /// Names besides this computer's own by which browsers may reach it.
    pub web_names: Vec<String>,
    /// A certificate for browsers; `None` for one that the server makes.
    pub web_certificate: Option<OwnCertificate>,
    /// A certificate for browsers that an authority is to give, in the place of both.
    pub web_acme: Option<Acme>,
    /// How much more the log tells: sessions from 1 on, and each request from 2 on.
    pub detail: u8,
}

/// A running server. Dropping it ends it, as [`Server::shutdown`] does.
pub struct Server {
    folder: Arc<DataFolder>,
    runtime: Option<Runtime>,
    accepting: Option<JoinHandle<()>>,
    ending: watch::Sender<bool>,
    local_addr: SocketAddr,
    identity: PublicKey,
    shutdown: Duration,
}

impl Server {
    /// Whether it was built with pages for browsers.
    pub const HAS_PAGES: bool = cfg!(feature = "web");

    /// Takes the data folder, listens and serves. When it returns, machines can connect.
    ///
    /// # Errors
    /// [`ServerError::DataFolderInUse`], [`ServerError::Listen`], and what is wrong with the folder.
    pub fn start(options: ServerOptions) -> Result<Self, ServerError> {
        let ServerOptions { data_dir, listen, clock, limits, log, web_names, detail, .. } = options;
        let log = in_lines(log);
        let folder = Arc::new(DataFolder::take(&data_dir)?);
        let identity = Arc::new(ServerIdentity::of(&folder)?);
        let names = options.web_acme.iter().flat_map(|acme| &acme.names);
        let web_names: Vec<_> = web_names.iter().chain(names).cloned().collect();
        let begin = |acme| Renewal::begin(&folder, acme, &identity.public());
        let renewal = options.web_acme.map(begin).transpose()?;
        let web = match (&renewal, options.web_certificate) {
            (Some(renewal), _) => renewal.web_config()?,
            (None, Some(files)) => own_web_config(files, Arc::clone(&log))?,
            (None, None) => web_config(&folder, &identity.public())?,
        };
        let challenge = renewal.as_ref().map(Renewal::challenge_config).transpose()?;
        let tls = TlsConfigs {
            machine: Arc::new(identity.machine_config()?),
            web: Arc::new(web),
            challenge: challenge.map(Arc::new),
        };
        let (listener, local_addr) =
            bind(listen).map_err(|source| ServerError::Listen { address: listen, source })?;
        let accounts = Arc::new(Accounts::open(&folder.database(), clock)?);
        // What comes from now on has its time by it.
        accounts.watch_clock()?;
        if renewal.is_none() {
            // What was wrong with a certificate that is not asked for any more concerns nobody.
            accounts.note_certificate(&CertificateStatus::default())?;
        }
        accounts.set_listen(&local_addr.to_string())?;
        let admin = AdminSocket::bind(folder.path())?;
        let public = identity.public();
        let of_stores = Arc::clone(&folder);
        let stores = Stores::new(of_stores, identity, Arc::clone(&accounts), Arc::clone(&log));
        stores.let_readers_in()?;
        // What a crash left.
        folder.clear_lab_scratch()?;
        let shutdown = limits.shutdown;
        let workers = limits.workers;
        let state = ServerState::new(accounts, stores, public, local_addr, limits, log, detail);
        let (ending, watching) = watch::channel(false);
        let state = Arc::new(state);
        let serving = Serving {
            places: Arc::new(Semaphore::new(state.limits.connections)),
            strangers: Arc::new(StrangerSlots::new(state.limits.strangers)),
            web: Arc::new(Web::new(&state, web_names)?),
            state,
            tls: Arc::new(tls),
            ending: watching,
        };
        let runtime = runtime(workers, &folder, listen)?;
        let accepting = runtime.spawn(accept(serving, listener, admin, renewal));
        let accepting = Some(accepting);
        Ok(Self {
            folder,
            runtime: Some(runtime),
            accepting,
            ending,
            local_addr,
            identity: public,
            shutdown,
        })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The key that clients pin.
    pub fn identity(&self) -> PublicKey {
        self.identity
    }

    /// What it is called, for people.
    pub fn name(&self) -> String {
        host_name()
    }

    /// That key in a form for people.
    pub fn fingerprint(&self) -> String {
        holdall_protocol::fingerprint(&self.identity)
    }

    /// Whether the data folder is on another disk by now, as after one was pulled out and put back: what this
    /// server has open of it fails for good. Shut down and started again, it goes on there.
    pub fn data_has_moved(&self) -> bool {
        self.folder.has_moved()
    }

    /// Stops accepting, lets requests under way end within [`Limits::shutdown`], and gives the data
    /// folder back. What was acknowledged is durable anyway.
    pub fn shutdown(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let (Some(runtime), Some(accepting)) = (self.runtime.take(), self.accepting.take()) else {
            return;
        };
        self.ending.send_replace(true);
        // If requests under way do not end in time, the runtime drops them.
        let _ = runtime.block_on(async { timeout(self.shutdown, accepting).await });
        runtime.shutdown_timeout(ENDING);
    }
}

/// The threads of a server, once it is sure that there can be so many.
fn runtime(
    workers: usize,
    folder: &DataFolder,
    listen: SocketAddr,
) -> Result<Runtime, ServerError> {
    let working = workers + SCRUBS + QUICK_WORKERS + web::WORKERS;
    // The runtime panics where it cannot start those that wait, and waits for ever where none works.
    // Work that finds no other thread is done by those that there are.
    let least = WAITING_THREADS + SCRUBS + QUICK_WORKERS + 1;
    holdall_sys::thread::test(least).map_err(|source| {
        ServerError::io("starting the threads of the server on", folder.path(), source)
    })?;
    holdall_sys::thread::test_files(FILES)
        .map_err(|source| ServerError::io("opening files for", folder.path(), source))?;
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WAITING_THREADS)
        .max_blocking_threads(working)
        .thread_name("holdall-server")
        .enable_all()
        .build()
        .map_err(|source| ServerError::Listen { address: listen, source })
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whatever a message has in it, it is one line that shows it.
fn in_lines(log: LogSink) -> LogSink {
    Arc::new(move |message| log(&OneLine(message).to_string()))
}

fn bind(listen: SocketAddr) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = match TcpListener::bind(listen) {
        // All addresses of a computer without IPv6 are those of IPv4.
        Err(error) if listen.ip() == Ipv6Addr::UNSPECIFIED && lacks_ipv6(&error) => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, listen.port()))?
        }
        bound => bound?,
    };
    listener.set_nonblocking(true)?;
    let local_addr = listener.local_addr()?;
    Ok((listener, local_addr))
}

fn lacks_ipv6(error: &std::io::Error) -> bool {
    let number = error.raw_os_error();
    [Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL]
        .iter()
        .any(|errno| number == Some(errno.raw_os_error()))
}

/// Accepts until the server ends, then waits for the connections.
async fn accept(
    serving: Serving,
    listener: TcpListener,
    admin: AdminSocket,
    renewal: Option<Renewal>,
) {
    let mut connections = JoinSet::new();
    match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => {
            let state = Arc::clone(&serving.state);
            let mut ending = serving.ending.clone();
            tokio::select! {
                () = accept_connections(&serving, &listener, &mut connections) => {}
                () = admin.serve(&state) => {}
                () = keep_house(&state) => {}
                () = settle(&state) => {}
                () = web::watch(&state) => {}
                () = watch_left(&state) => {}
                () = renew(renewal.as_ref(), &state) => {}
                () = state.failures.tell_counted() => {}
                () = state.activities.tell_ended_ones() => {}
                () = state.measuring.let_go_of_ended() => {}
                _ = ending.wait_for(|ending| *ending) => {}
            }
        }
        Err(error) => serving.state.log(&format!("cannot listen: {error}")),
    }
    serving.state.stop();
    serving.state.log("ending");
    while connections.join_next().await.is_some() {}
    serving.state.activities.tell_all();
    serving.state.failures.tell_all();
}

/// Keeps the certificate for browsers of an authority, if there is to be one. Never ends.
async fn renew(renewal: Option<&Renewal>, state: &ServerState) {
    match renewal {
        Some(renewal) => renewal.keep(state).await,
        None => std::future::pending().await,
    }
}

/// Applies rules for keeping and prunes, once an hour, and for the first time soon after the start: some
/// servers do not run for an hour. Never ends by itself.
async fn keep_house(state: &Arc<ServerState>) {
    let mut wait = state.limits.keep_house.min(FIRST_HOUSE);
    loop {
        sleep(wait).await;
        wait = state.limits.keep_house;
        let inner = Arc::clone(state);
        let job = state.begin_job(Actor::server(), "hourly round".to_owned());
        let own = Arc::clone(&job);
        let kept = state.work.run(move || {
            inner.administer_job(&own, |all| all.keep_house());
            Ok(())
        });
        // What else hinders it is in the log, and is tried again in an hour.
        let kept = kept.await.map(|_| serde_json::Value::Null);
        let kept = kept.map_err(|_| "looking after the repositories ended unexpectedly".to_owned());
        kept.as_ref().err().into_iter().for_each(|what| state.log(what));
        job.end(kept, state.stores.now_ns());
    }
}

/// Moves packs from the data folder to the storage places, soon after they came. Never ends by itself.
async fn settle(state: &Arc<ServerState>) {
    loop {
        sleep(state.limits.settle).await;
        let inner = Arc::clone(state);
        let settled = state.work.run(move || {
            inner.administer(&Actor::server(), |all| all.settle_open());
            Ok(())
        });
        if settled.await.is_err() {
            state.log("moving packs to their places ended unexpectedly");
        }
    }
}

/// Accepts connections. Never ends by itself.
async fn accept_connections(
    serving: &Serving,
    listener: &tokio::net::TcpListener,
    connections: &mut JoinSet<()>,
) {
    let arrivals = StrangerSlots::new(serving.state.limits.arrivals);
    loop {
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((tcp, peer)) => {
                let source = Source::from(peer.ip());
                connections.spawn(serve(serving.clone(), tcp, source, arrivals.admit(source)));
            }
            Err(error) => {
                // Out of descriptors, or a connection that ended while it was accepted.
                serving.state.failures.note(Whose::Listener, None, &format!("accepting: {error}"));
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn no_message_fakes_a_line_of_the_log_or_turns_it_around() {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let told = Arc::clone(&lines);
        let log = in_lines(Arc::new(move |line| told.lock().unwrap().push(line.to_owned())));
        log("packs/a\u{202e}b\nalarm: none");
        assert_eq!(*lines.lock().unwrap(), ["packs/a\\u{202e}b\\nalarm: none"]);
    }
}
