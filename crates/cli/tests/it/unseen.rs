//! Names with characters that are not seen, or that turn others around: no terminal and no log gets them.

use std::fs;
use std::path::Path;

use holdall_format::is_unseen;

use crate::house::{Machine, Outcome, Server};

/// Marks of direction, separators of lines, and what has no look of its own.
const UNSEEN: [char; 10] = [
    '\u{202e}',
    '\u{2066}',
    '\u{200f}',
    '\u{61c}',
    '\u{2028}',
    '\u{2029}',
    '\u{200b}',
    '\u{feff}',
    '\u{fff9}',
    '\u{e0041}',
];

fn name(letter: char) -> String {
    format!("photo{letter}gpj.exe")
}

/// Makes a file of each such name, with that content.
fn make_files(folder: &Path, content: &str) {
    fs::create_dir_all(folder).unwrap();
    UNSEEN.iter().for_each(|letter| fs::write(folder.join(name(*letter)), content).unwrap());
}

#[track_caller]
fn is_seen(outcome: &Outcome) {
    for said in [&outcome.stdout, &outcome.stderr] {
        let unseen: Vec<_> = said
            .lines()
            .filter(|line| line.chars().any(is_unseen))
            .map(str::escape_debug)
            .collect();
        assert!(unseen.is_empty(), "{}", unseen.into_iter().next().unwrap());
    }
}

#[test]
fn listings_and_messages_show_them_escaped_and_json_as_they_are() {
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo\u{202e}x"), machine.path("source\u{202e}y"));
    let (repo, folder) = (repo.to_str().unwrap(), source.to_str().unwrap());
    make_files(&source, "before");
    is_seen(&machine.init(&["-r", repo]));
    let run = |args: &[&str], code: i32| {
        let outcome = machine.run([args, &["-r", repo]].concat()).expect(code);
        is_seen(&outcome);
        outcome
    };
    let tagged = ["--host", "h\u{202e}o", "--tag", "t\u{2028}g", "-v"];
    run(&[&["backup", folder], &tagged[..]].concat(), 0);
    make_files(&source, "behind");
    run(&[&["backup", folder], &tagged[..]].concat(), 0);
    let missing = machine.path("missing\u{2066}");
    run(&["backup", folder, missing.to_str().unwrap(), "--host", "h\u{202e}o"], 3);

    let listed = run(&["ls", "latest", "--recursive"], 0).stdout;
    for letter in UNSEEN {
        let shown = name(letter).replace(letter, &letter.escape_default().to_string());
        assert!(listed.contains(&shown), "{shown}: {listed}");
    }
    run(&["ls", "latest", "--recursive", "--long"], 0);
    run(&["find", "photo*"], 0);
    run(&["snapshots"], 0);
    let file = source.join(name('\u{202e}'));
    run(&["history", file.to_str().unwrap()], 0);
    run(&["ls", "latest", missing.to_str().unwrap()], 1);
    run(&["ls", "x\u{202e}y"], 1);
    let target = machine.path("target\u{2029}");
    // One of its sources could not be read.
    run(&["restore", "latest", "--target", target.to_str().unwrap(), "-v"], 3);
    run(&["restore", "latest", "--target", target.to_str().unwrap()], 1);
    let snapshots = machine.ok(["snapshots", "--json", "-r", repo]).of_type("snapshot");
    let ids: Vec<_> = snapshots.iter().map(|one| one["id"].as_str().unwrap()).collect();
    run(&["diff", ids[0], ids[1]], 0);
    let nowhere = Machine::new();
    is_seen(&nowhere.run(["ls", "latest", "-r", missing.to_str().unwrap()]).expect(10));

    let objects = machine.ok(["ls", "latest", "--recursive", "--json", "-r", repo]).stdout;
    for letter in UNSEEN {
        assert!(objects.contains(&name(letter)), "{}", letter.escape_default());
    }
}

#[test]
fn no_machine_is_called_so() {
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    for letter in UNSEEN {
        let name = format!("desk{letter}");
        let data = machine.path("data");
        let args = ["invite", "--name", &name, "--data", data.to_str().unwrap()];
        let refused = machine.run(args).expect(2);
        is_seen(&refused);
        let refused = machine.run(["pair", &server.invite(), "--name", &name]).expect(2);
        is_seen(&refused);
    }
}
