//! What a server's log tells its administrator: a line for each snapshot, reading and refusal, with the machine's name.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::house::{Machine, Server, small_tree, text};

struct Logged {
    machine: Machine,
    server: Server,
    log: PathBuf,
}

impl Logged {
    /// A server whose log is a file, and a machine called desk that is paired with it.
    fn start(more: &[&str], in_journal: bool) -> Self {
        let machine = Machine::new().with_password(None);
        let (data, log) = (machine.path("data"), machine.path("log"));
        let mut command = Server::command(&data);
        let file = File::create(&log).unwrap();
        if in_journal {
            let found = fs::metadata(&log).unwrap();
            command.env("JOURNAL_STREAM", format!("{}:{}", found.dev(), found.ino()));
        }
        let server = Server::start_by(command.args(more).stderr(file), &data);
        machine.pair(&server.invite_with(&["--name", "desk"]));
        small_tree(&machine.path("source"));
        Self { machine, server, log }
    }

    fn back_up(&self) {
        self.machine.ok(["backup", text(&self.machine.path("source"))]);
    }

    fn restore(machine: &Machine, name: &str) {
        let target = machine.path(name);
        machine.ok(["restore", "latest", "--target", text(&target)]);
    }

    /// The lines once the server has ended.
    fn lines(mut self) -> Vec<String> {
        self.server.process().terminate().unwrap();
        self.server.process().wait().unwrap();
        read(&self.log)
    }
}

fn read(log: &Path) -> Vec<String> {
    fs::read_to_string(log).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn snapshots_readings_and_refusals_have_a_line_each_with_name_address_bytes_and_time() {
    let logged = Logged::start(&[], false);
    let reader = Machine::new().with_password(None);
    logged.back_up();
    Logged::restore(&logged.machine, "restored");
    reader.ok(["pair", "--recovery-kit", text(&logged.machine.path("kit.txt"))]);
    Logged::restore(&reader, "restored");
    let data = logged.machine.path("data");
    logged.machine.administer(&data, &["rights", "desk", "read"]).expect(0);
    logged.machine.run(["backup", text(&logged.machine.path("source"))]).expect(13);

    let lines = logged.lines();
    for part in [
        "Z desk at 127.0.0.1: snapshot ",
        "Z desk at 127.0.0.1: read, 3.",
        "a recovery kit of desk at 127.0.0.1: read, 3.",
        "desk at 127.0.0.1: open session: not allowed: this computer may only restore, not back up",
    ] {
        let of_it: Vec<_> = lines.iter().filter(|line| line.contains(part)).collect();
        assert_eq!(of_it.len(), 1, "{part}: {lines:#?}");
        let time = of_it[0].split(' ').next().unwrap();
        assert!(time.len() == 20 && time.ends_with('Z'), "{}", of_it[0]);
    }
    let snapshot = lines.iter().find(|line| line.contains("snapshot ")).unwrap();
    assert!(snapshot.contains(", 3.") && snapshot.contains(" MB in "), "{snapshot}");
    // A first pairing is no failure.
    assert!(!lines.iter().any(|line| line.contains("no repository")), "{lines:#?}");
}

#[test]
fn the_journal_knows_the_time_and_more_detail_is_told_where_it_is_asked_for() {
    for (more, tells, tells_not) in [
        (&[][..], "snapshot ", "begins to back up"),
        (&["-v"][..], "desk at 127.0.0.1: begins to back up", "commit, "),
        (&["-vv"][..], "desk at 127.0.0.1: commit, ", "Z desk"),
    ] {
        let logged = Logged::start(more, true);
        logged.back_up();
        let lines = logged.lines();
        let has = |part: &str| lines.iter().any(|line| line.contains(part));
        assert!(has(tells) && !has(tells_not), "{more:?}: {lines:#?}");
        assert!(lines.iter().any(|line| line.starts_with("desk at ")), "{lines:#?}");
    }
}

#[test]
fn machines_that_did_not_come_for_long_are_listed() {
    let logged = Logged::start(&[], false);
    logged.back_up();
    let data = logged.machine.path("data");
    let absent = |time: &str| {
        let listed = logged.machine.administer(&data, &["machines", "--absent-for", time]);
        listed.expect(0).of_type("machine").len()
    };
    assert_eq!((absent("1h"), absent("0s")), (0, 1));
    let said =
        logged.machine.ok(["admin", "--data", text(&data), "machines", "--absent-for", "1h"]);
    assert!(said.stdout.contains("every machine was here since"), "{}", said.stdout);
}
