//! Verdicts, on bottlenecks that are planted for real: each names the planted layer.
//!
//! One row after another, since they share the computer; each takes seconds. What else runs on the
//! computer may be what limits, so they are not among the tests of every day: `cargo xtask torture
//! verdicts`.
//!
//! There is no level of compression to set: it follows what is behind it. So data that hardly
//! compresses is planted before a slow link, where the highest level is tried on it, and that must not
//! be taken for the limit.

use std::fs;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdall_testkit::{DelayProxy, End, Links, Random, SmallFiles, small_files};
use serde_json::Value;

use crate::house::{Machine, Outcome, Server};
use crate::mounts::Share;
use crate::plants::{self, Ration, SlowFsync, Squeeze, forget_cached, run_by};

/// Rows share the computer.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Files of 2 MB each that do not compress.
fn large_files(dir: &Path, count: u64) {
    fs::create_dir_all(dir).expect("a folder");
    for number in 0..count {
        let content = Random::new(number + 1).bytes(2_000_000);
        fs::write(dir.join(format!("large-{number}")), content).expect("room");
    }
}

/// Files of 2 MB each that a compressor works on for long and makes a quarter smaller: six bits of
/// chance in each byte.
fn hardly_compressible_files(dir: &Path, count: u64) {
    fs::create_dir_all(dir).expect("a folder");
    for number in 0..count {
        let mut content = Random::new(number + 1).bytes(2_000_000);
        content.iter_mut().for_each(|byte| *byte = b' ' + (*byte & 0x3f));
        fs::write(dir.join(format!("hard-{number}")), content).expect("room");
    }
}

