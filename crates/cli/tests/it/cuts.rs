//! A connection that is cut anywhere costs what was on its way, and nothing else: a backup goes on by
//! itself, at most the requests that it was in are sent again, and what it commits
//! restores identically.
//!
//! A small backup is cut once in each run, at one byte of all that goes over the wire after the first
//! connection was made: at every `HOLDALL_CUT_STRIDE`th byte, 1 for all. A large one is cut
//! `HOLDALL_RANDOM_CUTS` times in one run, at seeded places.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use holdall_crypto::{
    KeyRing, RecoverySecret, RepositoryKeys, SigningKey, SystemEntropy, sign_wrappings,
    suite_for_this_cpu, wrap_recovery,
};
use holdall_engine::{
    Access, BackupOptions, BackupSummary, Place, RestoreOptions, Run, Source, backup,
    find_snapshot, restore, snapshots,
};
use holdall_protocol::{
    ClientOptions, HttpRepository, MachineIdentity, NewRepository, Paired, Repository,
    ServerAddress, pair,
};
use holdall_repository::Clock;
use holdall_server::{InviteRequest, Limits, Server, ServerOptions, admin};
use holdall_testkit::{ChaosProxy, CompareOptions, Random, compare_trees};
use tempfile::TempDir;

use crate::house::folder;

/// Cuts of the small backup are so many bytes apart unless it is said.
const STRIDE: u64 = 61;
const RANDOM_CUTS: u64 = 200;
/// Of the large backup.
const LARGE_BYTES: usize = 48 << 20;
/// Backups that are cut at the same time, each with a server of its own.
const WORLDS: u64 = 6;
/// Puts on their way: one for each of four streams, and two that the server makes durable.
const PUTS: u64 = 6;
/// Most that a request and a handshake of the small backup have.
const SMALL_REQUEST_BYTES: u64 = 24 << 10;
/// Most that a cut of the large backup costs on average: parts of requests of 3 MiB, which the client sends
/// while others are durable. One that began anew would send half of it again for each.
const MOST_AGAIN_BYTES: u64 = 8 << 20;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// The system's clock, or one that is so far ahead of it: the server's, for which a computer slept.
#[derive(Default)]
struct ServerClock {
    ahead_ns: AtomicI64,
}

impl Clock for ServerClock {
    fn now_ns(&self) -> i64 {
        let now = holdall_sys::host::now();
        let now_ns = now.secs * 1_000_000_000 + i64::from(now.nanos);
        now_ns + self.ahead_ns.load(Ordering::SeqCst)
    }
}

/// How long a client goes on without an answer here.
const PATIENCE: Duration = Duration::from_secs(3600);

const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;

/// A server, a machine with a repository there, and a proxy between them.
struct World {
    folder: TempDir,
    _server: Server,
    proxy: ChaosProxy,
    clock: Arc<ServerClock>,
    paired: Paired,
    seed: [u8; 32],
    secret: KeyRing,
}

impl World {
    fn new() -> Self {
        let (folder, clock) = (folder(), Arc::new(ServerClock::default()));
        let data_dir = folder.path().join("data");
        let server = Server::start(ServerOptions {
            data_dir: data_dir.clone(),
            listen: "127.0.0.1:0".parse().unwrap(),
            clock: clock.clone(),
            limits: Limits::default(),
            log: Arc::new(|_| ()),
        });
        let server = server.unwrap();
        let proxy = ChaosProxy::start(server.local_addr()).unwrap();
        let seed = [5; 32];
        let identity = MachineIdentity::from_seed(&seed).unwrap();
        let invited = admin::invite(&data_dir, &InviteRequest::default(), clock.clone());
        let paired =
            pair(&invited.unwrap().invite, "desk", &identity, ClientOptions::default()).unwrap();
        fs::create_dir(folder.path().join("source")).unwrap();
        let secret = KeyRing::from_master([7; 32]);
        let world = Self { folder, _server: server, proxy, clock, paired, seed, secret };
        world.make();
        world
    }

