//! Calls of a running server that touch files fail, while a client backs up, restores, or the administrator prunes,
//! first what is condemned then, and once it is deleted, or repairs: nothing acknowledged is lost, and once nothing
//! fails any more the server takes and gives everything, prunes and checks without being restarted. The same where the
//! server is killed in front of the call, and started again. It is one call of each kind, or as for `nth_call` all.
//!
//! As in `nth_call`, each thread of the server counts for itself. Calls that carry what goes over the
//! network, or wake threads, are left out: a disk does not make those fail.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use holdall_testkit::{CompareOptions, Image, Random, compare_trees, memory};

use crate::beginning::{PARITY, Work, damage, fill_a_pack};
use crate::clocks::{can_let_days_pass, days_later};
use crate::house::{Machine, Outcome, Server, files_below, text};
use crate::nth_call::{FAILED, Fault, calls_in, check_each, faults, names_one, top_of};
use crate::vanishing::{Traced, can_trace, dies};

const CALLS: &str = "openat,openat2,read,pread64,preadv,pwrite64,pwritev,fsync,fdatasync,ftruncate,\
    fallocate,copy_file_range,statx,newfstatat,fstat,statfs,fstatfs,getdents64,mkdir,mkdirat,rename,renameat,\
    renameat2,link,linkat,unlink,unlinkat,flock";
/// Where a machine keeps the address of its server.
const PAIRINGS: &str = "config/state/pairings.json";
/// The first server's address on loopback, 127.1.0.0; the next one has the next.
const FIRST_HOST: u32 = 0x7f01_0000;
/// Snapshots that are kept: behind one that is to be deleted is one that the rules let go.
const KEPT: usize = 1;
/// The day on which that is due, and may be.
const DUE: u64 = 40;
/// A day on which a prune deletes what the one on that day condemned.
const DELETES: u64 = DUE + 2;

/// What all runs begin with: a server that does not run, a machine that is paired with it, and what it
/// backs up.
struct House {
    folder: tempfile::TempDir,
    /// How many days after the snapshots were made.
    day: u64,
    /// Where the server was.
    address: String,
    image: Image,
    /// Servers that were started so far.
    starts: AtomicU32,
}

/// A machine and the server that it is paired with.
struct Pair {
    machine: Machine,
    server: Server,
}

impl House {
    fn on(day: u64) -> Self {
        let folder = memory().expect("a folder");
        let (address, image) = (String::new(), Image::default());
        let mut house = Self { folder, day: 0, address, image, starts: AtomicU32::new(0) };
        let machine = house.machine(0);
        let server = house.start(&machine);
        machine.pair_with(&server);
        house.address = server.address().to_owned();
        let backup = || drop(machine.ok(["backup", text(&house.source())]));
        // Most of what is stored is to go, and shares no block with what stays.
        let gone = house.source().join("gone");
        fs::create_dir(house.source()).expect("a folder");
        fs::write(&gone, Random::new(9).bytes(300_000)).expect("room");
        backup();
        fs::remove_file(gone).expect("it is there");
        for round in [1, 2] {
            house.write(round);
            backup();
        }
        let tell = |args: &[&str]| machine.administer(&machine.path("data"), args).expect(0);
        let repository = tell(&["repositories"]).of_type("repository")[0]["name"].clone();
        let first = machine.ok(["snapshots", "--json"]).of_type("snapshot")[0]["id"].clone();
        tell(&["forget", repository.as_str().expect("a name"), first.as_str().expect("an id")]);
        house.stop(&machine, server);
        if day > DUE {
            house.day = DUE;
            let server = house.start(&machine);
            tell(&["prune"]);
            house.stop(&machine, server);
        }
        house.write(3);
        house.day = day;
        house.from(&machine)
    }

    /// The same with a pack, which has no parity.
    fn packed() -> Self {
        let house = Self::on(DELETES);
        let Pair { machine, server } = house.fresh(0, Work::Prune);
        fill_a_pack(&house.source());
        house.work(Work::Backup, &machine, "").expect(0);
        house.left(&machine, server).from(&machine)
    }

    /// The same with parity, and a pack that is damaged in three places.
    fn damaged() -> Self {
        let house = Self::packed();
        let Pair { machine, server } = house.fresh(0, Work::Parity);
        house.work(Work::Parity, &machine, "").expect(0);
        let damaged = house.left(&machine, server);
        damage(&machine.path("data"));
        damaged.from(&machine)
    }

    /// The same once its server was stopped.
    fn left(mut self, machine: &Machine, server: Server) -> Self {
        self.address = server.address().to_owned();
        self.stop(machine, server);
        self
    }

