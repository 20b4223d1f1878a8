//! Terminal sessions, one file for each command in `tests/cmd`: what a user types, and what they
//! see. The help of every command is pinned there, so that no change of it goes unseen.
//!
//! `TRYCMD=overwrite` writes what is said now into the files; what differs from run to run, such as
//! ids and times, is `[..]` there, and lines that may be missing are `...`.

use crate::house::HOLDALL;

#[test]
fn every_command_says_what_its_session_shows() {
    let sessions = trycmd::TestCases::new();
    sessions.register_bin("holdall", std::path::Path::new(HOLDALL));
    for (name, value) in [
        ("HOLDALL_CONFIG_DIR", "config"),
        ("HOLDALL_CACHE_DIR", "cache"),
        ("HOLDALL_PASSWORD", "correct horse"),
        ("COLUMNS", "100"),
        ("TMPDIR", env!("CARGO_TARGET_TMPDIR")),
    ] {
        sessions.env(name, value);
    }
    sessions.case("tests/cmd/*.trycmd");
}

#[test]
fn every_command_has_a_session() {
    let help = std::process::Command::new(HOLDALL).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<_> = commands.map_while(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 10, "{help}");
    for command in commands.iter().filter(|command| **command != "help") {
        let file = format!("{}/tests/cmd/{command}.trycmd", env!("CARGO_MANIFEST_DIR"));
        let session = std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("no {file}"));
        assert!(session.contains(&format!("$ holdall {command} --help\n")), "{command}: no help");
        assert!(session.contains("\n? "), "{command}: no error");
    }
}
