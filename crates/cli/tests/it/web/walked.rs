//! The pages in a real browser, walked by keyboard from the first code to signing out. `tests/browser/walk.mjs` drives the
//! browser and judges what it sees; here are the server, the machines and the judgement of the whole.

use serde_json::json;

use super::{HOSTILE, PASSWORD, Place};
use crate::house::{Machine, small_tree, text};
use crate::walk::{Walk, is_equipped, sorted};

/// What has to be seen, in any order.
const PAGES: [&str; 31] = [
    "welcome",
    "setup",
    "setup-refused",
    "overview",
    "machine",
    "machine-revoked",
    "retention",
    "retention-tried",
    "retention-changed",
    "jobs",
    "job",
    "lab",
    "lab-report",
    "lab-compared",
    "settings",
    "audit",
    "bandwidth",
    "upkeep",
    "storage",
    "second-factor",
    "second-factor-secret",
    "token",
    "invite",
    "short-code",
    "look",
    "own-password",
    "people",
    "person",
    "problem",
    "sign-in",
    "sign-in-refused",
];
/// What the walk has to find in a page that was made wrong in that way.
const CONTROLS: [&str; 13] = [
    "axe", "broken", "console", "enter", "failed", "focus", "heavy", "order", "policy", "print",
    "reach", "sideways", "trap",
];
/// Milliseconds until the overview is painted, on a slow computer and a slow line.
const PAINTED_MOST_MS: f64 = 2000.0;

#[test]
fn an_administrator_walks_through_every_page_by_keyboard_and_nothing_is_wrong_in_them() {
    if !is_equipped() {
        return;
    }
    let place = Place::new(HOSTILE);
    // Several runs are drawn, and the last one went wrong.
    let (source, gone) = (place.machine.path("source"), place.machine.path("gone"));
    place.machine.ok(["backup", text(&source), "--read-all"]);
    place.machine.run(["backup", text(&source), text(&gone)]).expect(3);
    place.ask_deletion();
    let invited = Machine::new().with_password(None);
    small_tree(&invited.path("source"));
    let told = json!({
        "site": format!("https://{}", place.server.address()),
        "code": place.code(),
        "password": PASSWORD,
        "invited": format!("{HOSTILE} 2"),
    });
    let walk = Walk::begin(&place.machine, "walk.mjs", "pages", told);
    let report = walk.report(&PAGES, |said| match said["asks"].as_str() {
        Some("pair") => drop(invited.pair(said["invite"].as_str().expect("an invite"))),
        Some("backup") => drop(invited.ok(["backup", text(&invited.path("source"))])),
        _ => panic!("{said}"),
    });

    assert_eq!(sorted(&report["controls"]), CONTROLS);
    let painted_ms = report["painted_ms"].as_f64().expect("a time");
    println!("on a slow computer and line the overview is painted after {painted_ms} ms");
    assert!(painted_ms < PAINTED_MOST_MS, "painted after {painted_ms} ms");

    let machines = place.told(&["machines"]);
    let called = format!("{HOSTILE} 2");
    let of = |name: &str| machines.iter().find(|one| one["name"] == name).expect("it is there");
    assert_eq!((&of(&called)["revoked"], &of(HOSTILE)["revoked"]), (&true.into(), &false.into()));
    assert_eq!(place.told(&["pending"]).len(), 0, "the deletion is cancelled");
    assert_eq!(place.told(&["api-token"]).len(), 1, "of two tokens one is revoked");
    invited.run(["backup", text(&invited.path("source"))]).expect(13);
}
