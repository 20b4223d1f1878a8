//! Compacting: what little is needed of blocks that are mostly dead is stored again.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::forgetting::forge_tombstone;
use crate::house::{Machine, Server};
use holdall_format::TombstoneReason;
use holdall_testkit::Random;

/// Files of a few KiB each that do not compress, so that many share a block.
const FILES: u32 = 600;

/// Writes all of them.
fn fill(source: &Path) {
    fs::create_dir_all(source).unwrap();
    for number in 0..FILES {
        fs::write(source.join(number.to_string()), noise(number)).unwrap();
    }
}

/// Leaves one in so many.
fn thin_out(source: &Path, one_in: u32) {
    for number in (0..FILES).filter(|number| !number.is_multiple_of(one_in)) {
        fs::remove_file(source.join(number.to_string())).unwrap();
    }
}

fn noise(seed: u32) -> Vec<u8> {
    Random::new(seed.into()).bytes(8000)
}

fn assert_restores(machine: &Machine, args: &[&str], source: &Path, out: &Path) {
    let out_name = out.to_str().unwrap();
    machine.ok([&["restore", "latest", "--target", out_name][..], args].concat());
    let there = fs::read_dir(source).unwrap().map(|file| file.unwrap().path());
    let restored = out.join(source.strip_prefix("/").unwrap());
    let mut compared = 0;
    for file in there {
        let twin = restored.join(file.file_name().unwrap());
        assert_eq!(fs::read(&file).unwrap(), fs::read(twin).unwrap(), "{}", file.display());
        compared += 1;
    }
    assert_eq!(fs::read_dir(&restored).unwrap().count(), compared);
}

#[test]
fn blocks_that_are_mostly_dead_give_way_in_a_directory() {
    let machine = Machine::new();
    let repo = machine.path("repo").to_str().unwrap().to_owned();
    let with = |args: &[&str]| machine.ok([args, &["-r", &repo]].concat());
    machine.init(&["-r", &repo, "--recovery-kit", machine.path("kit").to_str().unwrap()]);
    let source = machine.path("source");
    fill(&source);
    with(&["backup", source.to_str().unwrap()]);
    thin_out(&source, 20);
    with(&["backup", source.to_str().unwrap()]);
    with(&["forget", "--keep-last", "1", "--prune"]);
    let stored = || with(&["stats", "--json"]).summary()["stored_bytes"].as_u64().unwrap();
    let before = stored();
    assert!(before > 4 << 20, "a prune cannot take blocks apart: {before}");

    let would = with(&["compact", "--dry-run", "--json"]).summary();
    assert_eq!(stored(), before, "it was only looked at");
    let told = with(&["compact", "--json"]);
    let done = told.of_type("summary")[0].clone();
    for key in ["sparse_blocks", "objects", "living_objects"] {
        assert_eq!(would[key], done[key], "{key}");
    }
    let number = |key: &str| done[key].as_u64().unwrap();
    assert!(number("compacted_blocks") >= 4 && number("damaged_blocks") == 0, "{done}");
    assert!(number("living_objects") * 2 < number("objects"), "{done}");
    assert!(number("after_bytes") * 5 < number("before_bytes"), "{done}");
    let after = stored();
    assert!(after * 5 < before, "{before} {after}");
    assert_eq!(with(&["compact", "--json"]).of_type("summary")[0]["sparse_blocks"], 0);

    with(&["check", "--verify", "all"]);
    assert_restores(&machine, &["-r", &repo], &source, &machine.path("out"));
    let unchanged = with(&["backup", source.to_str().unwrap(), "--json"]).summary();
    assert_eq!(unchanged["files_unmodified"], json!(FILES / 20));
    assert!(stored() < after + 100_000, "nothing is sent again");
}

/// A server with a paired machine, of whose first snapshot nearly everything is dead.
struct House {
    machine: Machine,
    server: Server,
}

impl House {
    fn new() -> Self {
        let machine = Machine::new().with_password(None);
        let data = machine.path("data");
        let mut server = Server::start(&data);
        machine.pair_with(&server);
        let source = machine.path("source");
        fill(&source);
        machine.ok(["backup", source.to_str().unwrap()]);
        thin_out(&source, 20);
        machine.ok(["backup", source.to_str().unwrap()]);
        let listed = machine.ok(["snapshots", "--json"]).of_type("snapshot");
        let address = server.address().to_owned();
        server.process().kill().unwrap();
        server.process().wait().unwrap();
        // As its rules would a month later.
        let oldest = listed[0]["id"].as_str().unwrap();
        forge_tombstone(&data, oldest, TombstoneReason::Retention);
        let server = Server::start_by(&mut Server::command_at(&address, &data), &data);
        Self { machine, server }
    }

    fn told(&self, args: &[&str], message_type: &str) -> Vec<Value> {
        let data = self.machine.path("data");
        self.machine.administer(&data, args).expect(0).of_type(message_type)
    }
}

#[test]
fn on_a_server_it_takes_a_token_waits_and_can_be_cancelled() {
    let house = House::new();
    let machine = &house.machine;
    let refused = machine.run(["compact"]).expect(13);
    assert!(refused.stderr.contains("holdall admin token"), "{}", refused.stderr);
    machine.run(["compact", "--dry-run"]).expect(13);
    let name = house.told(&["repositories"], "repository")[0]["name"].clone();
    let made = house.told(&["token", name.as_str().unwrap()], "admin_token");
    let token = machine.path("token");
    fs::write(&token, made[0]["token"].as_str().unwrap()).unwrap();
    let token = ["--admin-token-file", token.to_str().unwrap(), "--json"];

    let would = machine.ok([&["compact", "-n"][..], &token].concat()).summary();
    assert!(would["sparse_blocks"].as_u64().unwrap() >= 4, "{would}");
    assert!(house.told(&["pending"], "deletion").is_empty(), "it was only looked at");
    let done = machine.ok([&["compact"][..], &token].concat()).summary();
    assert!(done["compacted_blocks"].as_u64().unwrap() >= 4, "{done}");
    let pending = house.told(&["pending"], "deletion");
    assert_eq!(pending[0]["blocks"], done["compacted_blocks"]);
    assert_eq!(
        (&pending[0]["due"], &json!([pending[0]["number"]])),
        (&done["due"], &done["deletions"])
    );
    for command in [vec!["snapshots"], vec!["backup", machine.path("source").to_str().unwrap()]] {
        let told = machine.ok(&command).stderr;
        assert!(told.contains("blocks that gave way to others will be deleted"), "{told}");
    }
    // The new copies are what is read already.
    let source = machine.path("source");
    assert_restores(machine, &[], &source, &machine.path("out"));
    machine.ok(["check", "--verify", "all"]);
    let cancelled = house.told(&["cancel", &pending[0]["number"].to_string()], "deletion");
    assert_eq!(cancelled[0]["blocks"], pending[0]["blocks"]);
    house.told(&["prune"], "prune");
    let data = machine.path("data").join("repositories").join(name.as_str().unwrap());
    assert_eq!(fs::read_dir(data.join("superseded")).unwrap().count(), 0, "taken back");
    machine.ok(["check", "--verify", "all"]);
    assert_restores(machine, &[], &source, &machine.path("again"));
    drop(house.server);
}