    /// Begins with what that machine has now.
    fn from(self, machine: &Machine) -> Self {
        let image = Image::read(&machine.path("")).expect("it can be read");
        fs::remove_dir_all(machine.path("")).expect("it can be removed");
        Self { image, ..self }
    }

    fn machine(&self, number: usize) -> Machine {
        let folder = self.folder.path().join(format!("machine-{number}"));
        fs::create_dir_all(&folder).expect("a folder");
        Machine::in_folder(folder).with_password(None)
    }

    fn source(&self) -> PathBuf {
        self.folder.path().join("source")
    }

    fn write(&self, seed: u64) {
        let (source, mut random) = (self.source(), Random::new(seed));
        fs::create_dir_all(source.join("docs/empty")).expect("a folder");
        for (name, bytes) in [("a", 3000), ("docs/b", 100), ("docs/large", 70_000)] {
            fs::write(source.join(name), random.bytes(bytes)).expect("a file");
        }
        fs::write(source.join(format!("stays {seed}")), random.bytes(900)).expect("a file");
    }

    /// A server that runs, of which nothing of what is to be tested was asked yet.
    fn fresh(&self, number: usize, work: Work) -> Pair {
        let machine = self.machine(number);
        self.image.lay_down(&machine.path("")).expect("room");
        let server = self.start_instead(&machine, &self.address);
        if work == Work::Restore {
            self.work(Work::Backup, &machine, "").expect(0);
        }
        Pair { machine, server }
    }

    fn start(&self, machine: &Machine) -> Server {
        let data = machine.path("data");
        let log = fs::OpenOptions::new().create(true).append(true).open(machine.path("log"));
        // All have the same identity. A client that tries again after a kill is not to reach another one, which
        // got the port meanwhile.
        let host = Ipv4Addr::from_bits(FIRST_HOST + self.starts.fetch_add(1, Ordering::Relaxed));
        let server = Server::command_at(&format!("{host}:0"), &data);
        let mut command = days_later(self.day, &server);
        command.stderr(log.expect("room"));
        Server::start_by(&mut command, &data)
    }

    /// Starts it, and has the machine find it there and no longer at that address.
    fn start_instead(&self, machine: &Machine, address: &str) -> Server {
        let server = self.start(machine);
        let pairings = machine.path(PAIRINGS);
        let known = fs::read_to_string(&pairings).expect("it is paired");
        assert!(known.contains(address), "{known}");
        fs::write(pairings, known.replace(address, server.address())).expect("room");
        server
    }

    fn stop(&self, machine: &Machine, mut server: Server) {
        server.process().terminate().expect("it lived");
        assert!(server.process().wait().expect("it ends").0.success());
        fs::remove_file(machine.path("data/admin.sock")).expect("it listened there");
    }

    fn work(&self, work: Work, machine: &Machine, target: &str) -> Outcome {
        let (source, target) = (self.source(), machine.path(target));
        let (from, data) = (format!("latest:{}", text(&source)), machine.path("data"));
        match work {
            Work::Backup => machine.run(["backup", text(&source), "--retry-for", "1s"]),
            Work::Prune => machine.administer(&data, &["prune"]),
            Work::Restore => machine.run(["restore", &from, "--target", text(&target)]),
            Work::Parity => machine.administer(&data, &["scrub", "--parity", PARITY]),
            Work::Repair => machine.administer(&data, &["scrub", "--repair"]),
        }
    }

    /// The calls of the server that touch its files.
    fn calls(&self, work: Work) -> BTreeSet<(String, u32)> {
        let Pair { machine, mut server } = self.fresh(1, work);
        let (trace, filter) = (machine.path("trace"), format!("trace={CALLS}"));
        let traced = Traced::attach(server.process(), &["-y", "-e", &filter, "-o", text(&trace)]);
        self.work(work, &machine, "target").expect(0);
        drop(traced);
        let lines = fs::read_to_string(&trace).expect("a trace");
        let calls = calls_in(&lines, text(&machine.path("data")));
        drop(server);
        fs::remove_dir_all(machine.path("")).expect("it can be removed");
        calls
    }

    /// Whether packs wait to be deleted.
    fn has_condemned(&self, machine: &Machine) -> bool {
        let files = files_below(&machine.path("data"));
        files.iter().any(|path| path.components().any(|part| part.as_os_str() == "condemned"))
    }

