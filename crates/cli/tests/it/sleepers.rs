//! A writer on a share that falls asleep behind any of its calls, while another takes the repository over,
//! backs up and prunes, and that goes on when it wakes: nothing acknowledged is lost, and nothing is damaged.
//!
//! strace stops the writer behind the call. The share is a folder of this computer that has a lease, as on a
//! share, or gets one when the other comes: then the writer is on the computer whose disk it is. The other finds
//! the file `lock` gone, as if the writer had locked it on a computer of its own.
//! All slices together take each call.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use holdall_testkit::{CompareOptions, Random, Slice, compare_trees, has_strace};
use rustix::process::{Pid, Signal, kill_process};

use crate::beginning::{Beginning, Work};
use crate::clocks::{can_let_days_pass, days_later};
use crate::house::{Machine, Outcome, files_below, text};
use crate::nth_call::{FAILED, calls_on, check_each};

/// A change takes one call in so many.
const SLICES: u64 = 60;
/// On the first of these days the sleeper's session has lapsed, and what it stored is condemned; on the other
/// that is deleted.
const DAYS: [u64; 2] = [8, 10];
/// Far more than a command of these takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Reads everything, and opens it.
const CHECK: [&str; 4] = ["check", "--scrub", "--verify", "all"];
/// What strace says of a process that sleeps.
const STOPPED: &str = " --- stopped by SIGSTOP ---";

/// Who wrote to the share before the one that falls asleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nobody: the writer is on the computer whose disk it is, and the other is the first to come over the share.
    Nobody,
    /// Somebody who gave the lease back.
    Another,
    /// One who fell asleep, from whom the writer takes over.
    Sleeper,
}

/// A call behind which a writer sleeps.
#[derive(Debug)]
struct Sleep {
    work: Work,
    before: Before,
    call: String,
    times: u32,
}

/// A writer that may fall asleep.
struct Sleeper {
    strace: Child,
    trace: PathBuf,
}

impl Sleeper {
    fn start(beginning: &Beginning, machine: &Machine, sleep: &Sleep) -> Self {
        let Sleep { work, call, times, .. } = sleep;
        let trace = machine.path("trace");
        let filter = format!("trace={call}");
        let inject = format!("inject={call}:signal=SIGSTOP:when={times}");
        let by = ["strace", "-f", "-e", &filter, "-e", &inject, "-o", text(&trace)];
        let mut command = beginning.command(*work, machine, &by, "");
        let file = |name| fs::File::create(trace.with_extension(name)).expect("room");
        command.stdout(file("out")).stderr(file("err"));
        Self { strace: command.spawn().expect("strace starts"), trace }
    }

    /// The threads that were stopped so far.
    fn stopped(&self) -> Vec<Pid> {
        let lines = fs::read_to_string(&self.trace).unwrap_or_default();
        let threads = lines.lines().filter_map(|line| line.strip_suffix(STOPPED));
        threads.filter_map(|thread| Pid::from_raw(thread.trim().parse().ok()?)).collect()
    }

    /// Waits until it was stopped more often than `seen` times, or has ended; says whether it sleeps.
    fn falls_asleep(&mut self, seen: usize) -> bool {
        let begun = Instant::now();
        loop {
            if self.strace.try_wait().expect("it is ours").is_some() {
                return false;
            }
            if self.stopped().len() > seen {
                return true;
            }
            assert!(begun.elapsed() < PATIENCE, "it neither sleeps nor ends");
            sleep(Duration::from_millis(2));
        }
    }

    /// Wakes it, as often as another of its threads comes to that call, and waits for its end.
    fn wake(&mut self) -> Outcome {
        let mut seen = 0;
        while self.falls_asleep(seen) {
            let stopped = self.stopped();
            seen = stopped.len();
            // All its threads are woken by any; none is left if it ended just now.
            let _ = stopped.last().map(|&thread| kill_process(thread, Signal::CONT));
        }
        let said =
            |name| fs::read_to_string(self.trace.with_extension(name)).expect("what it said");
        let code = self.strace.wait().expect("it ends").code();
        Outcome { code, stdout: said("out"), stderr: said("err") }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        // A test that fails leaves nobody asleep. The numbers of who has ended may be others' by now.
        if matches!(self.strace.try_wait(), Ok(None)) {
            for thread in self.stopped() {
                let _ = kill_process(thread, Signal::KILL);
            }
            let _ = self.strace.kill();
            let _ = self.strace.wait();
        }
    }
}

/// Has the lease look as if it was not renewed for long enough.
fn make_old(lease: &Path) {
    for file in files_below(lease) {
        let file = fs::OpenOptions::new().append(true).open(file).expect("nobody else is awake");
        let now = SystemTime::now();
        file.set_modified(now - Duration::from_secs(301)).expect("ours");
    }
}

/// A computer whose repository lies on a share.
fn on_a_share(beginning: &Beginning, number: usize, work: Work, before: Before) -> Machine {
    let machine = beginning.fresh(number, work);
    let lease = machine.path("repo/lease");
    let text = match before {
        Before::Nobody => return machine,
        Before::Another => "holdall lease, version 1\nreleased\n",
        Before::Sleeper => {
            fs::write(machine.path("repo/tmp/half"), "done").expect("room");
            "holdall lease, version 1\nhost attic\nprocess x pid:[1] 7 7\nsince 100\n"
        }
    };
    fs::create_dir(&lease).expect("room");
    fs::write(lease.join(format!("{:016x}", 6)), text).expect("room");
    make_old(&lease);
    machine
}

