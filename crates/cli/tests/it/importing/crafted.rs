//! Repositories with what restic writes only for odd files, or another program wrote.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use holdall_testkit::is_there;
use serde_json::{Value, json};

use super::Place;
use crate::house::{Outcome, text};

/// Makes a repository of a description.
const CRAFTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/importing/crafted.py");
/// Root without what lets it read everything, or another user.
const WITHOUT_RIGHTS: [&str; 3] = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"];

/// A place whose repository of restic has these snapshots; nothing without what makes it.
fn crafted(snapshots: &Value) -> Option<Place> {
    let mut has = Command::new("python3");
    let has = has.args(["-c", "import cryptography"]).output().is_ok_and(|it| it.status.success());
    is_there("python3-cryptography", has).then_some(())?;
    let place = Place::new()?;
    fs::remove_dir_all(&place.from).unwrap();
    let mut making = Command::new("python3");
    making.args(["-B", CRAFTED, text(&place.from), "of restic"]).stdin(Stdio::piped());
    let mut making = making.spawn().unwrap();
    making.stdin.take().unwrap().write_all(snapshots.to_string().as_bytes()).unwrap();
    assert!(making.wait().unwrap().success());
    Some(place)
}

fn file(name: &str) -> Value {
    json!({"name": name, "text": name})
}

/// A snapshot with a file, and with other fields of its own.
fn snapshot(fields: Value) -> Value {
    let mut snapshot = json!({"nodes": [file("a")]});
    let fields: serde_json::Map<_, _> = serde_json::from_value(fields).unwrap();
    snapshot.as_object_mut().unwrap().extend(fields);
    snapshot
}

/// What was told of paths, each with its path.
fn problems(told: &Outcome) -> Vec<(String, String)> {
    let text = |error: &Value, at: &str| error[at].as_str().unwrap_or_default().to_owned();
    told.of_type("error").iter().map(|one| (text(one, "path"), text(one, "message"))).collect()
}

