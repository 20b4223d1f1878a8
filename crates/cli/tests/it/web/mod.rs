//! The server's pages, by a client that speaks to them as a browser does, with real machines and backups behind them.

mod acme;
mod api;
mod asvs;
mod bandwidth;
mod client;
mod contract;
mod ended;
mod invites;
mod lab;
mod monitoring;
mod notices;
mod pages;
mod people;
mod second_factor;
mod storage;
mod upkeep;
mod walked;

use serde_json::Value;

use crate::house::{Machine, Server, small_tree, text};
use client::{Answer, Browser};

const PASSWORD: &str = "a long enough password";
/// What a machine may be called: text that would be a script, if it were not escaped.
const HOSTILE: &str = "<script>alert(1)</script>\"'&";

/// A server, a machine that backed up to it, and the address of its pages.
struct Place {
    machine: Machine,
    server: Server,
}

impl Place {
    fn new(name: &str) -> Self {
        let machine = Machine::new().with_password(None);
        let server = Server::start(&machine.path("data"));
        machine.pair(&server.invite_with(&["--name", name]));
        small_tree(&machine.path("source"));
        machine.ok(["backup", text(&machine.path("source"))]);
        Self { machine, server }
    }

    fn browser(&self) -> Browser {
        Browser::at(self.server.address())
    }

    fn told(&self, args: &[&str]) -> Vec<Value> {
        self.machine.administer(&self.machine.path("data"), args).expect(0).objects()
    }

    fn code(&self) -> String {
        self.told(&["web-code"])[0]["code"].as_str().expect("a code").to_owned()
    }

    /// A browser in which somebody became an administrator.
    fn signed_in(&self) -> Browser {
        let mut browser = self.browser();
        set_up(&mut browser, &self.code(), PASSWORD).expect(303);
        browser
    }

    fn id(&self) -> String {
        self.told(&["machines"])[0]["id"].as_str().expect("an id").to_owned()
    }

    /// Asks for the newest snapshot to be deleted, and gives the number.
    fn ask_deletion(&self) -> String {
        let name = self.told(&["repositories"])[0]["name"].as_str().expect("a name").to_owned();
        let snapshots = self.machine.ok(["snapshots", "--json"]).of_type("snapshot");
        let id = snapshots[0]["id"].as_str().expect("an id").to_owned();
        self.told(&["forget", &name, &id])[0]["number"].to_string()
    }
}

/// What is said of a browser's visit is for administrators, and a log is kept and copied.
#[test]
fn no_log_has_a_code_a_password_a_token_or_a_cookie() {
    let machine = Machine::new().with_password(None);
    let (data, log) = (machine.path("data"), machine.path("log"));
    let mut command = Server::command(&data);
    let file = std::fs::File::create(&log).expect("a file");
    let server = Server::start_by(command.arg("-vv").stderr(file), &data);
    let mut place = Place { machine, server };
    let (code, mut browser) = (place.code(), place.browser());
    set_up(&mut browser, &code, PASSWORD).expect(303);
    let cookie = browser.cookie.clone().expect("a cookie");
    sign_in(&mut place.browser(), "ann", "a wrong password").expect(403);
    let metrics =
        place.told(&["api-token", "prometheus"])[0]["token"].as_str().expect("a token").to_owned();
    place.server.process().terminate().expect("it lives");
    place.server.process().wait().expect("it ends");

    let log = std::fs::read_to_string(&log).expect("a log");
    assert!(log.contains("somebody may sign in to the pages in a browser now"), "{log}");
    assert!(
        log.contains(
            "refused a sign-in in a browser, from 127.0.0.1: wrong name, password or code"
        ),
        "{log}"
    );
    let (_, value) = cookie.split_once('=').expect("a pair");
    for secret in [&*code, PASSWORD, "a wrong password", value, &metrics] {
        assert!(!log.contains(secret), "{log}");
    }
}

fn set_up(browser: &mut Browser, code: &str, password: &str) -> Answer {
    set_up_as(browser, "ann", code, password)
}

fn set_up_as(browser: &mut Browser, name: &str, code: &str, password: &str) -> Answer {
    let token = browser.get("/setup").expect(200).token();
    let fields = [
        ("token", &*token),
        ("code", code),
        ("name", name),
        ("password", password),
        ("again", password),
    ];
    browser.post("/setup", &fields)
}

fn sign_in(browser: &mut Browser, name: &str, password: &str) -> Answer {
    let token = browser.get("/").expect(200).token();
    browser.post("/sign-in", &[("token", &token), ("name", name), ("password", password)])
}

