//! What programs ask for, against a running server and by what its own document says.

use serde_json::{Value, json};

use super::Place;
use super::client::Answer;
use crate::house::files_below;

impl Place {
    /// Makes a token of that name and scope.
    pub(super) fn token(&self, name: &str, scope: &str) -> String {
        let told = self.told(&["api-token", name, "--scope", scope]);
        told[0]["token"].as_str().expect("a token").to_owned()
    }

    /// Asks for a path as a program does.
    pub(super) fn program(&self, token: &str, method: &str, path: &str, body: &str) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.server.address());
        if !token.is_empty() {
            head += &format!("Authorization: Bearer {token}\r\n");
        }
        head += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        self.browser().ask(&head, body)
    }

    pub(super) fn command(&self, token: &str, name: &str, fields: &Value) -> Answer {
        self.program(token, "POST", &format!("/api/v1/admin/{name}"), &fields.to_string())
    }
}

fn json(answer: &Answer) -> Value {
    assert_eq!(answer.header("content-type"), Some("application/json"), "{answer:?}");
    serde_json::from_str(&answer.body).expect("JSON")
}

#[test]
fn a_token_may_do_what_its_scope_says_and_nothing_without_it() {
    let place = Place::new("attic");
    let scopes = ["look", "read", "operate", "administer"];
    let tokens = scopes.map(|scope| place.token(scope, scope));
    let number: u64 = place.ask_deletion().parse().expect("a number");
    let repository = place.told(&["repositories"])[0]["name"].clone();
    for (name, fields, least) in [
        ("machines", json!({}), 1),
        ("quota", json!({ "repository": repository }), 1),
        ("audit", json!({}), 3),
        ("quota", json!({ "repository": repository, "quota": { "bytes": 1_000_000_000 } }), 3),
        ("cancel", json!({ "number": number }), 2),
        ("web-code", json!({}), 4),
        ("backup-identity", json!({}), 4),
        ("api-token", json!({ "name": "more", "scope": "administer" }), 4),
    ] {
        for (at, token) in tokens.iter().enumerate() {
            let answer = place.command(token, name, &fields);
            // What one did the next cannot do again.
            let done: &[u16] = if at >= least { &[200, 409] } else { &[403] };
            assert!(done.contains(&answer.status), "{name} with {}: {answer:?}", scopes[at]);
            assert_eq!(json(&answer).get("error").is_some(), answer.status != 200, "{answer:?}");
        }
        assert_eq!(place.command("", name, &fields).status, 401);
        assert_eq!(
            place.command(&tokens[3].replace("holdall", "handall"), name, &fields).status,
            401
        );
    }
    assert_eq!(place.told(&["pending"]).len(), 0);
    place.told(&["api-token", "read", "--revoke"]);
    assert_eq!(place.command(&tokens[1], "machines", &json!({})).status, 401);
}

#[test]
fn what_changed_is_in_the_audit_log_with_who_and_from_where() {
    let place = Place::new("attic");
    let token = place.token("script", "administer");
    let fields = json!({ "machine": "attic", "right": "read" });
    place.command(&token, "rights", &fields).expect(200);
    place.command(&token, "rights", &json!({ "machine": "nobody", "right": "read" })).expect(409);
    place.command(&token, "machines", &json!({})).expect(200);
    let told = place.told(&["audit", "--limit", "2"]);
    assert_eq!(told.len(), 2, "what only tells is not noted: {told:?}");
    assert!(
        told.iter().all(|entry| entry["command"] == "rights" && entry["who"] == "token script")
    );
    assert!(told.iter().all(|entry| entry["from"] == "127.0.0.1"), "{told:?}");
    assert!(told[0]["error"].as_str().is_some_and(|why| why.contains("nobody")), "{told:?}");
    assert_eq!((&told[1]["fields"], &told[1]["error"]), (&fields, &Value::Null));
    let all = place.told(&["audit"]);
    assert!(all.iter().any(|entry| entry["command"] == "api-token" && entry["who"] == "terminal"));
    assert!(!format!("{all:?}").contains(&token), "no secret is noted");

    // What is refused is noted too, by a rule and by a scope; and reading is not.
    let reader = place.token("reader", "read");
    place.command(&reader, "revoke", &json!({ "machine": "attic" })).expect(403);
    place.command(&token, "cancel", &json!({ "number": 77 })).expect(409);
    place.command(&token, "audit", &json!({})).expect(200);
    place.program(&token, "GET", "/api/v1/admin/api-tokens", "").expect(200);
    let told = place.told(&["audit", "--limit", "2"]);
    let said = |at: usize| (told[at]["command"].as_str(), told[at]["error"].is_string());
    assert_eq!((said(0), said(1)), ((Some("cancel"), true), (Some("revoke"), true)), "{told:?}");
}

