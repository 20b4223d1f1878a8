//! A disk of the server that is gone for a while, as a cable that slips: whatever the server asks of
//! its files fails. What was being done fails and says so, and once the disk is back, everything works
//! again without anybody restarting anything.
//!
//! strace attaches to the running server and has its calls fail until it is told to let go; and a real file
//! system on an image is shut down, taken away and mounted again from another device.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use holdall_testkit::{CompareOptions, Process, Random, compare_trees, has_strace};
use rustix::process::Signal;

use crate::house::{Machine, Outcome, Server, files_below, is_root, text, wait_for_progress};
use crate::mounts::Mount;
use crate::nth_call::{FAILED, names_one};
use crate::repair::Kept;

/// Calls of files alone: what goes over the network is left as it is.
const CALLS: &str = "openat,openat2,pread64,preadv,pwrite64,pwritev,fsync,fdatasync,ftruncate,\
    fallocate,copy_file_range,statx,newfstatat,statfs,fstatfs,getdents64,mkdir,mkdirat,rename,renameat,renameat2,\
    link,linkat,unlink,unlinkat";
/// Far more than attaching takes.
const PATIENCE: Duration = Duration::from_secs(30);
/// Far more than letting go takes.
const AT_LAST: Duration = Duration::from_secs(5);

/// A running process whose calls are traced, or fail, as long as this is there.
pub(crate) struct Traced {
    strace: Child,
    pid: String,
}

impl Traced {
    /// Attaches strace with these arguments to all threads of a process.
    pub(crate) fn attach(process: &Process, args: &[&str]) -> Self {
        let pid = process.id().to_string();
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-p", &pid]).args(args).stderr(Stdio::null());
        let strace = command.spawn().expect("strace starts");
        let begun = Instant::now();
        while !is_traced(&pid) {
            assert!(begun.elapsed() < PATIENCE, "strace does not attach");
            sleep(Duration::from_millis(10));
        }
        Self { strace, pid }
    }

    /// The disk of that process is gone.
    fn gone(process: &Process) -> Self {
        let (trace, inject) = (format!("trace={CALLS}"), format!("inject={CALLS}:error=EIO"));
        Self::attach(process, &["-e", &trace, "-e", &inject, "-o", "/dev/null"])
    }
}

impl Traced {
    /// Whether strace ends within that time.
    fn ends_within(&mut self, limit: Duration) -> bool {
        let begun = Instant::now();
        loop {
            if self.strace.try_wait().expect("it is ours").is_some() {
                return true;
            }
            if begun.elapsed() >= limit {
                return false;
            }
            sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        // Its threads go on without it, which killing strace would not let them. For a process that was killed
        // it may wait for ever.
        if !is_dead(&self.pid) {
            let pid = rustix::process::Pid::from_child(&self.strace);
            let _ = rustix::process::kill_process(pid, Signal::TERM);
            if self.ends_within(AT_LAST) {
                return;
            }
        }
        let _ = self.strace.kill();
        let _ = self.strace.wait();
    }
}

/// Whether a process is dead, or is just dying.
pub(crate) fn dies(process: &Process) -> bool {
    let pid = process.id().to_string();
    (0..100).any(|_| {
        sleep(Duration::from_millis(2));
        is_dead(&pid)
    })
}

/// Whether a process was killed, and nobody waited for it yet.
fn is_dead(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.contains("State:\tZ")
}

/// Whether somebody traces every thread of a process.
fn is_traced(pid: &str) -> bool {
    let traced = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        status
            .lines()
            .any(|line| line.strip_prefix("TracerPid:").is_some_and(|tracer| tracer.trim() != "0"))
    };
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
    tasks.flatten().all(traced)
}

/// Whether a running server's calls can be made to fail.
pub(crate) fn can_trace() -> bool {
    has_strace() && is_root("a disk that is gone, by strace")
}

/// A machine with one snapshot on a server, and something new to back up.
struct House {
    machine: Machine,
    server: Server,
}

impl House {
    fn new() -> Self {
        let machine = Machine::new();
        let data = machine.path("data");
        Self::with(machine, &data)
    }

    fn with(machine: Machine, data: &Path) -> Self {
        let server = Server::start(data);
        machine.pair_with(&server);
        let house = Self { machine, server };
        house.write(1, 40);
        house.machine.ok(["backup", &house.source()]);
        house.write(2, 400);
        house
    }

    fn source(&self) -> String {
        self.machine.path("source").to_str().unwrap().to_owned()
    }

    /// So many files of 100 KB that do not compress.
    fn write(&self, seed: u64, files: usize) {
        let folder = self.machine.path("source").join(format!("part {seed}"));
        fs::create_dir_all(&folder).unwrap();
        let mut random = Random::new(seed);
        for number in 0..files {
            fs::write(folder.join(number.to_string()), random.bytes(100_000)).unwrap();
        }
    }

