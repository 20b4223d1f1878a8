//! Administration of a server that runs, and of one that does not; and what it does to backups.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use holdall_testkit::{ChaosProxy, CompareOptions, Process, Random, compare_trees};
use serde_json::{Value, json};

use crate::house::{Machine, Outcome, Server, small_tree};

/// A server that can be stopped and comes back at the same address, and a machine that is paired
/// with it and has backed something up.
pub(crate) struct World {
    pub(crate) machine: Machine,
    pub(crate) server: Option<Server>,
    proxy: ChaosProxy,
    pub(crate) data: PathBuf,
    pub(crate) source: PathBuf,
}

impl World {
    pub(crate) fn new() -> Self {
        let machine = Machine::new().with_password(None);
        let (data, source) = (machine.path("data"), machine.path("source"));
        let server = Server::start(&data);
        let proxy = ChaosProxy::start(address(&server)).expect("a free port");
        let reached_at = proxy.address().to_string();
        machine.pair(&server.invite_with(&["--name", "desk", "--address", &reached_at]));
        small_tree(&source);
        let world = Self { machine, server: Some(server), proxy, data, source };
        world.machine.ok(world.backup());
        world
    }

    pub(crate) fn stop(&mut self) {
        let mut server = self.server.take().expect("it runs");
        server.process().terminate().expect("it lived");
        assert!(server.process().wait().expect("it ends").0.success());
    }

    pub(crate) fn start(&mut self) {
        let server = Server::start(&self.data);
        self.proxy.set_upstream(address(&server));
        self.server = Some(server);
    }

    /// Runs an administrator's command as it is, then again without the server where `runs` is not
    /// set.
    pub(crate) fn admin(&mut self, runs: bool, args: &[&str]) -> Outcome {
        if !runs {
            self.stop();
        }
        let said = self.machine.administer(&self.data, args);
        if !runs {
            self.start();
        }
        said
    }

    /// The one object that an administrator's command prints.
    pub(crate) fn told(&mut self, runs: bool, args: &[&str]) -> Value {
        let mut objects = self.admin(runs, args).expect(0).objects();
        assert_eq!(objects.len(), 1, "{objects:?}");
        objects.remove(0)
    }

    /// The same where none runs.
    pub(crate) fn told_without(&self, args: &[&str]) -> Value {
        assert!(self.server.is_none());
        self.machine.administer(&self.data, args).expect(0).objects().remove(0)
    }

    pub(crate) fn invite_again(&self) -> String {
        let reached_at = self.proxy.address().to_string();
        let server = self.server.as_ref().expect("it runs");
        server.invite_with(&["--for", "desk", "--address", &reached_at])
    }

    pub(crate) fn backup(&self) -> [&str; 2] {
        ["backup", self.source.to_str().expect("UTF-8")]
    }

    /// The newest snapshot is as `source` is.
    pub(crate) fn check_restores(&self) {
        let target = self.machine.path("target");
        let from = format!("latest:{}", self.source.display());
        self.machine.ok(["restore", &from, "--target", target.to_str().expect("UTF-8")]);
        assert_eq!(compare_trees(&self.source, &target, &CompareOptions::default()), []);
        fs::remove_dir_all(&target).expect("it can be removed");
    }
}

fn address(server: &Server) -> SocketAddr {
    server.address().parse().expect("an address")
}

pub(crate) fn write_random(path: &Path, seed: u64, bytes: usize) {
    fs::write(path, Random::new(seed).bytes(bytes)).expect("room");
}

#[test]
fn machines_and_repositories_are_listed_with_and_without_a_server() {
    let mut world = World::new();
    let first = world.told(true, &["machines"]);
    assert_eq!(first["name"], "desk");
    assert_eq!((&first["right"], &first["keys"]), (&json!("backup"), &json!(1)));
    assert_eq!(first["revoked"], false);
    assert!(first["last_seen"].is_string(), "{first}");
    let repository = world.told(true, &["repositories"]);
    assert_eq!((&repository["name"], &repository["machine"]), (&json!("desk"), &first["id"]));
    assert_eq!((&repository["snapshots"], &repository["problem"]), (&json!(1), &Value::Null));
    assert!(repository["stored_bytes"].as_u64().unwrap() > 3_000_000, "{repository}");
    let snapshot = world.machine.ok(["snapshots", "--json"]).of_type("snapshot").remove(0);
    assert_eq!(snapshot["received"], repository["newest"]);
    assert_eq!(world.told(false, &["repositories"]), repository);
    let without = world.told(false, &["machines"]);
    assert_eq!((&without["id"], &without["created"]), (&first["id"], &first["created"]));

    let words = world.machine.ok(["admin", "machines", "--data", world.data.to_str().unwrap()]);
    assert!(words.stdout.contains("desk") && words.stdout.contains("last seen"), "{words:?}");
}