/// Another computer with the same repository.
fn another(machine: &Machine) -> Machine {
    let folder = machine.path("another");
    fs::create_dir(&folder).expect("room");
    std::os::unix::fs::symlink(machine.path("repo"), folder.join("repo")).expect("room");
    Machine::in_folder(folder)
}

/// A writer that sleeps, and another that takes over.
struct Case<'a> {
    beginning: &'a Beginning,
    sleep: &'a Sleep,
    machine: Machine,
    other: Machine,
}

impl<'a> Case<'a> {
    fn new(beginning: &'a Beginning, number: usize, sleep: &'a Sleep) -> Self {
        let machine = on_a_share(beginning, number, sleep.work, sleep.before);
        let other = another(&machine);
        let source = other.path("source");
        fs::create_dir(&source).expect("room");
        fs::write(source.join("other"), Random::new(4).bytes(4000)).expect("room");
        Self { beginning, sleep, machine, other }
    }

    /// Runs a command that must end well.
    fn ok(&self, machine: &Machine, args: &[&str], what: &str) -> Outcome {
        let outcome = self.beginning.run(machine, args);
        let Outcome { code, stdout, stderr } = &outcome;
        assert_eq!(*code, Some(0), "{args:?}: {stdout}{stderr}\nafter {:?}, {what}", self.sleep);
        outcome
    }

    /// What another does who finds nobody awake.
    fn take_over(&self) {
        let lease = self.machine.path("repo/lease");
        // The other's first step, where it is the first to come over the share.
        fs::create_dir_all(&lease).expect("room");
        make_old(&lease);
        let _ = fs::remove_file(self.machine.path("repo/lock"));
        let source = self.other.path("source");
        self.ok(&self.other, &["backup", text(&source)], "who sleeps");
        self.ok(&self.other, &["forget", "--keep-last", "1"], "who sleeps");
        for day in DAYS {
            let prune = self.beginning.command(Work::Prune, &self.other, &[], "");
            Outcome::of(&mut days_later(day, &prune)).expect(0);
        }
    }

    /// Whoever slept has woken and ended: nothing that was acknowledged is lost, and both go on.
    fn judge(&self, woken: &Outcome) {
        let Outcome { code, stdout, stderr } = woken;
        let what = format!("who woke and ended with {code:?}: {stdout}{stderr}");
        let is_done = *code == Some(0);
        let is_told = code.is_some_and(|code| FAILED.contains(&code));
        assert!(is_done || is_told, "{:?}, {what}", self.sleep);
        self.ok(&self.other, &CHECK, &what);
        if is_done && self.sleep.work == Work::Backup {
            let made = stdout.rsplit("snapshot ").next().expect("an id").trim();
            let listed = self.ok(&self.other, &["snapshots", "--json"], &what).of_type("snapshot");
            let mut ids = listed.iter().map(|one| one["id"].as_str().expect("an id"));
            assert!(ids.any(|id| id.starts_with(made)), "{made} of {listed:?}, {what}");
        }
        self.assert_restores(&self.other, &self.other.path("source"), &what);
        // A snapshot of the other's series is none of this one's.
        let own = format!("latest:{}", text(&self.beginning.source()));
        let target = self.machine.path("before");
        self.ok(&self.machine, &["restore", &own, "--target", text(&target)], &what);
        self.ok(&self.machine, &["prune"], &what);
        self.beginning.work(Work::Backup, &self.machine, &[], "").expect(0);
        self.assert_restores(&self.machine, &self.beginning.source(), &what);
        self.ok(&self.machine, &CHECK, &what);
    }

    fn assert_restores(&self, machine: &Machine, source: &Path, what: &str) {
        let (from, target) = (format!("latest:{}", text(source)), machine.path("target"));
        self.ok(machine, &["restore", &from, "--target", text(&target)], what);
        let differences = compare_trees(source, &target, &CompareOptions::default());
        assert_eq!(differences, [], "{:?}, {what}", self.sleep);
    }
}

/// Has a writer sleep behind one call; says whether it did.
fn check(beginning: &Beginning, number: usize, sleep: &Sleep) -> bool {
    let case = Case::new(beginning, number, sleep);
    let mut sleeper = Sleeper::start(beginning, &case.machine, sleep);
    let has_slept = sleeper.falls_asleep(0);
    case.take_over();
    case.judge(&sleeper.wake());
    fs::remove_dir_all(case.machine.path("")).expect("it can be removed");
    has_slept
}

#[test]
fn whichever_call_a_writer_sleeps_behind_whoever_took_over_loses_nothing() {
    if !has_strace() || !can_let_days_pass() {
        return;
    }
    let beginning = Beginning::new();
    let mut sleeps = Vec::new();
    for work in [Work::Backup, Work::Prune] {
        for before in [Before::Nobody, Before::Another, Before::Sleeper] {
            let machine = on_a_share(&beginning, 1, work, before);
            let calls = calls_on(&beginning, &machine, work);
            println!("{work:?}, before which there was {before:?}: {} calls", calls.len());
            let sleep = |(call, times)| Sleep { work, before, call, times };
            sleeps.extend(calls.into_iter().map(sleep));
        }
    }
    let sleeps = Slice::one_in(SLICES).pick(sleeps);
    check_each(&sleeps, |number, sleep| check(&beginning, number, sleep));
}
