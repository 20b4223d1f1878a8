//! What the backups lie on: the page, the command, and the trend that the overview has.

use serde_json::json;

use super::Place;

#[test]
fn a_page_and_a_command_tell_what_the_backups_lie_on_and_what_they_take() {
    let place = Place::new("attic");
    place.told(&["quota", "attic", "5G"]);
    let mut browser = place.signed_in();
    let page = browser.get("/storage").expect(200).body;
    for part in
        ["data/repositories", "file system", "mounted at", ">attic</bdi>", "5.00 GB", "unknown yet"]
    {
        assert!(page.contains(part), "{part} in {page}");
    }
    let told = place.told(&["storage"]);
    let repositories = place.told(&["repositories"]);
    assert_eq!(told[0]["quota_bytes"], json!(5_000_000_000_u64));
    assert_eq!(told[0]["stored_bytes"], repositories[0]["stored_bytes"]);
    assert!(told[0]["total_bytes"].as_u64() > told[0]["free_bytes"].as_u64(), "{told:?}");
    assert_eq!((&told[0]["bytes_per_day"], &told[0]["full"]), (&json!(null), &json!(null)));
    let overview = browser.get("/").expect(200).body;
    assert!(!overview.contains("<dt>Full</dt>"), "nothing is said of what is not known");
}