    fn make(&self) {
        let keys = RepositoryKeys::derive(&self.secret);
        let recovery = RecoverySecret::generate(&mut SystemEntropy);
        let wrappings = vec![wrap_recovery(&self.secret, &recovery)];
        let new = NewRepository {
            config: keys.new_config(suite_for_this_cpu(), 3, 512).unwrap().into(),
            wrappings: sign_wrappings(&keys, 1, wrappings).unwrap().into(),
        };
        self.connect(false).create(&new).unwrap();
    }

    /// Has so much time pass on the server's clock once so many more bytes went over the wire.
    fn sleep_after<T>(&self, bytes: u64, days: i64, work: impl FnOnce() -> T) -> T {
        let until = self.proxy.forwarded_bytes() + bytes;
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let slept = scope.spawn(|| {
                while self.proxy.forwarded_bytes() < until && !is_done.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                self.clock.ahead_ns.fetch_add(days * DAY_NS, Ordering::SeqCst);
            });
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            let has_slept = slept.is_finished();
            is_done.store(true, Ordering::SeqCst);
            assert!(has_slept, "it slept before the end");
            done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn source(&self) -> PathBuf {
        self.folder.path().join("source")
    }

    /// The repository, by way of the proxy or not.
    fn connect(&self, by_proxy: bool) -> HttpRepository {
        let mut address: ServerAddress = self.paired.address.clone();
        if by_proxy {
            address.hosts = vec![self.proxy.address().to_string()];
        }
        let identity = MachineIdentity::from_seed(&self.seed).unwrap();
        // Thousands of cuts in a row may let no request through for longer than a client waits by itself.
        let options = ClientOptions { retry_for: PATIENCE, ..ClientOptions::default() };
        HttpRepository::connect(address, &identity, options).unwrap()
    }

    fn access(&self, repository: HttpRepository) -> Access {
        let signing = Arc::new(SigningKey::from_seed(&self.seed));
        let cache = self.folder.path().join("cache");
        Place::new(Arc::new(repository), signing, cache).open(&self.secret).unwrap()
    }

    /// Backs up through the proxy, which is told what to do once the first connection is there.
    fn back_up(&self, plan: impl FnOnce(&ChaosProxy)) -> BackupSummary {
        let repository = self.connect(true);
        plan(&self.proxy);
        let access = self.access(repository);
        let path = self.source().as_os_str().as_bytes().to_vec();
        let source = Source { path: path.clone(), read_at: path };
        let options = BackupOptions::new(vec![source], "host".to_owned());
        let run = Arc::new(Run::new());
        let summary = backup(&access, &options, &run).expect("it goes on by itself");
        assert_eq!(run.take_problems(), []);
        summary
    }

    /// Checks that the newest snapshot is what was acknowledged, and the source.
    fn assert_restores(&self, summary: &BackupSummary, what: &str) {
        let access = self.access(self.connect(false));
        let listed = snapshots(&access).unwrap();
        assert_eq!((listed.damaged.len(), listed.breaks.len()), (0, 0), "{what}");
        let newest = find_snapshot(&listed.snapshots, access.machine(), "latest", None).unwrap();
        assert_eq!(Some(newest.id), summary.snapshot_id, "{what}");
        let (target, source) = (self.folder.path().join("target"), self.source());
        let (run, path) = (Arc::new(Run::new()), source.as_os_str().as_bytes());
        restore(&access, newest, Some(path), &target, &RestoreOptions::default(), &run).unwrap();
        assert_eq!(run.take_problems(), [], "{what}");
        assert_eq!(compare_trees(&source, &target, &CompareOptions::default()), [], "{what}");
        fs::remove_dir_all(target).unwrap();
    }

    /// Changes what is small, so that each run has something to store.
    fn edit(&self, round: u64) {
        let mut random = Random::new(round);
        for name in ["one", "two", "three"] {
            fs::write(self.source().join(name), random.bytes(2500)).unwrap();
        }
    }

    /// A small backup that is cut after so many bytes. Gives how many bytes it sent, and how many
    /// went over the wire in all.
    fn cut_at(&self, round: u64, position: Option<u64>) -> (u64, u64) {
        self.edit(round);
        let mut before = 0;
        let summary = self.back_up(|proxy| {
            before = proxy.forwarded_bytes();
            position.into_iter().for_each(|at| proxy.cut_after(at));
        });
        // One that came too late is not for the next run, whose first connection has one try.
        self.proxy.cut_repeatedly(0, 0, 1);
        self.assert_restores(&summary, &format!("cut at {position:?}"));
        (summary.bytes_sent, self.proxy.forwarded_bytes() - before)
    }
}

#[test]
fn a_small_backup_that_is_cut_at_any_byte_goes_on_and_sends_only_that_request_again() {
    let stride = setting("HOLDALL_CUT_STRIDE", STRIDE).max(1);
    let (cuts, most_again) = (AtomicU64::new(0), AtomicU64::new(0));
    let longest = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for number in 0..WORLDS {
            let (cuts, most_again, longest) = (&cuts, &most_again, &longest);
            scope.spawn(move || {
                let world = World::new();
                world.cut_at(0, None);
                let (sent, in_all) = world.cut_at(1, None);
                longest.fetch_max(in_all, Ordering::SeqCst);
                // A little further than it goes, since no two runs are quite alike.
                let positions =
                    (1 + number * stride..in_all + 500).step_by((stride * WORLDS) as usize);
                for (round, position) in (2..).zip(positions) {
                    let (again, _) = world.cut_at(round * WORLDS + number, Some(position));
                    let again = again.saturating_sub(sent);
                    assert!(
                        again <= PUTS * SMALL_REQUEST_BYTES,
                        "{again} sent again at {position}"
                    );
                    most_again.fetch_max(again, Ordering::SeqCst);
                }
                cuts.fetch_add(world.proxy.cuts(), Ordering::SeqCst);
            });
        }
    });
    let (cuts, most, of) = (cuts.into_inner(), most_again.into_inner(), longest.into_inner());
    assert!(cuts >= of / stride / 2, "{cuts} cuts of {of} bytes");
    eprintln!("{cuts} cuts, a byte in {stride} of {of}; at most {most} bytes were sent again");
}