    /// It failed, and says of what.
    fn assert_told(&self, failed: &Outcome) {
        let [data, disk] = ["data", "disk"].map(|name| self.machine.path(name));
        let named = [text(&data), text(&disk), self.server.address(), "the server"];
        let said = format!("{}{}", failed.stdout, failed.stderr);
        let says_it = names_one(&said, &named);
        assert!(failed.code.is_some_and(|code| FAILED.contains(&code)) && says_it, "{failed:?}");
    }

    /// Everything works, with the same server, and nothing that was acknowledged is lost.
    fn assert_well(&self, snapshots: usize) {
        self.machine.ok(["backup", &self.source()]);
        let listed = self.machine.ok(["snapshots", "--json"]).of_type("snapshot");
        assert_eq!(listed.len(), snapshots);
        self.machine.ok(["check", "--scrub", "--verify", "all"]);
        let (from, target) = (format!("latest:{}", self.source()), self.machine.path("target"));
        self.machine.ok(["restore", &from, "--target", target.to_str().unwrap()]);
        let source = self.machine.path("source");
        assert_eq!(compare_trees(&source, &target, &CompareOptions::default()), []);
    }
}

#[test]
fn a_disk_that_vanishes_while_a_backup_is_stored_needs_no_restart_when_it_is_back() {
    if !can_trace() {
        return;
    }
    let mut house = House::new();
    let args = ["backup", &house.source(), "--json", "--retry-for", "2s", "--limit-upload", "8M"];
    let mut backup = Process::spawn(&mut house.machine.command(args)).unwrap();
    wait_for_progress(&mut backup, 2);
    let gone = Traced::gone(house.server.process());
    let failed = Outcome::of_process(backup);
    drop(gone);
    house.assert_told(&failed);
    house.assert_well(2);
}

#[test]
fn a_disk_that_is_gone_before_anything_is_asked_is_told_and_comes_back() {
    if !can_trace() {
        return;
    }
    let mut house = House::new();
    let gone = Traced::gone(house.server.process());
    let asked = [
        house.machine.run(["backup", &house.source(), "--retry-for", "1s"]),
        house.machine.run(["check", "--scrub"]),
    ];
    drop(gone);
    for failed in asked {
        house.assert_told(&failed);
    }
    house.assert_well(2);
}

/// It is listed when the repository is opened, which takes two calls, and never again.
#[test]
fn packs_whose_folder_can_not_be_listed_are_not_told_as_gone() {
    if !has_strace() {
        return;
    }
    let kept = Kept::new();
    kept.backup();
    let pack = files_below(&kept.repo.join("packs")).remove(0);
    let folder = pack.parent().unwrap().to_str().unwrap();
    let inject = "inject=getdents64:error=EIO:when=3+";
    let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", folder, "-e", inject];
    let told = kept.machine.run_by(&strace, kept.args(&["check", "--scrub"]));
    assert_eq!(told.code, Some(0), "{}", told.stdout);
}

#[test]
fn a_disk_that_is_pulled_out_and_put_back_needs_no_restart() {
    let machine = Machine::new();
    let Some(disk) = Mount::ext4(&machine.path("disk"), 512 << 20) else { return };
    let mut house = House::with(machine, &disk.point().join("data"));
    let args = ["backup", &house.source(), "--json", "--retry-for", "2s", "--limit-upload", "8M"];
    let mut backup = Process::spawn(&mut house.machine.command(args)).unwrap();
    wait_for_progress(&mut backup, 2);
    disk.pull_out();
    let failed = Outcome::of_process(backup);
    house.assert_told(&failed);
    let failed = house.machine.run(["backup", &house.source(), "--retry-for", "1s"]);
    house.assert_told(&failed);
    disk.put_back();
    // One that began as long as the disk was away may store its snapshot and still tell what it could not read.
    let begun = Instant::now();
    let mut made = 1;
    loop {
        let again = house.machine.run(["backup", &house.source()]);
        made += again.stdout.lines().filter(|line| line.starts_with("snapshot ")).count();
        if again.code == Some(0) {
            break;
        }
        house.assert_told(&again);
        assert!(begun.elapsed() < PATIENCE, "it does not notice");
        sleep(Duration::from_millis(100));
    }
    house.assert_well(made + 1);
    let told = house.machine.administer(&disk.point().join("data"), &["repositories"]).expect(0);
    assert_eq!(told.of_type("repository").len(), 1);
    house.server.process().terminate().unwrap();
    assert!(house.server.process().wait().unwrap().0.success());
}
