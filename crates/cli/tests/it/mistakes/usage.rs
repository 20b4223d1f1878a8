//! Command lines that make no sense, or name what is not there.

use std::fs;

use super::{BACKED_UP, Row, Scene, Template, changes, hold, listing, nothing, tells};
use crate::house::Outcome;

/// A row about a command line that leaves everything as it is.
fn usage(
    name: &'static str,
    command: &'static str,
    code: i32,
    names: &'static str,
    advises: &'static str,
) -> Row {
    Row { name, set_up: nothing, command, code, names, advises, leaves: &[] }
}

#[test]
fn command_lines_that_make_no_sense() {
    let help = "try '--help'";
    hold(&[
        usage("no such command", "frobnicate", 2, "frobnicate", help),
        usage("no such option", "backup -r {repo} {source} --bogus", 2, "--bogus", help),
        usage("no value", "snapshots -r", 2, "--repo", help),
        usage("nothing to back up", "backup -r {repo}", 2, "<PATH>", help),
        usage("too many streams", "backup -r {repo} {source} --streams 99", 2, "--streams", help),
        usage("no duration", "backup -r {repo} {source} --retry-for soon", 2, "soon", "a number"),
        usage("no rate", "backup -r {repo} {source} --limit-upload 0", 2, "0", "never end"),
        usage("no address", "backup -r {repo} {source} --bind here", 2, "here", help),
        usage(
            "two sources for one place",
            "backup -r {repo} {source} {source}/docs --as {source}/docs={source}",
            2,
            "what lies in {source}/docs",
            "--as",
        ),
        usage("no pair", "backup -r {repo} {source} --as x", 2, "--as", "no `=`"),
        usage("no percentage", "check -r {repo} --verify 101", 2, "101", "from 1 to 100"),
        usage("no target", "restore -r {repo} latest", 2, "where to?", "restore latest DIR"),
        usage("quiet and verbose", "snapshots -r {repo} -q -v", 2, "--quiet", help),
        usage("no port", "snapshots -r https://nas:x/a", 2, "https://nas:x/a", "HOST:PORT/NAME"),
        usage("no TLS", "snapshots -r http://nas", 2, "http://nas", "https only"),
        usage("no invite", "pair not-an-invite", 2, "not an invite", "begins with holdall1-"),
        Row {
            set_up: |scene| scene.by = &["setsid", "--wait"],
            ..usage("no invite and no terminal", "pair", 2, "no terminal", "`holdall pair -`")
        },
        usage(
            "half an invite",
            "pair holdall1-aeoq",
            2,
            "not copied completely",
            "copy the whole line again",
        ),
        usage(
            "a path to nowhere",
            "lab path {source} -r {here}/nope",
            10,
            "{here}/nope",
            "init -r",
        ),
        usage(
            "an estimate for what is not known",
            "lab estimate --items 1 --bytes 1M -r s3://bucket",
            2,
            "s3://bucket",
            "a directory or a holdall server",
        ),
        usage(
            "rules that keep nothing",
            "admin --data {here}/data retention laptop --keep-daily 0",
            2,
            "keep nothing",
            "--keep-last 1",
        ),
        usage("no repository", "snapshots", 2, "no repository was named", "holdall pair"),
        usage("no repository to make", "init", 2, "no repository was named", "holdall init -r"),
        Row {
            set_up: |scene| fs::write(scene.path("config/config.toml"), "repo = 1\n").unwrap(),
            ..usage("an unknown setting", "snapshots", 2, "{here}/config/config.toml", "repo")
        },
        Row {
            set_up: no_terminal,
            ..usage("no terminal", "snapshots -r {repo}", 2, "no terminal", "--password-file FILE")
        },
        Row {
            set_up: no_terminal,
            ..usage("none for a new one", "init -r {here}/new", 2, "no terminal", "_COMMAND")
        },
    ]);
}

/// A new session has none, and the key is not kept either.
fn no_terminal(scene: &mut Scene) {
    fs::remove_dir_all(scene.path("config/state/keys")).unwrap();
    scene.by = &["setsid", "--wait"];
}

