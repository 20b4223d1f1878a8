//! Copies of old snapshots are kept by the dates of their originals, on a server and in a directory.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::clocks::{at, can_let_days_pass, days_later, has_faketime};
use crate::house::{Machine, Outcome, Server};

/// A day on which the lock of a server holds none of the snapshots any more.
const UNLOCKED: u64 = 40;

/// A machine that has a snapshot of each of twelve months in a directory.
struct Months {
    machine: Machine,
    repo: String,
    password_file: String,
}

impl Months {
    fn new() -> Self {
        let machine = Machine::new().with_password(None);
        let [repo, password_file] = ["repo", "password"].map(|name| text(&machine.path(name)));
        fs::write(&password_file, "correct horse").unwrap();
        machine.init(&["-r", &repo, "--password-file", &password_file]);
        let source = machine.path("source");
        fs::create_dir(&source).unwrap();
        let months = Self { machine, repo, password_file };
        for month in 1..=12 {
            fs::write(source.join("file"), format!("of month {month}")).unwrap();
            months.back_up(&format!("2025-{month:02}-10 12:00:00"));
        }
        months
    }

    fn back_up(&self, time: &str) {
        let source = text(&self.machine.path("source"));
        let args = ["backup", &source, "-r", &self.repo, "--password-file", &self.password_file];
        Outcome::of(&mut at(time, &self.machine.command(args))).expect(0);
    }

    /// Copies all of them to the server that the machine is paired with.
    fn copy(&self, more: &[&str]) -> Outcome {
        let from = ["--from", &self.repo, "--from-password-file", &self.password_file];
        self.machine.ok([&["copy"], &from[..], more].concat())
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

/// What the rules of a stopped server let go so many days later.
fn forgotten_later(machine: &Machine, data: &Path, days: u64) -> Vec<Value> {
    let command = machine.command(["admin", "--data", &text(data), "prune", "--json"]);
    let pruned = Outcome::of(&mut days_later(days, &command)).expect(0).of_type("prune").remove(0);
    assert_eq!((&pruned["problem"], &pruned["alarm"]), (&Value::Null, &Value::Null), "{pruned}");
    pruned["snapshots_forgotten"].as_array().unwrap().clone()
}

/// All that came to the server came within a minute, which is one day, one week and one month.
#[test]
fn a_server_keeps_copies_by_the_dates_of_their_originals() {
    if !can_let_days_pass() {
        return;
    }
    let months = Months::new();
    // Of the same hour as the last one.
    months.back_up("2025-12-10 12:30:00");
    let data = months.machine.path("data");
    let server = Server::start(&data);
    months.machine.pair_with(&server);
    let said = months.copy(&[]);
    assert!(said.stdout.contains("13 copied, 0 copied before"), "{said:?}");
    let told = "rules keep these copies by the dates of their originals";
    assert!(said.stderr.contains(told), "{told} is not in {said:?}");
    drop(server);
    let args = ["admin", "--data", &text(&data), "prune", "--dry-run"];
    let words = Outcome::of(&mut days_later(UNLOCKED, &months.machine.command(args))).expect(0);
    // The clock went on from noon.
    assert_eq!(words.stdout.matches(" of 2025-12-10 12:0").count(), 1, "{words:?}");
    assert!(words.stdout.contains(", copied "), "{words:?}");
    let forgotten = forgotten_later(&months.machine, &data, UNLOCKED);
    assert_eq!(forgotten.len(), 1, "{forgotten:?}");
}

#[test]
fn in_a_directory_copies_are_counted_by_their_dates_and_apart_from_backups() {
    if !has_faketime() {
        return;
    }
    let months = Months::new();
    let (machine, to) = (&months.machine, text(&months.machine.path("to")));
    machine.init(&["-r", &to, "--password-file", &months.password_file]);
    let there = ["-r", &to, "--password-file", &months.password_file];
    let said = months.copy(&there);
    assert!(!said.stderr.contains("server"), "{said:?}");
    // Of the same series, a month later.
    let source = text(&machine.path("source"));
    for day in [11, 12] {
        let args = [&["backup", &source], &there[..]].concat();
        Outcome::of(&mut at(&format!("2026-01-{day} 12:00:00"), &machine.command(args))).expect(0);
    }
    let forgets = |rules: &[&str]| {
        let args = [&["forget", "-n", "--json"], rules, &there].concat();
        let judged = machine.ok(args).of_type("snapshot");
        let goes = judged.iter().map(|one| one["forgotten"].as_bool().unwrap());
        goes.collect::<Vec<_>>()
    };
    let [mut all_copies, mut ten, mut newest] = [[false; 14], [false; 14], [true; 14]];
    all_copies[12] = true;
    (ten[0], ten[1], ten[12]) = (true, true, true);
    (newest[11], newest[13]) = (false, false);
    assert_eq!(forgets(&["--keep-monthly", "12"]), all_copies);
    assert_eq!(forgets(&["--keep-monthly", "10"]), ten);
    assert_eq!(forgets(&["--keep-within", "20h"]), newest);
}