#[test]
fn a_large_backup_that_is_cut_again_and_again_sends_a_request_of_each_stream_again_for_each_cut() {
    let cuts = setting("HOLDALL_RANDOM_CUTS", RANDOM_CUTS);
    let world = World::new();
    fs::write(world.source().join("large"), Random::new(9).bytes(LARGE_BYTES)).unwrap();
    let summary = world.back_up(|proxy| proxy.cut_repeatedly(17, cuts as usize, 700_000));
    world.assert_restores(&summary, "cut again and again");
    assert_eq!(world.proxy.cuts(), cuts, "some cuts came too late");
    let again = summary.bytes_sent.saturating_sub(LARGE_BYTES as u64);
    assert!(again <= (cuts + 1) * MOST_AGAIN_BYTES, "{again} bytes were sent again");
    eprintln!("{cuts} cuts of {LARGE_BYTES} bytes: {again} bytes were sent again");
}

/// A week is over for a session that writes, and a day for one that reads.
#[test]
fn a_backup_and_a_restore_go_on_after_a_sleep_that_was_longer_than_their_session_lives() {
    let world = World::new();
    for number in 0..24 {
        let file = world.source().join(format!("file-{number}"));
        fs::write(file, Random::new(number).bytes(2 << 20)).unwrap();
    }
    let summary = world.sleep_after(20 << 20, 8, || world.back_up(|_| ()));
    world.assert_restores(&summary, "slept in a backup");

    let access = world.access(world.connect(true));
    let listed = snapshots(&access).unwrap();
    let newest = find_snapshot(&listed.snapshots, access.machine(), "latest", None).unwrap();
    let (target, source, run) = (world.folder.path().join("target"), world.source(), Run::new());
    let path = Some(source.as_os_str().as_bytes());
    world.sleep_after(10 << 20, 2, || {
        restore(&access, newest, path, &target, &RestoreOptions::default(), &run).unwrap()
    });
    assert_eq!(run.take_problems(), []);
    assert_eq!(compare_trees(&source, &target, &CompareOptions::default()), []);
}
