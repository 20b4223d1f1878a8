//! Commands as sources: what they print is a file of the snapshot, if they end well.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use holdall_testkit::{Process, Random};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::house::{Machine, Outcome, text};

const OPTION: &str = "--stdin-from-command";

fn repository() -> (Machine, String) {
    let machine = Machine::new();
    let repo = text(&machine.path("repo")).to_owned();
    machine.init(&["-r", &repo]);
    (machine, repo)
}

fn has_no_snapshot(machine: &Machine, repo: &str) -> bool {
    machine.ok(["snapshots", "-r", repo, "--json"]).of_type("snapshot").is_empty()
}

#[test]
fn what_a_command_prints_is_a_file_at_the_root_wherever_one_is() {
    let (machine, repo) = repository();
    let said = machine.ok(["backup", "-r", &repo, OPTION, "shop.dump", "--", "echo", "-n", "rows"]);
    assert!(said.stdout.contains("1 item, 4 B"), "{}", said.stdout);
    for path in ["latest:shop.dump", "latest:/shop.dump"] {
        assert_eq!(machine.ok(["dump", "-r", &repo, path]).stdout, "rows", "{path}");
    }
    for path in ["/", "shop.dump"] {
        let listed = machine.ok(["ls", "-r", &repo, "latest", path]).stdout;
        assert_eq!(listed, "/shop.dump\n", "{path}");
    }
    let target = machine.path("target");
    machine.ok(["restore", "-r", &repo, "latest:shop.dump", "--target", text(&target)]);
    assert_eq!(fs::read_to_string(target.join("shop.dump")).unwrap(), "rows");
    // A file of that name in the current folder is another one.
    fs::write(machine.path("shop.dump"), "file").unwrap();
    machine.ok(["backup", "-r", &repo, text(&machine.path("shop.dump"))]);
    let mut command = machine.command(["dump", "-r", &repo, "latest:shop.dump"]);
    let here = Outcome::of(command.current_dir(machine.path("")));
    assert_eq!(here.expect(0).stdout, "file");
    assert_eq!(machine.ok(["dump", "-r", &repo, "latest:/shop.dump"]).stdout, "rows");
    // A folder of which there is a backup, too, keeps no name from being found that it does not have.
    fs::remove_file(machine.path("shop.dump")).unwrap();
    let folder = machine.path("");
    machine.ok(["backup", "-r", &repo, text(&folder), "--exclude", "repo"]);
    let mut command = machine.command(["dump", "-r", &repo, "latest:shop.dump"]);
    assert_eq!(Outcome::of(command.current_dir(&folder)).expect(0).stdout, "rows");
    machine.ok(["backup", "-r", &repo, OPTION, "db/shop.dump", "--", "echo", "nested"]);
    assert_eq!(machine.ok(["dump", "-r", &repo, "latest:db/shop.dump"]).stdout, "nested\n");
}

#[test]
fn a_command_that_does_not_end_well_commits_nothing_and_is_told_with_its_last_words() {
    let (machine, repo) = repository();
    for (script, told) in [
        (
            "echo half; echo no such table >&2; echo giving up >&2; exit 3",
            "ended with 3: it said: no such table; giving up",
        ),
        ("echo half; kill -9 $$", "was ended by signal 9: it said nothing"),
        ("yes | head -c 3000000; exit 1", "ended with 1"),
        ("exec /nowhere/pg_dump", "ended with 127"),
    ] {
        let args = ["backup", "-r", &repo, OPTION, "shop.dump", "--json", "--", "sh", "-c", script];
        let failed = machine.run(args).expect(1).of_type("error");
        let message = failed[0]["message"].as_str().unwrap();
        assert!(
            message.contains("/shop.dump: nothing was committed, since the command sh "),
            "{message}"
        );
        assert!(message.contains(told), "{message}");
    }
    let failed =
        machine.run(["backup", "-r", &repo, OPTION, "x", "--", "/nowhere/pg_dump"]).expect(1);
    assert!(failed.stderr.contains("/nowhere/pg_dump: No such file"), "{}", failed.stderr);
    assert!(has_no_snapshot(&machine, &repo));
    let status = machine.summary(["status", "-r", &repo]);
    assert!(status["last_failure"].to_string().contains("/nowhere/pg_dump"), "{status}");
    // What a command says that ends well is no failure, and is shown.
    let script = "echo rows; echo watch out >&2";
    let said = machine.ok(["backup", "-r", &repo, OPTION, "x", "--", "sh", "-c", script]);
    assert!(said.stderr.contains("sh said: watch out"), "{}", said.stderr);
    let empty = machine.run(["backup", "-r", &repo, OPTION, "empty", "--", "true"]).expect(3);
    assert!(empty.stderr.contains("the command true printed nothing"), "{}", empty.stderr);
    assert_eq!(machine.ok(["dump", "-r", &repo, "latest:/empty"]).stdout, "");
}

