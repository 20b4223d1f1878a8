//! A server that comes back from the one small file that nothing else can make: no machine is paired again.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::admin::World;
use crate::house::{Machine, text};

#[test]
fn machines_go_on_with_a_server_that_came_back_from_its_identity() {
    let mut world = World::new();
    let reader = Machine::new().with_password(None);
    reader.ok(["pair", "--recovery-kit", text(&world.machine.path("kit.txt"))]);
    world.told(true, &["quota", "desk", "500G"]);
    world
        .admin(
            true,
            &[
                "retention",
                "desk",
                "--keep-daily",
                "90",
                "--keep-hourly",
                "24",
                "--keep-weekly",
                "all",
            ],
        )
        .expect(0);
    world.admin(true, &["rename", "desk", "table"]).expect(0);
    world.told(true, &["remove", "table", "--repository"]);
    let file = world.machine.path("identity.json");
    let before = world.told(true, &["backup-identity", text(&file)]);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let without = world.told(false, &["backup-identity", text(&file)]);
    let own = world.data.join("identity.key");
    let key = fs::read(&own).unwrap();
    let refused = world.admin(true, &["backup-identity", text(&own)]).expect(2).of_type("error");
    assert!(refused[0]["message"].as_str().unwrap().contains("keep the copy elsewhere"));
    assert!(fs::read(&own).unwrap() == key);
    assert_eq!(without, before, "it is replaced");
    world.machine.ok(world.backup());
    let running = world.admin(true, &["restore-identity", text(&file)]).expect(1).of_type("error");
    assert!(running[0]["message"].as_str().unwrap().contains("in use"), "{running:?}");

    world.stop();
    let lost = world.machine.path("lost");
    fs::rename(&world.data, &lost).unwrap();
    let restored = world.told_without(&["restore-identity", text(&file)]);
    assert_eq!(restored["fingerprint"], before["fingerprint"]);
    assert_eq!(
        fs::metadata(world.data.join("identity.key")).unwrap().permissions().mode() & 0o777,
        0o600
    );
    fs::remove_dir(world.data.join("repositories")).unwrap();
    fs::rename(lost.join("repositories"), world.data.join("repositories")).unwrap();
    world.start();
    world.machine.ok(world.backup());
    world.check_restores();
    world.machine.ok(["check"]);
    reader.ok(["ls", "latest"]);
    let repository = world.told(true, &["repositories"]);
    assert_eq!(
        (&repository["name"], &repository["quota_bytes"]),
        (&json!("table"), &json!(500_000_000_000_u64))
    );
    assert_eq!((&repository["alarm"], &repository["removed_after"]), (&json!(null), &json!(null)));
    assert_eq!(world.told(true, &["retention", "table"])["daily"], 90);
    let again = world.admin(false, &["restore-identity", text(&file)]).expect(1).of_type("error");
    assert!(again[0]["message"].as_str().unwrap().contains("is there already"), "{again:?}");
}

/// Seen: a hint to make a repository with `init`, which a server does not have done.
#[test]
fn where_the_identity_alone_came_back_the_hint_says_how_to_begin_anew() {
    let mut world = World::new();
    let file = world.machine.path("identity.json");
    world.told(true, &["backup-identity", text(&file)]);
    world.stop();
    fs::remove_dir_all(&world.data).unwrap();
    world.told_without(&["restore-identity", text(&file)]);
    world.start();
    let told = world.machine.run(world.backup()).expect(10).stderr.replace('\n', " ");
    let id = world.told(true, &["machines"])["id"].as_str().unwrap().to_owned();
    let hint = format!(
        "with an invite of `holdall invite --for {id:.12}`, `holdall pair INVITE --default` begins"
    );
    assert!(told.contains(&hint), "{told}");
    let kit = world.machine.path("second-kit.txt");
    world.machine.ok(["pair", &world.invite_again(), "--default", "--write-kit", text(&kit)]);
    world.machine.ok(world.backup());
    world.check_restores();
}

#[test]
fn what_is_no_copy_of_an_identity_is_refused_and_makes_no_server() {
    let machine = Machine::new();
    let (file, data) = (machine.path("identity.json"), machine.path("data"));
    for wrong in ["", "{}", "\u{0}", r#"{"holdall_server":1}"#, r#"{"holdall_server":9}"#] {
        fs::write(&file, wrong).unwrap();
        machine.administer(&data, &["restore-identity", text(&file)]).expect(1);
        assert!(!data.join("identity.key").exists() && !data.join("server.redb").exists());
    }
    machine.administer(&data, &["restore-identity", text(&machine.path("none"))]).expect(1);
    machine.administer(&data, &["backup-identity", text(&file)]).expect(1);
}

/// Seen: the name that the machine knows was its own, and the folder could not get it.
#[test]
fn a_repository_that_was_renamed_since_the_copy_gets_its_name_back() {
    let mut world = World::new();
    world.told(true, &["quota", "desk", "500G"]);
    let file = world.machine.path("identity.json");
    world.told(true, &["backup-identity", text(&file)]);
    world.admin(true, &["rename", "desk", "table"]).expect(0);
    world.stop();
    for lost in ["identity.key", "server.redb"] {
        fs::remove_file(world.data.join(lost)).unwrap();
    }
    world.told_without(&["restore-identity", text(&file)]);
    world.start();
    world.machine.run(world.backup()).expect(10);
    world.admin(true, &["rename", "table", "desk", "--repository"]).expect(0);
    world.machine.ok(world.backup());
    world.check_restores();
    assert_eq!(world.told(true, &["repositories"])["quota_bytes"], 500_000_000_000_u64);
    let reader = Machine::new().with_password(None);
    reader.ok(["pair", "--kit", text(&world.machine.path("kit.txt"))]);
    // What is there stays what it is.
    let other = Machine::new().with_password(None);
    other.pair(&world.server.as_ref().unwrap().invite_with(&["--name", "other"]));
    for (old, new) in [("other", "desk"), ("desk", "other")] {
        world.admin(true, &["rename", old, new, "--repository"]).expect(1);
    }
}

/// Seen: it was taken, and the server did not start with it.
#[test]
fn a_copy_of_an_identity_with_a_name_that_is_none_is_refused() {
    let mut world = World::new();
    let file = world.machine.path("identity.json");
    world.told(true, &["quota", "desk", "500G"]);
    world.admin(true, &["rename", "desk", "table", "--repository"]).expect(0);
    world.told(true, &["backup-identity", text(&file)]);
    let whole = fs::read_to_string(&file).unwrap();
    let data = world.machine.path("second");
    for (name, wrong) in [
        (r#""repository": "table""#, r#""repository": "../table""#),
        (r#""table": 500000000000"#, r#""t/able": 500000000000"#),
        (r#""desk": "table""#, r#""..": "table""#),
        (r#""desk": "table""#, r#""desk": "Table""#),
        (r#""name": "desk""#, r#""name": "de\nsk""#),
    ] {
        assert!(whole.contains(name), "{name}: {whole}");
        fs::write(&file, whole.replace(name, wrong)).unwrap();
        let told = world.machine.administer(&data, &["restore-identity", text(&file)]).expect(1);
        let told = told.of_type("error").remove(0)["message"].as_str().unwrap().to_owned();
        assert!(["..", "t/able", "Table", "de"].iter().any(|bad| told.contains(bad)), "{told}");
        assert!(!data.join("identity.key").exists() && !data.join("server.redb").exists());
    }
}
