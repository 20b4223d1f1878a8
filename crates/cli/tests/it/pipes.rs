//! Sources that are pipes, and those of which a name is all that would be stored.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use holdall_testkit::Process;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use crate::house::{Machine, Outcome, text};

fn repository() -> (Machine, String) {
    let machine = Machine::new();
    let repo = text(&machine.path("repo")).to_owned();
    machine.init(&["-r", &repo]);
    (machine, repo)
}

#[test]
fn a_pipe_is_read_to_its_end_under_its_own_name() {
    let (machine, repo) = repository();
    let stored = |path: &str| machine.ok(["dump", "-r", &repo, &format!("latest:{path}")]).stdout;
    let mut command = machine.command(["backup", "-r", &repo, "/dev/stdin"]);
    let mut backup = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let content = "a line of the dump\n".repeat(50_000);
    backup.stdin.take().unwrap().write_all(content.as_bytes()).unwrap();
    assert!(backup.wait().unwrap().success());
    assert!(stored("/dev/stdin") == content);

    let given = "exec \"$0\" backup -r \"$REPO\" <(echo dump)";
    let mut command = machine.command_by(&["bash", "-c", given], [""; 0]);
    Outcome::of(command.env("REPO", &repo)).expect(0);
    let listed = machine.ok(["ls", "-r", &repo, "latest", "/dev/fd"]).stdout;
    assert_eq!(stored(listed.trim()), "dump\n");

    let fifo = machine.path("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let backup = ["backup", "-r", &repo, text(&fifo), "--json"];
    let refused = machine.run(backup).expect(2).of_type("error");
    assert!(refused[0]["message"].as_str().unwrap().contains("nobody writes to it"), "{refused:?}");
    let writer = writer_of(&fifo);
    (&writer).write_all(b"written before").unwrap();
    let mut running = Process::spawn(&mut machine.command(backup)).unwrap();
    wait_for_begin(&mut running);
    (&writer).write_all(b", and while it runs").unwrap();
    drop(writer);
    Outcome::of_process(running).expect(0);
    assert_eq!(stored(text(&fifo)), "written before, and while it runs");
}

#[test]
fn a_pipe_through_which_nothing_comes_is_no_empty_file() {
    let (machine, repo) = repository();
    let [fifo, file] = ["fifo", "file"].map(|name| machine.path(name));
    fs::write(&file, "file").unwrap();
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let writer = writer_of(&fifo);
    let args = ["backup", "-r", &repo, text(&fifo), text(&file), "--json"];
    let mut running = Process::spawn(&mut machine.command(args)).unwrap();
    wait_for_begin(&mut running);
    drop(writer);
    let told = Outcome::of_process(running).expect(3).of_type("error");
    assert_eq!(told[0]["path"], text(&fifo));
    let folder = text(fifo.parent().unwrap()).to_owned();
    let listed = machine.ok(["ls", "-r", &repo, "latest", &folder]).stdout;
    assert_eq!(listed.trim(), text(&file));
    // Within another source, and of a list, it is stored as what it is.
    machine.ok(["backup", "-r", &repo, &folder, "--exclude", "repo"]);
    let listed = machine.ok(["ls", "-r", &repo, "latest", &folder]).stdout;
    assert!(listed.contains(text(&fifo)), "{listed}");
}

/// Somebody who writes to a pipe, and does not wait for a reader.
fn writer_of(fifo: &Path) -> File {
    // The command must not have it, too.
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(fifo, flags, Mode::empty()).unwrap().into()
}

/// Waits until a backup is about to read.
fn wait_for_begin(backup: &mut Process) {
    backup.wait_for_line("{\"message_type\":\"status\"").unwrap();
}

#[test]
fn a_source_of_which_only_the_name_would_be_stored_is_refused_or_told() {
    let (machine, repo) = repository();
    let [file, link, lost] = ["file", "link", "lost"].map(|name| machine.path(name));
    fs::write(&file, "content").unwrap();
    symlink(&file, &link).unwrap();
    symlink("nowhere", &lost).unwrap();
    let slash = format!("{}/", text(&link));
    for source in [text(&link), &slash, text(&lost), "/dev/null", "/dev/stdin"] {
        let refused = machine.run(["backup", "-r", &repo, source]).expect(2);
        assert!(refused.stderr.contains("nothing to back up: "), "{}", refused.stderr);
        assert!(refused.stderr.contains("hint: to back up what it"), "{}", refused.stderr);
    }
    assert!(machine.ok(["snapshots", "-r", &repo, "--json"]).of_type("snapshot").is_empty());
    let told = machine.ok(["backup", "-r", &repo, text(&file), text(&link)]);
    assert!(told.stderr.contains("only the link is backed up"), "{}", told.stderr);
    // A list may name anything.
    let list = machine.path("list");
    fs::write(&list, format!("{}\n", text(&link))).unwrap();
    machine.ok(["backup", "-r", &repo, "--files-from", text(&list)]);
}
