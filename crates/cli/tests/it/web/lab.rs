//! The server's own lab, begun on its page, by a program and at a terminal.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use holdall_lab::incompressible;
use serde_json::json;

use super::Place;
use super::client::{Answer, Browser};
use crate::house::{Server, text};

impl Place {
    /// Where the disk is measured.
    fn scratch(&self) -> PathBuf {
        self.machine.path("data/repositories/.lab")
    }
}

/// Asks again until it holds.
pub(super) fn until<T>(mut asked: impl FnMut() -> Option<T>) -> T {
    let found = (0..1200).find_map(|_| {
        sleep(Duration::from_millis(25));
        asked()
    });
    found.expect("it happens within half a minute")
}

/// Begins a test on the page, and gives the page of its job.
fn begin(browser: &mut Browser, fields: &[(&str, &str)]) -> String {
    let token = browser.get("/lab").expect(200).token();
    let fields: Vec<_> = [("token", &*token)].into_iter().chain(fields.iter().copied()).collect();
    let begun = browser.post("/lab", &fields).expect(303);
    begun.header("location").expect("its job").to_owned()
}

/// The job's page once it has ended.
fn ended(browser: &mut Browser, job: &str) -> Answer {
    until(|| Some(browser.get(job).expect(200)).filter(|page| !page.body.contains("/live.js")))
}

#[test]
fn a_test_is_begun_on_a_page_its_report_is_shown_and_two_are_compared() {
    let place = Place::new("attic");
    let mut browser = place.signed_in();
    for number in 1..=2 {
        let job = begin(&mut browser, &[("test", "disk")]);
        let page = ended(&mut browser, &job);
        assert!(page.body.contains(", done") && page.body.contains("lab disk: "), "{}", page.body);
        assert!(page.body.contains(&format!("href=\"/lab/{number}\"")), "{}", page.body);
    }
    assert!(!place.scratch().exists(), "nothing stays");
    let report = browser.get("/lab/1").expect(200);
    for part in ["<svg viewBox", "SEQ1M Q8T1", "fsync", "file system", "holdall lab disk"] {
        assert!(report.body.contains(part), "{part} in {}", report.body);
    }
    for never in ["<style", "style=", "<script"] {
        assert!(!report.body.contains(never), "{never} in {}", report.body);
    }
    browser.get("/lab/3").expect(409);
    assert!(browser.get("/lab").expect(200).body.contains("action=\"/lab/compare\""));
    let compared = browser.get("/lab/compare?first=1&second=2").expect(200);
    assert!(compared.body.contains("random read 4K QD32"), "{}", compared.body);
    assert!(compared.body.contains(" %</td>"), "{}", compared.body);
    browser.get("/lab/compare?first=1").expect(404);

    let listed = place.told(&["lab"]);
    assert_eq!((listed.len(), &listed[1]["number"]), (2, &json!(2)));
    let shown = place.told(&["lab", "show", "2"]);
    assert!(shown.iter().any(|row| row["known_as"] == "RND4K Q1T1"), "{shown:?}");
    let told = place.told(&["lab", "compare", "1", "2"]);
    assert!(told.iter().any(|one| one["message_type"] == "difference"), "{told:?}");
    let files = place.told(&["lab", "files"]);
    assert!(files.iter().any(|row| row["operation"] == "create"), "{files:?}");
    let net = place.told(&["lab", "net"]);
    assert!(net.iter().any(|row| row["operation"] == "send" && row["jobs"] == 4), "{net:?}");
    let program = place.token("program", "read");
    let ask = |name: &str, fields: &str| {
        place.program(&program, "POST", &format!("/api/v1/admin/{name}"), fields)
    };
    assert!(ask("lab-report", r#"{"number":3}"#).expect(200).body.contains("holdall-lab-report"));
    let both = ask("compare-lab", r#"{"first":1,"second":3}"#).expect(200).body;
    assert!(both.contains("\"only_first\""), "{both}");
    ask("measure-lab", r#"{"test":"disk"}"#).expect(403);
}

#[test]
fn one_runs_at_a_time_and_nothing_is_left_after_cancelling_and_after_a_crash() {
    let mut place = Place::new("attic");
    let mut browser = place.signed_in();
    let job = begin(&mut browser, &[("test", "disk"), ("long", "yes")]);
    until(|| browser.get(&job).body.contains(" steps.").then_some(()));
    assert!(place.scratch().exists());
    let second = begin(&mut browser, &[("test", "files")]);
    let refused = ended(&mut browser, &second).body;
    assert!(refused.contains("another test of this server"), "{refused}");
    assert!(place.scratch().exists(), "the first goes on");
    let token = browser.get(&job).expect(200).token();
    browser.post(&format!("{job}/cancel"), &[("token", &token)]).expect(303);
    let cancelled = ended(&mut browser, &job).body;
    assert!(cancelled.contains(", cancelled"), "{cancelled}");
    assert!(!place.scratch().exists(), "nothing stays after cancelling");
    assert_eq!(place.told(&["lab"]).len(), 0, "what was cancelled is no report");

    begin(&mut browser, &[("test", "disk"), ("long", "yes")]);
    until(|| place.scratch().exists().then_some(()));
    place.server.process().kill().expect("it lives");
    place.server.process().wait().expect("it ends");
    assert!(place.scratch().exists(), "a crash leaves it");
    let data = place.machine.path("data");
    place.server = Server::start(&data);
    assert!(!place.scratch().exists(), "and the next start removes it");
}

#[test]
fn nothing_is_measured_while_a_machine_stores() {
    let place = Place::new("attic");
    let mut browser = place.signed_in();
    let source = place.machine.path("large");
    std::fs::create_dir(&source).expect("room");
    std::fs::write(source.join("file"), incompressible(24 << 20, 7)).expect("room");
    let mut command = place.machine.command(["backup", text(&source), "--limit-upload", "2M"]);
    let mut backup = command.spawn().expect("it starts");
    until(|| browser.get("/jobs").body.contains(" taken").then_some(()));
    let job = begin(&mut browser, &[("test", "files")]);
    let refused = ended(&mut browser, &job).body;
    backup.kill().expect("it lives");
    backup.wait().expect("it ends");
    assert!(refused.contains("stores or reads now, and nothing is measured"), "{refused}");
    assert!(!place.scratch().exists());
}
