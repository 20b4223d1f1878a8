//! Machines and repositories that get another name, or are removed: what their computers notice.

use std::fs;

use holdall_testkit::Process;
use serde_json::{Value, json};

use crate::admin::{World, write_random};
use crate::house::{Machine, text};

#[test]
fn a_renamed_machine_and_its_repository_need_no_other_pairing() {
    let mut world = World::new();
    let kit = world.machine.path("kit.txt");
    let reader = Machine::new().with_password(None);
    reader.ok(["pair", "--recovery-kit", text(&kit)]);
    world.told(true, &["quota", "desk", "500G"]);
    world.admin(true, &["retention", "desk", "--keep-last", "99"]).expect(0);
    for (runs, old, new) in [(true, "desk", "table"), (false, "table", "chair")] {
        let renamed = world.admin(runs, &["rename", old, new]).expect(0).objects();
        assert_eq!((&renamed[0]["name"], &renamed[0]["repository"]), (&json!(new), &json!(new)));
        assert_eq!(
            (&renamed[1]["name"], &renamed[1]["quota_bytes"]),
            (&json!(new), &json!(500_000_000_000_u64))
        );
        assert_eq!(
            renamed[1]["snapshots"].as_u64(),
            world.told(true, &["repositories"])["snapshots"].as_u64()
        );
        let rules = world.told(true, &["retention", new]);
        assert_eq!(rules["then"]["last"], 99, "{rules}");
        world.machine.ok(world.backup());
        world.check_restores();
        world.machine.ok(["check"]);
        reader.ok(["ls", "latest"]);
    }
    // What the machine knows the repository by goes on leading to it, and to nothing else.
    let invite = ["invite", "--repository", "desk", "--data", text(&world.data)];
    let refused = world.machine.run(invite).expect(1).stderr;
    assert!(refused.contains("former name of the repository chair"), "{refused}");
    let mine = world.machine.ok(["status"]).stdout;
    assert!(mine.contains("/desk"), "{mine}");
    let back = world.admin(true, &["rename", "chair", "desk"]).expect(0).objects();
    assert_eq!(back[1]["name"], "desk");
    world.machine.ok(world.backup());
}

#[test]
fn a_name_that_is_taken_or_no_name_is_refused_as_by_an_invite() {
    let mut world = World::new();
    let other = Machine::new().with_password(None);
    other.pair(&world.server.as_ref().unwrap().invite_with(&["--name", "other"]));
    let mut refused = |args: &[&str], word: &str| {
        let said = world.admin(true, args).expect(1).of_type("error").remove(0);
        let message = said["message"].as_str().unwrap();
        assert!(message.contains(word), "{args:?}: {message}");
    };
    refused(&["rename", "desk", "other"], "another machine is called");
    refused(&["rename", "desk", "other", "--repository"], "belongs to the machine other");
    refused(&["rename", "desk", "0123456789abcdef"], "looks like a machine's id");
    refused(&["rename", "desk", "a\nb"], "one line");
    refused(&["rename", "desk", "Anna's desk"], "--machine");
    refused(&["rename", "nobody", "somebody"], "holdall admin machines");
    refused(&["remove", "nobody"], "holdall admin machines");
    let renamed = world.told(true, &["rename", "desk", "Anna's desk", "--machine"]);
    assert_eq!((&renamed["name"], &renamed["repository"]), (&json!("Anna's desk"), &json!("desk")));
    let renamed = world.told(true, &["rename", "desk", "annas"]);
    assert_eq!(
        (&renamed["name"], &renamed["machine_name"]),
        (&json!("annas"), &json!("Anna's desk"))
    );
    world.machine.ok(world.backup());
    let server = world.server.as_ref().unwrap();
    let third = Machine::new().with_password(None);
    third.pair(&server.invite_with(&["--name", "desk"]));
    let listed = world.admin(true, &["machines"]).expect(0).objects();
    let desk = listed.iter().find(|one| one["name"] == "desk").unwrap();
    assert_eq!(desk["repository"], "desk-2", "nothing gets a former name");
}

#[test]
fn a_backup_goes_on_while_its_repository_is_renamed() {
    let mut world = World::new();
    write_random(&world.source.join("more.bin"), 9, 8_000_000);
    let args = ["--json", "--limit-upload", "2M"];
    let mut command = world.machine.command([&world.backup()[..], &args].concat());
    let mut running = Process::spawn(&mut command).unwrap();
    running.wait_for_line("{\"message_type\":\"status\"").unwrap();
    world.admin(true, &["rename", "desk", "table"]).expect(0);
    let (status, said) = running.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{said:?}");
    assert_eq!(world.told(true, &["repositories"])["snapshots"], 2);
    world.check_restores();
}