#[test]
fn an_administrator_begins_with_a_code_signs_in_and_sees_a_machine_and_its_backup() {
    let place = Place::new("attic");
    let mut browser = place.browser();
    let welcome = browser.get("/").expect(200);
    assert!(welcome.body.contains("holdall admin web-code") && !welcome.body.contains("attic"));

    let code = place.code();
    set_up(&mut browser, "0000-0000-0000-0000", PASSWORD).expect(403);
    set_up(&mut browser, &code, "too short").expect(403);
    let before = browser.cookie.clone();
    let begun = set_up(&mut browser, &code, PASSWORD).expect(303);
    let cookie = begun.header("set-cookie").expect("a cookie");
    for part in ["__Host-holdall-", "; Path=/", "; Secure", "; HttpOnly", "; SameSite=Strict"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(browser.cookie != before, "the cookie is another after signing in");
    set_up(&mut place.browser(), &code, PASSWORD).expect(403);

    let overview = browser.get("/").expect(200);
    for part in [
        "All is well.",
        ">attic</bdi>",
        "Backed up just now",
        "Left on the disk",
        "class=\"spark\"",
    ] {
        assert!(overview.body.contains(part), "{part} in {}", overview.body);
    }
    let machine = browser.get(&format!("/machines/{}", place.id())).expect(200);
    let snapshots = place.machine.ok(["snapshots", "--json"]).of_type("snapshot");
    let id = snapshots[0]["id"].as_str().expect("an id");
    for part in [&id[..10], "backup", "Quota", "class=\"columns\""] {
        assert!(machine.body.contains(part), "{part} in {}", machine.body);
    }
}

#[test]
fn pages_and_metrics_show_how_the_last_backup_went_and_why_it_failed() {
    let place = Place::new("attic");
    let (source, gone) = (place.machine.path("source"), place.machine.path("gone"));
    let mut browser = place.signed_in();
    let page = format!("/machines/{}", place.id());
    let machine = browser.get(&page).expect(200);
    for part in [
        "<h2>Last run</h2>",
        "class=\"lines\"",
        "class=\"line other\"",
        "Speed over the run as a table",
        "class=\"shares\"",
        "<td>done</td>",
    ] {
        assert!(machine.body.contains(part), "{part} in {}", machine.body);
    }
    let mut overview = || browser.get("/").expect(200).body;
    let shown = overview();
    assert!(shown.contains("All is well.") && !shown.contains("Its last backup"), "{shown}");
    assert!(!shown.contains("as slow as usual") && !shown.contains("Next backup"), "{shown}");
    place.machine.run(["backup", text(&source), text(&gone)]).expect(3);
    let shown = overview();
    assert!(shown.contains("Its last backup could not read 1 item. Backed up just"), "{shown}");
    place.machine.run(["backup", text(&gone)]).expect(1);
    let shown = overview();
    assert!(shown.contains("Its last backup failed with 1. Backed up just now"), "{shown}");
    assert!(shown.contains("Something needs a look."), "{shown}");

    let token =
        place.told(&["api-token", "prometheus"])[0]["token"].as_str().expect("a token").to_owned();
    let host = place.server.address();
    let head =
        format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n");
    let metrics = || place.browser().ask(&head, "").expect(200).body;
    let exit_code = |metrics: &str| {
        let mut lines = metrics.lines().filter_map(|line| {
            let labelled = line.strip_prefix("holdall_backup_last_run_exit_code{")?;
            labelled.rsplit(' ').next().map(str::to_owned)
        });
        lines.next().expect("a run")
    };
    assert_eq!(exit_code(&metrics()), "1");
    place.machine.ok(["backup", text(&source)]);
    let told = metrics();
    assert_eq!(exit_code(&told), "0", "{told}");
    for part in
        ["last_run_limited_by{machine=\"attic\",", "last_run_duration_seconds{", ",limited_by=\""]
    {
        assert!(told.contains(part), "{part} in {told}");
    }
    assert!(overview().contains("All is well."));
    let machine = browser.get(&page).expect(200);
    let outcomes = ["<td>done</td>", "<td>failed with 1</td>", "<td>could not read 1 item</td>"];
    assert!(outcomes.iter().all(|part| machine.body.contains(part)), "{}", machine.body);
    assert!(machine.body.contains("Speed of each run"), "{}", machine.body);
}

#[test]
fn wrong_passwords_are_refused_and_cost_time_and_a_code_gives_a_new_one() {
    let place = Place::new("attic");
    let mut first = place.signed_in();
    let mut browser = place.browser();
    for (name, password) in [("ann", "not the password"), ("bob", PASSWORD)] {
        let refused = sign_in(&mut browser, name, password).expect(403);
        assert!(refused.body.contains("That name, password or code is wrong."), "{}", refused.body);
        browser.get(&format!("/machines/{}", place.id())).expect(303);
    }
    sign_in(&mut browser, "ann", PASSWORD).expect(303);
    assert!(browser.get("/").expect(200).body.contains("attic"));

    set_up(&mut place.browser(), &place.code(), "another long password").expect(303);
    assert!(!first.get("/").expect(200).body.contains("attic"), "its sessions are over");

    // However slow this computer is, one of them comes before its time: the last would wait for 16 seconds.
    let mut guessing = place.browser();
    let mut guesses = (0..8).map(|_| sign_in(&mut guessing, "ann", PASSWORD).expect(403).body);
    assert!(guesses.any(|body| body.contains("Too many attempts")));
}

#[test]
fn a_cookie_is_worth_nothing_after_signing_out() {
    let place = Place::new("attic");
    let mut browser = place.signed_in();
    let old = browser.cookie.clone();
    let token = browser.get("/").expect(200).token();
    browser.post("/sign-out", &[("token", &token)]).expect(303);
    assert_eq!(browser.cookie, None);
    browser.cookie = old;
    assert!(!browser.get("/").expect(200).body.contains("attic"));
    browser.get(&format!("/machines/{}", place.id())).expect(303);
    browser.post("/sign-out", &[("token", &token)]).expect(303);
}

#[test]
fn a_waiting_deletion_is_cancelled_by_its_own_form_and_by_nothing_else() {
    let place = Place::new("attic");
    let mut browser = place.signed_in();
    let path = format!("/deletions/{}/cancel", place.ask_deletion());
    let overview = browser.get("/").expect(200);
    assert!(overview.body.contains(&format!("action=\"{path}\"")), "{}", overview.body);
    let token = overview.token();

    let of_another = place.browser().get("/").expect(200).token();
    browser.post(&path, &[]).expect(403);
    browser.post(&path, &[("token", "")]).expect(403);
    browser.post(&path, &[("token", &of_another)]).expect(403);
    for lines in ["Origin: https://evil.test\r\n", "Origin: null\r\nSec-Fetch-Site: cross-site\r\n"]
    {
        browser.post_with(&path, &[("token", &token)], lines).expect(403);
    }
    browser.get(&path).expect(405);
    place.browser().post(&path, &[("token", &token)]).expect(303);
    assert_eq!(place.told(&["pending"]).len(), 1, "nothing of that cancelled it");

    browser.post(&path, &[("token", &token)]).expect(303);
    assert_eq!(place.told(&["pending"]).len(), 0);
    browser.post(&path, &[("token", &token)]).expect(409);
}

#[test]
fn a_machine_is_locked_out_only_with_the_password_once_more() {
    let place = Place::new("attic");
    let mut browser = place.signed_in();
    let page = format!("/machines/{}", place.id());
    let token = browser.get(&page).expect(200).token();
    let revoke = format!("{page}/revoke");
    browser.post(&revoke, &[("token", &token)]).expect(403);
    browser.post(&revoke, &[("token", &token), ("password", "a guess")]).expect(403);
    assert_eq!(place.told(&["machines"])[0]["revoked"], false);
    browser.post(&revoke, &[("token", &token), ("password", PASSWORD)]).expect(303);
    assert_eq!(place.told(&["machines"])[0]["revoked"], true);
    assert!(browser.get(&page).expect(200).body.contains("Revoked: "));
}

#[test]
fn names_of_machines_are_text_and_every_answer_says_what_it_may_not_do() {
    let place = Place::new(HOSTILE);
    let mut browser = place.signed_in();
    let machine = format!("/machines/{}", place.id());
    for path in ["/", &machine, "/setup", "/style.css", "/icon.svg", "/nothing", "/machines/x"] {
        let answer = browser.get(path);
        assert!(!answer.body.contains("<script"), "{path}: {}", answer.body);
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{path}");
    }
    let shown = "&lt;script&gt;alert(1)&lt;/script&gt;";
    assert!(browser.get("/").body.contains(shown) && browser.get(&machine).body.contains(shown));
    assert_eq!(browser.get("/").header("cache-control"), Some("no-store"));
}

#[test]
fn another_name_is_answered_with_nothing_and_machines_and_monitoring_go_on() {
    let place = Place::new("attic");
    let mut browser = place.signed_in();
    for host in ["evil.test", "attic.evil.test:7443"] {
        let refused = browser.ask(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n"), "").expect(421);
        assert!(!refused.body.contains("attic<"), "{}", refused.body);
    }
    let health = browser.ask("GET /healthz HTTP/1.1\r\nHost: evil.test\r\n", "").expect(200);
    assert_eq!(health.body, "ok\n");
    let verb = browser.get("/api/v1/repositories/~").expect(404);
    assert_eq!(verb.header("content-type"), Some("application/json"));
    place.machine.ok(["backup", text(&place.machine.path("source"))]);
}

#[test]
fn metrics_are_for_who_has_the_token_and_a_new_one_ends_the_old() {
    let place = Place::new(HOSTILE);
    let mut browser = place.browser();
    let mut ask = |token: &str| {
        let host = place.server.address();
        let head =
            format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n");
        browser.ask(&head, "")
    };
    ask("").expect(401);
    let token = || {
        place.told(&["api-token", "prometheus"])[0]["token"].as_str().expect("a token").to_owned()
    };
    let first = token();
    ask("holdall-api-0").expect(401);
    let metrics = ask(&first).expect(200);
    assert!(metrics.header("content-type").is_some_and(|kind| kind.contains("version=0.0.4")));
    let name = "machine=\"<script>alert(1)</script>\\\"'&\"";
    let line = |family: &str| {
        let mut lines = metrics.body.lines().filter(|line| line.starts_with(family));
        lines.next().expect(family).to_owned()
    };
    let snapshots = line("holdall_repository_snapshots{");
    assert!(snapshots.contains(name) && snapshots.ends_with(" 1"), "{snapshots}");
    let came = line("holdall_backup_last_success_timestamp_seconds{");
    let came: u64 = came.rsplit(' ').next().expect("a value").parse().expect("a number");
    assert!(came > 1_700_000_000, "{came}");
    let second = token();
    ask(&first).expect(401);
    ask(&second).expect(200);
    assert!(!place.browser().get("/metrics").expect(401).body.contains("script"));
}

#[test]
fn rules_are_tried_out_before_they_are_changed_and_changing_asks_for_the_password() {
    let place = Place::new("attic");
    let mut browser = place.signed_in();
    let path = format!("/machines/{}/retention", place.id());
    let now = browser.get(&path).expect(200);
    for part in ["What is kept now", "value=\"30\"", "newest", "1 of 1 snapshot"] {
        assert!(now.body.contains(part), "{part} in {}", now.body);
    }
    let wanted = "last=&hourly=&daily=7&weekly=all&monthly=0&yearly=0&lock=0&delay=3";
    let tried = browser.get(&format!("{path}?{wanted}")).expect(200);
    for part in [
        "7 daily, all weekly; nothing goes before 0 hours; a deletion waits for 3 days",
        "action=\"",
    ] {
        assert!(tried.body.contains(part), "{part} in {}", tried.body);
    }
    let rules = || place.told(&["retention"])[1].clone();
    let before = rules();
    let token = tried.token();
    let rest =
        [("token", &*token), ("daily", "7"), ("weekly", "all"), ("lock", "0"), ("delay", "3")];
    let mut change = |password: &str| {
        let fields: Vec<_> = rest.into_iter().chain([("password", password)]).collect();
        browser.post(&path, &fields)
    };
    change("a guess").expect(403);
    assert_eq!(rules(), before);
    change(PASSWORD).expect(303);
    assert_eq!((&rules()["then"]["daily"], &rules()["then"]["weekly"]), (&7.into(), &(-1).into()));
    let entry = &place.told(&["audit", "--limit", "1"])[0];
    assert_eq!((&entry["command"], &entry["who"]), (&"keeping".into(), &"ann in a browser".into()));
    for bad in ["daily=x", "daily=0", "daily=1&lock=-1"] {
        browser.get(&format!("{path}?{bad}")).expect(400);
    }
}

#[test]
fn a_terminal_says_what_rules_would_keep_and_changes_nothing() {
    let place = Place::new("attic");
    let name = place.told(&["repositories"])[0]["name"].as_str().expect("a name").to_owned();
    let before = place.told(&["retention"]);
    let told = place.told(&["retention", &name, "--keep-daily", "2", "-n"]);
    assert_eq!(told.len(), 1);
    let reasons = told[0]["reasons"].as_array().expect("reasons");
    assert!(reasons.contains(&"daily".into()) && reasons.contains(&"newest".into()), "{told:?}");
    assert_eq!(place.told(&["retention"]), before);
}
