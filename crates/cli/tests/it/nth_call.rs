//! Every call to the system that touches a file fails once, with every error: the command says so or
//! does its work all the same, nothing acknowledged is lost, and the next run works.
//!
//! strace records the calls of a backup, a prune and a restore, and has each of them fail in a run of
//! its own, without the call being made. A run has several threads: where each thread counts for
//! itself, the Nth call of any of them fails. `HOLDALL_FAULTS=all` takes six errors, not two.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fmt, fs};

use holdall_testkit::{CompareOptions, Image, Random, compare_trees, has_strace};

use crate::house::{Machine, Outcome};
use crate::keys::{AGE_PRIVATE, AGE_PUBLIC};

/// Calls that read, write or name files. Closing and counting places are left out: nothing depends on
/// what they answer.
const CALLS: &str = "openat,read,pread64,readv,preadv,write,pwrite64,writev,pwritev,fsync,fdatasync,\
    ftruncate,fallocate,copy_file_range,statx,newfstatat,fstat,statfs,fstatfs,getdents64,mkdir,mkdirat,\
    rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,rmdir,readlink,readlinkat,\
    flock,utimensat,fchmod,fchmodat,fchown,fchownat,flistxattr,fgetxattr,fsetxattr";
/// What a disk that fails and one that is full answer.
const ERRORS: [&str; 2] = ["EIO", "ENOSPC"];
const ALL_ERRORS: [&str; 6] = ["EIO", "ENOSPC", "EINTR", "EMFILE", "EROFS", "EACCES"];
/// Codes that a command ends with which could not do its work, and says so.
pub(crate) const FAILED: [i32; 8] = [1, 3, 10, 11, 12, 13, 14, 20];

/// So often is a fault tried until it is met with.
const TRIES: usize = 4;

/// A command whose calls fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Backup,
    Prune,
    Restore,
}

/// What all runs begin with: a computer with a repository, and what it backs up.
pub(crate) struct Beginning {
    folder: tempfile::TempDir,
    fingerprint: String,
    image: Image,
}

