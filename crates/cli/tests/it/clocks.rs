//! Other clocks, put before holdall's by `faketime`.

use std::process::Command;
use std::sync::OnceLock;

use holdall_testkit::is_there;

use crate::house::{is_root, run_by};

/// Whether the program is there that puts another clock before holdall's.
pub(crate) fn has_faketime() -> bool {
    is_there("faketime", Command::new("faketime").arg("--version").output().is_ok())
}

/// The same command by another clock; only the time of day is moved, not the time that passes.
pub(crate) fn at(time: &str, command: &Command) -> Command {
    let mut moved = by_faketime(&["-m", time], command);
    moved.env("DONT_FAKE_MONOTONIC", "1");
    moved
}

/// The same command, for which all time goes so many times as fast.
pub(crate) fn hurried(times: u32, command: &Command) -> Command {
    with(hurry(times), command)
}

/// The variables with which all time of a command goes so many times as fast.
pub(crate) fn hurry(times: u32) -> Vec<(String, String)> {
    told(&["-m", "-f", &format!("+0 x{times}")])
}

/// The same command with what `faketime` would set for it: its own process would stand between, and leave
/// one behind that is killed.
fn by_faketime(args: &[&str], command: &Command) -> Command {
    with(told(args), command)
}

fn with(variables: Vec<(String, String)>, command: &Command) -> Command {
    let mut moved = Command::new(command.get_program());
    moved.args(command.get_args()).env_clear();
    moved.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    moved.envs(variables);
    moved
}

/// How often `faketime` is asked.
const TRIES: usize = 50;

/// What `faketime` sets for the commands that it starts.
fn told(args: &[&str]) -> Vec<(String, String)> {
    // It gives up where a process that had the same number was killed and left its names behind.
    let mut tries = (0..TRIES).filter_map(|_| asked(args));
    tries.next().expect("faketime says what it sets")
}

fn asked(args: &[&str]) -> Option<Vec<(String, String)>> {
    let told = Command::new("faketime").args(args).arg("env").output().unwrap();
    let said = String::from_utf8(told.stdout).unwrap();
    let variables = said.lines().filter_map(|line| line.split_once('='));
    let wanted = variables.filter(|(name, _)| ["LD_PRELOAD", "FAKETIME"].contains(name));
    let told: Vec<_> = wanted.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    (told.len() == 2).then_some(told)
}

/// Whether days can be had to pass for a server.
pub(crate) fn can_let_days_pass() -> bool {
    let namespace = || Command::new("unshare").args(["--time", "true"]).status();
    is_root("days that pass, by a time namespace")
        && has_faketime()
        && is_there("a time namespace", namespace().is_ok_and(|status| status.success()))
}

/// The same command so many days later, by the time of day and by the clock that nobody sets: for a server, days
/// on which the computer ran without it.
pub(crate) fn days_later(days: u64, command: &Command) -> Command {
    static TOLD: OnceLock<Vec<(String, String)>> = OnceLock::new();
    let told = TOLD.get_or_init(|| told(&["-m", "-f", "+0"]));
    let preload = told.iter().find(|(name, _)| name == "LD_PRELOAD").map(|(_, path)| path);
    let preload = format!("LD_PRELOAD={}", preload.expect("what it is for"));
    let (clock, seconds) = (format!("FAKETIME=+{days}d"), (days * 86_400).to_string());
    let in_namespace = ["unshare", "--time", "--boottime", &seconds];
    // Only the command itself has that clock: what becomes another program leaves its names behind for good.
    let by = [&in_namespace[..], &["env", &preload, &clock, "DONT_FAKE_MONOTONIC=1"]].concat();
    run_by(&by, command)
}