#[test]
fn what_is_named_and_not_there() {
    hold(&[
        usage("no such source", "backup -r {repo} {here}/none", 1, "{here}/none", "check the path"),
        Row {
            name: "one source of two",
            set_up: nothing,
            command: "backup -r {repo} {source} {here}/none",
            code: 3,
            names: "{here}/none",
            advises: "1 had a problem",
            leaves: BACKED_UP,
        },
        usage(
            "no list of patterns",
            "backup -r {repo} {source} --exclude-file {here}/none",
            1,
            "{here}/none: No such file",
            "check the path after --exclude-file",
        ),
        usage(
            "no list of sources",
            "backup -r {repo} --files-from {here}/none",
            1,
            "{here}/none: No such file",
            "check the path after --files-from",
        ),
        usage(
            "a bad pattern",
            "backup -r {repo} {source} --exclude [z-a]",
            2,
            "[z-a]",
            "patterns are those of .gitignore",
        ),
        usage(
            "a bad pattern of a restore",
            "restore -r {repo} latest --target {target} --include [z-a]",
            2,
            "[z-a]",
            "patterns are those of .gitignore",
        ),
        usage("no such snapshot", "ls -r {repo} zz", 1, "zz", "`holdall snapshots`"),
        usage(
            "no such snapshot to restore",
            "restore -r {repo} zz --target {target}",
            1,
            "zz",
            "`holdall snapshots`",
        ),
        usage("no such path", "ls -r {repo} {snapshot} /none", 1, "/none", "`holdall ls` shows"),
        usage("no snapshot of that path", "ls -r {repo} latest /none", 1, "of /none", "snapshots"),
        usage(
            "no such path to restore",
            "restore -r {repo} {snapshot}:/none --target {target}",
            1,
            "/none",
            "",
        ),
        usage(
            "a relative path that no snapshot has",
            "ls -r {repo} latest x",
            1,
            "/x",
            "snapshots",
        ),
        Row {
            name: "a prefix of two",
            set_up: |scene| {
                // There are sixteen digits, so at the latest the seventeenth id begins like another.
                let backup = "backup -r {repo} {source} -q";
                (0..16).for_each(|_| drop(scene.run(backup).expect(0)));
                scene.snapshot = shared_digit(scene);
            },
            command: "ls -r {repo} {snapshot}",
            code: 1,
            names: "no snapshot {snapshot}: several ids begin so",
            advises: "give more digits",
            leaves: &[],
        },
        Row {
            name: "a target that holds something",
            set_up: |scene| {
                fs::create_dir(scene.path("target")).unwrap();
                fs::write(scene.path("target/mine"), "mine").unwrap();
            },
            command: "restore -r {repo} latest --target {target}",
            code: 1,
            names: "{target}",
            advises: "choose another directory, or say what to overwrite",
            leaves: &[],
        },
        usage(
            "a target that is a file",
            "restore -r {repo} latest --target {kit}",
            1,
            "{kit}",
            "name another folder",
        ),
    ]);
}

/// A digit that two ids begin with.
fn shared_digit(scene: &Scene) -> String {
    let listed = scene.run("snapshots -r {repo} --json").of_type("snapshot");
    let digits = listed.iter().map(|one| one["id"].as_str().unwrap()[..1].to_owned());
    let mut seen = std::collections::BTreeSet::new();
    digits.into_iter().find(|digit| !seen.insert(digit.clone())).expect("17 ids and 16 digits")
}

/// As from a variable of a script that is not set. Seen: `--keep-tag ""` forgot all but the newest.
#[test]
fn an_empty_value_never_means_everything() {
    let scene = Scene::of(&Template::make());
    (0..2).for_each(|_| drop(scene.run("backup -r {repo} {source}").expect(0)));
    let before = listing(&scene.path(""));
    let empty = |command: &str, option: &str| {
        let args = command.split_whitespace().map(|word| scene.fill(word));
        scene.machine.run(args.chain([option.to_owned(), String::new()]))
    };
    for (command, option) in [
        ("forget -r {repo}", "--keep-tag"),
        ("forget -r {repo} --keep-last 1", "--machine"),
        ("forget -r {repo} --keep-last 1", "--tag"),
        ("forget -r {repo} --keep-last 1", "--path"),
        ("forget -r {repo} latest", "--machine"),
        ("snapshots -r {repo}", "--machine"),
        ("find -r {repo} letter", "--tag"),
        ("stats -r {repo}", "--path"),
        ("snapshots", "-r"),
        ("restore -r {repo} latest --target {target}", "--include"),
    ] {
        tells(&empty(command, option), 2, option, "");
    }
    assert_eq!(changes(&before, &listing(&scene.path(""))), [""; 0]);
    // A variable that is empty is one that is not set.
    let repo = scene.fill("{repo}");
    let mut unset = scene.machine.command(["snapshots", "-r", &repo]);
    Outcome::of(unset.env("HOLDALL_REPOSITORY", "")).expect(0);
    let mut unset = scene.machine.command(["snapshots"]);
    tells(&Outcome::of(unset.env("HOLDALL_REPOSITORY", "")), 2, "no repository was named", "-r");
}

#[test]
fn more_or_longer_tags_than_a_snapshot_has() {
    let scene = Scene::of(&Template::make());
    let before = listing(&scene.path(""));
    let many: String = (0..257).map(|number| format!(" {number}")).collect();
    let long = "x".repeat(1025);
    for tags in [many.replace(' ', " --tag "), format!(" --tag {long}")] {
        tells(&scene.run(&format!("backup -r {{repo}} {{source}}{tags}")), 2, "tag", "give");
        let tags = tags.replace("--tag", "--add");
        tells(&scene.run(&format!("tag -r {{repo}} latest{tags}")), 2, "tag", "give");
    }
    assert_eq!(changes(&before, &listing(&scene.path(""))), [""; 0]);
}
