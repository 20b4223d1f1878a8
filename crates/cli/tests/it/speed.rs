//! What runs take is remembered: estimates before, and slowness after.

use std::fs;

use serde_json::{Value, json};

use crate::house::{Machine, small_tree};

/// A machine with a repository in a directory, and something to back up.
fn ready() -> (Machine, String, String) {
    let machine = Machine::new();
    let [repo, source] = ["repo", "source"].map(|name| machine.path(name));
    small_tree(&source);
    let [repo, source] = [repo, source].map(|path| path.to_str().unwrap().to_owned());
    machine.ok(["init", "-r", &repo]);
    (machine, repo, source)
}

fn lines(machine: &Machine) -> Vec<Value> {
    let text = fs::read_to_string(machine.path("config/state/speed-history.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn backups_and_restores_are_remembered_and_a_dry_run_tells_what_one_would_take() {
    let (machine, repo, source) = ready();
    let dry = ["backup", "-r", &repo, &source, "--dry-run"];
    assert_eq!(machine.summary(dry)["estimate"]["runs"], 0);
    machine.ok(["backup", "-r", &repo, &source]);
    machine.ok(["backup", "-r", &repo, &source, "--limit-upload", "100M"]);
    let target = machine.path("target");
    machine.ok(["restore", "-r", &repo, "latest", "--target", target.to_str().unwrap()]);

    let kept = lines(&machine);
    let of = |field: &str| kept.iter().map(|line| line[field].clone()).collect::<Vec<_>>();
    assert_eq!(of("kind"), ["backup", "backup", "restore"]);
    assert_eq!(of("limited"), [false, true, false]);
    assert!(kept[0]["work"]["bytes"].as_u64() > Some(3_000_000), "{kept:#?}");
    // What was written in the last two seconds is read again, and nothing else.
    assert!(kept[1]["work"]["items_unchanged"].as_u64() > Some(0), "{kept:#?}");
    assert!(kept[0]["stages"].as_array().is_some_and(|stages| stages.len() > 5));

    let told = machine.summary(dry);
    assert_eq!(told["estimate"]["runs"], 1, "one that was limited on purpose counts: {told:#}");
    let said = machine.ok(dry).stdout;
    assert!(
        said.contains("it would take about") && said.contains("from 1 earlier backup"),
        "{said}"
    );
    assert_eq!(lines(&machine).len(), 3, "a dry run was remembered");
}

#[test]
fn a_moment_more_is_no_matter_and_a_history_that_can_not_be_read_does_no_harm() {
    let (machine, repo, source) = ready();
    machine.ok(["backup", "-r", &repo, &source]);
    // The past was a thousand times as fast: what the next backup takes is slow beside it, but takes
    // no ten seconds.
    let one = lines(&machine).remove(0);
    let past = |seconds: f64| {
        let mut line = one.clone();
        line["seconds"] = json!(seconds);
        line.to_string() + "\n"
    };
    let file = machine.path("config/state/speed-history.jsonl");
    fs::write(&file, past(1e-6).repeat(8)).unwrap();
    let told = machine.summary(["backup", "-r", &repo, &source]);
    assert_eq!(told.get("slower_than_usual"), None, "a moment is no matter");
    fs::write(&file, "not a line\n").unwrap();
    machine.ok(["backup", "-r", &repo, &source]);
    assert_eq!(lines(&machine).len(), 1, "the history goes on without what can not be read");
}

#[test]
fn an_estimate_says_how_unsure_it_is_and_whether_it_fits_into_the_hour() {
    let machine = Machine::new();
    let estimate = |args: &[&str]| machine.summary([&["lab", "estimate"], args].concat());
    let small = estimate(&["--items", "1000", "--bytes", "1G"]);
    assert_eq!((small["runs"].as_u64(), &small["fits_into_an_hour"]), (Some(0), &json!("yes")));
    let slow = estimate(&["--items", "1000", "--bytes", "100G", "--link", "50Mbit"]);
    assert_eq!((&slow["fits_into_an_hour"], &slow["mostly"]), (&json!("no"), &json!("bytes")));
    let seconds = slow["seconds"].as_f64().unwrap();
    assert!((17_000.0..17_500.0).contains(&seconds), "{slow}");
    let items = estimate(&["--items", "3600", "--bytes", "0", "--item-rate", "1"]);
    assert_eq!(
        (&items["fits_into_an_hour"], &items["mostly"]),
        (&json!("perhaps"), &json!("items"))
    );
    let said = machine.ok(["lab", "estimate", "--items", "1", "--bytes", "1"]).stdout;
    assert!(said.contains("typical rates"), "{said}");
    machine.run(["lab", "estimate", "--items", "1"]).expect(2);
}
