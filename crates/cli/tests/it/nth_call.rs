//! Calls to the system that touch files fail, and the process is killed in front of them: the command says so or does
//! its work all the same, nothing acknowledged is lost, and the next run works.
//!
//! strace records the calls of a backup, a prune and a restore, and of a repair and of making parity, and has some of
//! them fail in a run of its own, without the call being made: of each kind of call one. What becomes of a repository
//! by whichever call fails, `failing_calls` of the repository asks of its storage in memory. With
//! `HOLDALL_FAULTS=all` every call fails here too, by six errors, and the process is killed in front of each.
//!
//! A run has several threads: where each thread counts for itself, the Nth call of any of them fails.

use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fmt, fs, io};

use holdall_testkit::{Slice, has_strace};

use crate::beginning::{Beginning, Work};
use crate::house::{Machine, Outcome, files_below, text};
use crate::repair::noise;

/// Calls that read, write or name files, by their kinds. Closing is left out: only a restore depends on what it
/// answers, for which there is a test of its own in `full`.
const KINDS: [&str; 9] = [
    "openat,openat2",
    "read,pread64,readv,preadv,lseek,getdents64,readlink,readlinkat,flistxattr,fgetxattr,llistxattr,lgetxattr",
    "statx,newfstatat,fstat,statfs,fstatfs",
    "write,pwrite64,writev,pwritev,ftruncate,fallocate,copy_file_range",
    "fsync,fdatasync,syncfs",
    "mkdir,mkdirat,mknodat,rename,renameat,renameat2,link,linkat,symlink,symlinkat",
    "unlink,unlinkat,rmdir",
    "utimensat,fchmod,fchmodat,fchown,fchownat,fsetxattr,lsetxattr",
    "flock",
];
/// How a call names what has no handle of its own, such as a link: below a folder's handle.
const BY_HANDLE: &str = "\"/proc/self/fd/";
/// What the system calls EIO, which has a slash in it and names nothing.
const EIO_IN_WORDS: &str = "Input/output error";
/// What becomes of one call, the next, and the one behind it: what a disk that fails and one that is full answer.
const FATES: [Fate; 3] = [Fate::Fails("EIO"), Fate::Fails("ENOSPC"), Fate::Kills];
const ALL_ERRORS: [&str; 6] = ["EIO", "ENOSPC", "EINTR", "EMFILE", "EROFS", "EACCES"];
/// Codes that a command ends with which could not do its work, and says so.
pub(crate) const FAILED: [i32; 8] = [1, 3, 10, 11, 12, 13, 14, 20];

/// So often is a fault tried until it is met with.
const TRIES: usize = 4;
/// So many may not be met with, but half at most; or one of a hundred.
const MISSED: usize = 3;
/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is not made, and answers this.
    Fails(&'static str),
    /// The process is killed in front of it.
    Kills,
}

/// One call that something becomes of.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) work: Work,
    call: String,
    times: u32,
    fate: Fate,
}

impl Fault {
    /// What makes it, as strace is told.
    pub(crate) fn told(&self) -> Vec<String> {
        let Self { call, times, fate, .. } = self;
        let fate = match fate {
            Fate::Fails(error) => format!("error={error}"),
            Fate::Kills => "signal=KILL".to_owned(),
        };
        let inject = format!("inject={call}:{fate}:when={times}");
        ["-e", &format!("trace={call}"), "-e", &inject].map(str::to_owned).to_vec()
    }

    /// Whether it was met with, by what strace wrote.
    pub(crate) fn was_met(&self, trace: &Path) -> bool {
        let mark = match self.fate {
            Fate::Fails(_) => "(INJECTED)",
            Fate::Kills => "+++ killed by SIGKILL +++",
        };
        fs::read_to_string(trace).is_ok_and(|lines| lines.contains(mark))
    }

    /// Whether it kills whom it meets.
    pub(crate) fn kills(&self) -> bool {
        self.fate == Fate::Kills
    }
}

/// The calls of a run that touch its files, on a computer that is not needed any more: their names and numbers.
pub(crate) fn calls_on(
    beginning: &Beginning,
    machine: &Machine,
    work: Work,
) -> BTreeSet<(String, u32)> {
    let trace = beginning.folder().join("trace");
    let filter = format!("trace={}", KINDS.join(","));
    let by = ["strace", "-f", "-y", "-e", &filter, "-o", text(&trace)];
    beginning.work(work, machine, &by, "target").expect(0);
    let lines = fs::read_to_string(&trace).expect("a trace");
    let calls = calls_in(&lines, text(beginning.folder()));
    fs::remove_dir_all(machine.path("")).expect("it can be removed");
    calls
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
        if arguments.contains(folder) || arguments.contains(BY_HANDLE) {
            calls.insert((name.to_owned(), *count));
        }
    }
    calls
}

/// Most calls of each name that all are of work that reads packs: those are many, and like each other.
const MOST_OF_A_NAME: usize = 30;

