//! Repositories with what restic writes only for odd files, or another program wrote.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use holdall_testkit::is_there;
use serde_json::{Value, json};

use super::Place;
use crate::house::{Outcome, text};

/// Makes a repository of a description.
const CRAFTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/importing/crafted.py");

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
    let password = place.machine.path("restic.txt");
    let mut args = place.import_args(&password, &[]);
    args.retain(|arg| *arg != "--json");
    let words = place.machine.run(&args).expect(3).stdout;
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
