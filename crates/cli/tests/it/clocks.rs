//! Other clocks, put before holdall's by `faketime`.

use std::process::Command;

use holdall_testkit::is_there;

/// Whether the program is there that puts another clock before holdall's.
pub(crate) fn has_faketime() -> bool {
    is_there("faketime", Command::new("faketime").arg("--version").output().is_ok())
}

/// The same command by another clock; only the time of day is moved, not the time that passes. What
/// `faketime` would set for it is set here: its own process would stand between, and leave a server
/// behind that is killed.
pub(crate) fn at(time: &str, command: &Command) -> Command {
    let told = Command::new("faketime").args(["-m", time, "env"]).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    let wanted = |line: &&str| line.starts_with("LD_PRELOAD=") || line.starts_with("FAKETIME=");
    let mut moved = Command::new(command.get_program());
    moved.args(command.get_args()).env_clear();
    moved.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    moved.envs(told.lines().filter(wanted).filter_map(|line| line.split_once('=')));
    moved.env("DONT_FAKE_MONOTONIC", "1");
    moved
}