/// Of each name so many calls, from the first to the last.
fn sample(calls: BTreeSet<(String, u32)>, most: usize) -> Vec<(String, u32)> {
    let calls: Vec<_> = calls.into_iter().collect();
    let of_a_name = calls.chunk_by(|(one, _), (other, _)| one == other);
    let some = of_a_name.flat_map(|all| all.iter().step_by(all.len().div_ceil(most)));
    some.cloned().collect()
}

/// One call of each kind: of one work an early one, of the next a later one.
fn one_of_each_kind(work: Work, calls: &BTreeSet<(String, u32)>) -> Vec<(String, u32)> {
    let of = |kind: &&str| {
        let is_of_it = |(name, _): &&(String, u32)| kind.split(',').any(|one| one == name);
        let all: Vec<_> = calls.iter().filter(is_of_it).collect();
        all.get(all.len() * (2 * work as usize + 1) / (2 * Work::ALL)).copied().cloned()
    };
    KINDS.iter().filter_map(of).collect()
}

/// The calls that fail of those that `whose` work makes, with what becomes of each.
pub(crate) fn faults(
    whose: &str,
    works: &[Work],
    calls: impl Fn(Work) -> BTreeSet<(String, u32)>,
) -> Vec<Fault> {
    let takes_all = std::env::var("HOLDALL_FAULTS").is_ok_and(|how| how == "all");
    let mut faults = Vec::new();
    for &work in works {
        let calls = calls(work);
        let all = calls.len();
        let fail = match work {
            _ if !takes_all => one_of_each_kind(work, &calls),
            Work::Backup | Work::Prune | Work::Restore => calls.into_iter().collect(),
            Work::Parity | Work::Repair => sample(calls, MOST_OF_A_NAME),
        };
        println!("{whose}{work:?}: {} of {all} calls", fail.len());
        for (number, (call, times)) in fail.into_iter().enumerate() {
            let fault = |fate| Fault { work, call: call.clone(), times, fate };
            if takes_all {
                let errors = ALL_ERRORS.map(Fate::Fails);
                faults.extend(errors.into_iter().chain([Fate::Kills]).map(fault));
            } else {
                faults.push(fault(FATES[(number + work as usize) % FATES.len()]));
            }
        }
    }
    if takes_all { Slice::one_in(1).pick(faults) } else { faults }
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
                        Err(panic) => {
                            say(panic.downcast_ref::<String>().map_or("no message", |text| text));
                            failed.lock().expect("no panic inside").push(fault);
                        }
                    }
                }
            });
        }
    });
    let (failed, made) = (failed.into_inner().expect("no panic inside"), made.into_inner());
    say(&format!("{made} of {} faults were met with", faults.len()));
    assert!(failed.is_empty(), "{} of {} faults: {failed:#?}", failed.len(), faults.len());
    let missed = faults.len() - made;
    let may_be_missed = MISSED.min(faults.len() / 2).max(faults.len() / 100);
    assert!(missed <= may_be_missed, "threads changed places too often: {missed}");
}

/// Says something at once: what a test prints comes at its end, and this one takes minutes.
fn say(what: &str) {
    let _ = writeln!(io::stderr(), "{what}");
}

/// Has something become of one call; says whether it was made.
fn check(beginning: &Beginning, number: usize, fault: &Fault) -> bool {
    let machine = beginning.fresh(number, fault.work);
    let trace = machine.path("trace");
    let told = fault.told();
    let mut by = vec!["strace", "-f", "-o", text(&trace)];
    // Which passes over calls that are only to kill.
    by.extend((!fault.kills()).then_some("--seccomp-bpf"));
    by.extend(told.iter().map(String::as_str));
    let outcome = beginning.work(fault.work, &machine, &by, "target");
    judge(beginning, fault, &machine, &outcome);
    let was_met = fault.was_met(&trace);
    fs::remove_dir_all(machine.path("")).expect("it can be removed");
    was_met
}

/// The first folder on the way to a place: what is said of a folder there begins with it.
pub(crate) fn top_of(folder: &Path) -> String {
    let top: PathBuf = folder.components().take(2).collect();
    text(&top).to_owned()
}

/// What a check says in front of the name of what is damaged.
const DAMAGED: [&str; 4] =
    ["damaged record ", "damaged pack ", "damaged block ", "damaged object "];

/// Whether one of these is named.
pub(crate) fn names_one(said: &str, named: &[&str]) -> bool {
    let said = said.replace(EIO_IN_WORDS, "");
    named.iter().any(|name| said.contains(name))
}

