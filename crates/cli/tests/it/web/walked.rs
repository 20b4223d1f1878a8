//! The pages in a real browser, walked by keyboard from the first code to signing out. `tests/browser/walk.mjs` drives the
//! browser and judges what it sees; here are the server, the machines and the judgement of the whole.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use holdall_testkit::is_there;
use serde_json::{Value, json};

use super::{HOSTILE, PASSWORD, Place};
use crate::house::{Machine, small_tree, text};

/// What has to be seen, in any order.
const PAGES: [&str; 25] = [
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
    "bandwidth",
    "storage",
    "second-factor",
    "second-factor-secret",
    "token",
    "invite",
    "look",
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

fn below(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

/// Whether there is what drives a browser; `cargo xtask test` brings it.
fn is_equipped(packages: &Path) -> bool {
    is_there("chromium", Path::new("/usr/bin/chromium").exists())
        && is_there("node's packages for browser tests", packages.join("node_modules").is_dir())
}

/// The browser that walks. It asks for what has to happen elsewhere by a line, and is answered by a line.
struct Walk(Child);

impl Walk {
    fn begin(place: &Place, packages: &Path) -> Self {
        let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
        let home = place.machine.path("browser");
        std::fs::create_dir_all(&home).expect("room");
        let told = json!({
            "site": format!("https://{}", place.server.address()),
            "code": place.code(),
            "password": PASSWORD,
            "packages": packages,
            "pictures": pictures,
            "invited": format!("{HOSTILE} 2"),
        });
        let mut command = Command::new("node");
        command.arg(below("tests/browser/walk.mjs")).env("HOME", home);
        let walk = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut walk = walk.expect("node starts");
        writeln!(walk.stdin.as_mut().expect("a pipe"), "{told}").expect("it reads");
        Self(walk)
    }

    /// Does what it asks for until it reports.
    fn report(mut self, mut help: impl FnMut(&Value)) -> Value {
        let mut answers = self.0.stdin.take().expect("a pipe");
        let lines = BufReader::new(self.0.stdout.take().expect("a pipe")).lines();
        let mut report = None;
        for line in lines {
            let line = line.expect("UTF-8");
            let said: Value = serde_json::from_str(&line).expect(&line);
            if said["asks"].is_string() {
                help(&said);
                writeln!(answers, "done").expect("it waits");
            } else {
                report = Some(said);
            }
        }
        let ended = self.0.wait().expect("it ends");
        report.unwrap_or_else(|| panic!("the walk ended with {ended} and no report"))
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        // One that ended concerns nobody.
        let _ = self.0.kill();
    }
}

fn sorted(names: &Value) -> Vec<&str> {
    let mut names: Vec<_> =
        names.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    names.sort_unstable();
    names
}

#[test]
fn an_administrator_walks_through_every_page_by_keyboard_and_nothing_is_wrong_in_them() {
    let packages = below("../../target/tools/browser");
    if !is_equipped(&packages) {
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
    let report = Walk::begin(&place, &packages).report(|said| match said["asks"].as_str() {
        Some("pair") => drop(invited.pair(said["invite"].as_str().expect("an invite"))),
        Some("backup") => drop(invited.ok(["backup", text(&invited.path("source"))])),
        _ => panic!("{said}"),
    });

    let problems = report["problems"].as_array().expect("a list");
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{}", lines.join("\n"));
    let mut pages = PAGES;
    pages.sort_unstable();
    assert_eq!(sorted(&report["pages"]), pages);
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
