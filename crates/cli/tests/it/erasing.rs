//! `holdall erase` destroys just the repository that was meant, for good, and says so to whoever comes later.

use std::fs;
use std::path::PathBuf;

use crate::house::{Machine, Server, small_tree, text};

/// A machine with a repository in a directory that has a snapshot.
fn backed_up() -> (Machine, PathBuf, PathBuf) {
    let machine = Machine::new();
    let (source, repo) = (machine.path("source"), machine.path("repo"));
    small_tree(&source);
    machine.init(&["-r", text(&repo)]);
    machine.ok(["backup", "-r", text(&repo), text(&source)]);
    (machine, repo, source)
}

/// The fingerprint that is asked for.
fn fingerprint(machine: &Machine, repo: &str) -> String {
    let said = machine.run(["erase", "-r", repo]).expect(2);
    assert!(said.stdout.contains("1 snapshot"), "{}", said.stdout);
    let after = said.stderr.split("--confirm ").last().expect("what to type");
    after.split_whitespace().next().expect("a fingerprint").to_owned()
}

#[test]
fn a_repository_is_destroyed_once_its_fingerprint_is_typed_and_none_begins_anew_there() {
    let (machine, repo, source) = backed_up();
    let (repo_text, before) = (text(&repo), crate::house::files_below(&repo).len());
    let print = fingerprint(&machine, repo_text);
    let other = machine.run(["erase", "-r", repo_text, "--confirm", "AAAA-BBBB"]).expect(2);
    assert!(other.stderr.contains(&print), "{}", other.stderr);
    assert_eq!(crate::house::files_below(&repo).len(), before, "nothing was destroyed");

    let erase = ["erase", "-r", repo_text, "--confirm", &print.to_lowercase(), "--passes", "2"];
    let summary = machine.summary(erase);
    assert!(summary["files"].as_u64() > Some(3) && summary["passes"] == 2, "{summary}");
    let mut left: Vec<_> =
        fs::read_dir(&repo).unwrap().flatten().map(|one| one.file_name()).collect();
    left.sort();
    assert_eq!(left, ["erased", "holdall-repository", "lock"]);
    assert!(
        !machine
            .path("config/state/clear-parts")
            .read_dir()
            .is_ok_and(|mut all| all.next().is_some())
    );

    // Whoever knew it is told, and nothing of what is kept here puts it back.
    for args in [
        &["snapshots", "-r", repo_text][..],
        &["backup", "-r", repo_text, text(&source)],
        &["check", "--repair", "-r", repo_text],
        &["restore", "-r", repo_text, "latest", "--target", text(&machine.path("target"))],
    ] {
        let said = machine.run(args).expect(10).stderr;
        assert!(said.contains("which was erased on 20"), "{args:?}: {said}");
    }
    let init = machine.run(["init", "-r", repo_text]);
    assert_eq!(init.code, Some(1), "{}", init.stderr);
    assert!(init.stderr.contains("none begins anew there"), "{}", init.stderr);
    // What was erased is erased again, without a password.
    machine.ok(["erase", "-r", repo_text, "--confirm", &print]);
    fs::remove_dir_all(&repo).unwrap();
    machine.init(&["-r", repo_text]);
    machine.ok(["backup", "-r", repo_text, text(&source)]);
}

#[test]
fn nobody_erases_with_a_wrong_password_or_over_the_wire() {
    let (machine, repo, _) = backed_up();
    let print = fingerprint(&machine, text(&repo));
    let stranger = Machine::new().with_password(Some("another"));
    let args = ["erase", "-r", text(&repo), "--confirm", &print];
    stranger.run(args).expect(12);
    machine.ok(["snapshots", "-r", text(&repo)]);

    let server = Server::start(&machine.path("server"));
    let paired = Machine::new();
    paired.pair_with(&server);
    let address = format!("https://{}", server.address());
    let said = paired.run(["erase", "-r", &address, "--confirm", &print]).expect(13).stderr;
    assert!(said.contains("holdall admin remove"), "{said}");
}
