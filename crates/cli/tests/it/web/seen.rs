//! The pages in a real browser: they fit a telephone, nothing in them is refused or fails, and their pictures are drawn.

use std::path::Path;
use std::process::Command;

use super::relay::{PRESS, PROBE, Relay, SITE, TOO_WIDE};
use super::{HOSTILE, Place};
use crate::house::{Outcome, text};
use holdall_testkit::is_there;

/// Prints the page as it stands, once its scripts ran.
const DUMP: &str = "--dump-dom";

/// Has the browser show a page in a window of that width, and gives what it said: the page as it stands if that is
/// asked for, and on standard error its console.
fn show(relay: &Relay, folder: &Path, path: &str, width: u32, wanted: &str) -> Outcome {
    let mut command = Command::new("chromium");
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-sync",
    ]);
    command.args(["--disable-background-networking", "--disable-component-update"]);
    command.args(["--enable-logging=stderr", "--proxy-bypass-list=<-loopback>"]);
    command.arg(format!("--proxy-server=http://{}", relay.address));
    command.arg(format!("--window-size={width},900"));
    command.arg(format!("--user-data-dir={}", folder.join("profile").display()));
    command.arg(wanted).arg(format!("{SITE}{path}"));
    Outcome::of(command.env("HOME", folder))
}

/// What the browser's console said.
fn console(outcome: &Outcome) -> Vec<&str> {
    outcome.stderr.lines().filter(|line| line.contains("CONSOLE")).collect()
}

#[test]
fn pages_fit_a_telephone_and_the_browser_refuses_nothing_in_them() {
    if !is_there("chromium", Path::new("/usr/bin/chromium").exists()) {
        return;
    }
    let place = Place::new(HOSTILE);
    place.ask_deletion();
    // Several runs are drawn, and the last one went wrong.
    let (source, gone) = (place.machine.path("source"), place.machine.path("gone"));
    place.machine.ok(["backup", text(&source), "--read-all"]);
    place.machine.run(["backup", text(&source), text(&gone)]).expect(3);
    let browser = place.signed_in();
    let cookie = browser.cookie.expect("a cookie");
    let folder = place.machine.path("shown");
    std::fs::create_dir(&folder).expect("room");
    let machine = format!("/machines/{}", place.id());
    let address = place.server.address();
    let plain = Relay::to(address, &cookie);
    let probing = Relay::adding(PROBE, false, address, &cookie);
    // Pictures to be looked at.
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    std::fs::create_dir_all(&pictures).expect("room");
    for (name, path) in [("overview", "/"), ("machine", &machine), ("setup", "/setup")] {
        for width in [360, 1280] {
            let probed = show(&probing, &folder, path, width, DUMP);
            assert!(probed.stdout.contains("data-wide=\"no\""), "{path} at {width}: {probed:?}");
            let picture = pictures.join(format!("{name}-{width}.png"));
            let _ = std::fs::remove_file(&picture);
            let wanted = format!("--screenshot={}", picture.display());
            let seen = show(&plain, &folder, path, width, &wanted);
            assert!(picture.is_file(), "{seen:?}");
            assert_eq!(console(&seen), [""; 0], "{path} at {width}");
        }
    }

    // What would be wrong is seen, or all of the above would prove nothing.
    let wide = Relay::adding(TOO_WIDE, false, address, &cookie);
    let wide = show(&wide, &folder, "/", 360, DUMP);
    assert!(wide.stdout.contains("data-wide=\"yes\""), "{wide:?}");
    let styled = Relay::adding("<p style=\"color:red\">", true, address, &cookie);
    let styled = show(&styled, &folder, "/", 360, DUMP);
    assert!(console(&styled).iter().any(|line| line.contains("style")), "{styled:?}");
}

/// A browser that tells nobody where a form was says `null` for its origin.
#[test]
fn a_form_that_a_real_browser_sends_is_taken() {
    if !is_there("chromium", Path::new("/usr/bin/chromium").exists()) {
        return;
    }
    let place = Place::new("attic");
    place.ask_deletion();
    let cookie = place.signed_in().cookie.expect("a cookie");
    let folder = place.machine.path("shown");
    std::fs::create_dir(&folder).expect("room");
    let pressing = Relay::adding(PRESS, false, place.server.address(), &cookie);
    // The page that comes then has no such form any more.
    let shown = show(&pressing, &folder, "/", 360, DUMP);
    assert_eq!(place.told(&["pending"]).len(), 0, "{shown:?}");
}
