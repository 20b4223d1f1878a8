//! Runs that machines tell of, over the wire.

use holdall_meter::{Layer, RunCurve, RunPoint};
use holdall_protocol::wire::{LayerWork, ReportedKind, RunReport};
use holdall_protocol::{Repository, ServedRepository};
use holdall_server::admin;

use crate::world::World;

fn report(started_ns: i64) -> RunReport {
    let point = |at| RunPoint { milliseconds: at, bytes: 10 * at, items: at };
    RunReport {
        kind: ReportedKind::Backup,
        started_ns,
        milliseconds: 61_000,
        exit_code: 3,
        items: 1000,
        bytes: 5_000_000,
        sent_bytes: 400_000,
        problems: 2,
        limited_by: Layer::ServerDisk,
        usual_milliseconds: Some(30_000),
        work: vec![LayerWork { layer: Layer::ServerDisk, milliseconds: 55_000 }],
        points: (0..RunCurve::MOST_POINTS as u64).map(point).collect(),
        next_ns: Some(started_ns + 1),
    }
}

#[test]
fn what_a_machine_tells_of_a_run_is_its_administrator_s_to_read_after_a_restart_too() {
    let mut world = World::new();
    let machine = world.machine(1);
    let other = world.machine(2);
    machine.connect().report_run(&report(5)).unwrap();
    other.connect().report_run(&report(9)).unwrap();
    world.stop();
    world.start();
    let asked = admin::ListRuns { machine: "machine 1".into() };
    let runs = world.admin(&asked).unwrap().runs;
    assert_eq!(runs.iter().map(|run| &run.report).collect::<Vec<_>>(), [&report(5)]);
    assert_eq!(runs[0].received_ns, 1_700_000_000_000_000_000);
    let machines = world.admin(&admin::ListMachines {}).unwrap().machines;
    let last = machines[1].last_run.as_ref().unwrap();
    assert_eq!(last.report, RunReport { points: vec![], ..report(9) });
    // It is no snapshot, and takes none of the repository's room.
    assert_eq!(machine.connect().usage().unwrap().records, 0);
}

#[test]
fn a_report_over_its_limits_is_refused_and_the_one_before_stays() {
    let world = World::new();
    let machine = world.machine(1);
    let repository = machine.connect();
    repository.report_run(&report(5)).unwrap();
    let bad = RunReport { items: u64::MAX, ..report(6) };
    let refused = repository.report_run(&bad).unwrap_err().to_string();
    assert!(refused.contains("over its limit"), "{refused}");
    let asked = admin::ListRuns { machine: "machine 1".into() };
    assert_eq!(world.admin(&asked).unwrap().runs[0].report, report(5));
}