impl Beginning {
    /// A repository with snapshots, two of which are forgotten and not pruned.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir_in(memory()).expect("a folder");
        let mut beginning = Self { folder, fingerprint: String::new(), image: Image::default() };
        let machine = Machine::in_folder(beginning.machine(0));
        fs::write(beginning.identity(), AGE_PRIVATE).expect("a file");
        let source = beginning.source();
        fs::create_dir_all(source.join("docs/empty")).expect("a folder");
        let kit = machine.path("kit.txt");
        let repo = machine.path("repo");
        let repo = text(&repo);
        let made = machine.summary(["init", "-r", repo, "--recovery-kit", text(&kit)]);
        beginning.fingerprint = made["fingerprint"].as_str().expect("a text").to_owned();
        machine.ok(["key", "add", "--recipient", AGE_PUBLIC, "-r", repo]);
        let mut random = Random::new(3);
        for round in 0..4 {
            for (name, bytes) in [("a", 3000), ("docs/b", 100), ("docs/large", 70_000)] {
                fs::write(source.join(name), random.bytes(bytes)).expect("a file");
            }
            fs::write(source.join(format!("stays {round}")), random.bytes(900)).expect("a file");
            beginning.run(&machine, &["backup", text(&source)]).expect(0);
        }
        beginning.run(&machine, &["forget", "--keep-last", "2"]).expect(0);
        // What a backup finds new.
        fs::write(source.join("docs/b"), random.bytes(5000)).expect("a file");
        fs::write(source.join("new"), random.bytes(2000)).expect("a file");
        let image = Image::read(&machine.path("")).expect("it can be read");
        Self { image, ..beginning }
    }

    fn machine(&self, number: usize) -> PathBuf {
        let folder = self.folder.path().join(format!("machine-{number}"));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    pub(crate) fn source(&self) -> PathBuf {
        self.folder.path().join("source")
    }

    fn identity(&self) -> PathBuf {
        self.folder.path().join("identity")
    }

    pub(crate) fn run(&self, machine: &Machine, args: &[&str]) -> Outcome {
        self.run_by(machine, &[], args)
    }

    /// Runs a command that opens the repository with a key of its own, which takes no time.
    fn run_by(&self, machine: &Machine, by: &[&str], args: &[&str]) -> Outcome {
        Outcome::of(&mut self.command_by(machine, by, args))
    }

    fn command_by(&self, machine: &Machine, by: &[&str], args: &[&str]) -> Command {
        let (repo, identity) = (machine.path("repo"), self.identity());
        let opens = ["-r", text(&repo), "--identity", text(&identity)];
        machine.command_by(by, [args, &opens, &["--fingerprint", &self.fingerprint]].concat())
    }

    pub(crate) fn work(&self, work: Work, machine: &Machine, by: &[&str], target: &str) -> Outcome {
        Outcome::of(&mut self.command(work, machine, by, target))
    }

    pub(crate) fn command(
        &self,
        work: Work,
        machine: &Machine,
        by: &[&str],
        target: &str,
    ) -> Command {
        let (source, target) = (self.source(), machine.path(target));
        let from = format!("latest:{}", text(&source));
        match work {
            Work::Backup => self.command_by(machine, by, &["backup", text(&source)]),
            Work::Prune => self.command_by(machine, by, &["prune"]),
            Work::Restore => {
                self.command_by(machine, by, &["restore", &from, "--target", text(&target)])
            }
        }
    }

    /// A computer on which nothing of what is to be tested was done.
    pub(crate) fn fresh(&self, number: usize, work: Work) -> Machine {
        let folder = self.machine(number);
        self.image.lay_down(&folder).expect("room");
        let machine = Machine::in_folder(folder);
        if work == Work::Restore {
            self.run(&machine, &["backup", text(&self.source())]).expect(0);
        }
        machine
    }

    /// The calls of a run that touch its files: their names and numbers.
    fn calls(&self, work: Work) -> BTreeSet<(String, u32)> {
        self.calls_on(&self.fresh(1, work), work)
    }

    /// The calls of a run on a computer that is not needed any more.
    pub(crate) fn calls_on(&self, machine: &Machine, work: Work) -> BTreeSet<(String, u32)> {
        let trace = self.folder.path().join("trace");
        let filter = format!("trace={CALLS}");
        let by = ["strace", "-f", "-y", "-e", &filter, "-o", text(&trace)];
        self.work(work, machine, &by, "target").expect(0);
        let lines = fs::read_to_string(&trace).expect("a trace");
        let calls = calls_in(&lines, text(self.folder.path()));
        fs::remove_dir_all(machine.path("")).expect("it can be removed");
        calls
    }

    /// Has one call fail; says whether it was made.
    fn check(&self, number: usize, fault: &Fault) -> bool {
        let machine = self.fresh(number, fault.work);
        let trace = machine.path("trace");
        let [filter, inject] = fault.told();
        let by =
            ["strace", "-f", "--seccomp-bpf", "-e", &filter, "-e", &inject, "-o", text(&trace)];
        let outcome = self.work(fault.work, &machine, &by, "target");
        self.judge(fault, &machine, &outcome);
        let was_made = fs::read_to_string(&trace).is_ok_and(|lines| lines.contains("(INJECTED)"));
        fs::remove_dir_all(machine.path("")).expect("it can be removed");
        was_made
    }

    fn judge(&self, fault: &Fault, machine: &Machine, outcome: &Outcome) {
        let Outcome { code, stdout, stderr } = outcome;
        let what = format!("{fault:?}: {code:?}\n{stdout}{stderr}");
        if stderr.contains("error while loading shared libraries") {
            // It was a call of the loader, and there was no run.
            return;
        }
        let is_done = *code == Some(0);
        assert!(is_done || code.is_some_and(|code| FAILED.contains(&code)), "{what}");
        let named = ["/", "the repository", "the cache folder"];
        let names_it = named.iter().any(|name| stderr.contains(name));
        assert!(is_done || names_it, "it does not say of what: {what}");
        if fault.work == Work::Restore {
            if is_done {
                self.assert_restored(&machine.path("target"), &what);
            }
            self.work(Work::Restore, machine, &[], "again").expect(0);
            return self.assert_restored(&machine.path("again"), &what);
        }
        if is_done && fault.work == Work::Backup {
            self.work(Work::Restore, machine, &[], "target").expect(0);
            self.assert_restored(&machine.path("target"), &what);
        }
        for work in [Work::Prune, Work::Backup] {
            let next = self.work(work, machine, &[], "");
            assert_eq!(next.code, Some(0), "then {work:?}: {}\nafter {what}", next.stderr);
        }
        let checked = self.run(machine, &["check", "--scrub", "--verify", "all"]);
        assert_eq!(
            checked.code,
            Some(0),
            "then {}{}\nafter {what}",
            checked.stdout,
            checked.stderr
        );
        let listed = self.run(machine, &["snapshots", "--json"]).expect(0).of_type("snapshot");
        let made = 2 + 1 + usize::from(is_done && fault.work == Work::Backup);
        assert!(listed.len() >= made, "{} of {made} snapshots after {what}", listed.len());
    }

    pub(crate) fn assert_restored(&self, target: &Path, what: &str) {
        let differences = compare_trees(&self.source(), target, &CompareOptions::default());
        assert_eq!(differences, [], "{what}");
    }
}

