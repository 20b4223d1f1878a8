//! A keeper that puts another repository in the place of somebody's.

use std::fs;
use std::path::Path;

use crate::house::{Machine, Outcome, Server};
use crate::keys::{AGE_PRIVATE, AGE_PUBLIC};

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

/// Makes a repository that an age key opens, and gives its fingerprint.
fn made_for_age(machine: &Machine, repo: &str) -> String {
    let kit = text(&machine.path(&format!("{repo}-kit.txt")));
    let repo = text(&machine.path(repo));
    let made = machine.summary(["init", "-r", &repo, "--recovery-kit", &kit]);
    machine.ok(["key", "add", "-r", &repo, "--recipient", AGE_PUBLIC]);
    made["fingerprint"].as_str().unwrap().to_owned()
}

fn age_key(machine: &Machine) -> String {
    fs::write(machine.path("age.txt"), AGE_PRIVATE).unwrap();
    text(&machine.path("age.txt"))
}

fn swap(one: &Path, other: &Path) {
    let aside = one.with_extension("aside");
    fs::rename(one, &aside).unwrap();
    fs::rename(other, one).unwrap();
    fs::rename(&aside, other).unwrap();
}

#[test]
fn a_key_of_one_s_own_opens_nothing_that_a_keeper_put_in_the_place_of_a_repository() {
    let (owner, keeper) = (Machine::new(), Machine::new());
    let fingerprint = made_for_age(&owner, "repo");
    let false_one = made_for_age(&keeper, "false");
    let (repo, key) = (text(&owner.path("repo")), age_key(&owner));
    let open = |computer: &Machine, more: &[&str]| -> Outcome {
        let args = ["snapshots", "-r", &repo, "--identity", &key];
        computer.run([&args[..], more].concat())
    };
    open(&owner, &[]).expect(0);
    open(&owner, &["--fingerprint", &fingerprint.to_lowercase()]).expect(0);

    swap(&owner.path("repo"), &keeper.path("false"));
    let swapped = open(&owner, &[]).expect(20).stderr;
    assert!(swapped.contains("another repository lies at"), "{swapped}");
    let new = Machine::new().with_password(None);
    let unknown = open(&new, &[]).expect(13).stderr;
    assert!(unknown.contains(&format!("--fingerprint {false_one}")), "{unknown}");
    open(&new, &["--fingerprint", "abc"]).expect(2);
    let refused = open(&new, &["--fingerprint", &fingerprint]).expect(20).stderr;
    assert!(refused.contains(&false_one), "{refused}");

    swap(&owner.path("repo"), &keeper.path("false"));
    open(&new, &[]).expect(13);
    open(&new, &["--fingerprint", &fingerprint]).expect(0);
    // Once is enough.
    open(&new, &[]).expect(0);
}

#[test]
fn a_computer_that_is_paired_with_a_key_of_one_s_own_wants_the_fingerprint() {
    let desk = Machine::new();
    let server = Server::start(&desk.path("data"));
    desk.pair(&server.invite_with(&["--name", "desk"]));
    desk.ok(["key", "add", "--recipient", AGE_PUBLIC]);
    let kit = fs::read_to_string(desk.path("kit.txt")).unwrap();
    let new = Machine::new().with_password(None);
    let (invite, key) = (server.invite_with(&["--for", "desk"]), age_key(&new));
    let pair = |more: &[&str]| new.run([&["pair", &invite, "--identity", &key], more].concat());
    let refused = pair(&[]).expect(13).stderr;
    let fingerprint =
        refused.split("--fingerprint ").nth(1).unwrap().trim_end().trim_end_matches('`');
    assert!(kit.contains(fingerprint), "{fingerprint} in {kit}");
    pair(&["--fingerprint", fingerprint]).expect(0);
    new.ok(["snapshots"]);
}

#[test]
fn a_server_that_shows_another_repository_under_the_paired_name_is_told() {
    let (desk, other) = (Machine::new(), Machine::new());
    let data = desk.path("data");
    let mut server = Server::start(&data);
    desk.pair(&server.invite_with(&["--name", "desk"]));
    other.pair(&server.invite_with(&["--name", "other"]));
    server.process().terminate().unwrap();
    assert!(server.process().wait().unwrap().0.success());
    swap(&data.join("repositories/desk"), &data.join("repositories/other"));
    let server = Server::start(&data);
    let there = format!("https://{}", server.address());
    for args in [&["snapshots", "-r", &there][..], &["key", "list", "-r", &there]] {
        let told = desk.run(args).expect(20).stderr;
        assert!(told.contains("another repository lies under that name"), "{told}");
    }
}
