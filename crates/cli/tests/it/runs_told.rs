//! What a server is told of backups.

use std::path::Path;
use std::sync::Arc;

use holdall_server::admin::{self, ListRuns, RunEntry};
use holdall_sys::SystemClock;

use crate::house::{Machine, Outcome, Server, small_tree, text};

/// What the server of a machine in its folder `data` knows of the machine's runs, the oldest first.
fn runs(machine: &Machine) -> Vec<RunEntry> {
    let asked = ListRuns { machine: "desk".to_owned() };
    admin::ask(&machine.path("data"), &asked, Arc::new(SystemClock)).expect("it knows desk").runs
}

#[test]
fn a_server_is_told_how_each_backup_ended_and_of_no_slip_and_no_dry_run() {
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    machine.pair(&server.invite_with(&["--name", "desk"]));
    let (source, gone) = (machine.path("source"), machine.path("gone"));
    small_tree(&source);
    machine.ok(["backup", text(&source)]);
    machine.ok(["backup", "-n", text(&source)]);
    machine.run(["backup", "--no-such-option"]).expect(2);
    machine.run(["backup", text(&source), text(&gone)]).expect(3);
    machine.run(["backup", text(&gone)]).expect(1);

    let runs = runs(&machine);
    let codes: Vec<_> = runs.iter().map(|run| run.report.exit_code).collect();
    assert_eq!(codes, [0, 3, 1], "{runs:?}");
    let [good, incomplete, failed] = &runs[..] else { unreachable!() };
    let points = &good.report.points;
    let last = points.last().expect("its end");
    assert!(good.report.items > 0 && points[0].milliseconds == 0, "{good:?}");
    assert_eq!((last.items, last.bytes), (good.report.items, good.report.bytes));
    assert!(good.report.sent_bytes > 0 && incomplete.report.items > 0);
    assert_eq!((failed.report.items, failed.report.points.len()), (0, 0));
    assert!(runs.iter().all(|run| run.report.started_ns <= run.received_ns));

    let data = machine.path("data");
    let listed = machine.administer(&data, &["runs", "desk"]).expect(0).of_type("run");
    let codes: Vec<_> = listed.iter().map(|run| run["exit_code"].as_u64()).collect();
    assert_eq!(codes, [Some(0), Some(3), Some(1)]);
    assert_eq!(listed[0]["items"], good.report.items);
    let entry = &machine.administer(&data, &["machines"]).expect(0).of_type("machine")[0];
    assert_eq!(entry["last_run"], listed_without_type(&listed[2]));
    let said = |verb: &[&str]| {
        let place = ["--data", text(&data)];
        machine.ok([&["admin"], verb, &place].concat()).stdout
    };
    let words = said(&["runs", "desk"]);
    assert!(
        words.contains("  could not read 1 item") && words.contains("failed with 1"),
        "{words}"
    );
    assert!(words.lines().all(|line| line.len() <= 80), "{words}");
    assert!(said(&["machines"]).contains("its last backup failed with 1, "));
}

/// The same object without what kind of message it was.
fn listed_without_type(run: &serde_json::Value) -> serde_json::Value {
    let mut fields = run.as_object().expect("an object").clone();
    fields.remove("message_type");
    fields.into()
}

/// A program of that name that says `said`, whatever it is asked.
fn program(folder: &Path, name: &str, said: &str) {
    let file = folder.join(name);
    std::fs::write(&file, format!("#!/bin/sh\ncat <<'END'\n{said}\nEND\n")).expect("room");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&file, mode).expect("it is there");
}

/// While a timer's backup runs, its manager has no next start to tell.
#[test]
fn the_next_start_of_the_timer_is_told_while_its_backup_runs_too() {
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    machine.pair(&server.invite_with(&["--name", "desk"]));
    let (source, programs) = (machine.path("source"), machine.path("programs"));
    small_tree(&source);
    std::fs::create_dir(&programs).expect("room");
    let paths = format!("{}:/usr/bin:/bin", programs.display());
    let backed_up = || {
        Outcome::of(machine.command(["backup", text(&source)]).env("PATH", &paths)).expect(0);
        runs(&machine).pop().expect("a run").report.next_ns
    };
    let listed = |next: u64| format!("[{{\"next\":{next},\"unit\":\"holdall-backup.timer\"}}]");
    program(&programs, "systemctl", &listed(4_000_000_000_000_000));
    assert_eq!(backed_up(), Some(4_000_000_000_000_000_000));

    let calendar = "{ OnCalendar=*-*-* 02:30:00 ; next_elapse=n/a }";
    program(&programs, "systemctl", &format!("[]\n{calendar}"));
    let elapses = "    Next elapse: Tue 2096-10-02 09:06:40 CEST\n       (in UTC): Tue 2096-10-02 07:06:40 UTC";
    program(&programs, "systemd-analyze", elapses);
    assert_eq!(backed_up(), Some(4_000_000_000_000_000_000));
    program(&programs, "systemctl", &listed(1_000_000_000_000_000));
    assert_eq!(backed_up(), None, "the one that is running is not the next one");
}
