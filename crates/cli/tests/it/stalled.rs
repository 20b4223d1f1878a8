//! A server that hangs, or a box between that forgot the connections: they stay open, nothing comes any
//! more, and nothing says so. That is noticed, and the run goes on over new ones by itself. So it does on
//! a computer that slept for longer than the server keeps its session. Where bytes still come, if only one at a
//! time, nothing is to be noticed.
//!
//! A client waits for minutes before it gives a connection up. For a change its clock goes faster; the whole test
//! waits as long as a user does.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use holdall_testkit::{ChaosProxy, CompareOptions, Process, Random, Slice, compare_trees};
use rustix::process::Signal;

use crate::clocks::{can_let_days_pass, days_later, has_faketime, hurry};
use crate::house::{
    Machine, Outcome, Server, files_below, run_by, send_signal, text, wait_for_progress,
};

/// So many times as fast goes the clock of a client for a change.
const HURRY: u32 = 20;
const FILES: u64 = 12;
const FILE_BYTES: usize = 2_000_000;
/// Into the bytes of the files, which do not compress.
const STALL_AFTER_BYTES: u64 = 9_000_000;
/// What is looked up may take 120 seconds, and the rest of the restore a busy computer's time.
const NOTICED_WITHIN: Duration = Duration::from_secs(240);

/// A machine that is paired with a server behind a proxy.
fn behind_a_proxy() -> (Machine, Server, ChaosProxy) {
    let machine = Machine::new();
    let server = Server::start(&machine.path("server"));
    let upstream = server.address().parse().expect("an address");
    let proxy = ChaosProxy::start(upstream).expect("a free port");
    machine.pair(&server.invite_with(&["--address", &proxy.address().to_string()]));
    (machine, server, proxy)
}

/// Makes files to back up.
fn write_source(machine: &Machine, file_bytes: usize) {
    let source = machine.path("source");
    fs::create_dir(&source).expect("room");
    for number in 0..FILES {
        let content = Random::new(number).bytes(file_bytes);
        fs::write(source.join(number.to_string()), content).expect("room");
    }
}

/// Runs a command over connections that stall in the middle of it, and checks that this was noticed.
fn through_a_stall(proxy: &ChaosProxy, command: &Command) {
    proxy.stall_after(STALL_AFTER_BYTES);
    let begun = Instant::now();
    Outcome::of(&mut run_by(&impatience(), command)).expect(0);
    assert!(proxy.stalled() > 0, "nothing stalled");
    // A busy computer's time does not go faster.
    let within = if is_hurried() { NOTICED_WITHIN / 4 } else { NOTICED_WITHIN };
    assert!(begun.elapsed() < within, "{:?}", begun.elapsed());
}

fn is_hurried() -> bool {
    !Slice::one_in(HURRY.into()).is_everything()
}

/// What comes before a command that is to notice within seconds what else takes it minutes.
fn impatience() -> Vec<String> {
    let mut words = vec!["env".to_owned()];
    if is_hurried() {
        let variables = hurry(HURRY).into_iter();
        words.extend(variables.map(|(name, value)| format!("{name}={value}")));
    }
    words
}

fn restore(machine: &Machine) -> Command {
    let from = format!("latest:{}", text(&machine.path("source")));
    machine.command(["restore", &from, "--target", text(&machine.path("target"))])
}

fn restored(machine: &Machine) {
    Outcome::of(&mut restore(machine)).expect(0);
    assert_restored(machine);
}

fn assert_restored(machine: &Machine) {
    let (source, target) = (machine.path("source"), machine.path("target"));
    assert_eq!(compare_trees(&source, &target, &CompareOptions::default()), []);
}

#[test]
fn a_restore_goes_on_when_its_connections_carry_nothing_any_more() {
    if !has_faketime() {
        return;
    }
    let (machine, _server, proxy) = behind_a_proxy();
    write_source(&machine, FILE_BYTES);
    machine.ok(["backup", text(&machine.path("source"))]);
    through_a_stall(&proxy, &restore(&machine));
    assert_restored(&machine);
}

#[test]
fn a_backup_goes_on_when_its_connections_carry_nothing_any_more() {
    if !has_faketime() {
        return;
    }
    let (machine, _server, proxy) = behind_a_proxy();
    write_source(&machine, FILE_BYTES);
    through_a_stall(&proxy, &machine.command(["backup", text(&machine.path("source"))]));
    restored(&machine);
}

/// Every byte comes alone of a small backup, and some do here and there in a larger one.
#[test]
fn what_comes_a_byte_at_a_time_is_taken_as_what_comes_at_once() {
    for (file_bytes, mean_bytes, len_bytes) in [(100, 0, 1), (FILE_BYTES, 100_000, 20)] {
        let (machine, _server, proxy) = behind_a_proxy();
        write_source(&machine, file_bytes);
        proxy.trickle(7, mean_bytes, len_bytes);
        let summary = machine.summary(["backup", text(&machine.path("source"))]);
        assert_eq!(summary["files_new"], FILES);
        restored(&machine);
        machine.ok(["check", "--scrub", "--verify", "all"]);
        eprintln!(
            "{} bytes went over it, {len_bytes} alone of each {mean_bytes}",
            proxy.forwarded_bytes()
        );
    }
}

/// The sessions that a server keeps.
fn sessions(data: &Path) -> BTreeSet<PathBuf> {
    let is_session = |file: &PathBuf| file.parent().is_some_and(|of| of.ends_with("sessions"));
    files_below(data).into_iter().filter(is_session).collect()
}

/// More than a session lives without being used.
const ASLEEP_DAYS: u64 = 8;

#[test]
fn a_backup_goes_on_when_its_computer_wakes_up_after_its_session_has_lapsed() {
    if !can_let_days_pass() {
        return;
    }
    let machine = Machine::new();
    let (data, source) = (machine.path("server"), machine.path("source"));
    let server = Server::start(&data);
    let address = server.address().to_owned();
    machine.pair_with(&server);
    write_source(&machine, FILE_BYTES);
    let args = ["backup", text(&source), "--json", "--limit-upload", "4M", "--retry-for", "60s"];
    let mut backup = Process::spawn(&mut machine.command(args)).expect("it starts");
    wait_for_progress(&mut backup, 3);
    send_signal(&backup, Signal::STOP);
    let before = sessions(&data);
    assert_eq!(before.len(), 1, "that of the backup");
    drop(server);
    let later = days_later(ASLEEP_DAYS, &Server::command_at(&address, &data));
    let _server = Server::start_by(&mut { later }, &data);
    // Opening another session sweeps those that have lapsed.
    machine.ok(["check", "--verify", "1"]);
    assert!(sessions(&data).is_disjoint(&before), "it has not lapsed");
    send_signal(&backup, Signal::CONT);
    let ended = Outcome::of_process(backup).expect(0);
    assert_eq!(ended.summary()["files_new"], FILES);
    restored(&machine);
}
