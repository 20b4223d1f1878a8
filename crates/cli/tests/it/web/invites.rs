//! Invites that are open, and what is noted of machines that come in and ask for deletions.

use serde_json::json;

use super::{PASSWORD, Place};
use crate::house::{Machine, Server, text};

#[test]
fn an_open_invite_is_listed_and_lets_nobody_in_once_it_was_taken_back() {
    let place = Place::new("attic");
    assert_eq!(place.told(&["invites"]).len(), 0, "the one of attic is used");
    let [by_command, by_page, by_program, again] =
        ["desk", "shed", "hall", "door"].map(|name| place.server.invite_with(&["--name", name]));
    let replacing = place.server.invite_with(&["--for", "attic"]);
    let open = place.told(&["invites"]);
    assert_eq!(open.len(), 5, "{open:?}");
    assert!(open.iter().any(|one| one["for_machine"] == "attic" && one["right"] == "backup"));
    let id = |name: &str| {
        let found = open.iter().find(|one| one["name"] == name).expect("it is open");
        found["id"].as_str().expect("an id").to_owned()
    };
    for secret in [&by_command, &by_page, &by_program, &again, &replacing] {
        assert!(!format!("{open:?}").contains(&**secret));
    }

    place.told(&["invites", &id("desk"), "--withdraw"]);
    let mut browser = place.signed_in();
    let settings = browser.get("/settings").expect(200);
    assert!(
        settings.body.contains("<bdi>shed</bdi>") && !settings.body.contains("<bdi>desk</bdi>")
    );
    let fields = [("token", &*settings.token()), ("id", &*id("shed"))];
    browser.post("/invites/withdraw", &fields).expect(303);
    browser.post("/invites/withdraw", &fields).expect(409);
    let withdraw = |token: &str| {
        let fields = json!({ "id": id("hall") }).to_string();
        place.program(token, "POST", "/api/v1/admin/withdraw-invite", &fields)
    };
    withdraw(&place.token("reader", "read")).expect(403);
    withdraw(&place.token("script", "administer")).expect(200);
    for invite in [by_command, by_page, by_program] {
        Machine::new().with_password(None).run(["pair", &invite]).expect(13);
    }
    Machine::new().with_password(None).pair(&again);
    assert_eq!(place.told(&["invites"]).len(), 1, "that for attic");
}

#[test]
fn who_was_paired_and_what_a_machine_asked_to_be_deleted_is_in_the_audit_log() {
    let place = Place::new("attic");
    let paired = place.told(&["audit"]).into_iter().find(|entry| entry["command"] == "pair");
    let paired = paired.expect("it is noted");
    assert_eq!((&paired["who"], &paired["from"]), (&json!("machine attic"), &json!("127.0.0.1")));
    assert_eq!(paired["fields"]["repository"], "attic", "{paired}");

    let source = place.machine.path("source");
    place.machine.ok(["backup", text(&source), "--read-all"]);
    let token = place.told(&["token", "attic"])[0]["token"].as_str().expect("a token").to_owned();
    let token_file = place.machine.path("token");
    std::fs::write(&token_file, &token).expect("room");
    let snapshots = place.machine.ok(["snapshots", "--json"]).of_type("snapshot");
    let id = snapshots[0]["id"].as_str().expect("an id").to_owned();
    place.machine.ok(["forget", &id, "--admin-token-file", text(&token_file)]);
    let told = place.told(&["audit", "--limit", "1"]).remove(0);
    assert_eq!(
        (&told["command"], &told["who"]),
        (&json!("forget"), &json!("machine attic")),
        "{told}"
    );
    assert_eq!(
        (&told["fields"]["snapshots"], &told["from"]),
        (&json!(1), &json!("127.0.0.1")),
        "{told}"
    );
    assert!(!told.to_string().contains(&token));
}

#[test]
fn a_page_puts_no_token_in_the_place_of_another() {
    let place = Place::new("attic");
    let first = place.token("home", "read");
    let mut browser = place.signed_in();
    let token = browser.get("/settings").expect(200).token();
    let fields =
        [("token", &*token), ("name", "home"), ("scope", "administer"), ("password", PASSWORD)];
    let refused = browser.post("/tokens", &fields).expect(409);
    assert!(
        refused.body.contains("is called") && refused.body.contains("already"),
        "{}",
        refused.body
    );
    place.program(&first, "GET", "/api/v1/admin/machines", "").expect(200);
    place.token("home", "look");
    place.program(&first, "GET", "/api/v1/admin/machines", "").expect(401);
}

#[test]
fn who_looks_on_is_told_to_open_the_link_again_after_a_restart() {
    let mut place = Place::new("attic");
    let secret = place.token("family", "look");
    let mut browser = place.browser();
    assert!(!browser.get("/").expect(200).body.contains("open the link"));
    browser.get(&format!("/look/{secret}")).expect(303);
    assert!(browser.get("/").expect(200).body.contains("attic"));
    let (address, data) = (place.server.address().to_owned(), place.machine.path("data"));
    place.server.process().terminate().expect("it lives");
    place.server.process().wait().expect("it ends");
    place.server = Server::start_by(&mut Server::command_at(&address, &data), &data);
    let told = browser.get("/").expect(200);
    assert!(told.body.contains("open the link") && !told.body.contains("attic"), "{}", told.body);
    browser.get(&format!("/look/{secret}")).expect(303);
    assert!(browser.get("/").expect(200).body.contains("attic"));
}
