//! The first page in a real browser, which exchanges the token, is led on, and draws what it is given.

use std::path::Path;
use std::process::Command;

use super::place::{Place, hostile_tree};
use crate::house::{Outcome, text};
use holdall_testkit::is_there;

#[test]
fn a_real_browser_comes_in_by_the_printed_address_and_refuses_nothing_of_the_page() {
    if !is_there("chromium", Path::new("/usr/bin/chromium").exists()) {
        return;
    }
    let place = Place::new(hostile_tree);
    let folder = place.machine.path("shown");
    std::fs::create_dir(&folder).expect("room");
    let mut command = Command::new("chromium");
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]);
    command.args(["--disable-sync", "--disable-background-networking"]);
    command.args(["--disable-component-update", "--enable-logging=stderr", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", folder.join("profile").display()));
    command.arg(format!("http://{}/?token={}", place.address, place.token));
    let shown = Outcome::of(command.env("HOME", &folder));
    assert!(shown.stdout.contains(text(&place.source())), "{shown:?}");
    assert!(!shown.stdout.contains(&place.token), "{shown:?}");
    let console: Vec<_> = shown.stderr.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{console:?}");
}