#[test]
fn a_machine_that_is_removed_is_locked_out_at_once_and_its_snapshots_can_be_kept() {
    let mut world = World::new();
    for runs in [true, false] {
        let asked = world.told(runs, &["remove", "desk"]);
        let (number, due) = (asked["number"].to_string(), asked["due"].clone());
        assert_eq!((&asked["whole"], &asked["repository"]), (&json!(true), &json!("desk")));
        assert_eq!(
            world.told(runs, &["remove", "desk"]),
            asked,
            "asking again is no other deletion"
        );
        let machine = world.told(true, &["machines"]);
        assert_eq!((&machine["revoked"], &machine["removed_after"]), (&json!(true), &due));
        assert_eq!(world.told(true, &["repositories"])["removed_after"], due);
        assert_eq!(world.told(true, &["pending"]), asked);
        let refused = world.machine.run(world.backup()).expect(13).stderr;
        assert!(refused.contains("was removed") && refused.contains("within 7 days"), "{refused}");
        assert!(!refused.contains("invite"), "{refused}");
        let again = ["invite", "--for", "desk", "--data", text(&world.data)];
        let refused = world.machine.run(again).expect(1).stderr;
        assert!(refused.contains(&format!("holdall admin cancel {number}")), "{refused}");
        let reader = Machine::new().with_password(None);
        reader.ok(["pair", "--recovery-kit", text(&world.machine.path("kit.txt"))]);
        let told = reader.ok(["snapshots"]).stderr;
        assert!(told.contains("the whole repository will be deleted after"), "{told}");

        world.told(runs, &["cancel", &number]);
        assert_eq!(world.told(true, &["machines"])["removed_after"], Value::Null);
        world.machine.run(["snapshots"]).expect(13);
        world.machine.ok(["pair", &world.invite_again()]);
        world.machine.ok(world.backup());
        world.check_restores();
    }
}

#[test]
fn a_repository_that_is_to_be_removed_is_announced_to_its_machine() {
    let mut world = World::new();
    let asked = world.told(true, &["remove", "desk", "--repository"]);
    assert_eq!(asked["machine"], Value::Null);
    let whole = "the whole repository will be deleted after";
    let told = world.machine.ok(world.backup()).stderr;
    assert!(told.contains(whole) && told.contains("holdall admin cancel 1"), "{told}");
    let status = world.machine.ok(["status"]).stdout.replace('\n', " ");
    assert!(status.contains("whole"), "{status}");
    let status = world.machine.ok(["status", "--json"]).objects().remove(0);
    assert_eq!(status["waiting_deletions"][0]["whole"], true, "{status}");
    world.told(true, &["cancel", "1"]);
    assert!(!world.machine.ok(world.backup()).stderr.contains(whole));
}

/// Seen: the default stayed the repository that was gone, and so it did behind what `pair` said to do about it.
#[test]
fn a_machine_whose_repository_was_removed_begins_another_one_of_that_name() {
    let mut world = World::new();
    world.stop();
    fs::remove_dir_all(world.data.join("repositories/desk")).unwrap();
    world.start();
    world.machine.run(world.backup()).expect(10);
    let kit = world.machine.path("second-kit.txt");
    let paired = world.machine.ok(["pair", &world.invite_again(), "--write-kit", text(&kit)]);
    assert!(!paired.stderr.contains("stays"), "{}", paired.stderr);
    let named = world.machine.summary(["status"])["place"].as_str().unwrap().to_owned();
    world.machine.ok(world.backup());
    world.machine.ok([&["-r", &named][..], &world.backup()[..]].concat());
    world.machine.ok(["pair", "--default", "-r", &named]);
    world.machine.ok(world.backup());
    world.check_restores();
}

#[test]
fn a_removal_that_was_cut_short_is_as_before_and_can_be_cancelled() {
    let mut world = World::new();
    let number = world.told(false, &["remove", "desk"])["number"].to_string();
    let repositories = world.data.join("repositories");
    // As a kill leaves it between taking the repository away and forgetting it, and behind that.
    fs::rename(repositories.join("desk"), repositories.join(".removed-desk")).unwrap();
    fs::create_dir(repositories.join(".removed-gone")).unwrap();
    world.told(false, &["cancel", &number]);
    assert!(!repositories.join(".removed-gone").exists());
    world.machine.ok(["pair", &world.invite_again()]);
    world.machine.ok(world.backup());
    world.check_restores();
}
