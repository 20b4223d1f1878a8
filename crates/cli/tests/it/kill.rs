//! `kill -9` of client or server at any moment of a backup loses nothing that was acknowledged, and
//! what was stored is not sent again.
//!
//! `HOLDALL_KILLS` and `HOLDALL_KILL_BYTES` change how many times all slices together kill, and of how much.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use holdall_engine::PUT_TARGET_BYTES;
use holdall_testkit::{ChaosProxy, CompareOptions, Process, Random, Slice, compare_trees, setting};
use rustix::process::{Pid, Signal};

use crate::clocks::days_later;
use crate::house::{Machine, Server, disk_bytes, text};

/// Of a client or a server that was at work; rounds that end before are not counted.
const KILLS: u64 = 100;
/// A change kills one in so many times.
const SLICES: u64 = 12;
const BYTES: u64 = 48 << 20;
/// The exit code of a client that never reached its server.
pub(crate) const UNREACHABLE: i32 = 14;
/// Bytes on their way at a kill: they may arrive and not be acknowledged, or not arrive. Four requests go
/// out and two wait for the server's disk, each with a block of about 1 MiB beyond what it aims at.
const ON_THE_WAY_BYTES: u64 = 6 * (PUT_TARGET_BYTES as u64 + (1 << 20));

/// A server that can be killed and comes back at the same address.
pub(crate) struct Phoenix {
    server: Server,
    proxy: ChaosProxy,
    data: PathBuf,
    /// How many days later than now it is for the server.
    day: u64,
}

impl Phoenix {
    pub(crate) fn new(data: &Path) -> Self {
        let server = Server::start(data);
        let proxy = ChaosProxy::start(upstream(&server)).expect("a free port");
        Self { server, proxy, data: data.to_owned(), day: 0 }
    }

    pub(crate) fn kill(&mut self) {
        self.kill_for(0);
    }

    /// Comes back so many days later.
    pub(crate) fn kill_for(&mut self, days: u64) {
        self.server.process().kill().expect("it lived");
        self.day += days;
        let command = Server::command(&self.data);
        let mut command = if self.day > 0 { days_later(self.day, &command) } else { command };
        self.server = Server::start_by(command.stderr(Stdio::null()), &self.data);
        self.proxy.set_upstream(upstream(&self.server));
    }

    /// Breaks all connections.
    pub(crate) fn cut(&self) {
        self.proxy.cut_now();
    }

    /// Has the line carry no more than that, each way.
    pub(crate) fn carry_at(&self, bytes_per_second: u64) {
        self.proxy.carry_at(bytes_per_second);
    }

    /// An invite by way of the proxy.
    pub(crate) fn invite(&self) -> String {
        self.server.invite_with(&["--address", &self.proxy.address().to_string()])
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// How much memory the server takes now.
    pub(crate) fn rss_bytes(&mut self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server.process().id()));
        let status = status.expect("it lives");
        let size = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
        let kib: u64 = size.trim_end_matches("kB").trim().parse().expect("a number");
        kib << 10
    }
}

fn upstream(server: &Server) -> SocketAddr {
    server.address().parse().expect("an address")
}

/// A backup that runs in a process of its own, and tells when it ends.
pub(crate) struct Running {
    pid: Pid,
    ended: Receiver<(ExitStatus, String)>,
}

