//! Ctrl-C ends a backup in good order: nothing is committed, and what was stored is not sent again. A terminal that
//! goes away ends it too, but not one that was started to outlive it. Where somebody is waited for, it ends what waits
//! at once.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use holdall_testkit::{Process, Random};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Signal;

use crate::house::{
    HOLDALL, Machine, Outcome, Server, disk_bytes, send_signal, text, wait_for_progress,
};

/// More than the stages hold and than is sent until the backup is interrupted.
const FILE_BYTES: u64 = 96 << 20;
/// What may have been on its way, and is sent again.
const ON_THE_WAY_BYTES: u64 = 8 << 20;
/// Ends what asks for a password, once it did, and fails if the terminal is not as before then.
const ASK_AND_END: &str = r#"
    before=$(stty -g)
    "$HOLDALL" snapshots -r "$REPOSITORY" & asking=$!
    while [ "$(stty -g)" = "$before" ]; do sleep 0.05; done
    kill -TERM $asking; wait $asking; echo "code $?"
    [ "$(stty -g)" = "$before" ]"#;

#[test]
fn a_backup_that_is_interrupted_inside_a_large_file_commits_nothing_and_goes_on_next_time() {
    let machine = Machine::new().with_password(None);
    let data = machine.path("data");
    let server = Server::start(&data);
    machine.pair_with(&server);
    let source = machine.path("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("large"), Random::new(9).bytes(FILE_BYTES as usize)).unwrap();
    let source = source.to_str().unwrap();

    let before = disk_bytes(&data);
    let args = ["backup", source, "--json", "--limit-upload", "8M"];
    let mut backup = Process::spawn(&mut machine.command(args)).unwrap();
    wait_for_progress(&mut backup, 5);
    send_signal(&backup, Signal::INT);
    let ended = Outcome::of_process(backup).expect(130);
    assert_eq!(ended.of_type("summary"), [""; 0]);
    let hint = ended.of_type("error").remove(0)["hint"].clone();
    assert!(hint.as_str().is_some_and(|hint| hint.contains("goes on from there")), "{hint}");
    let inside = |status: &serde_json::Value| status["bytes_done"].as_u64() < Some(FILE_BYTES);
    assert!(ended.of_type("status").iter().all(inside), "the file was done before");
    assert_eq!(machine.ok(["snapshots", "--json"]).of_type("snapshot"), [""; 0]);

    let stored = disk_bytes(&data) - before;
    let sent = machine.summary(["backup", source])["bytes_sent"].as_u64().unwrap();
    assert!(stored > 0);
    assert!(sent + stored < FILE_BYTES + ON_THE_WAY_BYTES, "{stored} stored, {sent} sent again");
    let target = machine.path("target");
    machine.ok(["restore", &format!("latest:{source}"), "--target", target.to_str().unwrap()]);
    assert!(
        fs::read(target.join("large")).unwrap() == fs::read(format!("{source}/large")).unwrap()
    );
}

#[test]
fn a_terminal_that_goes_away_ends_a_backup_that_was_not_to_outlive_it() {
    // Whoever runs the tests may have it ignore the signal already.
    let as_usual = &["env", "--default-signal=HUP"][..];
    for (by, code) in [(as_usual, 130), (&["nohup"][..], 0)] {
        let machine = Machine::new().with_password(None);
        let server = Server::start(&machine.path("data"));
        machine.pair_with(&server);
        let source = machine.path("source");
        fs::create_dir(&source).unwrap();
        fs::write(source.join("large"), Random::new(9).bytes(24 << 20)).unwrap();
        let args = ["backup", source.to_str().unwrap(), "--json", "--limit-upload", "8M"];
        let mut backup = Process::spawn(&mut machine.command_by(by, args)).unwrap();
        wait_for_progress(&mut backup, 2);
        send_signal(&backup, Signal::HUP);
        Outcome::of_process(backup).expect(code);
    }
}

#[test]
fn what_waits_for_a_pipe_ends_with_the_first_signal() {
    let (machine, repository) = with_a_repository();
    let pipe = machine.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for waiting in [["snapshots", "--password-file"], ["backup", "--files-from"]] {
        let args = waiting.into_iter().chain([text(&pipe), "-r", &repository]);
        let process = Process::spawn(&mut machine.command(args)).unwrap();
        // Nobody can write before somebody wants to read.
        let writer = loop {
            match rustix::fs::open(&pipe, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()) {
                Err(Errno::NXIO) => std::thread::sleep(Duration::from_millis(10)),
                opened => break opened.unwrap(),
            }
        };
        send_signal(&process, Signal::INT);
        Outcome::of_process(process).expect(130);
        drop(writer);
    }
}

#[test]
fn whoever_asks_for_a_password_leaves_the_terminal_as_it_was() {
    let (machine, repository) = with_a_repository();
    // It gives what it runs a terminal of its own.
    let mut terminal = Command::new("script");
    terminal.args(["-qec", ASK_AND_END, "/dev/null"]).stdin(Stdio::null());
    terminal.env("HOME", machine.path("home")).env_remove("HOLDALL_PASSWORD");
    let shown = Outcome::of(terminal.env("HOLDALL", HOLDALL).env("REPOSITORY", &repository));
    assert!(shown.expect(0).stdout.contains("code 130"));
}

/// A machine without a password, and a repository that has one.
fn with_a_repository() -> (Machine, String) {
    let machine = Machine::new();
    let repository = text(&machine.path("repository")).to_owned();
    machine.init(&["-r", &repository, "--recovery-kit", text(&machine.path("kit.txt"))]);
    (machine.with_password(None), repository)
}
