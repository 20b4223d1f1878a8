//! A writer on a share that falls asleep behind any of its calls, while another takes the repository over,
//! backs up and prunes, and that goes on when it wakes: nothing acknowledged is lost, and nothing is damaged.
//!
//! strace stops the writer behind the call. The share is a folder of this computer that has a lease, as on a
//! share; the other finds the file `lock` gone, as if the writer had locked it on a computer of its own.
//! `HOLDALL_SLEEPS` says at one of how many calls; `cargo xtask torture` takes each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use holdall_testkit::{CompareOptions, Random, compare_trees, has_strace};
use rustix::process::{Pid, Signal, kill_process};

use crate::clocks::{can_let_days_pass, days_later};
use crate::house::{Machine, Outcome, files_below};
use crate::nth_call::{Beginning, FAILED, Work, check_each, text};

/// One of how many calls a run of the tests takes.
const STRIDE: usize = 10;
/// On the first of these days the sleeper's session has lapsed, and what it stored is condemned; on the other
/// that is deleted.
const DAYS: [u64; 2] = [8, 10];
/// Far more than a command of these takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Reads everything, and opens it.
const CHECK: [&str; 4] = ["check", "--scrub", "--verify", "all"];
/// What strace says of a process that sleeps.
const STOPPED: &str = " --- stopped by SIGSTOP ---";

/// A call behind which a writer sleeps.
#[derive(Debug)]
struct Sleep {
    work: Work,
    /// Whether it took over itself from one who sleeps.
    has_taken_over: bool,
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
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { strace: command.spawn().expect("strace starts"), trace }
    }

    /// The threads that were stopped so far.
    fn stopped(&self) -> Vec<Pid> {
        let lines = fs::read_to_string(&self.trace).unwrap_or_default();
        let threads = lines.lines().filter_map(|line| line.strip_suffix(STOPPED));
        threads.filter_map(|thread| Pid::from_raw(thread.trim().parse().ok()?)).collect()
    }

    /// Waits until it sleeps once more than `times`, or has ended; says whether it sleeps.
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
    fn wake(mut self) -> Outcome {
        let mut seen = 0;
        while self.falls_asleep(seen) {
            let stopped = self.stopped();
            seen = stopped.len();
            // All its threads are woken by any; none is left if it ended just now.
            let _ = stopped.last().map(|&thread| kill_process(thread, Signal::CONT));
        }
        Outcome::of_output(self.strace.wait_with_output().expect("it ends"))
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

/// A computer whose repository lies on a share; another may have fallen asleep there before.
fn on_a_share(
    beginning: &Beginning,
    number: usize,
    (work, may_one_sleep): (Work, bool),
) -> Machine {
    let machine = beginning.fresh(number, work);
    let lease = machine.path("repo/lease");
    fs::create_dir(&lease).expect("room");
    if may_one_sleep {
        let text = "holdall lease, version 1\nhost attic\nprocess x pid:[1] 7 7\nsince 100\n";
        fs::write(lease.join(format!("{:016x}", 6)), text).expect("room");
        make_old(&lease);
        fs::write(machine.path("repo/tmp/half"), "done").expect("room");
    }
    machine
}

/// Another computer with the same repository.
fn another(machine: &Machine) -> Machine {
    let folder = machine.path("another");
    fs::create_dir(&folder).expect("room");
    std::os::unix::fs::symlink(machine.path("repo"), folder.join("repo")).expect("room");
    Machine::in_folder(folder)
}

/// Has a writer sleep behind one call; says whether it did.
fn check(beginning: &Beginning, number: usize, sleep: &Sleep) -> bool {
    let machine = on_a_share(beginning, number, (sleep.work, sleep.has_taken_over));
    let other = another(&machine);
    let (source, target) = (other.path("source"), other.path("target"));
    fs::create_dir(&source).expect("room");
    fs::write(source.join("other"), Random::new(4).bytes(4000)).expect("room");
    let goes_well = |machine: &Machine, args: &[&str], what: &str| {
        let Outcome { code, stdout, stderr } = beginning.run(machine, args);
        assert_eq!(code, Some(0), "{args:?}: {stdout}{stderr}\nafter {sleep:?}, {what}");
    };
    let mut sleeper = Sleeper::start(beginning, &machine, sleep);
    let has_slept = sleeper.falls_asleep(0);
    make_old(&machine.path("repo/lease"));
    let _ = fs::remove_file(machine.path("repo/lock"));
    goes_well(&other, &["backup", text(&source)], "who sleeps");
    for day in DAYS {
        let prune = beginning.command(Work::Prune, &other, &[], "");
        Outcome::of(&mut days_later(day, &prune)).expect(0);
    }
    let Outcome { code, stdout, stderr } = sleeper.wake();
    let is_done = code == Some(0);
    let what = format!("who woke and ended with {code:?}: {stdout}{stderr}");
    assert!(is_done || code.is_some_and(|code| FAILED.contains(&code)), "{sleep:?}, {what}");
    goes_well(&other, &CHECK, &what);
    let listed = beginning.run(&other, &["snapshots", "--json"]).expect(0).of_type("snapshot");
    let made = 2 + 1 + usize::from(is_done && sleep.work == Work::Backup);
    assert!(listed.len() >= made, "{} of {made} snapshots after {sleep:?}, {what}", listed.len());
    let from = format!("latest:{}", text(&source));
    goes_well(&other, &["restore", &from, "--target", text(&target)], &what);
    assert_eq!(compare_trees(&source, &target, &CompareOptions::default()), [], "{what}");
    goes_well(&machine, &["prune"], &what);
    beginning.work(Work::Backup, &machine, &[], "").expect(0);
    beginning.work(Work::Restore, &machine, &[], "target").expect(0);
    beginning.assert_restored(&machine.path("target"), &what);
    goes_well(&machine, &CHECK, &what);
    fs::remove_dir_all(machine.path("")).expect("it can be removed");
    has_slept
}

/// One of how many calls is tried.
fn stride() -> usize {
    let told = std::env::var("HOLDALL_SLEEPS");
    told.map_or(STRIDE, |text| text.parse().expect("a number"))
}

#[test]
fn whichever_call_a_writer_sleeps_behind_whoever_took_over_loses_nothing() {
    if !has_strace() || !can_let_days_pass() {
        return;
    }
    let beginning = Beginning::new();
    let mut sleeps = Vec::new();
    for (work, has_taken_over) in
        [(Work::Backup, false), (Work::Backup, true), (Work::Prune, false), (Work::Prune, true)]
    {
        let machine = on_a_share(&beginning, 1, (work, has_taken_over));
        let calls = beginning.calls_on(&machine, work);
        println!("{work:?}, which has taken over: {has_taken_over}: {} calls", calls.len());
        let sleep = |(call, times)| Sleep { work, has_taken_over, call, times };
        sleeps.extend(calls.into_iter().map(sleep));
    }
    let sleeps: Vec<Sleep> = sleeps.into_iter().step_by(stride()).collect();
    check_each(&sleeps, |number, sleep| check(&beginning, number, sleep));
}