/// The names in the only snapshot's folder.
fn names(place: &Place, folder: &str) -> Vec<String> {
    let listed = place.machine.ok(["ls", "-r", text(&place.to), "latest", folder]).stdout;
    listed.lines().map(str::to_owned).collect()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// An import that says for people what it does.
fn import_in_words(place: &Place, code: i32) -> Outcome {
    let password = place.machine.path("restic.txt");
    let mut args = place.import_args(&password, &[]);
    args.retain(|arg| *arg != "--json");
    place.machine.run(args).expect(code)
}

/// An import by who may not read what has no permissions.
fn import_without_rights(place: &Place, code: i32) -> Outcome {
    let password = place.machine.path("restic.txt");
    let args = place.import_args(&password, &[]);
    let by: &[&str] =
        if holdall_sys::users::effective_uid() == 0 { &WITHOUT_RIGHTS } else { &["env"] };
    place.machine.run_by(by, args).expect(code)
}

#[test]
fn an_entry_that_is_not_understood_is_named_and_those_beside_it_are_imported() {
    let nodes = json!([
        file("a"),
        {"name": "cloud", "text": "c", "type": "irregular"},
        {"name": "late", "text": "l", "mtime": "9999-12-31T23:59:59.999999999Z"},
        {"name": "link", "type": "symlink"},
        file("z"),
    ]);
    let top = json!([{"name": "docs", "nodes": nodes}, {"name": "odd", "type": "irregular"}, file("top")]);
    let Some(place) = crafted(&json!([{"nodes": top}])) else { return };
    let told = place.import_with(&[], 3);
    let named = problems(&told);
    let paths: Vec<_> = named.iter().map(|(path, _)| &**path).collect();
    assert_eq!(paths, ["/odd", "/docs/cloud", "/docs/link"], "{named:?}");
    assert!(named[0].1.contains("restic did not know what it was"), "{named:?}");
    assert!(named[2].1.contains("restic has no target of it"), "{named:?}");
    assert_eq!(told.summary()["unreadable"], 3);
    assert_eq!(names(&place, "/"), ["/docs", "/top"]);
    assert_eq!(names(&place, "/docs"), ["/docs/a", "/docs/late", "/docs/z"]);
}

#[test]
fn what_an_import_lacks_is_told_each_time_and_of_the_snapshot() {
    let nodes = json!([file("a"), {"name": "gone", "size": 1, "content": ["1".repeat(64)]}]);
    let Some(place) = crafted(&json!([{"nodes": nodes}])) else { return };
    place.import_with(&[], 3);
    let again = place.import_with(&[], 3).of_type("import").remove(0);
    assert_eq!((&again["already_imported"], &again["unreadable"]), (&true.into(), &1.into()));
    let words = import_in_words(&place, 3).stdout;
    let id = place.snapshots()[0]["id"].as_str().unwrap()[..10].to_owned();
    assert!(words.contains(&format!("imported before, as {id}, without 1 item")), "{words}");
    assert!(words.contains(&format!("`holdall forget {id}`")), "{words}");

    let repo = text(&place.to);
    let listed = place.machine.ok(["snapshots", "-r", repo]).stdout;
    assert!(listed.contains("(1 item unreadable)"), "{listed}");
    let target = place.machine.path("target");
    let restored = place.machine.ok(["restore", "latest", text(&target), "-r", repo]);
    assert!(
        restored.stderr.contains("1 item could not be read when this snapshot was made"),
        "{restored:?}"
    );
}

#[test]
fn a_file_with_other_content_than_its_size_says_is_named() {
    let nodes = json!([
        {"name": "none", "size": 500, "content": null},
        {"name": "short", "text": "abc", "size": 5000},
        {"name": "whole", "text": "abc"},
    ]);
    let Some(place) = crafted(&json!([{"nodes": nodes}])) else { return };
    let told = place.import_with(&[], 3);
    let named = problems(&told);
    let paths: Vec<_> = named.iter().map(|(path, _)| &**path).collect();
    assert_eq!(paths, ["/none", "/short"], "{named:?}");
    assert!(named[1].1.contains("3 bytes of 5000"), "{named:?}");
    // What there is of it may be what somebody looks for.
    let restored = place.restore(place.snapshots()[0]["id"].as_str().unwrap());
    assert_eq!(fs::read_to_string(restored.join("short")).unwrap(), "abc");
}

#[test]
fn a_snapshot_that_no_record_takes_is_named_and_the_others_are_imported() {
    let odd = [
        json!({"tags": ["x".repeat(1025)]}),
        json!({"tags": (0..257).map(|at| format!("t{at}")).collect::<Vec<_>>()}),
        json!({"hostname": "h".repeat(1025)}),
        json!({"username": "u".repeat(1025)}),
        json!({"paths": ["/a", "/a/../../b"]}),
    ];
    let mut all: Vec<_> = odd.iter().cloned().map(snapshot).collect();
    all.push(snapshot(json!({"time": "2025-01-01T00:00:00Z"})));
    let Some(place) = crafted(&json!(all)) else { return };
    let told = place.import_with(&[], 3);
    let summary = told.summary();
    assert_eq!((&summary["imported"], &summary["errors"]), (&1.into(), &5.into()), "{summary}");
    for words in
        ["a tag of it has 1025 bytes", "it has 257 tags", "its host", "its user", "/a/../../b"]
    {
        assert!(told.stdout.contains(words), "{words}: {told:?}");
    }
    assert!(!told.stdout.contains("restic forget"), "{told:?}");
}

#[test]
fn dates_that_no_snapshot_can_have_are_the_nearest_ones() {
    let all = ["1500-01-01T00:00:00Z", "2024-01-01T00:00:00Z", "2400-01-01T00:00:00Z"];
    let all: Vec<_> = all.iter().map(|time| snapshot(json!({"time": time}))).collect();
    let Some(place) = crafted(&json!(all)) else { return };
    let told = import_in_words(&place, 0);
    for (words, nearest) in [("1500-01-01", "1677-09-21"), ("2400-01-01", "2262-04-11")] {
        let said = told.stderr.lines().find(|line| line.contains(words));
        assert!(said.is_some_and(|line| line.contains(nearest)), "{words}: {told:?}");
    }
    let dates: Vec<_> =
        place.snapshots().iter().map(|one| one["original_received"].clone()).collect();
    let again = place.import_with(&[], 0).of_type("import");
    let said: Vec<_> = again.iter().map(|one| one["source_date"].as_str().unwrap_or("")).collect();
    assert_eq!(said, ["1500-01-01T00:00:00Z", "", "2400-01-01T00:00:00Z"]);
    let years: Vec<_> = dates.iter().map(|date| &date.as_str().unwrap()[..4]).collect();
    assert_eq!(years, ["1677", "2024", "2262"]);
    let repo = text(&place.to);
    let kept = place.machine.ok(["forget", "-n", "-r", repo, "--keep-yearly", "9", "--json"]);
    assert!(kept.of_type("snapshot").iter().all(|one| one["forgotten"] == false), "{kept:?}");
    place.check();
}

#[test]
fn what_may_not_be_read_and_what_is_not_understood_is_no_damage() {
    let late = snapshot(json!({"time": "9999-12-31T23:59:59Z"}));
    let Some(place) = crafted(&json!([late, snapshot(json!({}))])) else { return };
    let told = place.import_with(&[], 3);
    assert!(told.stdout.contains("is whole, but not understood"), "{told:?}");
    assert!(!told.stdout.contains("restic forget"), "{told:?}");
    assert_eq!(told.summary()["imported"], 1);

    for closed in ["snapshots", "keys"] {
        for file in fs::read_dir(place.from.join(closed)).unwrap() {
            set_mode(&file.unwrap().path(), 0);
        }
        let told = import_without_rights(&place, 1);
        assert!(told.stdout.contains("Permission denied"), "{told:?}");
        assert!(told.stdout.contains("who may read it"), "{told:?}");
        assert!(!told.stdout.contains("restic forget"), "{told:?}");
    }
    set_mode(&place.from.join("keys"), 0);
    let told = import_without_rights(&place, 1);
    assert!(told.stdout.contains("who may read it"), "{told:?}");
}

#[test]
fn packs_that_may_not_be_read_are_no_damage() {
    let Some(place) = crafted(&json!([snapshot(json!({}))])) else { return };
    for pack in crate::house::files_below(&place.from.join("data")) {
        set_mode(&pack, 0);
    }
    let told = import_without_rights(&place, 1);
    assert!(told.stdout.contains("who may read it"), "{told:?}");
    assert!(!told.stdout.contains("restic check"), "{told:?}");
}
