//! Who may sign in: listed, signed out, removed, and let in with less than everything.

use serde_json::{Value, json};

use super::client::{Answer, Browser};
use super::{PASSWORD, Place, set_up, set_up_as, sign_in};

const OF_BOB: &str = "bob has a long password";

/// Lets bob in with that right, and gives his browser.
fn bob(place: &Place, scope: &str) -> Browser {
    let code = place.told(&["web-code", "--for", "bob", "--scope", scope]);
    let code = code[0]["code"].as_str().expect("a code").to_owned();
    let mut browser = place.browser();
    set_up(&mut browser, &code, PASSWORD).expect(403);
    set_up_as(&mut browser, "bob", &code, OF_BOB).expect(303);
    browser
}

fn is_in(browser: &mut Browser) -> bool {
    browser.get("/").expect(200).body.contains("attic")
}

fn person(place: &Place, name: &str) -> Option<Value> {
    place.told(&["people"]).into_iter().find(|one| one["name"] == name)
}

#[test]
fn people_are_listed_signed_out_and_removed_by_command_page_and_program() {
    let place = Place::new("attic");
    let mut ann = place.signed_in();
    let mut bobs = bob(&place, "administer");
    let link = place.token("family", "look");
    let mut family = place.browser();
    family.get(&format!("/look/{link}")).expect(303);
    for (name, scope, signs_in) in
        [("ann", "administer", true), ("bob", "administer", true), ("family", "look", false)]
    {
        let one = person(&place, name).expect("it is listed");
        assert_eq!((&one["scope"], &one["sessions"]), (&json!(scope), &json!(1)), "{one}");
        assert_eq!(
            (&one["second_factor"], one["signed_in"].is_string()),
            (&json!(false), signs_in)
        );
    }
    let told = place.told(&["people", "bob", "--sign-out"]);
    assert_eq!(told[0]["sessions"], 1, "those that ended: {told:?}");
    assert!(!is_in(&mut bobs) && is_in(&mut ann));
    sign_in(&mut bobs, "bob", OF_BOB).expect(303);

    let page = ann.get("/people").expect(200);
    assert!(
        page.body.contains("<bdi>bob</bdi>") && page.body.contains("Looks on"),
        "{}",
        page.body
    );
    let token = page.token();
    let mut change = |what, password| {
        let fields =
            [("token", &*token), ("person", "bob"), ("what", what), ("password", password)];
        ann.post("/people", &fields)
    };
    change("sign-out", "a guess").expect(403);
    assert!(is_in(&mut bobs));
    change("sign-out", PASSWORD).expect(303);
    assert!(!is_in(&mut bobs));
    sign_in(&mut bobs, "bob", OF_BOB).expect(303);
    change("remove", PASSWORD).expect(303);
    assert!(!is_in(&mut bobs) && person(&place, "bob").is_none());
    sign_in(&mut bobs, "bob", OF_BOB).expect(403);

    let fields =
        [("token", &*token), ("person", "ann"), ("what", "remove"), ("password", PASSWORD)];
    let refused = ann.post("/people", &fields).expect(409);
    assert!(refused.body.contains("last administrator"), "{}", refused.body);
    let script = place.token("script", "administer");
    let remove = |name: &str| {
        let fields = json!({ "name": name }).to_string();
        place.program(&script, "POST", "/api/v1/admin/remove-person", &fields)
    };
    assert!(remove("ann").expect(409).body.contains("last administrator"));
    remove("nobody").expect(409);
    place.told(&["people", "ann", "--remove"]);
    assert!(!is_in(&mut ann), "whoever can write the data folder may");
    assert!(place.browser().get("/").expect(200).body.contains("web-code"));
}