/// Seen: rows of up to 104 columns, which wrap where most terminals end.
#[test]
fn tables_fit_80_columns() {
    let world = World::new();
    let data = world.data.to_str().unwrap();
    for command in [
        vec!["admin", "machines", "--data", data],
        vec!["admin", "repositories", "--data", data],
        vec!["lab", "cpu", "--time", "0.01"],
    ] {
        let said = world.machine.ok(&command).stdout;
        let rows = said.lines().skip_while(|line| !line.is_empty() && command[0] == "lab");
        // Sentences are broken by the terminal's width.
        let rows = rows.filter(|line| line.contains("  "));
        let longest = rows.map(|line| line.chars().count()).max().unwrap();
        assert!((40..=80).contains(&longest), "{command:?}: {longest}\n{said}");
    }
}

#[test]
fn a_right_is_set_with_and_without_a_server_and_counts_at_once() {
    let mut world = World::new();
    for runs in [true, false] {
        assert_eq!(world.told(runs, &["rights", "desk", "read"])["right"], "read");
        let said = world.machine.run(world.backup()).expect(13);
        let id = world.told(true, &["machines"])["id"].as_str().unwrap().to_owned();
        let helps = format!("holdall admin rights {id:.12} backup");
        assert!(said.stderr.contains(&helps), "{}", said.stderr);
        world.check_restores();
        assert_eq!(world.told(runs, &["rights", "desk"])["right"], "read");
        assert_eq!(world.told(runs, &["rights", "desk", "backup"])["right"], "backup");
        world.machine.ok(world.backup());
    }
    world.admin(true, &["rights", "desk", "everything"]).expect(2);
}

#[test]
fn a_revoked_machine_comes_back_by_an_invite_for_it_with_all_its_snapshots() {
    let mut world = World::new();
    for runs in [true, false] {
        let id = world.told(true, &["machines"])["id"].as_str().unwrap().to_owned();
        assert_eq!(world.told(runs, &["revoke", &id[..16]])["revoked"], true);
        world.machine.run(["snapshots"]).expect(13);
        let plain = world.server.as_ref().unwrap().invite();
        world.machine.run(["pair", &plain]).expect(13);
        world.machine.ok(["pair", &world.invite_again()]);
        world.check_restores();
        world.machine.ok(world.backup());
        assert_eq!(world.told(runs, &["machines"])["revoked"], false);
    }
}

#[test]
fn a_backup_whose_machine_is_revoked_while_it_runs_ends_with_13_and_commits_nothing() {
    let mut world = World::new();
    write_random(&world.source.join("more.bin"), 9, 12_000_000);
    let args = ["--json", "--limit-upload", "1M"];
    let mut command = world.machine.command([&world.backup()[..], &args].concat());
    let mut running = Process::spawn(&mut command).unwrap();
    // It is told of once a second, and takes twelve.
    running.wait_for_line("{\"message_type\":\"status\"").unwrap();
    assert_eq!(world.told(true, &["revoke", "desk"])["revoked"], true);
    let (status, said) = running.wait().unwrap();
    assert_eq!(status.code(), Some(13), "{said:?}");
    assert!(said.iter().any(|line| line.contains("revoked")), "{said:?}");

    assert_eq!(world.told(true, &["repositories"])["snapshots"], 1);
    world.machine.ok(["pair", &world.invite_again()]);
    fs::remove_file(world.source.join("more.bin")).unwrap();
    world.machine.ok(["ls", "latest"]);
    world.machine.ok(world.backup());
    world.check_restores();
}

