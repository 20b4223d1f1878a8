//! `kill -9` of client or server at any moment of a backup loses nothing that was acknowledged, and
//! what was stored is not sent again.
//!
//! `HOLDALL_KILLS` and `HOLDALL_KILL_BYTES` change how many times, and of how much: the full measure
//! is 50 kills of 1 GB.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use holdall_engine::PUT_TARGET_BYTES;
use holdall_testkit::{ChaosProxy, CompareOptions, Process, Random, compare_trees};
use rustix::process::{Pid, Signal};

use crate::clocks::days_later;
use crate::house::{Machine, Server, disk_bytes};

/// Of a client or a server that was at work; rounds that end before are not counted.
const KILLS: u64 = 100;
const BYTES: u64 = 48 << 20;
/// The exit code of a client that never reached its server.
pub(crate) const UNREACHABLE: i32 = 14;
/// Bytes on their way at a kill: they may arrive and not be acknowledged, or not arrive. Four requests go
/// out and two wait for the server's disk, each with a block of about 1 MiB beyond what it aims at.
const ON_THE_WAY_BYTES: u64 = 6 * (PUT_TARGET_BYTES as u64 + (1 << 20));

pub(crate) fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

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

#[test]
fn whatever_is_killed_at_any_moment_nothing_acknowledged_is_lost_or_sent_again() {
    let (kills, bytes) = (setting("HOLDALL_KILLS", KILLS), setting("HOLDALL_KILL_BYTES", BYTES));
    let machine = Machine::new().with_password(None);
    let data = machine.path("data");
    let mut server = Phoenix::new(&data);
    let address = server.proxy.address().to_string();
    machine.pair(&server.server.invite_with(&["--address", &address]));

    let mut random = Random::new(7);
    let source = machine.path("source");
    let began = Instant::now();
    write_files(&source.join("0"), bytes, &mut random);
    let longest = 2 * began.elapsed() + measured_backup(&machine, &source);

    let mut acknowledged = Vec::new();
    let mut generation = 0;
    let mut before = disk_bytes(&data);
    let mut killed = 0;
    while killed < kills {
        if acknowledged.len() > generation {
            // Everything is stored: something new, in place of something old.
            generation = acknowledged.len();
            let new = source.join(generation.to_string());
            let _ = fs::remove_dir_all(source.join((generation - 1).to_string()));
            write_files(&new, bytes, &mut random);
            before = disk_bytes(&data);
        }
        let stored = disk_bytes(&data).saturating_sub(before);
        let mut running = Running::start(&machine, &source);
        let moment = longest.mul_f64(random.below(1000) as f64 / 1000.0);
        let ended = match running.outlives(moment) {
            Some(ended) => Some(ended),
            None if random.one_in(2) => {
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
        let ended = ended.filter(|(status, _)| status.code() != Some(UNREACHABLE));
        if let Some((status, said)) = ended {
            acknowledged.push(summary_of(killed, status, &said, stored, bytes));
            check_restores(&machine, &source, &acknowledged);
        }
    }
    let mut last = Running::start(&machine, &source);
    assert!(last.outlives(Duration::from_secs(600)).is_some_and(|(status, _)| status.success()));
    let checked = machine.summary(["check", "--scrub", "--verify", "all"]);
    assert_eq!(checked["damaged"], serde_json::json!([]));
    let listed = machine.ok(["snapshots", "--json"]).of_type("snapshot");
    for id in &acknowledged {
        assert!(listed.iter().any(|snapshot| snapshot["id"] == *id.as_str()), "{id} is gone");
    }
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

/// The newest snapshot is as the source is; now and then an older one is read, too.
fn check_restores(machine: &Machine, source: &Path, acknowledged: &[String]) {
    let Some(newest) = acknowledged.last() else { return };
    let target = machine.path("target");
    let from = format!("{newest}:{}", source.to_str().expect("UTF-8"));
    machine.ok(["restore", &from, "--target", target.to_str().expect("UTF-8")]);
    assert_eq!(compare_trees(source, &target, &CompareOptions::default()), [], "{newest}");
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
    check_restores(&machine, &source, &["latest".to_owned()]);
}

/// Kills of a prune. Half of the snapshots are forgotten before each, so that there is work to do.
const PRUNE_KILLS: u64 = 15;
const PRUNE_BYTES: u64 = 12 << 20;

#[test]
fn a_prune_that_is_killed_at_any_moment_takes_nothing_that_is_needed() {
    let kills = setting("HOLDALL_KILLS", PRUNE_KILLS);
    let machine = Machine::new();
    let repo = machine.path("repo").to_str().expect("UTF-8").to_owned();
    machine.ok([
        "init",
        "-r",
        &repo,
        "--recovery-kit",
        machine.path("kit").to_str().expect("UTF-8"),
    ]);
    let source = machine.path("source");
    let mut random = Random::new(11);
    write_files(&source.join("always"), PRUNE_BYTES, &mut random);
    let mut longest = Duration::from_millis(100);
    for kill in 0..kills {
        // A tree of its own for each snapshot, beside what all have.
        let _ = fs::remove_dir_all(source.join("own"));
        write_files(&source.join("own"), PRUNE_BYTES, &mut random);
        machine.ok(["backup", "-r", &repo, source.to_str().expect("UTF-8")]);
        machine.ok(["forget", "-r", &repo, "--keep-last", "2"]);
        let mut child = machine
            .command(["prune", "-r", &repo])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let began = Instant::now();
        if kill % 5 == 0 {
            assert!(child.wait().expect("it ends").success(), "kill {kill}");
            longest = longest.max(began.elapsed());
        } else {
            std::thread::sleep(longest.mul_f64(random.below(1000) as f64 / 1000.0));
            // It may have ended a moment ago, which is a moment like any other.
            let _ = child.kill();
            child.wait().expect("it ends");
        }
        let checked = machine.summary(["check", "-r", &repo, "--scrub", "--verify", "all"]);
        assert_eq!(checked["damaged"], serde_json::json!([]), "kill {kill}");
        let target = machine.path("target");
        let from = format!("latest:{}", source.to_str().expect("UTF-8"));
        machine.ok(["restore", "-r", &repo, &from, "--target", target.to_str().expect("UTF-8")]);
        assert_eq!(compare_trees(&source, &target, &CompareOptions::default()), [], "kill {kill}");
        fs::remove_dir_all(&target).expect("it can be removed");
    }
    // What a prune had copied when it was killed, the next one copies again; the one behind it finds that
    // it is there twice.
    machine.ok(["prune", "-r", &repo]);
    machine.ok(["prune", "-r", &repo]);
    let stored =
        machine.summary(["stats", "-r", &repo])["stored_bytes"].as_u64().expect("a number");
    assert!(stored < 4 * PRUNE_BYTES, "{stored} bytes for what takes {}", 3 * PRUNE_BYTES);
}
