//! Jobs, tokens, invites and the link for who may only look.

use std::thread::sleep;
use std::time::Duration;

use crate::house::{Machine, small_tree, text};

use super::client::Answer;
use super::{PASSWORD, Place};

/// The text of the first element of that name that begins so.
fn code_with(answer: &Answer, beginning: &str) -> String {
    let begin = format!("<code>{beginning}");
    let (_, behind) = answer.body.split_once(&begin).expect("it is shown");
    behind.split('<').next().expect("its end").to_owned()
}

#[test]
fn a_job_is_begun_on_its_page_and_shows_its_end_and_its_log() {
    let place = Place::new("attic");
    let mut browser = place.signed_in();
    let jobs = browser.get("/jobs").expect(200);
    assert!(jobs.body.contains("Machines that are here now"), "{}", jobs.body);
    let token = jobs.token();
    browser.post("/jobs", &[("token", &token), ("what", "nothing")]).expect(403);
    let begun = browser.post("/jobs", &[("token", &token), ("what", "prune")]).expect(303);
    let path = begun.header("location").expect("its page").to_owned();
    let ended = (0..600).find_map(|_| {
        let page = browser.get(&path).expect(200);
        sleep(Duration::from_millis(50));
        page.body.contains(", done").then_some(page)
    });
    let ended = ended.expect("it ends");
    assert!(ended.body.contains("for <bdi>ann in a browser</bdi>"), "{}", ended.body);
    assert!(!ended.body.contains("/live.js"), "what has ended is not renewed");
    browser.post(&format!("{path}/cancel"), &[("token", &token)]).expect(409);
    assert!(browser.get("/jobs").expect(200).body.contains(&format!("href=\"{path}\"")));
    browser.get("/jobs/999").expect(409);
}

#[test]
fn a_token_is_shown_once_and_counts_until_it_is_revoked() {
    let place = Place::new("attic");
    let mut browser = place.signed_in();
    let token = browser.get("/settings").expect(200).token();
    let fields = |password| {
        [("token", &*token), ("name", "<b>home"), ("scope", "read"), ("password", password)]
    };
    browser.post("/tokens", &fields("a guess")).expect(403);
    let shown = browser.post("/tokens", &fields(PASSWORD)).expect(200);
    let secret = format!("holdall-api-{}", code_with(&shown, "holdall-api-"));
    assert!(shown.body.contains("&lt;b&gt;home") && !shown.body.contains("/look/"));
    place.program(&secret, "GET", "/api/v1/admin/machines", "").expect(200);
    let settings = browser.get("/settings").expect(200);
    assert!(settings.body.contains("&lt;b&gt;home") && !settings.body.contains(&secret));
    let audit = browser.get("/audit").expect(200).body;
    assert!(audit.contains("api-token: <bdi>name &lt;b&gt;home, scope read"), "{audit}");
    browser.post("/tokens/revoke", &[("token", &token), ("name", "<b>home")]).expect(303);
    place.program(&secret, "GET", "/api/v1/admin/machines", "").expect(401);
}

#[test]
fn an_invite_from_a_page_lets_a_machine_in() {
    let place = Place::new("attic");
    let mut browser = place.signed_in();
    let token = browser.get("/settings").expect(200).token();
    let fields = [("token", &*token), ("machine", "desk"), ("password", PASSWORD)];
    let shown = browser.post("/invites", &fields).expect(200);
    assert!(shown.body.contains("class=\"qr\""), "{}", shown.body);
    let invite = code_with(&shown, "holdall pair ");
    let other = Machine::new().with_password(None);
    other.pair(&invite);
    small_tree(&other.path("source"));
    other.ok(["backup", text(&other.path("source"))]);
    assert!(browser.get("/").expect(200).body.contains(">desk</bdi>"));
}