#[test]
fn a_backup_that_would_pass_the_quota_ends_with_13_and_what_was_there_restores() {
    let mut world = World::new();
    let more = world.machine.path("more");
    fs::create_dir(&more).unwrap();
    let backup_more = ["backup", more.to_str().unwrap()];
    for runs in [true, false] {
        let stored = world.told(runs, &["quota", "desk"])["stored_bytes"].as_u64().unwrap();
        let quota = (stored + 500_000).to_string();
        assert_eq!(world.told(runs, &["quota", "desk", &quota])["quota_bytes"], stored + 500_000);
        write_random(&more.join("large"), stored, 4_000_000);
        let said = world.machine.run(backup_more).expect(13);
        let shown = format!("{:.1} MB", (stored + 500_000) as f64 / 1e6);
        for word in [&format!("is {shown}; ")[..], "holdall admin quota desk SIZE"] {
            assert!(said.stderr.contains(word), "{word:?} is not in:\n{}", said.stderr);
        }
        let used = world.told(runs, &["quota", "desk"])["stored_bytes"].as_u64().unwrap();
        assert!(used < stored + 600_000, "{used} of {quota}");
        assert_eq!(world.machine.summary(["stats"])["quota_bytes"], stored + 500_000);
        world.check_restores();
        assert_eq!(world.told(runs, &["quota", "desk", "none"])["quota_bytes"], Value::Null);
        world.machine.ok(backup_more);
        world.check_restores();
    }
    world.admin(true, &["quota", "desk", "much"]).expect(2);
}

#[test]
fn what_is_not_there_is_a_failure_that_names_it_and_the_list() {
    let mut world = World::new();
    for runs in [true, false] {
        for (args, list) in [
            (["rights", "nobody"], "holdall admin machines"),
            (["revoke", "nobody"], "holdall admin machines"),
            (["quota", "nobody"], "holdall admin repositories"),
        ] {
            let said = world.admin(runs, &args).expect(1).of_type("error").remove(0);
            let message = said["message"].as_str().unwrap();
            assert!(message.contains("nobody") && message.contains(list), "{message}");
        }
    }
    let elsewhere = world.machine.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    world.machine.administer(&elsewhere, &["machines"]).expect(1);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "nothing was made there");
}

#[test]
fn every_verb_has_help_with_an_example_and_its_exit_codes() {
    let machine = Machine::new();
    let verbs = [
        "machines",
        "rights",
        "revoke",
        "rename",
        "remove",
        "backup-identity",
        "restore-identity",
        "quota",
        "repositories",
        "retention",
        "forget",
        "pending",
        "cancel",
        "prune",
        "resume",
        "scrub",
        "thin",
    ];
    for verb in verbs {
        let help = machine.ok(["admin", verb, "--help"]).stdout;
        assert!(help.contains(&format!("Example: holdall admin {verb}")), "{help}");
        assert!(help.contains("Exit codes: 0 "), "{help}");
    }
    machine.run(["admin"]).expect(2);
}

#[test]
fn stats_tell_what_the_snapshots_hold_and_what_is_stored_for_them() {
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    let [repo, source] = [&repo, &source].map(|path| path.to_str().unwrap());
    small_tree(source.as_ref());
    machine.init(&["-r", repo]);
    let empty = machine.summary(["stats", "-r", repo]);
    assert_eq!((&empty["snapshots"], &empty["stored_bytes"]), (&json!(0), &json!(0)));
    assert_eq!(empty["ratio"], Value::Null);

    let first = machine.summary(["backup", "-r", repo, source, "--tag", "first"]);
    fs::write(format!("{source}/new.txt"), "new").unwrap();
    let second = machine.summary(["backup", "-r", repo, source]);
    let bytes = |summary: &Value| summary["total_bytes_processed"].as_u64().unwrap();
    let all = machine.summary(["stats", "-r", repo]);
    assert_eq!(all["snapshots"], 2);
    assert_eq!(
        (&all["newest_bytes"], &all["newest_items"]),
        (&second["total_bytes_processed"], &second["total_items_processed"],)
    );
    assert_eq!(all["total_bytes"], bytes(&first) + bytes(&second));
    let stored = all["stored_bytes"].as_u64().unwrap();
    let (ratio, expected) = (all["ratio"].as_f64().unwrap(), all["total_bytes"].as_f64().unwrap());
    assert!((ratio - expected / stored as f64).abs() < 1e-9, "{all}");
    assert!(stored > 3_000_000 && stored < 4_000_000, "{stored}");
    let checked = machine.summary(["check", "-r", repo]);
    for field in ["packs", "blocks", "objects"] {
        assert_eq!(all[field], checked[field], "{field}");
    }
    assert_eq!(all["quota_bytes"], Value::Null);

    let tagged = machine.summary(["stats", "-r", repo, "--tag", "first"]);
    assert_eq!((&tagged["snapshots"], &tagged["total_bytes"]), (&json!(1), &json!(bytes(&first))));
    assert_eq!((&tagged["ratio"], &tagged["stored_bytes"]), (&Value::Null, &all["stored_bytes"]));
    let words = machine.ok(["stats", "-r", repo, "--path", source]).stdout;
    assert!(words.contains("all together") && words.contains("stored"), "{words}");
}
