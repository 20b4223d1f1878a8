//! Processes that may have little: threads, open files, long files, calls, rights of their own. What a run
//! lacks itself ends it with a sentence; it is no fault of what the run was at, and nothing short is committed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use holdall_testkit::Random;

use crate::house::{Machine, Outcome, Server, is_root, open_at_once};

/// A user that runs nothing else, since the system counts all threads of a user.
const OF_FEW_THREADS: &str = "65531";
const USER: &str = "65530";
const FILES: usize = 50;
/// Closes what the test inherited from whoever started it, which would count as open files of the command.
const CLOSES_ALL_ELSE: &str = r#"for fd in /proc/$$/fd/*; do
    fd=${fd##*/}; [ "$fd" -le 2 ] || eval "exec $fd>&-"; done; exec "$@""#;

/// A machine of an ordinary user.
struct Limited {
    machine: Machine,
    user: &'static str,
    repo: String,
    source: String,
}

impl Limited {
    /// With a source of small files, which is backed up.
    fn new(user: &'static str) -> Option<Self> {
        let limited = Self::empty(user)?;
        for number in 0..FILES {
            let file = limited.machine.path("source").join(number.to_string());
            fs::write(file, number.to_string()).unwrap();
        }
        limited.run(&[], &["init", "-r", &limited.repo]).expect(0);
        open_at_once(limited.repo.as_ref(), "correct horse");
        limited.run(&[], &["backup", "-q", "-r", &limited.repo, &limited.source]).expect(0);
        Some(limited)
    }

    fn empty(user: &'static str) -> Option<Self> {
        if !is_root("what a process does that may have little") {
            return None;
        }
        let machine = Machine::new();
        let text = |name| machine.path(name).into_os_string().into_string().unwrap();
        let (repo, source) = (text("repo"), text("source"));
        fs::create_dir(&source).unwrap();
        let owner = format!("{user}:{user}");
        let given = Command::new("chown").args(["-R", &owner]).arg(machine.path("")).status();
        assert!(given.unwrap().success());
        Some(Self { machine, user, repo, source })
    }

    /// Runs the command as the user, with what `limit` puts before it.
    fn run(&self, limit: &[&str], args: &[&str]) -> Outcome {
        let ids = [format!("--reuid={}", self.user), format!("--regid={}", self.user)];
        let closed = ["bash", "-c", CLOSES_ALL_ELSE, "bash"];
        let by = ["timeout", "-k", "5", "60", "setpriv", &ids[0], &ids[1], "--clear-groups"];
        self.machine.run_by(&[&closed, by.as_slice(), limit].concat(), args)
    }

    fn backup(&self, limit: &[&str]) -> Outcome {
        self.run(limit, &["backup", "--json", "-r", &self.repo, &self.source])
    }

    /// Restores the newest snapshot to a folder of that name.
    fn restore(&self, limit: &[&str], name: &str) -> Outcome {
        let target = self.target(name);
        let to = target.to_str().unwrap();
        self.run(limit, &["restore", "--json", "-r", &self.repo, "latest", "--target", to])
    }

    fn target(&self, name: &str) -> PathBuf {
        self.machine.path(&format!("target-{name}"))
    }

    /// How many files the restored source has.
    fn restored(&self, name: &str) -> usize {
        let folder = self.target(name).join(self.source.trim_start_matches('/'));
        fs::read_dir(folder).map_or(0, Iterator::count)
    }

    fn snapshots(&self) -> usize {
        self.run(&[], &["snapshots", "--json", "-r", &self.repo]).expect(0).stdout.lines().count()
    }
}

/// All that a command said.
fn said(outcome: &Outcome) -> String {
    [outcome.stderr.as_str(), outcome.stdout.as_str()].concat()
}

#[test]
fn with_few_threads_all_is_done_or_the_lack_of_threads_is_told() {
    let Some(limited) = Limited::new(OF_FEW_THREADS) else { return };
    let mut done = [0; 4];
    for threads in [2, 3, 4, 6, 8, 9, 10, 12, 20, 50] {
        let limit = format!("--nproc={threads}");
        let limit = ["prlimit", limit.as_str()];
        let check = ["check", "--json", "-r", &limited.repo, "--verify", "all"];
        let runs = [
            limited.backup(&limit),
            limited.restore(&limit, &threads.to_string()),
            limited.run(&limit, &check),
            limited.run(
                &limit,
                &["dump", "-r", &limited.repo, &format!("latest:{}/7", limited.source)],
            ),
        ];
        for ((number, ended), done) in runs.iter().enumerate().zip(&mut done) {
            let said = said(ended);
            match ended.code {
                Some(0) => *done += 1,
                Some(1) => {
                    assert!(said.contains("allows no other thread"), "{threads}: {number}: {said}");
                }
                code => panic!("{threads}: {number}: {code:?}: {said}"),
            }
        }
    }
    assert!(done.iter().all(|done| (1..10).contains(done)), "{done:?}");
    assert_eq!(limited.restored("50"), FILES);
}

#[test]
fn with_few_open_files_no_snapshot_lacks_what_could_not_be_opened() {
    let Some(limited) = Limited::new(USER) else { return };
    fs::create_dir_all(limited.machine.path("source").join("d/".repeat(60))).unwrap();
    limited.backup(&[]).expect(0);
    for files in (12..30).chain([40, 64]) {
        let limit = format!("--nofile={files}");
        let limit = ["prlimit", limit.as_str()];
        for ended in [limited.backup(&limit), limited.restore(&limit, &files.to_string())] {
            let said = said(&ended);
            assert!(said.contains("Too many open files"), "{files}: {said}");
            assert!(said.contains("ulimit -n"), "{files}: {said}");
            ended.expect(1);
        }
    }
    assert_eq!(limited.snapshots(), 2);
    let enough = ["prlimit", "--nofile=256"];
    limited.backup(&enough).expect(0);
    limited.restore(&enough, "256").expect(0);
}

#[test]
fn with_few_open_files_it_is_not_the_server_that_can_not_be_reached() {
    let machine = Machine::new();
    let server = Server::start(&machine.path("server"));
    machine.pair_with(&server);
    let source = machine.path("source");
    fs::create_dir(&source).unwrap();
    for files in 9..=16 {
        let limit = format!("--nofile={files}");
        let by = ["bash", "-c", CLOSES_ALL_ELSE, "bash", "prlimit", &limit];
        let ended = machine.run_by(&by, ["backup", source.to_str().unwrap()]);
        let said = said(&ended);
        assert!(said.contains("Too many open files"), "{files}: {said}");
        assert!(said.contains("ulimit -n"), "{files}: {said}");
        ended.expect(1);
    }
}

#[test]
fn a_file_longer_than_the_process_may_write_is_an_error_of_that_file() {
    let Some(limited) = Limited::new(USER) else { return };
    fs::write(limited.machine.path("source").join("big"), Random::new(1).bytes(6_000_000)).unwrap();
    let limit = ["prlimit", "--fsize=1000000"];
    let ended = limited.backup(&limit).expect(1);
    assert!(
        said(&ended).contains(&limited.repo) && said(&ended).contains("ulimit -f"),
        "{ended:?}"
    );
    assert_eq!(limited.snapshots(), 1);
    limited.backup(&[]).expect(0);
    let ended = limited.restore(&limit, "short").expect(3);
    assert!(said(&ended).contains("/big"), "{ended:?}");
    assert_eq!(limited.restored("short"), FILES);
}

#[test]
fn calls_that_a_sandbox_refuses_for_ever_are_done_without_or_named() {
    let Some(limited) = Limited::new(USER) else { return };
    let mut before = limited.snapshots();
    for call in ["statx", "renameat2", "syncfs"] {
        for error in ["ENOSYS", "EPERM"] {
            let (trace, inject) = (format!("trace={call}"), format!("inject={call}:error={error}"));
            let refusing = ["strace", "-qq", "-f", "-o", "/dev/null", "-e", &trace, "-e", &inject];
            let name = format!("{call}-{error}");
            limited.backup(&refusing).expect(0);
            limited.restore(&refusing, &name).expect(0);
            assert_eq!(limited.restored(&name), FILES, "{name}");
            before += 1;
        }
    }
    assert_eq!(limited.snapshots(), before);
    for call in ["getrandom", "statfs"] {
        let (trace, inject) = (format!("trace={call}"), format!("inject={call}:error=EPERM"));
        let refusing = ["strace", "-qq", "-f", "-o", "/dev/null", "-e", &trace, "-e", &inject];
        let ended = limited.backup(&refusing).expect(1);
        assert!(said(&ended).contains(call), "{ended:?}");
    }
    assert_eq!(limited.snapshots(), before);
}

#[test]
fn a_umask_that_takes_all_rights_takes_none_from_the_owner() {
    let Some(limited) = Limited::empty(USER) else { return };
    let umask = ["sh", "-c", "umask 0777; exec \"$0\" \"$@\""];
    fs::write(limited.machine.path("source").join("file"), "content").unwrap();
    limited.run(&umask, &["init", "-r", &limited.repo]).expect(0);
    for _ in 0..2 {
        limited.backup(&umask).expect(0);
    }
    limited.restore(&umask, "umask").expect(0);
    assert_eq!(limited.restored("umask"), 1);
    let mode = |name| limited.machine.path(name).metadata().unwrap().permissions().mode() & 0o7777;
    for folder in ["repo", "config/state", "cache"] {
        assert_eq!(mode(folder), 0o700, "{folder}");
    }
}

#[test]
fn a_password_that_there_is_too_little_memory_to_try_is_refused_before() {
    let Some(limited) = Limited::empty(USER) else { return };
    let little = ["prlimit", "--data=90000000"];
    let init = ["init", "-r", &limited.repo];
    let ended = limited.run(&little, &init).expect(1);
    assert!(said(&ended).contains("may have 90.0 MB"), "{ended:?}");
    limited.run(&[], &init).expect(0);
    let ended = limited.run(&little, &["snapshots", "-r", &limited.repo]).expect(1);
    assert!(said(&ended).contains("may have 90.0 MB"), "{ended:?}");
    limited.run(&["prlimit", "--data=400000000"], &["snapshots", "-r", &limited.repo]).expect(0);
}