#[test]
fn the_document_has_every_path_and_every_answer_is_as_it_says() {
    let place = Place::new("attic");
    let token = place.token("script", "administer");
    let document = json(&place.program("", "GET", "/api/v1/openapi.json", "").expect(200));
    let paths = document["paths"].as_object().expect("paths");
    let repository = place.told(&["repositories"])[0]["name"].clone();
    let mut checked = 0;
    for (path, operations) in paths.iter().filter(|(path, _)| path.contains("/admin/")) {
        let name = path.rsplit('/').next().expect("a name");
        let mut fields = json!({ "repository": repository, "machine": "attic", "dry_run": true, "confirmed": false });
        if matches!(name, "revoke" | "rename" | "remove" | "forget") {
            fields = json!({});
        }
        if name == "set-channel" {
            fields = json!({ "name": "x", "channel": { "kind": "webhook", "url": "http://127.0.0.1:1/x" } });
        }
        if name.ends_with("job") {
            fields = json!({ "number": 1 });
        }
        let is_get = operations.get("get").is_some();
        for (method, answer) in [
            ("post", place.command(&token, name, &fields)),
            ("get", place.program(&token, "GET", path, "")),
        ] {
            if method == "get" && !is_get {
                assert!([400, 405].contains(&answer.status), "{name}: {answer:?}");
                continue;
            }
            let responses = &operations[method]["responses"];
            let said = &responses[answer.status.to_string()];
            assert!(
                said.is_object(),
                "{method} {name} answers {}, which is not documented",
                answer.status
            );
            let schema = json!({
                "$ref": "#/schema",
                "schema": said["content"]["application/json"]["schema"],
                "components": document["components"]
            });
            let validator = jsonschema::validator_for(&schema).expect("a schema");
            let value = json(&answer);
            let wrong: Vec<_> =
                validator.iter_errors(&value).map(|error| error.to_string()).collect();
            assert!(wrong.is_empty(), "{method} {name}: {wrong:?}\n{value:#}\n{schema:#}");
            checked += usize::from(answer.status == 200);
        }
    }
    assert!(checked >= 18, "{checked} were answered");
}

#[test]
fn a_scrub_is_a_job_with_a_log_that_a_program_and_a_terminal_see() {
    let place = Place::new("attic");
    let token = place.token("script", "operate");
    place.command(&place.token("reader", "read"), "scrub", &json!({})).expect(403);
    let begun = json(&place.command(&token, "scrub", &json!({})).expect(202));
    let number = json!({ "number": begun["number"] });
    let ended = (0..600).find_map(|_| {
        let job = json(&place.command(&token, "job", &number).expect(200));
        std::thread::sleep(std::time::Duration::from_millis(50));
        (job["outcome"] != "running").then_some(job)
    });
    let ended = ended.expect("it ends");
    assert_eq!(ended["outcome"], "done", "{ended}");
    let [done, total] = ["done_bytes", "total_bytes"].map(|name| ended["progress"][name].as_u64());
    assert!(done == total && done > Some(0), "{ended}");
    assert_eq!(ended["answer"]["scrubbed"][0]["damaged"], json!([]), "{ended}");
    place.command(&token, "cancel-job", &number).expect(409);
    let told = place.told(&["jobs", &begun["number"].to_string()]);
    assert_eq!(
        (&told[0]["what"], &told[0]["who"]),
        (&json!("scrub of all repositories"), &json!("token script"))
    );
    place.command(&token, "job", &json!({ "number": 999 })).expect(409);
}

#[test]
fn a_scrub_that_finds_damage_is_no_job_that_went_well() {
    let place = Place::new("attic");
    let token = place.token("script", "operate");
    let repositories = place.machine.path("data/repositories");
    let damaged = files_below(&repositories).into_iter().find(|file| {
        file.to_string_lossy().contains("/tails/")
            && file.extension().is_some_and(|end| end == "payload")
    });
    let damaged = damaged.expect("a payload");
    let mut bytes = std::fs::read(&damaged).expect("it is there");
    bytes[5] ^= 1;
    std::fs::write(&damaged, bytes).expect("room");
    let begun = json(&place.command(&token, "scrub", &json!({})).expect(202));
    let number = begun["number"].to_string();
    let ended = (0..600).find_map(|_| {
        let told = place.told(&["jobs", &number]).remove(0);
        std::thread::sleep(std::time::Duration::from_millis(50));
        (told["outcome"] != "running").then_some(told)
    });
    let ended = ended.expect("it ends");
    assert_eq!(ended["outcome"], "failed", "{ended}");
    assert!(ended["error"].as_str().is_some_and(|why| why.starts_with("attic: ")), "{ended}");
    assert!(ended["lines"].to_string().contains("damaged: "), "{ended}");
    let page = place.signed_in().get(&format!("/jobs/{number}")).expect(200);
    assert!(
        page.body.contains("class=\"light bad\"") && page.body.contains("damaged: "),
        "{}",
        page.body
    );
}

#[test]
fn what_is_no_request_is_refused_as_json() {
    let place = Place::new("attic");
    let token = place.token("script", "administer");
    for (method, path, body, status) in [
        ("POST", "/api/v1/admin/machines", "[]", 400),
        ("POST", "/api/v1/admin/machines", "{", 400),
        ("POST", "/api/v1/admin/revoke", "{\"machine\":7}", 400),
        ("POST", "/api/v1/admin/nothing", "{}", 404),
        ("POST", "/api/v1/admin/%ff", "{}", 404),
        ("GET", "/api/v1/admin/prune", "", 405),
        ("GET", "/api/v1/admin/scrub", "", 405),
        ("GET", "/api/v2", "", 404),
        ("POST", "/api/v1/admin/machines", &" ".repeat(40_000), 413),
    ] {
        let answer = place.program(&token, method, path, body).expect(status);
        let said = json(&answer);
        assert!(said["error"].as_str().is_some_and(|why| !why.is_empty()), "{said}");
    }
}
