//! Sets of `config.toml`, and what runs around their backups.

use std::fs;

use rustix::process::Signal;

use crate::house::{Machine, Outcome, text};

/// A machine with a repository called `usb`, and something to back up.
fn machine() -> Machine {
    let machine = Machine::new();
    machine.init(&["-r", text(&machine.path("repo"))]);
    fs::create_dir(machine.path("tree")).unwrap();
    fs::write(machine.path("tree/letter"), "Dear reader,").unwrap();
    fs::create_dir_all(machine.path("config")).unwrap();
    machine
}

/// Writes `config.toml`, with `REPO`, `TREE` and `LOG` for places of this machine.
fn configure(machine: &Machine, text_of_it: &str) {
    let mut config = text_of_it.to_owned();
    for (word, name) in [("REPO", "repo"), ("TREE", "tree"), ("LOG", "log")] {
        config = config.replace(word, text(&machine.path(name)));
    }
    fs::write(machine.path("config/config.toml"), config).unwrap();
}

const SET: &str = "\
[repositories.usb]
repository = \"REPO\"
[sets.home]
paths = [\"TREE\"]
repository = \"usb\"
tag = [\"daily\"]
[sets.home.hooks]
before = \"echo before $HOLDALL_SET ${HOLDALL_RESULT-unset} >> LOG\"
after = \"echo after $HOLDALL_RESULT >> LOG\"
failed = \"echo failed $HOLDALL_RESULT $HOLDALL_MESSAGE >> LOG\"
finally = \"echo finally $HOLDALL_RESULT >> LOG; echo printed\"
";

/// What the hooks wrote down since.
fn log(machine: &Machine) -> Vec<String> {
    let log = fs::read_to_string(machine.path("log")).unwrap();
    fs::remove_file(machine.path("log")).unwrap();
    log.lines().map(str::to_owned).collect()
}

#[test]
fn a_set_is_backed_up_as_by_hand_between_its_hooks() {
    let machine = machine();
    configure(&machine, SET);
    let ended = machine.ok(["agent", "run", "home", "--json"]);
    assert!(ended.summary()["snapshot_id"].is_string());
    assert!(ended.stderr.contains("printed"), "standard output is the backup's: {}", ended.stderr);
    assert_eq!(log(&machine), ["before home unset", "after 0", "finally 0"]);
    // A name is taken wherever a repository is.
    let listed = machine.ok(["snapshots", "-r", "usb", "--tag", "daily", "--json"]);
    assert_eq!(listed.of_type("snapshot").len(), 1);
    let mut command = machine.command(["snapshots", "--json"]);
    let listed = Outcome::of(command.env("HOLDALL_REPOSITORY", "usb")).expect(0);
    assert_eq!(listed.of_type("snapshot").len(), 1);
    machine.run(["snapshots", "-r", "./usb"]).expect(10);
}

#[test]
fn a_hook_before_that_fails_keeps_the_backup_from_being_made_and_is_told_by_status() {
    let machine = machine();
    configure(&machine, &SET.replace("before = \"echo", "before = \"false && echo"));
    let refused = machine.run(["agent", "run", "home"]).expect(1);
    let message = "the hook `before` of the set home ended with 1";
    assert!(refused.stderr.contains(message), "{}", refused.stderr);
    assert_eq!(log(&machine), [&format!("failed 1 {message}"), "finally 1"]);
    assert!(machine.ok(["snapshots", "-r", "usb", "--json"]).of_type("snapshot").is_empty());
    let status = machine.summary(["status", "-r", "usb"]);
    assert!(status["last_failure"].to_string().contains(message), "{status}");
}

#[test]
fn a_backup_that_fails_and_hooks_that_do_after_it_are_told_apart() {
    let machine = machine();
    configure(&machine, &SET.replace("TREE", "/nowhere"));
    machine.run(["agent", "run", "home"]).expect(1);
    let said = log(&machine);
    assert!(said[1].starts_with("failed 1 nothing to back up"), "{said:?}");
    assert_eq!((said.len(), &*said[2]), (3, "finally 1"));

    configure(&machine, &SET.replace("after = \"echo", "after = \"exit 9; echo"));
    let told = machine.run(["agent", "run", "home", "--json"]).expect(3);
    assert!(told.summary()["snapshot_id"].is_string());
    assert!(
        told.stdout.contains("the hook `after` of the set home ended with 9"),
        "{}",
        told.stdout
    );
    assert_eq!(log(&machine), ["before home unset", "finally 3"]);

    configure(
        &machine,
        &SET.replace("after = \"echo", "timeout = \"1ms\"\nafter = \"sleep 600; echo"),
    );
    let told = machine.run(["agent", "run", "home"]);
    // The first hook may be over before anyone looks.
    assert!(matches!(told.code, Some(1 | 3)), "{told:?}");
    assert!(told.stderr.contains("was ended: it ran for more than"), "{}", told.stderr);
}

#[test]
fn hooks_are_told_what_could_not_be_read_and_nothing_of_another_run() {
    let machine = machine();
    let finally = "finally = \"echo finally $HOLDALL_RESULT $HOLDALL_MESSAGE >> LOG; echo";
    let set = SET.replace("finally = \"echo finally $HOLDALL_RESULT >> LOG; echo", finally);
    configure(&machine, &set.replace("[\"TREE\"]", "[\"TREE\", \"/nowhere\"]"));
    let mut command = machine.command(["agent", "run", "home"]);
    command.env("HOLDALL_RESULT", "7").env("HOLDALL_MESSAGE", "other");
    Outcome::of(&mut command).expect(3);
    let said = log(&machine);
    assert_eq!(said[..2], ["before home unset", "after 3"]);
    assert!(said[2].starts_with("finally 3 ") && said[2].len() > 20, "{said:?}");
}

#[test]
fn a_signal_ends_what_goes_on_and_what_puts_things_back_still_runs() {
    let machine = machine();
    let waits = "before = \"echo $$ >> LOG; echo waits; exec sleep 600\"\n#";
    configure(&machine, &SET.replace("before =", waits));
    let mut command = machine.command(["agent", "run", "home"]);
    // What a hook prints, on the one output that is read here.
    command.stderr(std::process::Stdio::piped());
    let mut running = command.spawn().unwrap();
    let mut said = std::io::BufReader::new(running.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    assert_eq!(line, "waits\n");
    let pid = rustix::process::Pid::from_child(&running);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(130));
    let said = log(&machine);
    assert_eq!(said[1..], ["failed 130 interrupted", "finally 130"]);
    assert!(!fs::exists(format!("/proc/{}", said[0])).unwrap(), "the hook is gone");
}

#[test]
fn a_second_run_of_a_set_leaves_the_first_one_and_what_its_hooks_made_alone() {
    let machine = machine();
    let waits = "before = \"echo waits; until test -e TREE/go; do sleep 0.1; done\"\n#";
    configure(&machine, &SET.replace("before =", waits));
    let mut command = machine.command(["agent", "run", "home"]);
    let mut running = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(running.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    assert_eq!(line, "waits\n");
    let refused = machine.run(["agent", "run", "home"]).expect(11);
    let who = format!("being backed up already, by `holdall agent`, process {}", running.id());
    assert!(refused.stderr.contains(&who), "{}", refused.stderr);
    assert!(!machine.path("log").exists(), "no hook ran");
    fs::write(machine.path("tree/go"), "").unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(0));
    assert_eq!(log(&machine), ["after 0", "finally 0"]);
    machine.ok(["agent", "run", "home"]);
}

#[test]
fn what_a_set_cannot_be_is_told_by_file_line_and_key() {
    let machine = machine();
    configure(&machine, SET);
    let refused = machine.run(["agent", "run", "hmoe"]).expect(2);
    assert!(refused.stderr.contains("no set hmoe") && refused.stderr.contains("it has home"));
    configure(&machine, &SET.replace("tag =", "tga ="));
    let refused = machine.run(["snapshots", "-r", "usb"]).expect(2);
    assert!(refused.stderr.contains("line 6: sets.home.tga"), "{}", refused.stderr);
    assert!(refused.stderr.contains("did you mean tag?"), "{}", refused.stderr);
    configure(&machine, &SET.replace("tag = [\"daily\"]", "limit_upload = \"2XB\""));
    let refused = machine.run(["agent", "run", "home"]).expect(2);
    assert!(refused.stderr.contains("sets.home.limit_upload: \"2XB\""), "{}", refused.stderr);
}
