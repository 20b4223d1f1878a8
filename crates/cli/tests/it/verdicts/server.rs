//! Servers with slow disks, without processor, or busy with others.

use std::time::Duration;

use holdall_testkit::Process;
use serde_json::Value;

use super::world::{World, enough, large_files, prefix_of, summary_of};
use super::{Row, hold, plant, row};
use crate::house::{Machine, files_below, folder, text};
use crate::plants::{Ration, Scrubs, SlowFsync, forget_cached};

const DISK: &[&str] = &["server-disk"];

pub(super) const ROWS: &[Row] = &[
    row("a server's disk that writes slowly", DISK, slow_writing),
    Row {
        also: tells_how_long_requests_took,
        ..row("a server's fsync that takes long", DISK, slow_fsync)
    },
    Row {
        also: a_faster_disk_would_help,
        ..row("a server's fsync that takes long under a ladder", DISK, ladder)
    },
    row("a server's disk that reads slowly under a restore", DISK, slow_reading),
    row("a server that waits for the bytes of others", &["server-busy"], busy),
    row("a server with a twentieth of a core", &["server-cpu"], processor),
    Row {
        also: its_processor_is_used_up,
        ..row("a server with a twentieth of a core under a ladder", &["server-cpu"], starved_ladder)
    },
    row("a server that scrubs meanwhile", &["server-busy"], scrubbing),
];

#[test]
fn a_server_is_named_where_it_is_slow_or_busy_and_nowhere_else() {
    hold(ROWS);
}

/// The world of a server whose disk is rationed; without the plant it is in memory, since a real
/// disk may truly be what limits.
fn on_disk(ration: Option<&Ration>) -> Option<World> {
    match ration {
        Some(ration) => Some(World::serving(&ration.prefix(), None)),
        None => World::in_memory(),
    }
}

/// The same with an fsync that takes long.
fn syncing(slow: Option<&SlowFsync>) -> Option<World> {
    if slow.is_some() { Some(World::serving(&[], slow)) } else { World::in_memory() }
}

/// Without the plant: everything in memory.
fn slow_writing(planted: bool) -> Option<Value> {
    let ration = plant(planted, || Ration::of_writing("w", folder().path(), 5_000_000))?;
    let world = on_disk(ration.as_ref())?;
    Some(summary_of(&mut world.backup(&world.large_source(enough(planted, 10)))))
}

/// Without the plant: everything in memory.
fn slow_fsync(planted: bool) -> Option<Value> {
    let slow = plant(planted, || SlowFsync::by(Duration::from_millis(300)))?;
    let world = syncing(slow.as_ref())?;
    Some(summary_of(&mut world.backup(&world.large_source(enough(planted, 20)))))
}

/// Without the plant: everything in memory.
fn ladder(planted: bool) -> Option<Value> {
    let slow = plant(planted, || SlowFsync::by(Duration::from_millis(300)))?;
    let world = syncing(slow.as_ref())?;
    let source = world.large_source(enough(planted, 20));
    Some(summary_of(&mut world.machine.command(["lab", "path", text(&source), "--json"])))
}

/// Without the plant: everything in memory.
fn slow_reading(planted: bool) -> Option<Value> {
    let ration = plant(planted, || Ration::of_reading("sr", folder().path(), 4_000_000))?;
    let world = on_disk(ration.as_ref())?;
    summary_of(&mut world.backup(&world.large_source(enough(planted, 8))));
    for file in files_below(&world.machine.path("server")) {
        forget_cached(&file);
    }
    Some(summary_of(&mut world.restore()))
}

/// Without the plant: the others are let in, and do nothing.
fn busy(planted: bool) -> Option<Value> {
    let world = World::new();
    let source = world.large_source(enough(planted, 20));
    let others: Vec<_> = (0..5).map(|_| world.other_machine()).collect();
    let begin = |other: &Machine| {
        let args = ["backup", text(&source), "--limit-upload", "1M", "--streams", "8"];
        Process::spawn(&mut other.command(args)).expect("it starts")
    };
    let working: Vec<_> = others.iter().filter(|_| planted).map(begin).collect();
    if planted {
        // They all have begun to send what the server has to wait for.
        std::thread::sleep(Duration::from_secs(4));
    }
    let summary = summary_of(&mut world.backup(&source));
    drop(working);
    Some(summary)
}

/// Without the plant the client's own limit holds the run back: a server that gets all it can take
/// may truly be out of processor, one that gets 8 MB/s is not.
fn processor(planted: bool) -> Option<Value> {
    let ration = plant(planted, || Ration::of_processor("s", 5))?;
    let world = World::serving(&prefix_of(ration.as_ref()), None);
    let mut backup = world.backup(&world.large_source(20));
    if !planted {
        backup.args(["--limit-upload", "8M"]);
    }
    Some(summary_of(&mut backup))
}

/// Without the plant: everything in memory.
fn starved_ladder(planted: bool) -> Option<Value> {
    let ration = plant(planted, || Ration::of_processor("sl", 5))?;
    let world = match &ration {
        Some(ration) => World::serving(&ration.prefix(), None),
        None => World::in_memory()?,
    };
    let source = world.large_source(enough(planted, 20));
    Some(summary_of(&mut world.machine.command(["lab", "path", text(&source), "--json"])))
}

fn its_processor_is_used_up(summary: &Value) {
    let ladder = summary["ladder"].as_array().expect("a ladder");
    let processor = ladder.iter().find(|rung| rung["name"] == "server processor").expect("a step");
    assert!(processor["used"].as_f64().expect("a share") > 0.5, "{processor}");
}

fn tells_how_long_requests_took(summary: &Value) {
    let verdict = &summary["verdict"];
    let stages = verdict["stages"].as_array().expect("stages");
    let is_it = |stage: &&Value| stage["name"] == "send" && stage["layer"] == "server-disk";
    let disk = stages.iter().find(is_it).expect("requests at the disk");
    assert!(disk["latency_ns"]["p99"].as_u64() >= Some(300_000_000), "{disk}");
    let why = verdict["explanation"].as_str().expect("an explanation");
    assert!(why.contains(" ms for a request on average, "), "{why}");
}

/// What scrubs take is processor, but no request waits for them: the server is busy, not slow. It is
/// rationed with the plant and without it, or client and server would share cores that are all at work.
/// Without the plant nobody scrubs, and the client's own limit holds the run back, as it has to where a
/// server gets no more than a fifth of a core.
fn scrubbing(planted: bool) -> Option<Value> {
    let ration = Ration::of_processor("sc", 20)?;
    let world = World::serving(&ration.prefix(), None);
    let (other, source) = (world.other_machine(), world.large_source(20));
    let stored = other.path("source");
    large_files(&stored, 60);
    other.ok(["backup", text(&stored)]);
    let mut backup = world.backup(&source);
    backup.args(["--streams", "1"]);
    if !planted {
        backup.args(["--limit-upload", "4M"]);
    }
    let scrubs = planted.then(|| Scrubs::of(&world.machine.path("server"), 8));
    if planted {
        // They all have begun to read.
        std::thread::sleep(Duration::from_secs(2));
    }
    let summary = summary_of(&mut backup);
    drop(scrubs);
    Some(summary)
}

fn a_faster_disk_would_help(summary: &Value) {
    let help = summary["verdict"]["help"].as_str().expect("help");
    assert!(help.contains("a faster disk"), "{help}");
}
