//! Mounts that cannot be looked at: one that is dead, and one that does not answer.

use std::fs;
use std::time::Duration;

use holdall_testkit::Process;
use rustix::process::Signal;

use crate::house::{Machine, Outcome, send_signal, text};
use crate::mounts::Mount;

#[test]
fn a_mount_that_does_not_answer_is_left_out_by_a_rule_and_else_said() {
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), "x").unwrap();
    let point = source.join("disk");
    let Some((mount, mut disk)) = Mount::silent(&point) else { return };
    machine.init(&["-r", text(&repo)]);
    let args = ["backup", "-r", text(&repo), text(&source)];
    let with = |more: &[&'static str]| [&args[..], more].concat();
    // It is not looked at.
    let ignore = source.join(".holdallignore");
    machine.run(with(&["--exclude", "disk"])).expect(0);
    fs::write(&ignore, "disk/\n").unwrap();
    machine.run(args).expect(0);
    fs::remove_file(&ignore).unwrap();

    let merged = ["sh", "-c", "exec \"$@\" 2>&1", "sh"];
    let mut waiting = Process::spawn(&mut machine.command_by(&merged, args)).unwrap();
    let said = waiting.wait_for_line("note: waiting for ").unwrap();
    assert!(
        said.contains(&format!("{}: its file system does not answer; Ctrl-C", text(&point))),
        "{said}"
    );
    send_signal(&waiting, Signal::INT);
    Outcome::of_process(waiting).expect(130);

    // Who waits for it elsewhere is ended by a second signal, be it that nothing is said.
    let target = point.join("out");
    machine.run(with(&["--exclude", "disk"])).expect(0);
    let restore = ["restore", "-r", text(&repo), "latest", text(&target)];
    let waiting = Process::spawn(&mut machine.command_by(&merged, restore)).unwrap();
    std::thread::sleep(Duration::from_secs(2));
    for _ in 0..2 {
        send_signal(&waiting, Signal::INT);
        std::thread::sleep(Duration::from_millis(500));
    }
    Outcome::of_process(waiting).expect(130);

    // Dead, it can be looked at, and is not there.
    disk.kill().unwrap();
    machine.run(with(&["--exclude", "disk"])).expect(0);
    let told = machine.run(with(&["-x"])).expect(0);
    assert!(
        told.stderr.contains("lies on another file system, cannot be looked at"),
        "{}",
        told.stderr
    );
    machine.run(args).expect(3);
    drop(mount);
    machine.run(args).expect(0);
}
