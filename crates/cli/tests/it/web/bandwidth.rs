//! Limits by hours of the week, kept by real backups and restores.

use std::time::{Duration, Instant};

use holdall_lab::incompressible;
use serde_json::json;

use super::Place;
use super::lab::until;
use crate::house::text;

/// What is backed up, and the limit: so many seconds at the least, less what passes at once.
const BYTES: usize = 4 << 20;
const LIMIT: &str = "1MB/s";
const LEAST: Duration = Duration::from_millis(3800);

/// How long a command of a machine takes.
fn took(place: &Place, args: &[&str]) -> Duration {
    let begun = Instant::now();
    place.machine.ok(args);
    begun.elapsed()
}

impl Place {
    /// Makes a folder with content that nothing has yet.
    fn source(&self, seed: u64) -> String {
        let source = self.machine.path(&format!("source-{seed}"));
        std::fs::create_dir(&source).expect("room");
        std::fs::write(source.join("file"), incompressible(BYTES, seed)).expect("room");
        text(&source).to_owned()
    }
}

#[test]
fn a_limit_holds_backups_and_restores_back_without_a_restart_and_the_page_says_so() {
    let place = Place::new("attic");
    let free = took(&place, &["backup", &place.source(1)]);
    let added = place.told(&["bandwidth", "--limit", LIMIT]);
    assert_eq!(
        (&added[0]["bytes_per_second"], &added[0]["to"]),
        (&json!(1_000_000), &json!("24:00"))
    );
    std::thread::sleep(Duration::from_millis(1100));

    let mut browser = place.signed_in();
    let begun = Instant::now();
    let source = place.source(2);
    let mut backup = place.machine.command(["backup", &source]).spawn().expect("it starts");
    until(|| {
        browser.get("/jobs").body.contains("held back by the limit of 1.0 MB/s").then_some(())
    });
    assert!(backup.wait().expect("it ends").success());
    let said = place.machine.ok(["backup", &place.source(4)]).stdout;
    assert!(said.contains("holdall admin bandwidth"), "{said}");
    let held = begun.elapsed();
    assert!(held >= LEAST, "{held:?} for {BYTES} bytes at {LIMIT}");
    // A share of the time that it took without a limit, whatever this computer does besides.
    assert!(held.as_secs_f64() > 1.3 * free.as_secs_f64(), "{held:?} with it, {free:?} without");
    let target = place.machine.path("restored");
    let begun = Instant::now();
    let said = place.machine.ok(["restore", "latest", "--target", text(&target)]).stdout;
    assert!(begun.elapsed() >= LEAST, "{:?}", begun.elapsed());
    assert!(said.contains("holdall admin bandwidth"), "{said}");

    let removed = place.told(&["bandwidth", "--remove", "1"]);
    assert_eq!(removed[0]["number"], json!(1));
    std::thread::sleep(Duration::from_millis(1100));
    let again = took(&place, &["backup", &place.source(3)]);
    assert!(again < held, "{again:?} without it again, {held:?} with it");
}

#[test]
fn a_limit_is_added_and_removed_on_its_page_and_what_is_none_is_refused() {
    let place = Place::new("attic");
    let mut browser = place.signed_in();
    let token = browser.get("/bandwidth").expect(200).token();
    let mut add = |megabytes: &str, from: &str| {
        let fields = [
            ("token", &*token),
            ("megabytes", megabytes),
            ("from", from),
            ("to", "06:00"),
            ("days", "weekend"),
        ];
        browser.post("/bandwidth", &fields)
    };
    add("0.05", "22:00").expect(409);
    add("fast", "22:00").expect(409);
    add("2,5", "late").expect(409);
    add("2,5", "22:00").expect(303);
    let listed = place.told(&["bandwidth"]);
    assert_eq!(listed[0]["days"], json!(["sat", "sun"]));
    assert_eq!(listed[0]["bytes_per_second"], json!(2_500_000));
    let page = browser.get("/bandwidth").expect(200);
    assert!(page.body.contains("2.5 MB/s from 22:00 to 06:00 on sat, sun"), "{}", page.body);
    browser.post("/bandwidth/1/remove", &[("token", &token)]).expect(303);
    browser.post("/bandwidth/1/remove", &[("token", &token)]).expect(409);
    assert!(place.told(&["bandwidth"]).is_empty());
    let reader = place.token("reader", "read");
    place.program(&reader, "GET", "/api/v1/admin/bandwidth", "").expect(200);
    let rule =
        r#"{"rule":{"bytes_per_second":1000000,"from":"00:00","to":"24:00","days":["mon"]}}"#;
    place.program(&reader, "POST", "/api/v1/admin/add-bandwidth", rule).expect(403);
}