#[test]
fn the_same_output_is_not_sent_again() {
    let (machine, repo) = repository();
    let content = machine.path("content");
    fs::write(&content, Random::new(3).bytes(3_000_000)).unwrap();
    let args = ["backup", "-r", &repo, OPTION, "shop.dump", "--json", "--", "cat", text(&content)];
    let added = || machine.ok(args).summary()["data_added"].as_u64();
    let first = added().unwrap();
    let second = added().unwrap();
    assert!(first > 3_000_000 && second < 10_000, "{first} and {second} bytes");
    assert_eq!(machine.ok(["snapshots", "-r", &repo, "--json"]).of_type("snapshot").len(), 2);
}

#[test]
fn a_long_output_takes_little_memory() {
    let (machine, repo) = repository();
    let by = ["sh", "-c", "ulimit -d 400000 && exec \"$@\"", "sh"];
    let args =
        ["backup", "-r", &repo, OPTION, "zeros", "--", "head", "-c", "1000000000", "/dev/zero"];
    machine.run_by(&by, args).expect(0);
    let listed = machine.ok(["ls", "-r", &repo, "latest", "/", "--json"]).of_type("entry");
    assert_eq!(listed[0]["size"], 1_000_000_000);
}

/// Starts a backup of a command that starts others and goes on for long; gives what they keep open until they end.
fn endless(machine: &Machine, repo: &str) -> (Process, File) {
    let fifo = machine.path("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let script =
        format!("exec 3>{}; echo ready >&3; (sleep 600; true) | sleep 600; true", text(&fifo));
    let args = ["backup", "-r", repo, OPTION, "x", "--", "sh", "-c", &script];
    let running = Process::spawn(machine.command(args).stderr(Stdio::null())).unwrap();
    (running, ready(&fifo))
}

/// Waits until something was written to a pipe.
fn ready(fifo: &Path) -> File {
    let mut open = File::open(fifo).unwrap();
    open.read_exact(&mut [0; 6]).unwrap();
    open
}

/// Waits until all are gone that keep a pipe open for writing.
fn wait_until_gone(mut open: File) {
    assert_eq!(open.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_holdall_that_is_killed_leaves_nothing_of_its_command_behind() {
    let (machine, repo) = repository();
    let (mut running, open) = endless(&machine, &repo);
    running.kill().unwrap();
    wait_until_gone(open);
    assert!(has_no_snapshot(&machine, &repo));
}

#[test]
fn a_signal_ends_the_command_and_the_backup() {
    let (machine, repo) = repository();
    let (running, open) = endless(&machine, &repo);
    running.terminate().unwrap();
    assert_eq!(Outcome::of_process(running).code, Some(130));
    wait_until_gone(open);
    assert!(has_no_snapshot(&machine, &repo));
}

#[test]
fn what_a_command_cannot_be_combined_with_is_refused() {
    let (machine, repo) = repository();
    let refused = |args: &[&str]| {
        let refused = machine.run([&["backup", "-r", &repo], args].concat()).expect(2);
        refused.stderr
    };
    assert!(refused(&["/etc", OPTION, "x", "--", "true"]).contains("[PATH]"));
    assert!(refused(&[OPTION, "x", "--exclude", "y", "--", "true"]).contains("--exclude"));
    assert!(refused(&[OPTION, "x"]).contains("no command was given"));
    for name in ["", "..", "a/", "/"] {
        assert!(refused(&[OPTION, name, "--", "true"]).contains("is no name for a file"), "{name}");
    }
    // Paths may stand behind -- as ever.
    fs::write(machine.path("-b"), "file").unwrap();
    let mut command = machine.command(["backup", "-r", &repo, "--", "-b"]);
    Outcome::of(command.current_dir(machine.path(""))).expect(0);
    let dry = machine.ok(["backup", "-n", "-r", &repo, OPTION, "x", "--", "/nowhere/x"]);
    assert!(dry.stdout.contains("dry run"), "{}", dry.stdout);
}

#[test]
fn a_set_may_back_up_what_a_command_prints() {
    let (machine, repo) = repository();
    fs::create_dir_all(machine.path("config")).unwrap();
    let config = format!(
        "repository = \"{repo}\"\n[sets.shop]\nname = \"shop.dump\"\ncommand = [\"echo\", \"-n\", \"rows of $HOME\"]\n"
    );
    fs::write(machine.path("config/config.toml"), config).unwrap();
    machine.ok(["agent", "run", "shop"]);
    assert_eq!(machine.ok(["dump", "latest:shop.dump"]).stdout, "rows of $HOME");
}