#[test]
fn a_short_code_from_a_page_lets_a_machine_in_and_a_wrong_one_is_told_there() {
    let place = Place::new("attic");
    let mut browser = place.signed_in();
    let token = browser.get("/settings").expect(200).token();
    let mut shown = |machine: &str| {
        let fields = [("token", &*token), ("machine", machine), ("password", PASSWORD)];
        let shown = browser.post("/invites/short", &fields).expect(200).body;
        let codes = shown.split("<code>").filter_map(|rest| rest.split_once("</code>"));
        let is_code =
            |text: &&str| text.len() == 11 && text.starts_with(|one: char| one.is_ascii_digit());
        codes.map(|(text, _)| text).find(is_code).expect("a code").to_owned()
    };
    let server = format!("https://{}", place.server.address());
    let pair = |code: &str| {
        let machine = Machine::new().with_password(None);
        let kit = machine.path("kit.txt");
        machine.run(["pair", code, "-r", &server, "--write-kit", text(&kit)])
    };
    pair(&shown("desk")).expect(0);
    let wrong = match shown("shed").strip_prefix('0') {
        Some(rest) => format!("1{rest}"),
        None => "000-000-000".to_owned(),
    };
    pair(&wrong).expect(13);
    let overview = browser.get("/").expect(200).body;
    assert!(overview.contains(">desk</bdi>") && overview.contains("a short code was typed wrong"));
}

#[test]
fn a_link_shows_the_overview_and_nothing_else_until_its_token_is_revoked() {
    let place = Place::new("attic");
    place.ask_deletion();
    let secret = place.token("family", "look");
    let mut browser = place.browser();
    browser.get(&format!("/look/{}0", &secret[..secret.len() - 1])).expect(403);
    let begun = browser.get(&format!("/look/{secret}")).expect(303);
    assert_eq!(begun.header("location"), Some("/"));
    let stays = begun.header("set-cookie").is_some_and(|line| line.contains("Max-Age=2592000"));
    assert!(stays, "the link is good for 30 days, and a browser is closed each evening");
    let seen = browser.get("/").expect(200);
    assert!(seen.body.contains(">attic</bdi>") && seen.body.contains("All is well."));
    assert!(seen.body.contains("href=\"/sign-in\""), "who may do more can sign in");
    assert!(browser.get("/sign-in").expect(200).body.contains("name=\"password\""));
    let mut administrator = place.signed_in();
    assert_eq!(
        administrator.get(&format!("/look/{secret}")).expect(303).header("set-cookie"),
        None
    );
    administrator.get("/settings").expect(200);
    for never in ["<form", "<nav", "href=\"/machines", &secret] {
        assert!(!seen.body.contains(never), "{never} in {}", seen.body);
    }
    for path in [&*format!("/machines/{}", place.id()), "/jobs", "/settings"] {
        browser.get(path).expect(303);
    }
    place.program(&secret, "GET", "/api/v1/admin/machines", "").expect(403);
    place.told(&["api-token", "family", "--revoke"]);
    assert!(!browser.get("/").expect(200).body.contains("attic"));
}

#[test]
fn the_page_of_speeds_alone_may_run_its_own_script_and_one_browser_measures_at_a_time() {
    let place = Place::new("attic");
    let mut browser = place.signed_in();
    let page = browser.get("/speed").expect(200);
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.contains("script-src 'self';") && !policy.contains("unsafe"), "{policy}");
    let (_, behind) = page.body.split_once("data-token=\"").expect("a token");
    let token = behind.split('"').next().expect("its end").to_owned();
    let mut ask = |path: &str, token: &str| {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nX-Holdall-Token: {token}\r\nContent-Length: 0\r\n",
            place.server.address()
        );
        browser.ask_bytes(&head)
    };
    assert_eq!(ask("/speed/begin", "").0, 403);
    assert_eq!(ask("/speed/down", &token).0, 409, "it did not begin");
    assert_eq!(ask("/speed/begin", &token).0, 204);
    assert_eq!(ask("/speed/ping", &token).0, 204);
    assert_eq!(ask("/speed/down", &token), (200, 1 << 20));
    let mut other = place.browser();
    let form = other.get("/").expect(200).token();
    let fields = [("token", &*form), ("name", "ann"), ("password", PASSWORD)];
    other.post("/sign-in", &fields).expect(303);
    let page = other.get("/speed").expect(200);
    let (_, behind) = page.body.split_once("data-token=\"").expect("a token");
    let others = behind.split('"').next().expect("its end").to_owned();
    let head = format!(
        "POST /speed/begin HTTP/1.1\r\nHost: {}\r\nX-Holdall-Token: {others}\r\nContent-Length: 0\r\n",
        place.server.address()
    );
    assert_eq!(other.ask_bytes(&head).0, 409);
}
