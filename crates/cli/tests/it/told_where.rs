//! Backups that are told where to look, by the file that the agent writes.

use std::fs;

use serde_json::Value;

use crate::house::{Machine, small_tree, text};
use crate::mounts::Mount;

/// A machine with a repository and a source, which have these paths, and the path of the file.
fn machine() -> (Machine, [String; 3]) {
    let machine = Machine::new();
    let paths = ["repo", "source", "changes"].map(|name| text(&machine.path(name)).to_owned());
    small_tree(paths[1].as_ref());
    machine.init(&["-r", &paths[0]]);
    (machine, paths)
}

/// Has the file name these places, since the snapshot that this summary is of.
fn write_changes(file: &str, since: &Value, places: &[&str]) {
    let places: String = places.iter().map(|place| format!("-{place}\0")).collect();
    let id = since["snapshot_id"].as_str().unwrap();
    fs::write(file, format!("holdall changes 1\n{id}\n{places}")).unwrap();
}

#[test]
fn a_backup_looks_only_where_a_file_says_and_everywhere_if_that_does_not_fit() {
    let (machine, [repo, source, file]) = machine();
    let backup = ["backup", "-r", &repo, &source, "--changes", &file, "--json"];
    let first = machine.ok(["backup", "-r", &repo, &source, "--json"]).summary();
    assert_eq!((&first["walk"], &first["walk_reason"]), (&"full".into(), &Value::Null));

    let docs = format!("{source}/docs");
    fs::write(format!("{docs}/letter.txt"), "Dear reader, again").unwrap();
    write_changes(&file, &first, &[&docs]);
    let told = machine.ok(backup).summary();
    assert_eq!((&told["walk"], &told["files_changed"]), (&"journal".into(), &1.into()));
    assert_eq!(told["total_items_processed"], first["total_items_processed"]);

    // What it says is of the snapshot before.
    let other = machine.ok(backup).summary();
    let reason = "the last snapshot is not the one that the journal starts from";
    assert_eq!((&other["walk"], &other["walk_reason"]), (&"full".into(), &reason.into()));
    let verbose = machine.ok(["backup", "-v", "-r", &repo, &source, "--changes", &file]).stderr;
    assert!(verbose.contains(&format!("everything was looked at: {reason}")), "{verbose}");

    for (bytes, is_told) in [(&b"what changed"[..], true), (b"", false)] {
        fs::write(&file, bytes).unwrap();
        let run = machine.ok(["backup", "-r", &repo, &source, "--changes", &file]);
        assert_eq!(run.stderr.contains("cannot use"), is_told, "{}", run.stderr);
    }
}

#[test]
fn what_is_mounted_below_is_looked_at_in_every_run() {
    let (machine, [repo, source, file]) = machine();
    let point = format!("{source}/docs/disk");
    let Some(_disk) = Mount::in_memory(point.as_ref(), 1 << 20) else { return };
    for options in [&["--json"][..], &["--json", "-x"]] {
        fs::create_dir_all(format!("{point}/deep")).unwrap();
        fs::write(format!("{point}/deep/file"), "one").unwrap();
        let backup = [&["backup", "-r", &repo, &source][..], options].concat();
        let first = machine.ok(&backup).summary();
        fs::write(format!("{point}/deep/file"), "another").unwrap();
        write_changes(&file, &first, &[]);
        let told = machine.ok([&backup[..], &["--changes", &file]].concat()).summary();
        let changed = u64::from(options.len() == 1);
        assert_eq!((&told["walk"], &told["files_changed"]), (&"journal".into(), &changed.into()));
        assert_eq!(told["total_items_processed"], first["total_items_processed"], "{options:?}");
    }
}
