//! What a server is told of backups.

use std::sync::Arc;

use holdall_server::admin::{self, ListRuns, RunEntry};
use holdall_sys::SystemClock;

use crate::house::{Machine, Server, small_tree, text};

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
}