    /// Has something become of one call; says whether it was made.
    fn check(&self, number: usize, fault: &Fault) -> bool {
        let Pair { machine, mut server } = self.fresh(number, fault.work);
        let trace = machine.path("trace");
        let told = fault.told();
        let args = ["-o", text(&trace)].into_iter().chain(told.iter().map(String::as_str));
        let traced = Traced::attach(server.process(), &args.collect::<Vec<_>>());
        let outcome = self.work(fault.work, &machine, "target");
        drop(traced);
        let was_killed = fault.kills() && dies(server.process());
        if was_killed {
            server.process().wait().expect("it ended");
            server = self.start_instead(&machine, server.address());
        }
        let was_met = was_killed || !fault.kills() && fault.was_met(&trace);
        self.judge(fault, &machine, server, &outcome);
        fs::remove_dir_all(machine.path("")).expect("it can be removed");
        was_met
    }

    fn judge(&self, fault: &Fault, machine: &Machine, mut server: Server, outcome: &Outcome) {
        let Outcome { code, stdout, stderr } = outcome;
        let log = || fs::read_to_string(machine.path("log")).expect("a log");
        let what = format!("{fault:?}: {code:?}\n{stdout}{stderr}\nthe server said:\n{}", log());
        let is_done = *code == Some(0);
        // An administrator's command says it in JSON.
        let is_clients = matches!(fault.work, Work::Backup | Work::Restore);
        let top = top_of(self.folder.path());
        let named = [&top, server.address(), "the server", "the repository", ": pack "];
        let says_it = names_one(if is_clients { stderr } else { stdout }, &named);
        let is_told = code.is_some_and(|code| FAILED.contains(&code)) && says_it;
        assert!(is_done || is_told, "{what}");
        let is_backed_up = fault.work == Work::Restore || is_done && fault.work == Work::Backup;
        let made = KEPT + usize::from(is_backed_up);
        if is_done && fault.work == Work::Backup {
            self.work(Work::Restore, machine, "target").expect(0);
        }
        let listed = || {
            let told = machine.run(["snapshots", "--json"]);
            let (said, files) = (&told.stderr, files_below(&machine.path("data")));
            assert_eq!(told.code, Some(0), "{said}\nafter {what}\nof what is there: {files:#?}");
            told.of_type("snapshot").len()
        };
        assert!(listed() >= made, "{what}");
        let is_restored = |target: &str| {
            let target = machine.path(target);
            let differences = compare_trees(&self.source(), &target, &CompareOptions::default());
            assert_eq!(differences, [], "{what}");
        };
        if is_done && matches!(fault.work, Work::Backup | Work::Restore) {
            is_restored("target");
        }
        let goes_well = |work| {
            let Outcome { code, stdout, stderr } = self.work(work, machine, "again");
            assert_eq!(code, Some(0), "then {work:?}: {stdout}{stderr}\nafter {what}");
            stdout
        };
        if fault.work == Work::Repair {
            goes_well(Work::Repair);
        }
        goes_well(Work::Backup);
        goes_well(Work::Restore);
        is_restored("again");
        let pruned = goes_well(Work::Prune);
        goes_well(Work::Backup);
        let checked = machine.run(["check", "--scrub", "--verify", "all"]);
        let Outcome { stdout, stderr, .. } = &checked;
        assert_eq!(checked.code, Some(0), "then {stdout}{stderr}\nafter {what}");
        assert!(listed() > made, "{what}");
        if !matches!(fault.work, Work::Parity | Work::Repair) {
            // There a tail that could not be opened for a moment may be a pack by now, to be merged with others.
            let condemned = self.has_condemned(machine);
            assert_eq!(condemned, self.day < DELETES, "{pruned}\nafter {what}");
        }
        server.process().terminate().expect("it lived");
        assert!(server.process().wait().expect("it ends").0.success(), "{what}");
        assert!(!log().contains("panicked"), "{what}\nand in the end:\n{}", log());
    }
}

/// Has calls of the server in these works fail.
fn meet_all_in(house: &House, whose: &str, works: &[Work]) {
    let mut faults = faults(whose, works, |work| house.calls(work));
    // A restore waits for minutes for a server to come back.
    faults.retain(|fault| !fault.kills() || fault.work != Work::Restore);
    check_each(&faults, |number, fault| house.check(number, fault));
}

#[test]
fn whichever_kind_of_call_of_a_server_fails_it_lives_on_and_nothing_acknowledged_is_lost() {
    if !can_trace() || !can_let_days_pass() {
        return;
    }
    let all = [Work::Backup, Work::Prune, Work::Restore];
    meet_all_in(&House::on(DUE), "a server, ", &all);
    meet_all_in(&House::on(DELETES), "a server that deletes, ", &[Work::Prune]);
}

#[test]
fn whichever_kind_of_call_of_a_server_that_repairs_fails_the_next_repair_repairs_everything() {
    if !can_trace() || !can_let_days_pass() {
        return;
    }
    meet_all_in(&House::damaged(), "a server, ", &[Work::Repair]);
}
