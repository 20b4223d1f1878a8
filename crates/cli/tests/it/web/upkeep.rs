//! When the server keeps house, said on its page, at a terminal and by a program.

use serde_json::json;

use super::Place;

#[test]
fn the_hours_of_upkeep_are_changed_on_the_page_and_at_a_terminal_and_bad_ones_are_refused() {
    let place = Place::new("attic");
    let mut browser = place.signed_in();
    assert!(browser.get("/jobs").expect(200).body.contains("href=\"/upkeep\""));
    let page = browser.get("/upkeep").expect(200);
    assert!(page.body.contains("at any hour; everything is read again within 30 days"));
    let token = page.token();
    let mut change = |from: &str, scrub_days: &str, days: &str| {
        let fields = [
            ("token", &*token),
            ("from", from),
            ("to", "06:00"),
            ("days", days),
            ("scrub_days", scrub_days),
        ];
        browser.post("/upkeep", &fields)
    };
    change("05:00", "30", "all").expect(409);
    change("late", "30", "all").expect(409);
    change("01:00", "often", "all").expect(409);
    change("01:00", "0", "all").expect(409);
    change("01:00", "14", "weekend").expect(303);
    let told = place.told(&["upkeep"]);
    assert_eq!(
        (&told[0]["from"], &told[0]["scrub_days"], &told[0]["days"]),
        (&json!("01:00"), &json!(14), &json!(["sat", "sun"]))
    );
    // What is not given stays, and days that no choice of the page has are one of it.
    let told = place.told(&["upkeep", "--days", "mon,wed"]);
    assert_eq!((&told[0]["to"], &told[0]["days"]), (&json!("06:00"), &json!(["mon", "wed"])));
    change("02:00", "14", "same").expect(303);
    let page = browser.get("/upkeep").expect(200).body;
    assert!(page.contains("from 02:00 to 06:00 on mon, wed"), "{page}");
    assert!(page.contains("<option value=\"same\" selected>mon, wed"), "{page}");

    let reader = place.token("reader", "read");
    let asked = place.program(&reader, "GET", "/api/v1/admin/upkeep", "").expect(200).body;
    assert!(asked.contains("\"scrub_days\":14"), "{asked}");
    let upkeep = r#"{"upkeep":{"from":"00:00","to":"24:00","days":["mon"],"scrub_days":30}}"#;
    place.program(&reader, "POST", "/api/v1/admin/set-upkeep", upkeep).expect(403);
}
