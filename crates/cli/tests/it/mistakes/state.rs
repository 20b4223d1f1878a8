//! Damaged files of the state folder: told by name, and never made anew in silence.

use std::fs;

use super::{BACKED_UP, Row, Scene, edit, hold};
use crate::house::files_below;

/// A row about a file of the state, which stays as it is.
fn told(
    name: &'static str,
    set_up: fn(&mut Scene),
    names: &'static str,
    advises: &'static str,
) -> Row {
    let command = "snapshots -r {repo}";
    Row { name, set_up, command, code: 1, names, advises, leaves: &[] }
}

const COPY: &str = "put back a copy of it";

#[test]
fn damaged_files_are_named_and_kept() {
    hold(&[
        told("an identity of nonsense", |s| nonsense(s, "identity.json"), IDENTITY, COPY),
        told("an empty identity", |s| empty(s, "identity.json"), IDENTITY, "holdall invite --for"),
        told("a cut identity", |s| cut(s, "identity.json"), IDENTITY, COPY),
        told("an identity that is a folder", |s| folder(s, "identity.json"), IDENTITY, "directory"),
        told("pairings of nonsense", |s| nonsense(s, "pairings.json"), PAIRINGS, "pair anew"),
        told("empty pairings", |s| empty(s, "pairings.json"), PAIRINGS, COPY),
        told("a key of nonsense", |s| nonsense(s, "keys"), KEY, "holdall pair --kit FILE"),
        told("an empty key", |s| empty(s, "keys"), KEY, COPY),
        told("a cut key", |s| cut(s, "keys"), KEY, "give the password"),
        told("a receipt of nonsense", |s| nonsense(s, "receipts"), RECEIPT, COPY),
        told("an empty receipt", |s| empty(s, "receipts"), RECEIPT, "holdall snapshots"),
        Row {
            command: "backup -r {repo} {source}",
            ..told("an identity of a backup", |s| cut(s, "identity.json"), IDENTITY, COPY)
        },
        Row {
            name: "a damaged receipt does not keep a backup from being made, and is told",
            command: "backup -r {repo} {source}",
            code: 20,
            leaves: BACKED_UP,
            ..told("", |s| cut(s, "receipts"), RECEIPT, COPY)
        },
    ]);
}

const IDENTITY: &str = "{here}/config/state/identity.json";
const PAIRINGS: &str = "{here}/config/state/pairings.json";
const KEY: &str = "{here}/config/state/keys/";
const RECEIPT: &str = "{here}/config/state/receipts/";

/// Changes a file of the state, or all of a folder of it; made if it is not there.
fn change(scene: &Scene, name: &str, by: impl Fn(&mut Vec<u8>)) {
    let path = scene.path("config/state").join(name);
    if path.is_dir() {
        let files = files_below(&path);
        assert!(!files.is_empty());
        files.iter().for_each(|file| edit(file, &by));
        return;
    }
    if !path.exists() {
        fs::write(&path, "[]").unwrap();
    }
    edit(&path, by);
}

fn nonsense(scene: &mut Scene, name: &str) {
    change(scene, name, |bytes| *bytes = b"nonsense\n".repeat(40));
}

fn empty(scene: &mut Scene, name: &str) {
    change(scene, name, Vec::clear);
}

fn cut(scene: &mut Scene, name: &str) {
    change(scene, name, |bytes| bytes.truncate(bytes.len() / 2));
}

fn folder(scene: &mut Scene, name: &str) {
    let path = scene.path("config/state").join(name);
    fs::remove_file(&path).unwrap();
    fs::create_dir(path).unwrap();
}