fn tiny_files(dir: &Path, files: usize) {
    fs::create_dir_all(dir).expect("a folder");
    let wanted = SmallFiles { files, dirs: 10, median_bytes: 1500, seed: 3 };
    small_files(dir, &wanted).expect("room");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The verdict of a command, which must end well.
#[track_caller]
fn verdict_of(command: &mut Command) -> Value {
    Outcome::of(command).expect(0).summary()["verdict"].clone()
}

/// Checks that a verdict names one of the layers that were planted, and says how it came to that.
#[track_caller]
fn names(verdict: &Value, layers: &[&str]) {
    let named = verdict["limited_by"].as_str().expect("a layer");
    assert!(layers.contains(&named), "{named} in place of {layers:?}: {verdict:#}");
    assert!(verdict["explanation"].as_str().is_some_and(|why| why.len() > 20), "{verdict:#}");
}

/// A machine that is paired with a server, and its large files.
struct World {
    machine: Machine,
    /// Runs as long as this is there.
    server: Server,
}

impl World {
    /// The server runs behind what `prefix` says, and with one variable more.
    fn new(prefix: &[std::ffi::OsString], preload: Option<&SlowFsync>) -> Self {
        let machine = Machine::new();
        let data = machine.path("server");
        let mut command = run_by_or_not(prefix, Server::command(&data));
        if let Some(slow) = preload {
            command.env("LD_PRELOAD", slow.library());
        }
        let server = Server::start_by(&mut command, &data);
        machine.pair_with(&server);
        Self { machine, server }
    }

    /// One more machine that is paired with the server.
    fn other_machine(&self) -> Machine {
        let other = Machine::new();
        other.pair_with(&self.server);
        other
    }

    fn backup(&self, source: &Path) -> Command {
        self.machine.command(["backup", text(source), "--json"])
    }

    fn restore(&self) -> Command {
        let target = self.machine.path("target");
        self.machine.command(["restore", "latest", "--target", text(&target), "--json"])
    }

    fn large_source(&self, count: u64) -> std::path::PathBuf {
        let source = self.machine.path("source");
        large_files(&source, count);
        source
    }
}

fn run_by_or_not(prefix: &[std::ffi::OsString], command: Command) -> Command {
    if prefix.is_empty() { command } else { run_by(prefix, &command) }
}

/// A machine and a server at the two ends of links, and a source of large files.
struct Linked {
    links: Links,
    machine: Machine,
    source: String,
    server: Server,
}

impl Linked {
    fn new(bits_per_second: &[u64], files: u64) -> Option<Self> {
        let linked = Self::without_source(bits_per_second)?;
        large_files(Path::new(&linked.source), files);
        Some(linked)
    }

    fn without_source(bits_per_second: &[u64]) -> Option<Self> {
        let links = plants::links(bits_per_second)?;
        let machine = Machine::new();
        let data = machine.path("server");
        let command = Server::command_at(&format!("{}:0", Links::address(0, End::Server)), &data);
        let server = Server::start_by(&mut run_by(&links.prefix(End::Server), &command), &data);
        let source = text(&machine.path("source")).to_owned();
        let linked = Self { links, machine, source, server };
        let invite = linked.server.invite_with(&["--address", linked.server.address()]);
        linked.run(&["pair", &invite, "--recovery-kit", text(&linked.machine.path("kit.txt"))]);
        Some(linked)
    }

    /// Runs a command at the machine's end, which must end well.
    #[track_caller]
    fn run(&self, args: &[&str]) -> Outcome {
        let command = self.machine.command(args);
        Outcome::of(&mut run_by(&self.links.prefix(End::Client), &command)).expect(0)
    }

    /// The verdict of a command on the source.
    #[track_caller]
    fn verdict(&self, args: &[&str]) -> Value {
        self.run(&[args, &["--json"]].concat()).summary()["verdict"].clone()
    }
}

#[test]
fn a_link_of_50_megabits_is_the_network() {
    let _alone = alone();
    let Some(linked) = Linked::new(&[50_000_000], 8) else { return };
    let verdict = linked.verdict(&["backup", &linked.source]);
    names(&verdict, &["network"]);
    // 6.25 MB/s is all that it carries.
    let achieved = verdict["achieved"].as_f64().expect("a rate");
    assert!(achieved < 6.3e6, "{verdict:#}");
}

#[test]
fn a_link_of_a_gigabit_is_the_network() {
    let _alone = alone();
    let Some(linked) = Linked::new(&[1_000_000_000], 200) else { return };
    let verdict = linked.verdict(&["backup", &linked.source]);
    names(&verdict, &["network"]);
    // 125 MB/s is all that it carries.
    let achieved = verdict["achieved"].as_f64().expect("a rate");
    assert!(achieved < 126e6, "{verdict:#}");
}

#[test]
fn data_that_hardly_compresses_before_a_slow_link_is_the_network() {
    let _alone = alone();
    let Some(linked) = Linked::without_source(&[50_000_000]) else { return };
    hardly_compressible_files(Path::new(&linked.source), 20);
    names(&linked.verdict(&["backup", &linked.source]), &["network"]);
}

#[test]
fn a_link_of_50_megabits_is_the_wire_of_the_ladder_and_used_up() {
    let _alone = alone();
    let Some(linked) = Linked::new(&[50_000_000], 8) else { return };
    let summary = linked.run(&["lab", "path", &linked.source, "--json"]).summary();
    names(&summary["verdict"], &["network"]);
    let ladder = summary["ladder"].as_array().expect("a ladder");
    let wire = ladder.iter().find(|rung| rung["name"] == "wire").expect("a wire");
    // 6.25 MB/s is all that it carries.
    let (rate, used) = (wire["bytes_per_second"].as_f64(), wire["used"].as_f64());
    assert!((4e6..6.3e6).contains(&rate.expect("a rate")), "{wire}");
    assert!((0.7..1.3).contains(&used.expect("a share")), "{wire}");
    assert!(summary["verdict"]["help"].as_str().is_some_and(|help| help.contains("a faster wire")));
}

#[test]
fn one_slow_path_of_two_is_the_network() {
    let _alone = alone();
    let Some(linked) = Linked::new(&[1_000_000_000, 20_000_000], 8) else { return };
    let bind = linked.links.client_addresses().join(",");
    let verdict = linked.verdict(&["backup", &linked.source, "--bind", &bind, "--streams", "2"]);
    names(&verdict, &["network"]);
}

#[test]
fn a_link_of_50_megabits_is_the_network_of_a_restore() {
    let _alone = alone();
    let Some(linked) = Linked::new(&[50_000_000], 8) else { return };
    linked.run(&["backup", &linked.source]);
    let target = linked.machine.path("target");
    names(&linked.verdict(&["restore", "latest", "--target", text(&target)]), &["network"]);
}

#[test]
fn a_delay_of_40_ms_is_the_network() {
    let _alone = alone();
    let machine = Machine::new();
    let server = Server::start(&machine.path("server"));
    let upstream = server.address().to_socket_addrs().expect("an address").next();
    let proxy = DelayProxy::start(upstream.expect("one"), Duration::from_millis(20), None)
        .expect("a free port");
    let invite = server.invite_with(&["--address", &proxy.address().to_string()]);
    machine.pair(&invite);
    let source = machine.path("source");
    large_files(&source, 10);
    names(&verdict_of(&mut machine.command(["backup", text(&source), "--json"])), &["network"]);
}

#[test]
fn an_own_limit_is_the_network_and_is_named() {
    let _alone = alone();
    let world = World::new(&[], None);
    let source = world.large_source(8);
    let args = ["backup", text(&source), "--limit-upload", "4M", "--json"];
    let verdict = verdict_of(&mut world.machine.command(args));
    names(&verdict, &["network"]);
    let why = verdict["explanation"].as_str().expect("text");
    assert!(why.contains("--limit-upload"), "the limit is not named: {why}");
}

#[test]
fn a_server_whose_disk_writes_slowly_is_its_disk() {
    let _alone = alone();
    let Some(ration) = Ration::of_writing("w", crate::house::folder().path(), 5_000_000) else {
        return;
    };
    let world = World::new(&ration.prefix(), None);
    names(&verdict_of(&mut world.backup(&world.large_source(10))), &["server-disk"]);
}

#[test]
fn a_server_whose_fsync_takes_long_is_its_disk() {
    let _alone = alone();
    let Some(slow) = SlowFsync::by(Duration::from_millis(300)) else { return };
    let world = World::new(&[], Some(&slow));
    names(&verdict_of(&mut world.backup(&world.large_source(20))), &["server-disk"]);
}

#[test]
fn a_server_whose_fsync_takes_long_is_the_disk_of_the_ladder() {
    let _alone = alone();
    let Some(slow) = SlowFsync::by(Duration::from_millis(300)) else { return };
    let world = World::new(&[], Some(&slow));
    let source = world.large_source(20);
    let mut path = world.machine.command(["lab", "path", text(&source), "--json"]);
    let summary = Outcome::of(&mut path).expect(0).summary();
    names(&summary["verdict"], &["server-disk"]);
    assert!(summary["verdict"]["help"].as_str().is_some_and(|help| help.contains("a faster disk")));
}

#[test]
fn a_server_whose_disk_reads_slowly_is_the_disk_of_a_restore() {
    let _alone = alone();
    let Some(ration) = Ration::of_reading("sr", crate::house::folder().path(), 4_000_000) else {
        return;
    };
    let world = World::new(&ration.prefix(), None);
    Outcome::of(&mut world.backup(&world.large_source(8))).expect(0);
    for file in crate::house::files_below(&world.machine.path("server")) {
        forget_cached(&file);
    }
    names(&verdict_of(&mut world.restore()), &["server-disk"]);
}

#[test]
fn a_server_that_waits_for_the_bytes_of_others_is_busy() {
    let _alone = alone();
    let world = World::new(&[], None);
    let source = world.large_source(20);
    let others: Vec<_> = (0..5).map(|_| world.other_machine()).collect();
    let mut working: Vec<_> = others
        .iter()
        .map(|other| {
            let args = ["backup", text(&source), "--limit-upload", "1M", "--streams", "8"];
            other.command(args).stdout(Stdio::null()).spawn().expect("it starts")
        })
        .collect();
    // They all have begun to send what the server has to wait for.
    std::thread::sleep(Duration::from_secs(4));
    let verdict = verdict_of(&mut world.backup(&source));
    for other in &mut working {
        other.kill().expect("it runs");
        other.wait().expect("it ends");
    }
    names(&verdict, &["server-busy"]);
}

#[test]
fn a_client_whose_memory_is_taken_again_and_again_is_its_memory() {
    let _alone = alone();
    let Some(squeeze) = Squeeze::every(Duration::from_millis(100)) else { return };
    let world = World::new(&[], None);
    let source = world.machine.path("source");
    tiny_files(&source, 40_000);
    names(&verdict_of(&mut run_by(&squeeze.prefix(), &world.backup(&source))), &["client-memory"]);
}

#[test]
fn a_source_that_reads_slowly_is_its_reading() {
    let _alone = alone();
    let world = World::new(&[], None);
    let source = world.large_source(6);
    let Some(ration) = Ration::of_reading("r", &source, 4_000_000) else { return };
    for file in crate::house::files_below(&source) {
        forget_cached(&file);
    }
    names(&verdict_of(&mut run_by(&ration.prefix(), &world.backup(&source))), &["source-read"]);
}

#[test]
fn a_client_with_a_tenth_of_a_core_is_its_processor() {
    let _alone = alone();
    let Some(ration) = Ration::of_processor("c", 10) else { return };
    let world = World::new(&[], None);
    let source = world.large_source(8);
    names(&verdict_of(&mut run_by(&ration.prefix(), &world.backup(&source))), &["client-cpu"]);
}

#[test]
fn a_client_with_a_tenth_of_a_core_is_the_processor_of_a_restore() {
    let _alone = alone();
    let Some(ration) = Ration::of_processor("cr", 10) else { return };
    let world = World::new(&[], None);
    let source = world.machine.path("source");
    // Much to decompress and to hash, and little to fetch.
    fs::create_dir_all(&source).expect("a folder");
    for number in 0..8 {
        let line = format!("line {number} of a text that is compressed well\n");
        fs::write(source.join(format!("text-{number}")), line.repeat(200_000)).expect("room");
    }
    Outcome::of(&mut world.backup(&source)).expect(0);
    let mut restore = run_by(&ration.prefix(), &world.restore());
    names(&verdict_of(&mut restore), &["client-cpu"]);
}

#[test]
fn tiny_files_to_a_share_that_is_far_away_are_the_target() {
    let _alone = alone();
    let Some(share) = Share::far_away(Duration::from_millis(5)) else { return };
    let mount = share.mount("far", &[]);
    let world = World::new(&[], None);
    let source = world.machine.path("source");
    tiny_files(&source, 100);
    Outcome::of(&mut world.backup(&source)).expect(0);
    let target = mount.point().join("target");
    let args = ["restore", "latest", "--target", text(&target), "--json"];
    // The share keeps no owners.
    let outcome = Outcome::of(&mut world.machine.command(args));
    names(&outcome.summary()["verdict"], &["target-write"]);
}

#[test]
fn a_server_with_a_twentieth_of_a_core_is_its_processor() {
    let _alone = alone();
    let Some(ration) = Ration::of_processor("s", 5) else { return };
    let world = World::new(&ration.prefix(), None);
    names(&verdict_of(&mut world.backup(&world.large_source(20))), &["server-cpu"]);
}

#[test]
fn tiny_files_on_a_share_that_is_far_away_are_the_source() {
    let _alone = alone();
    let Some(share) = Share::far_away(Duration::from_millis(5)) else { return };
    tiny_files(&share.served(), 600);
    let mount = share.mount("far", &[]);
    let world = World::new(&[], None);
    let verdict = verdict_of(&mut world.backup(mount.point()));
    names(&verdict, &["source-read", "source-metadata"]);
    // More are asked for at once than there are cores.
    let stages = verdict["stages"].as_array().expect("stages");
    let read = stages.iter().find(|stage| stage["name"] == "read").expect("it reads");
    let cores = holdall_sys::cpu::available_cores().ceil() as u64;
    assert!(read["threads"].as_u64() > Some(cores), "{read}");
}

#[test]
fn names_on_a_share_that_is_far_away_are_the_sources_metadata() {
    let _alone = alone();
    let Some(share) = Share::far_away(Duration::from_millis(20)) else { return };
    for number in 0..60 {
        fs::create_dir_all(share.served().join(format!("dir-{number}/below"))).expect("room");
    }
    let mount = share.mount("far", &[]);
    let world = World::new(&[], None);
    names(&verdict_of(&mut world.backup(mount.point())), &["source-metadata"]);
}

#[test]
fn where_nothing_is_planted_none_of_the_plants_is_named() {
    let _alone = alone();
    let world = World::new(&[], None);
    let verdict = verdict_of(&mut world.backup(&world.large_source(10)));
    let named = verdict["limited_by"].as_str().expect("a layer");
    let planted = ["network", "server-cpu", "source-metadata", "client-memory"];
    assert!(!planted.contains(&named), "{verdict:#}");
}

#[test]
fn a_run_of_a_moment_is_held_back_by_nothing() {
    let _alone = alone();
    let world = World::new(&[], None);
    let source = world.machine.path("source");
    fs::create_dir(&source).expect("a folder");
    fs::write(source.join("one"), "few bytes").expect("room");
    names(&verdict_of(&mut world.backup(&source)), &["nothing"]);
}
