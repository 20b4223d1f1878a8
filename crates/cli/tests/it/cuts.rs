//! A connection that is cut anywhere costs what was on its way, and nothing else: a backup goes on by
//! itself, of the request that each connection was in only what had not come whole is sent again, and
//! what it commits restores identically.
//!
//! A small backup is cut once in each run, at one byte of all that goes over the wire after the first
//! connection was made; all slices together cut it at every byte. Large ones are cut `HOLDALL_RANDOM_CUTS`
//! times in all, at seeded places, further apart than what a cut may cost: else none would ever get on.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdall_crypto::{KeyRing, RecoverySecret, SigningKey, SystemEntropy};
use holdall_engine::{
    BackupOptions, BackupSummary, LockedRepository, RestoreOptions, Run, Source,
    UnlockedRepository, backup, find_snapshot, new_repository, restore, snapshots,
};
use holdall_format::RecordHash;
use holdall_protocol::{
    ClientOptions, HttpRepository, MachineIdentity, Paired, Repository, ServerAddress, pair,
};
use holdall_server::{InviteRequest, Limits, Server, ServerOptions, admin};
use holdall_sys::{Clock, SystemClock};
use holdall_testkit::{
    ChaosProxy, CompareOptions, DelayProxy, Random, Slice, compare_trees, memory, setting,
};
use tempfile::TempDir;

use crate::house::folder;

/// A change cuts small backups at one byte in so many.
const SMALL_SLICES: u64 = 17;
/// A change makes one in so many of the random cuts.
const LARGE_SLICES: u64 = 5;
/// Small backups that are cut at the same time, each with a server of its own.
const WORLDS: usize = 3;
/// So many are cut in one repository.
const ROUNDS: u64 = 48;
/// Most that a request of the small backup has: a block of 4 KiB, and what is around it.
const SMALL_REQUEST_BYTES: u64 = 6 << 10;
/// Most that is sent to make a connection.
const HANDSHAKE_BYTES: u64 = 5 << 10;
/// So much more or less a small backup sends for no other reason than its times and moments.
const VARIES_BYTES: u64 = 512;
/// Of all but the large ones, which have one or two.
const STREAMS: usize = 4;
/// Requests that one stream has under way: the server's disk is waited for by two while another is carried.
const REQUESTS: u64 = 3;
const RANDOM_CUTS: u64 = 200;
/// Of each large backup.
const LARGE_BYTES: u64 = 96 << 20;
/// From one cut of it to the next.
const MEAN_BYTES: u64 = 8 << 20;
/// One of so many of those cuts is one of two streams.
const TWO_STREAMS: u64 = 4;
/// One of so many of those cuts is made once more, in a large backup that is cut only there.
const CUTS_OF_ONE: u64 = 5;
/// Of each backup that is cut once.
const ONCE_BYTES: u64 = 12 << 20;
/// Bytes a second of the line that they go over.
const GIGABIT: u64 = 118_000_000;
/// A block of what does not compress, and what is around it.
const BLOCK_BYTES: u64 = 5 << 18;
/// The longest there can be, which begins with a MiB but for a byte, and the longest chunk.
const LONGEST_BLOCK_BYTES: u64 = (1 << 20) + holdall_format::limits::CHUNK_MAX_BYTES as u64;
/// What is backed up over a slow link, which carries about a block in a second for each request under way.
const SLOW_BYTES: u64 = 40 << 20;
const SLOW_BYTES_PER_SECOND: u64 = 3 << 20;
const SLOW_CUTS: usize = 8;

/// The system's clock, or one that is so far ahead of it: the server's, for which a computer slept.
#[derive(Default)]
struct ServerClock {
    ahead_ns: AtomicI64,
}

impl Clock for ServerClock {
    fn now_ns(&self) -> i64 {
        SystemClock.now_ns() + self.ahead_ns.load(Ordering::SeqCst)
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
        Self::in_folder(folder())
    }