fn judge(beginning: &Beginning, fault: &Fault, machine: &Machine, outcome: &Outcome) {
    let Outcome { code, stdout, stderr } = outcome;
    let what = format!("{fault:?}: {code:?}\n{stdout}{stderr}");
    if stderr.contains("error while loading shared libraries") {
        // It was a call of the loader, and there was no run.
        return;
    }
    let is_done = *code == Some(0);
    let was_killed = fault.kills() && code.is_none();
    let has_failed = code.is_some_and(|code| FAILED.contains(&code));
    assert!(is_done || was_killed || has_failed, "{what}");
    let names_it = |said: &str| {
        // What a thread reads with the same number in another run may be the computer's list of users.
        let top = top_of(beginning.folder());
        names_one(said, &[&top, "/etc/passwd", "/etc/group", "the repository", "the cache folder"])
    };
    // Damage is what a repair is asked for, and a result, which names what the repository has by its name there.
    let is_result = *code == Some(20) && (names_it(stdout) || names_one(stdout, &DAMAGED));
    let names_it = names_it(stderr) || is_result;
    assert!(is_done || was_killed || names_it, "it does not say of what: {what}");
    let goes_well = |work| {
        let next = beginning.work(work, machine, &[], "again");
        assert_eq!(next.code, Some(0), "then {work:?}: {}\nafter {what}", next.stderr);
    };
    if fault.work == Work::Restore {
        let target = machine.path("target");
        if is_done {
            beginning.assert_restored(&target, &what);
        }
        if was_killed {
            // Where all that is there stays, nothing half-made does.
            let next = beginning.resume(machine, &target);
            assert_eq!(next.code, Some(0), "then: {}\nafter {what}", next.stderr);
            beginning.assert_resumed(&target, &what);
        }
        goes_well(Work::Restore);
        return beginning.assert_restored(&machine.path("again"), &what);
    }
    if is_done && fault.work == Work::Backup {
        beginning.work(Work::Restore, machine, &[], "target").expect(0);
        beginning.assert_restored(&machine.path("target"), &what);
    }
    if fault.work == Work::Repair {
        goes_well(Work::Repair);
    }
    [Work::Prune, Work::Backup].into_iter().for_each(goes_well);
    let checked = beginning.run(machine, &["check", "--scrub", "--verify", "all"]);
    let Outcome { stdout, stderr, .. } = &checked;
    assert_eq!(checked.code, Some(0), "then {stdout}{stderr}\nafter {what}");
    let listed = beginning.run(machine, &["snapshots", "--json"]).expect(0).of_type("snapshot");
    let made = 2 + 1 + usize::from(is_done && fault.work == Work::Backup);
    assert!(listed.len() >= made, "{} of {made} snapshots after {what}", listed.len());
}

/// Has calls of these works fail.
fn meet_all_from(beginning: &Beginning, works: &[Work]) {
    let calls = |work| calls_on(beginning, &beginning.fresh(1, work), work);
    let faults = faults("", works, calls);
    check_each(&faults, |number, fault| check(beginning, number, fault));
}

#[test]
fn whichever_kind_of_call_fails_it_is_said_and_nothing_acknowledged_is_lost() {
    if has_strace() {
        meet_all_from(&Beginning::new(), &[Work::Backup, Work::Prune, Work::Restore]);
    }
}

#[test]
fn whichever_kind_of_call_of_a_repair_fails_the_next_one_repairs_everything() {
    if has_strace() {
        meet_all_from(&Beginning::packed(), &[Work::Parity]);
        meet_all_from(&Beginning::damaged(), &[Work::Repair]);
    }
}

#[test]
fn what_can_not_be_opened_for_want_of_files_is_not_taken_for_damaged() {
    if !has_strace() {
        return;
    }
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    fs::create_dir(&source).expect("a folder");
    fs::write(source.join("file"), noise(1, 50 << 20)).expect("enough for a pack");
    machine.init(&["-r", text(&repo), "--recovery-kit", text(&machine.path("kit"))]);
    machine.ok(["backup", "-r", text(&repo), text(&source)]);
    machine.ok(["check", "-r", text(&repo), "--parity", "5"]);
    let fault = |file: &Path, error: &str, command: &str| {
        let fails = format!("inject=openat2:error={error}");
        // It is opened from the repository's folder.
        let file = file.strip_prefix(&repo).expect("it is in the repository");
        let by = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", text(file), "-e", &fails];
        machine.run_by(&by, [command, "-r", text(&repo)])
    };
    let check = |file: &Path, command: &str| {
        fault(file, "EIO", command).expect(20);
        let told = fault(file, "EMFILE", command).expect(1);
        assert!(told.stderr.contains("open files"), "{told:?}");
        assert!(!told.stderr.contains("damaged"), "{told:?}");
    };
    let by_length = |part: &str| {
        let mut files = files_below(&repo.join(part));
        files.sort_by_key(|file| fs::metadata(file).expect("a file").len());
        files
    };
    for (part, command) in [("records", "snapshots"), ("packs", "check"), ("parity", "check")] {
        check(by_length(part).last().expect("one at least"), command);
    }
    // The index is made anew, of what packs say of themselves.
    fs::remove_dir_all(machine.path("cache/embedded")).expect("there is an index");
    check(by_length("packs").last().expect("a pack"), "prune");
}