/// One call that fails.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) work: Work,
    call: String,
    times: u32,
    error: &'static str,
}

impl Fault {
    /// What makes it, as strace is told.
    pub(crate) fn told(&self) -> [String; 2] {
        let Self { call, times, error, .. } = self;
        [format!("trace={call}"), format!("inject={call}:error={error}:when={times}")]
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Where nothing waits for a disk.
fn memory() -> &'static Path {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { shared } else { Path::new("/tmp") }
}

/// The calls of a trace that touch what is below a folder: their names, and which of its thread's each was.
pub(crate) fn calls_in(trace: &str, folder: &str) -> BTreeSet<(String, u32)> {
    let mut counts: HashMap<(&str, &str), u32> = HashMap::new();
    let mut calls = BTreeSet::new();
    for line in trace.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let Some((name, arguments)) = rest.trim_start().split_once('(') else { continue };
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            continue;
        }
        let count = counts.entry((thread, name)).or_default();
        *count += 1;
        if arguments.contains(folder) {
            calls.insert((name.to_owned(), *count));
        }
    }
    calls
}

/// The errors that each call answers.
fn errors() -> &'static [&'static str] {
    let is_all = std::env::var("HOLDALL_FAULTS").is_ok_and(|how| how == "all");
    if is_all { &ALL_ERRORS } else { &ERRORS }
}

/// Every one of the calls that `whose` work makes, with every error.
fn all_faults(
    whose: &str,
    works: &[Work],
    calls: impl Fn(Work) -> BTreeSet<(String, u32)>,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    for &work in works {
        let calls = calls(work);
        println!("{whose}{work:?}: {} calls", calls.len());
        for (call, times) in calls {
            let fault = |&error| Fault { work, call: call.clone(), times, error };
            faults.extend(errors().iter().map(fault));
        }
    }
    faults
}

/// Checks each fault of `whose` work in a run of its own, which says whether it met with it.
pub(crate) fn meet_all(
    whose: &str,
    works: &[Work],
    calls: impl Fn(Work) -> BTreeSet<(String, u32)>,
    check: impl Fn(usize, &Fault) -> bool + Sync,
) {
    check_each(&all_faults(whose, works, calls), check);
}

/// Checks each of these, as many at a time as there are processors, by a number of its own from 2 on: whether
/// it was met with.
pub(crate) fn check_each<F>(faults: &[F], check: impl Fn(usize, &F) -> bool + Sync)
where
    F: fmt::Debug + Sync,
{
    let (next, made) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    let Some(fault) = faults.get(number) else { return };
                    // Which thread makes which call differs: what was not met with is tried again.
                    let check = || (0..TRIES).any(|_| check(2 + number, fault));
                    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)) {
                        Ok(was_made) => drop(made.fetch_add(was_made.into(), Ordering::SeqCst)),
                        Err(_) => failed.lock().expect("no panic inside").push(fault),
                    }
                }
            });
        }
    });
    let (failed, made) = (failed.into_inner().expect("no panic inside"), made.into_inner());
    println!("{made} of {} faults were met with", faults.len());
    assert!(failed.is_empty(), "{} of {} faults: {failed:#?}", failed.len(), faults.len());
    assert!(made * 100 >= faults.len() * 99, "threads changed places too often: {made}");
}

#[test]
fn whichever_call_fails_it_is_said_and_nothing_acknowledged_is_lost() {
    if !has_strace() {
        return;
    }
    let beginning = Beginning::new();
    let calls = |work| beginning.calls(work);
    let all = [Work::Backup, Work::Prune, Work::Restore];
    meet_all("", &all, calls, |number, fault| beginning.check(number, fault));
}