    fn in_folder(folder: TempDir) -> Self {
        let clock = Arc::new(ServerClock::default());
        let data_dir = folder.path().join("data");
        let server = Server::start(ServerOptions {
            detail: 0,
            web_names: Vec::new(),
            web_certificate: None,
            web_acme: None,
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
        let invite = admin::Invite { request: InviteRequest::default() };
        let invited = admin::ask(&data_dir, &invite, clock.clone());
        let paired =
            pair(&invited.unwrap().invite, "desk", &identity, ClientOptions::default()).unwrap();
        fs::create_dir(folder.path().join("source")).unwrap();
        let secret = KeyRing::from_master([7; 32]);
        let world = Self { folder, _server: server, proxy, clock, paired, seed, secret };
        world.make();
        world
    }

    fn make(&self) {
        let recovery = RecoverySecret::generate(&mut SystemEntropy);
        let new = new_repository(&self.secret, &recovery, None, None).unwrap();
        self.connect(None, STREAMS).create(&new).unwrap();
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

    /// What went to the server so far, and how many connections were made.
    fn sent_and_made(&self) -> (u64, u64) {
        (self.proxy.forwarded_each_way().0, self.proxy.connections())
    }

    fn source(&self) -> PathBuf {
        self.folder.path().join("source")
    }

    /// The repository, by way of a proxy or not, over so many streams.
    fn connect(&self, proxy: Option<SocketAddr>, streams: usize) -> HttpRepository {
        let mut address: ServerAddress = self.paired.address.clone();
        if let Some(proxy) = proxy {
            address.hosts = vec![proxy.to_string()];
        }
        let identity = MachineIdentity::from_seed(&self.seed).unwrap();
        // Thousands of cuts in a row may let no request through for longer than a client waits by itself.
        let options = ClientOptions { retry_for: PATIENCE, streams, ..ClientOptions::default() };
        HttpRepository::connect(address, &identity, options).unwrap()
    }

    fn access(&self, repository: HttpRepository) -> UnlockedRepository {
        let signing = Arc::new(SigningKey::from_seed(&self.seed));
        let cache = self.folder.path().join("cache");
        LockedRepository::new(Arc::new(repository), signing, cache).open(&self.secret).unwrap()
    }

    /// Backs up through the proxy, which is told what to do once the first connection is there.
    fn back_up(&self, streams: usize, plan: impl FnOnce(&ChaosProxy)) -> BackupSummary {
        self.back_up_by(self.proxy.address(), streams, plan)
    }

    /// The same by way of another proxy to that one.
    fn back_up_by(
        &self,
        first: SocketAddr,
        streams: usize,
        plan: impl FnOnce(&ChaosProxy),
    ) -> BackupSummary {
        let repository = self.connect(Some(first), streams);
        plan(&self.proxy);
        let access = self.access(repository);
        let path = self.source().as_os_str().as_bytes().to_vec();
        let source = Source { path: path.clone(), read_at: path };
        let options =
            BackupOptions { streams, ..BackupOptions::new(vec![source], "host".to_owned()) };
        let run = Arc::new(Run::new());
        let summary = backup(&access, &options, &run).expect("it goes on by itself");
        assert_eq!(run.take_problems(), []);
        summary
    }

    /// Checks that the newest snapshot is what was acknowledged, and the source.
    fn assert_restores(&self, summary: &BackupSummary, what: &str) {
        let access = self.access(self.connect(None, STREAMS));
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

    /// Checks that what was acknowledged, and nothing else, is listed and restores as it was.
    fn assert_restore_all(&self, small: &[Small]) {
        let access = self.access(self.connect(None, STREAMS));
        let listed = snapshots(&access).unwrap();
        assert_eq!((listed.damaged.len(), listed.breaks.len()), (0, 0));
        let ids: Vec<_> = listed.snapshots.iter().map(|snapshot| snapshot.id).collect();
        assert_eq!(ids, small.iter().map(|one| one.snapshot).collect::<Vec<_>>());
        let path = self.source().as_os_str().as_bytes().to_vec();
        for (snapshot, one) in listed.snapshots.iter().zip(small) {
            let (target, run) = (self.folder.path().join("target"), Arc::new(Run::new()));
            let options = RestoreOptions::default();
            restore(&access, snapshot, Some(&path), &target, &options, &run).unwrap();
            assert_eq!(run.take_problems(), [], "{one:?}");
            assert_eq!(fs::read(target.join("file")).unwrap(), small_content(one.round), "{one:?}");
            fs::remove_dir_all(target).unwrap();
        }
    }

    /// Backs up so many bytes of that seed over a gigabit, and says what its cuts cost.
    fn back_up_large(
        &self,
        (bytes, seed): (u64, u64),
        streams: usize,
        plan: impl FnOnce(&ChaosProxy),
    ) -> Large {
        self.proxy.carry_at(GIGABIT);
        let content = Random::new(seed).bytes(bytes as usize);
        fs::write(self.source().join("large"), content).unwrap();
        let before = self.sent_and_made();
        let summary = self.back_up(streams, plan);
        let after = self.sent_and_made();
        self.assert_restores(&summary, "cut");
        Large { again_bytes: (after.0 - before.0).saturating_sub(bytes), cuts: self.proxy.cuts() }
    }

    /// A small backup that is cut after so many bytes.
    fn cut_at(&self, round: u64, position: Option<u64>) -> Small {
        fs::write(self.source().join("file"), small_content(round)).unwrap();
        let seen = || (self.proxy.forwarded_bytes(), self.proxy.connections(), self.proxy.cuts());
        let before = seen();
        let summary = self.back_up(STREAMS, |proxy| {
            position.into_iter().for_each(|at| proxy.cut_after(at));
        });
        let after = seen();
        // One that came too late is not for the next run, whose first connection has one try.
        self.proxy.cut_repeatedly(0, 0, 1);
        Small {
            round,
            snapshot: summary.snapshot_id.expect("it is no dry run"),
            cut_at: position.filter(|_| after.2 > before.2),
            bytes: summary.bytes_sent,
            in_all: after.0 - before.0,
            connections: after.1 - before.1,
        }
    }
}

fn small_content(round: u64) -> Vec<u8> {
    Random::new(round).bytes(10)
}

/// A small backup, and what it sent.
#[derive(Debug, Clone, Copy)]
struct Small {
    round: u64,
    snapshot: RecordHash,
    /// None if it was over before its cut.
    cut_at: Option<u64>,
    bytes: u64,
    /// Both ways.
    in_all: u64,
    connections: u64,
}

/// What the cuts of a large backup cost.
struct Large {
    /// What was sent beyond its bytes, that they were sent in included.
    again_bytes: u64,
    cuts: u64,
}

/// All positions at which small backups are cut, and what came of it.
#[derive(Default)]
struct Positions {
    stride: u64,
    next: AtomicU64,
    /// The longest that a backup was without a cut.
    longest: AtomicU64,
    /// All backups of all worlds.
    done: Mutex<Vec<Small>>,
}

impl Positions {
    /// The next one. A little further than a backup goes, since no two are quite alike.
    fn take(&self) -> Option<u64> {
        let position = self.next.fetch_add(self.stride, Ordering::SeqCst);
        (position < self.longest.load(Ordering::SeqCst) + 500).then_some(position)
    }

    /// Cuts backups in worlds of their own until there is no position left.
    fn cut_all(&self) {
        let mut is_over = false;
        while !is_over {
            let world = World::in_folder(memory().unwrap());
            let mut done = vec![world.cut_at(0, None), world.cut_at(1, None)];
            self.longest.fetch_max(done[1].in_all, Ordering::SeqCst);
            for round in 2..ROUNDS {
                let Some(position) = self.take() else {
                    is_over = true;
                    break;
                };
                done.push(world.cut_at(round, Some(position)));
            }
            world.assert_restore_all(&done);
            // The first one tells the repository more than those behind it.
            self.done.lock().unwrap().extend(&done[1..]);
        }
    }

    /// Checks what was sent again for each connection, of which each sends its request and what makes it.
    /// Whether blocks go together or apart is a matter of moments, so what is sent anyway is the most of those
    /// that were not cut.
    fn found(&self) -> Found {
        let done = self.done.lock().unwrap();
        let whole = done.iter().filter(|one| one.cut_at.is_none());
        let shortest = whole.clone().map(|one| one.in_all).min().expect("some were not cut");
        let whole = whole.filter(|one| one.connections == 1).map(|one| one.bytes);
        let alone = whole.max().expect("most need one connection");
        let again = done.iter().filter(|one| one.cut_at.is_some()).map(|one| {
            let made = one.connections - 1;
            let again = one.bytes.saturating_sub(alone);
            let most = VARIES_BYTES + made * (SMALL_REQUEST_BYTES + HANDSHAKE_BYTES);
            assert!(again <= most, "{one:?}, and {alone} bytes without a cut");
            again / made.max(1)
        });
        let cuts = again.clone().count() as u64;
        Found { cuts, shortest, most_again: again.max().expect("some were cut") }
    }
}

/// What came of all cuts.
struct Found {
    cuts: u64,
    /// What went over the wire, both ways, in the shortest backup that was not cut.
    shortest: u64,
    /// Bytes, for one connection.
    most_again: u64,
}

#[test]
fn a_small_backup_that_is_cut_at_any_byte_goes_on_and_sends_only_that_request_again() {
    let (start, stride) = Slice::one_in(SMALL_SLICES).start_and_stride();
    let positions = Positions { stride, next: start.into(), ..Positions::default() };
    std::thread::scope(|scope| {
        (0..WORLDS).for_each(|_| drop(scope.spawn(|| positions.cut_all())));
    });
    let Found { cuts, shortest, most_again } = positions.found();
    // The last positions lie beyond the end of those that happen to be shorter.
    let least = shortest.saturating_sub(VARIES_BYTES) / stride;
    assert!(cuts >= least, "{cuts} cuts, and no whole backup had less than {shortest} bytes");
    eprintln!("{cuts} cuts, of every byte in {stride}; at most {most_again} were sent again");
}

#[test]
fn large_backups_that_are_cut_again_and_again_send_a_part_of_a_block_of_each_request_again() {
    let slice = Slice::one_in(LARGE_SLICES);
    let wanted = slice.share(setting("HOLDALL_RANDOM_CUTS", RANDOM_CUTS));
    for (streams, wanted) in [(1, wanted - wanted / TWO_STREAMS), (2, wanted / TWO_STREAMS)] {
        let (mut cuts, mut again) = (0, 0);
        while cuts < wanted {
            let world = World::in_folder(memory().unwrap());
            let left = (wanted - cuts) as usize;
            let plan = |proxy: &ChaosProxy| {
                proxy.cut_repeatedly(slice.seed(17 + cuts), left, MEAN_BYTES);
            };
            let one = world.back_up_large((LARGE_BYTES, cuts), streams, plan);
            again += one.again_bytes;
            cuts += one.cuts;
        }
        eprintln!("{cuts} cuts of {streams} streams, {MEAN_BYTES} apart: {again} sent again");
        // Of the block that was on its way half was sent, on average.
        let most = cuts * streams as u64 * REQUESTS * BLOCK_BYTES * 3 / 4;
        assert!(again <= most, "{streams} streams: {again} bytes again for {cuts} cuts");
    }
}

#[test]
fn large_backups_that_are_cut_once_send_at_most_one_block_of_each_request_again() {
    let slice = Slice::one_in(LARGE_SLICES);
    let wanted = slice.share(setting("HOLDALL_RANDOM_CUTS", RANDOM_CUTS) / CUTS_OF_ONE);
    let mut random = Random::new(slice.seed(29));
    let mut most_again = 0;
    for number in 0..wanted {
        let world = World::in_folder(memory().unwrap());
        let position = random.below(ONCE_BYTES);
        let one = world.back_up_large((ONCE_BYTES, number), 1, |proxy| proxy.cut_after(position));
        assert_eq!(one.cuts, 1, "at {position}");
        let again = one.again_bytes;
        let most = REQUESTS * LONGEST_BLOCK_BYTES;
        assert!(again <= most, "{again} bytes again after a cut at {position}");
        most_again = most_again.max(again);
    }
    eprintln!("{wanted} cuts, each of a backup of its own: at most {most_again} were sent again");
}

#[test]
fn a_slow_link_that_is_cut_again_and_again_carries_a_part_of_a_block_of_each_request_again() {
    let world = World::in_folder(memory().unwrap());
    let slow =
        DelayProxy::start(world.proxy.address(), Duration::ZERO, Some(SLOW_BYTES_PER_SECOND));
    let slow = slow.unwrap();
    fs::write(world.source().join("large"), Random::new(3).bytes(SLOW_BYTES as usize)).unwrap();
    let before = world.sent_and_made();
    let summary = world.back_up_by(slow.address(), 1, |proxy| {
        proxy.cut_repeatedly(23, SLOW_CUTS, SLOW_BYTES / SLOW_CUTS as u64);
    });
    let after = world.sent_and_made();
    world.assert_restores(&summary, "over a slow link");
    let (cuts, again) = (world.proxy.cuts(), (after.0 - before.0).saturating_sub(SLOW_BYTES));
    eprintln!("{cuts} cuts of a slow link: {again} bytes were sent again");
    assert!(cuts > SLOW_CUTS as u64 / 2, "{cuts} cuts");
    assert!(again <= cuts * REQUESTS * BLOCK_BYTES * 3 / 4, "{again} bytes again for {cuts} cuts");
}

/// A week is over for a session that writes, and a day for one that reads.
#[test]
fn a_backup_and_a_restore_go_on_after_a_sleep_that_was_longer_than_their_session_lives() {
    let world = World::new();
    for number in 0..24 {
        let file = world.source().join(format!("file-{number}"));
        fs::write(file, Random::new(number).bytes(2 << 20)).unwrap();
    }
    let summary = world.sleep_after(20 << 20, 8, || world.back_up(STREAMS, |_| ()));
    world.assert_restores(&summary, "slept in a backup");

    let access = world.access(world.connect(Some(world.proxy.address()), STREAMS));
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
