//! The agent's change journal with real backups: they look only where something changed, after the hook before them, and
//! everywhere once nobody watched.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use holdall_testkit::Process;
use serde_json::Value;

use crate::agent::{machine, settings, stop, write_settings};
use crate::house::{Machine, small_tree, text};
use crate::mounts::Mount;

/// A machine whose set lies on a disk of its own, so that nothing else happens there. A hook writes a dump before each backup.
fn watched() -> Option<(Machine, Mount)> {
    let machine = machine("");
    let disk = Mount::in_memory(&machine.path("disk"), 64 << 20)?;
    let (before, source) = (settings(&machine), source(&disk));
    small_tree(&source);
    let set = before.replace(text(&machine.path("source")), text(&source));
    let dump = format!("hooks.before = \"date +%N > {}/dump\"\n", text(&source));
    write_settings(&machine, &format!("{set}schedule = \"*:*:*\"\n{dump}"));
    Some((machine, disk))
}

fn source(disk: &Mount) -> std::path::PathBuf {
    disk.point().join("source")
}

fn agent(machine: &Machine) -> Process {
    Process::spawn(machine.command(["agent", "--json"]).stderr(Stdio::null())).unwrap()
}

/// The next summary of a backup of which this holds.
fn summary(agent: &mut Process, is_wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let line = agent.wait_for_line("{\"message_type\":\"summary\"").expect("it goes on");
        let summary: Value = serde_json::from_str(&line).unwrap();
        crate::schema::check(&summary);
        if is_wanted(&summary) {
            return summary;
        }
    }
}

fn is_by_journal(summary: &Value) -> bool {
    summary["walk"] == "journal"
}

/// Whether the newest snapshot has a file of that name.
fn has(machine: &Machine, source: &Path, name: &str) -> bool {
    let path = source.join(name);
    loop {
        let listed = machine.run(["ls", "latest", text(&path)]);
        match listed.code {
            // The next backup has the repository for a moment.
            Some(11) => {}
            Some(0) => return true,
            _ => panic!("{listed:?}"),
        }
    }
}

#[test]
fn backups_look_where_something_changed_and_everywhere_after_a_kill() {
    let Some((machine, disk)) = watched() else { return };
    let source = source(&disk);
    let mut first = agent(&machine);
    assert_eq!(summary(&mut first, |_| true)["walk"], "full");
    let by_journal = summary(&mut first, is_by_journal);
    assert_eq!(by_journal["files_changed"], 1, "the dump: {by_journal}");
    // What other tests mount at the same moment may have everything walked.
    let is_found_by_journal = (0..20).any(|number| {
        let name = format!("new{number}");
        fs::write(source.join(&name), "x").unwrap();
        let with_new = summary(&mut first, |summary| summary["files_new"] == 1);
        assert!(has(&machine, &source, &name), "{with_new}");
        is_by_journal(&with_new)
    });
    assert!(is_found_by_journal);
    let status = machine.ok(["agent", "status"]).stdout;
    assert!(status.contains("the journal named "), "{status}");

    first.kill().unwrap();
    fs::write(source.join("unwatched"), "x").unwrap();
    let mut second = agent(&machine);
    // A backup that went on when the agent was killed may have found it.
    let full = summary(&mut second, |_| true);
    assert!(full["walk"] == "full" && has(&machine, &source, "unwatched"), "{full}");
    summary(&mut second, is_by_journal);
    stop(second);
}
