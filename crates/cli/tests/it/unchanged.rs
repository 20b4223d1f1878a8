//! What a backup moves over the wire when nothing changed: not more the more snapshots there are.

use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use holdall_testkit::ChaosProxy;
use serde_json::Value;

use crate::house::{Machine, Server, files_below};

/// Most bytes that an unchanged backup sends, and most that it receives.
const MOST_BYTES: u64 = 8 << 10;
/// A file that changed less than this before it was read is read again by the next backup, which
/// records it anew once it has settled.
const SETTLING: Duration = Duration::from_secs(3);

/// A machine that is paired with a server through a proxy that counts, and backed some files up.
struct Watched {
    machine: Machine,
    proxy: ChaosProxy,
    _server: Server,
}

impl Watched {
    fn new() -> Self {
        let machine = Machine::new().with_password(None);
        let server = Server::start(&machine.path("data"));
        let proxy = ChaosProxy::start(server.address().parse().unwrap()).expect("a free port");
        machine.pair(&server.invite_with(&["--address", &proxy.address().to_string()]));
        let source = machine.path("source");
        for number in 0..300 {
            let folder = source.join(format!("{}", number % 7));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(format!("{number}.txt")), format!("number {number}\n")).unwrap();
        }
        sleep(SETTLING);
        Self { machine, proxy, _server: server }
    }

    fn source(&self) -> String {
        self.machine.path("source").to_str().expect("UTF-8").to_owned()
    }

    /// Recorded at another place, so that the folders above it, in which other tests come and go,
    /// change nothing.
    fn back_up(&self) -> Value {
        let source = self.source();
        self.machine.summary(["backup", &source, "--as", &format!("{source}=/watched")])
    }

    /// Backs up, and gives what was sent and received: as the proxy counts it, and as is said.
    fn counted(&self) -> [(u64, u64); 2] {
        let before = self.proxy.forwarded_each_way();
        let summary = self.back_up();
        let after = self.proxy.forwarded_each_way();
        let said = |field: &str| summary[field].as_u64().expect("a number");
        [(after.0 - before.0, after.1 - before.1), (said("bytes_sent"), said("bytes_received"))]
    }

    /// The records on the server's disk, oldest first.
    fn records(&self) -> Vec<PathBuf> {
        let mut files = files_below(&self.machine.path("data/repositories"));
        files.retain(|file| file.parent().is_some_and(|folder| folder.ends_with("records")));
        files.sort();
        files
    }

    /// The records that the machine has seen.
    fn seen(&self) -> PathBuf {
        let files = files_below(&self.machine.path("cache"));
        files.into_iter().find(|file| file.ends_with("records")).expect("they are kept")
    }
}

#[test]
fn an_unchanged_backup_moves_less_than_8_kib_each_way_with_60_snapshots() {
    let watched = Watched::new();
    for _ in 0..60 {
        watched.back_up();
    }
    assert_eq!(watched.records().len(), 60);
    let [(sent, received), said] = watched.counted();
    assert!(sent < MOST_BYTES && received < MOST_BYTES, "{sent} sent, {received} received");
    // Only how it went, for the server's pages, and the end of the connection come after the summary.
    let missed = (sent - said.0, received - said.1);
    assert!(missed.0 < 1000 && missed.1 < 500, "{missed:?} more than was said");
    // Without what it has seen it asks for everything, once.
    fs::write(watched.seen(), "nothing of use").unwrap();
    let [(_, received), _] = watched.counted();
    assert!(received > 60 * 4096, "{received} received");
    let [(sent, received), _] = watched.counted();
    assert!(sent < MOST_BYTES && received < MOST_BYTES, "{sent} sent, {received} received");
}

#[test]
fn a_record_that_was_damaged_lost_or_rolled_back_is_told_by_a_backup_that_had_seen_it() {
    let watched = Watched::new();
    for _ in 0..4 {
        watched.back_up();
    }
    let (machine, source) = (&watched.machine, watched.source());
    let records = watched.records();
    let second = fs::read(&records[1]).unwrap();
    let mut damaged = second.clone();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(&records[1], damaged).unwrap();
    let told = machine.run(["backup", &source]).expect(0).stderr;
    assert!(told.contains("was damaged") && told.contains("put back"), "{told}");
    assert!(fs::read(&records[1]).unwrap() == second);
    watched.back_up();
    let newest = watched.records().pop().unwrap();
    fs::remove_file(newest).unwrap();
    let told = machine.run(["backup", &source]).expect(20).stderr;
    assert!(told.contains("rolled back"), "{told}");
}

/// Seen: what was written just before the last backup was listed and counted as changed.
#[test]
fn a_dry_run_calls_nothing_changed_that_is_only_read_again() {
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    fs::create_dir(&source).unwrap();
    machine.init(&["-r", repo.to_str().unwrap()]);
    fs::write(source.join("notes"), "notes").unwrap();
    let run = |more: &[&str]| {
        let args = ["backup", "-r", repo.to_str().unwrap(), source.to_str().unwrap()];
        machine.ok([&args[..], more].concat()).stdout
    };
    run(&[]);
    let told = run(&["-n", "-v"]);
    assert!(!told.contains("source/notes"), "{told}");
    fs::write(source.join("notes"), "other notes").unwrap();
    let told = run(&["-n", "-v"]);
    assert!(told.contains("changed    ") && told.contains("source/notes"), "{told}");
}
