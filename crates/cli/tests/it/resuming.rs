//! A first backup that is killed after a long time, and its server with it: the next run begins at the last
//! checkpoint, and reads nothing again that it holds.
//!
//! Checkpoints are five minutes apart. Here the client's time goes a hundred times as fast, by faketime.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use holdall_testkit::{CompareOptions, Process, Random, compare_trees, has_strace};

use crate::clocks::{has_faketime, hurried};
use crate::house::{Machine, Outcome, disk_bytes, files_below, text};
use crate::kill::Phoenix;
use crate::repair::grow_old;

/// Files that a checkpoint is to hold, and larger ones behind them.
const FILES: usize = 200;
const FILE_BYTES: usize = 20_000;
const REST_FILES: usize = 144;
const REST_FILE_BYTES: usize = 1 << 20;
/// So that all of it takes far more than what is between two checkpoints, and a kill comes behind one.
const BYTES_PER_SECOND: u64 = 4 << 20;
const TIMES_AS_FAST: u32 = 100;
/// Behind so many checkpoints it is killed.
const CHECKPOINTS: usize = 3;
/// What is stored when a checkpoint begins, and not in it: of files that are being read, and what goes with contents.
const NOT_HELD_BYTES: u64 = 8 << 20;
/// Far more than it takes until there are checkpoints.
const PATIENCE: Duration = Duration::from_secs(120);

fn write(source: &Path) {
    let mut random = Random::new(12);
    let (first, rest) = (source.join("first"), source.join("rest"));
    [&first, &rest].into_iter().for_each(|folder| fs::create_dir_all(folder).expect("a folder"));
    for number in 0..FILES {
        fs::write(first.join(number.to_string()), random.bytes(FILE_BYTES)).expect("room");
    }
    for number in 0..REST_FILES {
        fs::write(rest.join(number.to_string()), random.bytes(REST_FILE_BYTES)).expect("room");
    }
}

/// How many records the server keeps.
fn records(data: &Path) -> usize {
    let is_record =
        |path: &&std::path::PathBuf| path.parent().is_some_and(|it| it.ends_with("records"));
    files_below(&data.join("repositories")).iter().filter(is_record).count()
}

/// Backs up until there are checkpoints, and is killed. Says how much was stored when the last one began.
fn back_up_until_killed(machine: &Machine, data: &Path, source: &Path) -> u64 {
    // What has to come within seconds has less time, too, and is tried again.
    let command = machine.command(["backup", text(source), "--json", "--retry-for", "48h"]);
    let mut running = Process::spawn(&mut hurried(TIMES_AS_FAST, &command)).expect("it starts");
    let begun = Instant::now();
    let wait_for = |there: &dyn Fn() -> bool| {
        while !there() {
            assert!(begun.elapsed() < PATIENCE, "it does not come that far");
            sleep(Duration::from_millis(20));
        }
    };
    wait_for(&|| records(data) >= CHECKPOINTS - 1);
    let stored = disk_bytes(data);
    wait_for(&|| records(data) >= CHECKPOINTS);
    let status = running.kill().expect("it lived");
    assert_eq!(status.code(), None, "it was at work");
    stored
}

/// Backs up, and tells what was opened of the source meanwhile.
fn back_up_watched(machine: &Machine, source: &Path) -> (Outcome, Vec<String>) {
    let trace = machine.path("trace");
    let by = ["strace", "-f", "-y", "-e", "trace=openat", "-o", text(&trace)];
    let outcome = machine.run_by(&by, ["backup", text(source), "--json"]).expect(0);
    let lines = fs::read_to_string(&trace).expect("a trace");
    let opened = lines.lines().filter(|line| line.contains(text(source)));
    (outcome, opened.map(str::to_owned).collect())
}

#[test]
fn a_first_backup_that_is_killed_late_reads_nothing_again_that_a_checkpoint_holds() {
    if !has_faketime() || !has_strace() {
        return;
    }
    let machine = Machine::new().with_password(None);
    let (data, source) = (machine.path("data"), machine.path("source"));
    write(&source);
    grow_old(&source);
    let mut server = Phoenix::new(&data);
    machine.pair(&server.invite());
    server.carry_at(BYTES_PER_SECOND);
    let stored = back_up_until_killed(&machine, &data, &source);
    server.kill();
    server.carry_at(u64::MAX);

    assert_eq!(machine.ok(["snapshots", "--json"]).of_type("snapshot").len(), 0, "none is done");
    let (outcome, opened) = back_up_watched(&machine, &source);
    let of = |what: &str| opened.iter().filter(|line| line.contains(what)).count();
    assert_eq!(of("source/first/"), 0, "{opened:#?}");
    let held = stored.saturating_sub((FILES * FILE_BYTES) as u64 + NOT_HELD_BYTES);
    let held = held as usize / REST_FILE_BYTES;
    assert!(held > REST_FILES / 10, "{stored} bytes were stored: the checkpoints came too early");
    let (read, left) = (of("source/rest/"), REST_FILES - held);
    assert!(0 < read && read <= left, "{read} of {left} files: {opened:#?}");
    let sent = outcome.summary()["bytes_sent"].as_u64().expect("a number");
    assert!(sent < ((left + 1) * REST_FILE_BYTES) as u64, "{sent} bytes for {left} files");
    println!("{stored} bytes stored: {held} files held, {read} read, {sent} bytes sent");

    let (from, target) = (format!("latest:{}", text(&source)), machine.path("target"));
    machine.ok(["restore", &from, "--target", text(&target)]);
    assert_eq!(compare_trees(&source, &target, &CompareOptions::default()), []);
    machine.ok(["check", "--scrub", "--verify", "all"]);
}