#[test]
fn somebody_may_what_they_were_let_in_for_and_pages_offer_no_more() {
    let place = Place::new("attic");
    place.signed_in();
    let deletion = format!("/deletions/{}/cancel", place.ask_deletion());
    let machine = format!("/machines/{}", place.id());
    let retention = format!("{machine}/retention?daily=7&delay=3");

    let mut reads = bob(&place, "read");
    let refused = |browser: &mut Browser, path: &str, fields: &[(&str, &str)]| {
        let token = browser.get("/second-factor").expect(200).token();
        let fields: Vec<_> = [("token", &*token), ("password", OF_BOB)]
            .into_iter()
            .chain(fields.iter().copied())
            .collect();
        browser.post(path, &fields).expect(403)
    };
    for path in ["/", &machine, &retention, "/jobs", "/settings"] {
        let page = reads.get(path).expect(200);
        let forms = page.body.matches("<form method=\"post\"").count();
        assert_eq!(forms, 1, "but for signing out {path} offers nothing: {}", page.body);
    }
    reads.get("/people").expect(403);
    reads.get("/audit").expect(403);
    let is_told = |answer: &Answer| answer.body.contains("may not do this");
    assert!(is_told(&refused(&mut reads, &deletion, &[])));
    assert!(is_told(&refused(&mut reads, "/jobs", &[("what", "prune")])));
    assert_eq!(place.told(&["jobs"]).iter().filter(|job| job["who"] != "server").count(), 0);

    let mut operates = bob(&place, "operate");
    for (path, fields) in [
        (&*format!("{machine}/revoke"), &[][..]),
        (&format!("{machine}/retention"), &[("daily", "7")]),
        ("/invites", &[("machine", "desk")]),
        ("/invites/short", &[("machine", "desk")]),
        ("/tokens", &[("name", "more"), ("scope", "administer")]),
        ("/people", &[("person", "ann"), ("what", "remove")]),
        ("/people/code", &[("name", "eve"), ("scope", "administer")]),
    ] {
        assert!(is_told(&refused(&mut operates, path, fields)), "{path}");
    }
    let told = place.told(&["audit", "--limit", "8"]);
    let noted = told
        .iter()
        .filter(|entry| entry["who"] == "bob in a browser" && entry["error"].is_string());
    assert!(noted.count() >= 6, "{told:?}");
    assert_eq!(
        (place.told(&["api-token"]).len(), place.told(&["machines"])[0]["revoked"].clone()),
        (0, json!(false))
    );
    let token = operates.get("/jobs").expect(200).token();
    operates.post("/jobs", &[("token", &token), ("what", "prune")]).expect(303);
    operates.post(&deletion, &[("token", &token)]).expect(303);
    assert_eq!(place.told(&["pending"]).len(), 0);
}

#[test]
fn a_page_makes_a_code_for_somebody_new_who_alone_can_use_it() {
    let place = Place::new("attic");
    let mut ann = place.signed_in();
    let token = ann.get("/people").expect(200).token();
    let mut make = |name, password| {
        let fields =
            [("token", &*token), ("name", name), ("scope", "operate"), ("password", password)];
        ann.post("/people/code", &fields)
    };
    make("bob", "a guess").expect(403);
    let known = make("ann", PASSWORD).expect(409);
    assert!(known.body.contains("is known already"), "{}", known.body);
    let shown = make("bob", PASSWORD).expect(200);
    let pieces = shown.body.split("<code>").skip(1).filter_map(|piece| piece.split('<').next());
    let code = pieces.last().expect("a code").to_owned();
    let mut browser = place.browser();
    set_up_as(&mut browser, "eve", &code, OF_BOB).expect(403);
    set_up_as(&mut browser, "bob", &code, OF_BOB).expect(303);
    assert_eq!(person(&place, "bob").expect("he is there")["scope"], "operate");
    let told = place.told(&["audit"]);
    assert!(!format!("{told:?}").contains(&code), "no secret is noted");
    assert!(
        told.iter()
            .any(|entry| entry["command"] == "web-code" && entry["who"] == "ann in a browser")
    );
}