impl Running {
    pub(crate) fn start(machine: &Machine, source: &Path) -> Self {
        let source = source.to_str().expect("UTF-8");
        let mut command = machine.command(["backup", source, "--json", "--retry-for", "5m"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.expect("it starts");
        let pid = Pid::from_child(&child);
        let (tell, ended) = channel();
        std::thread::spawn(move || {
            let output = child.wait_with_output().expect("it ends");
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let _ = tell.send((output.status, said + &String::from_utf8_lossy(&output.stderr)));
        });
        Self { pid, ended }
    }

    /// Whether it goes on after `time`.
    pub(crate) fn outlives(&mut self, time: Duration) -> Option<(ExitStatus, String)> {
        self.ended.recv_timeout(time).ok()
    }

    pub(crate) fn kill(self) {
        // It may have ended a moment ago, which is a moment like any other.
        let _ = rustix::process::kill_process(self.pid, Signal::KILL);
        self.ended.recv().expect("it ends");
    }

    pub(crate) fn finish(self) -> (ExitStatus, String) {
        self.ended.recv().expect("it ends")
    }
}

/// Files of all sizes, `bytes` in all, that do not compress.
fn write_files(dir: &Path, bytes: u64, random: &mut Random) {
    fs::create_dir_all(dir).expect("a folder");
    let mut left = bytes;
    let mut number = 0;
    while left > 0 {
        let size = match number % 4 {
            0 => 8 << 20,
            1 => 300_000,
            _ => 2_000,
        };
        let size = left.min(size);
        fs::write(dir.join(format!("file-{number:06}")), random.bytes(size as usize))
            .expect("room");
        left -= size;
        number += 1;
    }
}

/// Snapshots of which is kept what they hold, beside the newest.
const KEPT: usize = 3;
/// A backup in so many has an older snapshot compared, too.
const OLDER: u64 = 4;

/// One machine through all kills: what it backs up, and what it was told.
struct Told {
    machine: Machine,
    source: PathBuf,
    bytes: u64,
    random: Random,
    /// Snapshots that were acknowledged, by the number of the folder that they hold.
    acknowledged: Vec<String>,
    /// Folders that some of them hold and the source does not any more.
    kept: Vec<(usize, PathBuf)>,
    /// Runs that ended and told nothing: each may have committed one snapshot.
    silent: usize,
}

impl Told {
    fn new(machine: Machine, bytes: u64, random: Random) -> Self {
        let source = machine.path("source");
        let (acknowledged, kept) = (Vec::new(), Vec::new());
        Self { machine, source, bytes, random, acknowledged, kept, silent: 0 }
    }

    fn folder(&self, number: usize) -> PathBuf {
        self.source.join(number.to_string())
    }

    /// Has something new be there in place of what was last stored, which is put aside.
    fn write(&mut self, number: usize) {
        if let Some(last) = number.checked_sub(1) {
            let aside = self.machine.path(&format!("folder of snapshot {last}"));
            fs::rename(self.folder(last), &aside).expect("it is there");
            self.kept.push((last, aside));
        }
        if self.kept.len() > KEPT {
            // Not always the oldest, so that old ones are compared in the end, too.
            let (_, gone) = self.kept.remove(self.random.index(2));
            fs::remove_dir_all(gone).expect("it can be removed");
        }
        write_files(&self.folder(number), self.bytes, &mut self.random);
    }

    /// The snapshot is as the source is; now and then an older one is compared, too.
    fn acknowledge(&mut self, id: String) {
        check_restores(&self.machine, &self.source, &id);
        self.acknowledged.push(id);
        if !self.kept.is_empty() && self.random.one_in(OLDER) {
            let one = self.random.index(self.kept.len());
            self.check_kept(&self.kept[one]);
        }
    }

    fn check_kept(&self, (number, aside): &(usize, PathBuf)) {
        let id = &self.acknowledged[*number];
        let target = self.machine.path("target");
        let from = format!("{id}:{}", text(&self.folder(*number)));
        self.machine.ok(["restore", &from, "--target", text(&target)]);
        assert_eq!(compare_trees(aside, &target, &CompareOptions::default()), [], "{id}");
        fs::remove_dir_all(&target).expect("it can be removed");
    }

    /// All that was acknowledged is listed, whole, and nothing else but what may have been committed unheard.
    fn check_all(&self) {
        let checked = self.machine.summary(["check", "--scrub", "--verify", "all"]);
        assert_eq!(checked["damaged"], serde_json::json!([]));
        let listed = self.machine.ok(["snapshots", "--json"]).of_type("snapshot");
        let is_listed = |id: &String| listed.iter().any(|snapshot| snapshot["id"] == *id.as_str());
        let gone: Vec<_> = self.acknowledged.iter().filter(|id| !is_listed(id)).collect();
        assert!(gone.is_empty(), "{gone:?} are gone");
        let unheard = listed.len() - self.acknowledged.len();
        assert!(unheard <= self.silent, "{unheard} of {} runs that told nothing", self.silent);
        self.kept.iter().for_each(|kept| self.check_kept(kept));
        println!("{} acknowledged, {unheard} of {} not", self.acknowledged.len(), self.silent);
    }
}

#[test]
fn whatever_is_killed_at_any_moment_nothing_acknowledged_is_lost_or_sent_again() {
    let slice = Slice::one_in(SLICES);
    let kills = slice.share(setting("HOLDALL_KILLS", KILLS));
    let bytes = setting("HOLDALL_KILL_BYTES", BYTES);
    let machine = Machine::new().with_password(None);
    let data = machine.path("data");
    let mut server = Phoenix::new(&data);
    machine.pair(&server.invite());

    let mut told = Told::new(machine, bytes, Random::new(slice.seed(7)));
    let began = Instant::now();
    told.write(0);
    let longest = 2 * began.elapsed() + measured_backup(&told.machine, &told.source);

    let mut generation = 0;
    let mut before = disk_bytes(&data);
    let mut killed = 0;
    while killed < kills {
        if told.acknowledged.len() > generation {
            // Everything is stored: something new, in place of something old.
            generation = told.acknowledged.len();
            told.write(generation);
            before = disk_bytes(&data);
        }
        let stored = disk_bytes(&data).saturating_sub(before);
        let mut running = Running::start(&told.machine, &told.source);
        let moment = longest.mul_f64(told.random.below(1000) as f64 / 1000.0);
        let ended = match running.outlives(moment) {
            Some(ended) => Some(ended),
            None if told.random.one_in(2) => {
                server.kill();
                killed += 1;
                Some(running.finish())
            }
            None => {
                running.kill();
                killed += 1;
                None
            }
        };
        // A server that is gone when the client first asks is no failure of this kind.
        match ended.filter(|(status, _)| status.code() != Some(UNREACHABLE)) {
            Some((status, said)) => {
                told.acknowledge(summary_of(killed, status, &said, stored, bytes));
            }
            None => told.silent += 1,
        }
    }
    let (status, said) = Running::start(&told.machine, &told.source).finish();
    assert!(status.success(), "{status}\n{said}");
    told.acknowledge(summary_in(&said)["snapshot_id"].as_str().expect("an id").to_owned());
    told.check_all();
}

/// How long a backup of the same size takes, on a machine and a server of its own.
fn measured_backup(machine: &Machine, source: &Path) -> Duration {
    let other = Machine::new().with_password(None);
    let data = machine.path("other-data");
    let server = Server::start(&data);
    other.pair_with(&server);
    let summary = other.summary(["backup", source.to_str().expect("UTF-8")]);
    Duration::from_secs_f64(summary["total_duration"].as_f64().expect("a duration"))
}

/// Checks a backup that ended by itself, and returns its snapshot.
fn summary_of(kill: u64, status: ExitStatus, said: &str, stored: u64, bytes: u64) -> String {
    assert!(status.success(), "kill {kill}: {status}\n{said}");
    let summary = summary_in(said);
    let sent = summary["bytes_sent"].as_u64().expect("a number");
    let to_send = bytes.saturating_sub(stored) + bytes / 20 + ON_THE_WAY_BYTES;
    assert!(sent <= to_send, "kill {kill}: sent {sent} of {bytes} bytes, and {stored} were stored");
    summary["snapshot_id"].as_str().expect("an id").to_owned()
}

/// The summary in what a command with `--json` said.
pub(crate) fn summary_in(said: &str) -> serde_json::Value {
    let mut objects = said.lines().filter_map(|line| serde_json::from_str(line).ok());
    let is_summary = |object: &serde_json::Value| object["message_type"] == "summary";
    objects.rfind(is_summary).expect("a summary")
}

/// A snapshot is as the source is.
fn check_restores(machine: &Machine, source: &Path, id: &str) {
    let target = machine.path("target");
    let from = format!("{id}:{}", text(source));
    machine.ok(["restore", &from, "--target", text(&target)]);
    assert_eq!(compare_trees(source, &target, &CompareOptions::default()), [], "{id}");
    fs::remove_dir_all(&target).expect("it can be removed");
}

#[test]
fn a_client_outlives_a_server_that_restarts_and_connections_that_break() {
    let machine = Machine::new().with_password(None);
    let data = machine.path("data");
    let mut server = Phoenix::new(&data);
    let address = server.proxy.address().to_string();
    machine.pair(&server.server.invite_with(&["--address", &address]));
    let source = machine.path("source");
    write_files(&source, 24 << 20, &mut Random::new(3));

    server.proxy.cut_repeatedly(3, 6, 3 << 20);
    let source_text = source.to_str().expect("UTF-8");
    let mut command = machine.command(["backup", source_text, "--json", "--retry-for", "5m"]);
    let mut running = Process::spawn(&mut command).expect("it starts");
    running.wait_for_line("{\"message_type\":\"status\"").expect("it begins");
    server.kill();
    let (status, said) = running.wait().expect("it ends");
    assert!(status.success(), "{said:?}");
    assert!(server.proxy.cuts() > 0);
    check_restores(&machine, &source, "latest");
}

/// Kills that met a prune, of five runs four of which were to be: what ended before is not counted.
const PRUNE_KILLS: u64 = 15;
/// A change kills prunes one in so many times.
const PRUNE_SLICES: u64 = 3;
const PRUNE_BYTES: u64 = 12 << 20;
/// A prune in so many is let be, which says how long they take.
const LET_BE: u64 = 5;

/// What has a prune of everything but the two newest snapshots, of which each has a tree of its own.
struct Pruned {
    machine: Machine,
    repo: String,
    source: PathBuf,
}

impl Pruned {
    fn new(random: &mut Random) -> Self {
        let machine = Machine::new();
        let (repo, source) = (text(&machine.path("repo")).to_owned(), machine.path("source"));
        machine.init(&["-r", &repo, "--recovery-kit", text(&machine.path("kit"))]);
        write_files(&source.join("always"), PRUNE_BYTES, random);
        Self { machine, repo, source }
    }

    /// Half of the snapshots are forgotten, so that there is work to do.
    fn back_up(&self, random: &mut Random) {
        let _ = fs::remove_dir_all(self.source.join("own"));
        write_files(&self.source.join("own"), PRUNE_BYTES, random);
        self.machine.ok(["backup", "-r", &self.repo, text(&self.source)]);
        self.machine.ok(["forget", "-r", &self.repo, "--keep-last", "2"]);
    }

    /// Prunes, and kills that at a moment if there is one; says how it ended.
    fn prune(&self, moment: Option<Duration>) -> ExitStatus {
        let mut command = self.machine.command(["prune", "-r", &self.repo]);
        let mut child =
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        if let Some(moment) = moment {
            std::thread::sleep(moment);
            // It may have ended a moment ago.
            let _ = child.kill();
        }
        child.wait().expect("it ends")
    }

    fn check(&self, round: u64) {
        let checked =
            self.machine.summary(["check", "-r", &self.repo, "--scrub", "--verify", "all"]);
        assert_eq!(checked["damaged"], serde_json::json!([]), "round {round}");
        let target = self.machine.path("target");
        let from = format!("latest:{}", text(&self.source));
        self.machine.ok(["restore", "-r", &self.repo, &from, "--target", text(&target)]);
        let differences = compare_trees(&self.source, &target, &CompareOptions::default());
        assert_eq!(differences, [], "round {round}");
        fs::remove_dir_all(&target).expect("it can be removed");
    }
}

#[test]
fn a_prune_that_is_killed_at_any_moment_takes_nothing_that_is_needed() {
    let slice = Slice::one_in(PRUNE_SLICES);
    let wanted = slice.share(setting("HOLDALL_KILLS", PRUNE_KILLS) * (LET_BE - 1) / LET_BE);
    let mut random = Random::new(slice.seed(11));
    let pruned = Pruned::new(&mut random);
    let (mut killed, mut round) = (0, 0);
    let mut longest = Duration::ZERO;
    while killed < wanted {
        assert!(round < 4 * wanted + 20, "{killed} of {round} were met by a kill");
        pruned.back_up(&mut random);
        if round % LET_BE == 0 {
            let began = Instant::now();
            assert!(pruned.prune(None).success(), "round {round}");
            longest = began.elapsed();
        } else {
            let moment = longest.mul_f64(random.below(1000) as f64 / 1000.0);
            let status = pruned.prune(Some(moment));
            assert!(status.success() || status.code().is_none(), "round {round}: {status}");
            killed += u64::from(status.code().is_none());
        }
        pruned.check(round);
        round += 1;
    }
    println!("{killed} of {round} prunes were killed");
    // What a prune had copied when it was killed, the next one copies again; the one behind it finds that
    // it is there twice. A twentieth of a pack may stay that nothing needs.
    (0..2).for_each(|_| assert!(pruned.prune(None).success()));
    let stats = pruned.machine.summary(["stats", "-r", &pruned.repo]);
    let (stored, needed) = (stats["stored_bytes"].as_u64().expect("a number"), 3 * PRUNE_BYTES);
    assert!(stored < needed + needed / 12, "{stored} bytes for what takes {needed}");
}
