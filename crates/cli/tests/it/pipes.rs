//! Sources that are pipes, and those of which a name is all that would be stored.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
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
    assert!(
        refused[0]["message"].as_str().unwrap().contains("no program writes to it"),
        "{refused:?}"
    );
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
    for (source, what) in [
        (text(&link), "to back up what it leads to"),
        (&slash, "to back up what it leads to"),
        (text(&lost), "leads nowhere: nowhere is not there"),
        ("/dev/null", "to back up what it gives"),
        ("/dev/stdin", "standard input is /dev/null"),
    ] {
        let mut command = machine.command(["backup", "-r", &repo, source]);
        let refused = Outcome::of(command.stdin(Stdio::null())).expect(2);
        assert!(refused.stderr.contains("nothing to back up: "), "{}", refused.stderr);
        assert!(refused.stderr.contains(what), "{}", refused.stderr);
    }
    let (socket, _other) = UnixStream::pair().unwrap();
    let mut command = machine.command(["backup", "-r", &repo, "/dev/stdin"]);
    let refused = Outcome::of(command.stdin(OwnedFd::from(socket))).expect(2);
    assert!(refused.stderr.contains("standard input is a socket"), "{}", refused.stderr);
    assert!(machine.ok(["snapshots", "-r", &repo, "--json"]).of_type("snapshot").is_empty());
    let told = machine.ok(["backup", "-r", &repo, text(&file), text(&link)]);
    assert!(told.stderr.contains("only the link is backed up"), "{}", told.stderr);
    // A list may name anything.
    let list = machine.path("list");
    fs::write(&list, format!("{}\n", text(&link))).unwrap();
    machine.ok(["backup", "-r", &repo, "--files-from", text(&list)]);
}

#[test]
fn a_pipe_that_gives_nothing_is_an_error_of_that_source_and_alone_of_the_backup() {
    let (machine, repo) = repository();
    let [fifo, file] = ["fifo", "file"].map(|name| machine.path(name));
    fs::write(&file, "file").unwrap();
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let idle = ["backup", "-r", &repo, text(&fifo), text(&file), "--json"];
    let by_bash = |rest: &str| {
        let given = format!("exec \"$0\" backup -r \"$REPO\" --json <(false) {rest}");
        let mut command = machine.command_by(&["bash", "-c", &given], [""; 0]);
        Outcome::of(command.env("REPO", &repo).env("FILE", &file))
    };
    by_bash("").expect(2);
    // The same where whoever writes ends once the backup runs.
    let writer = writer_of(&fifo);
    let alone = ["backup", "-r", &repo, text(&fifo), "--json"];
    let mut running = Process::spawn(&mut machine.command(alone)).unwrap();
    wait_for_begin(&mut running);
    drop(writer);
    Outcome::of_process(running).expect(2);
    assert!(machine.ok(["snapshots", "-r", &repo, "--json"]).of_type("snapshot").is_empty());

    for told in [machine.run(idle), by_bash("\"$FILE\"")] {
        assert_eq!(told.expect(3).of_type("error").len(), 1);
        assert_eq!(
            machine.ok(["dump", "-r", &repo, &format!("latest:{}", text(&file))]).stdout,
            "file"
        );
    }
    machine.run(["ls", "-r", &repo, "latest", text(&fifo)]).expect(1);
}

#[test]
fn sources_none_of_which_can_be_read_make_no_snapshot() {
    let (machine, repo) = repository();
    let file = machine.path("file");
    fs::write(&file, "file").unwrap();
    // Whoever asks may open it, and nobody may read its beginning.
    let unreadable = "/proc/self/mem";
    let told = machine.run(["backup", "-r", &repo, unreadable, "--json"]).expect(1);
    let told: Vec<_> = told.of_type("error").iter().map(|one| one["path"].clone()).collect();
    assert!(told.iter().any(|path| path == unreadable), "{told:?}");
    assert!(machine.ok(["snapshots", "-r", &repo, "--json"]).of_type("snapshot").is_empty());
    machine.run(["backup", "-r", &repo, unreadable, text(&file)]).expect(3);
    machine.ok(["dump", "-r", &repo, &format!("latest:{}", text(&file))]);
}
