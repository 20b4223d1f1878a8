//! The pages in a real browser, walked by keyboard from the printed address to the end of a restore.

use std::fs;
use std::io::Write;

use base64::Engine;
use serde_json::json;

use super::place::{Place, back_up, hostile_tree};
use crate::house::text;
use crate::walk::{Walk, is_equipped};
use holdall_testkit::Random;

/// What has to be seen, in any order.
const PAGES: [&str; 14] = [
    "snapshots",
    "folder",
    "file",
    "compare",
    "picture",
    "hostile",
    "search",
    "found",
    "nothing-found",
    "restoring",
    "restored",
    "restores",
    "wrong",
    "problem",
];
/// A point.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// Of a file whose restore takes a while, its pieces, which are stored once.
const PIECES: usize = 600;

#[test]
fn who_browses_walks_through_every_page_by_keyboard_and_nothing_is_wrong_in_them() {
    if !is_equipped() {
        return;
    }
    let place = Place::new(|source| {
        hostile_tree(source);
        fs::write(source.join("letter.txt"), "Dear reader,\r\nold\r\n").expect("a file");
        let png = base64::engine::general_purpose::STANDARD.decode(PNG).expect("base64");
        fs::write(source.join("picture.png"), png).expect("a file");
        let piece = Random::new(9).bytes(1 << 20);
        let mut large = fs::File::create(source.join("large")).expect("a file");
        (0..PIECES).for_each(|_| large.write_all(&piece).expect("room"));
    });
    let letter = format!("Dear reader,\nnew{}\n", " and so on".repeat(30));
    fs::write(place.source().join("letter.txt"), letter).expect("a file");
    back_up(&place.machine);
    let target = place.machine.path("target");
    let told = json!({
        "site": format!("http://{}", place.address),
        "token": place.token,
        "below": text(&place.source()),
        "target": text(&target),
    });
    Walk::begin(&place.machine, "browse.mjs", "browse", told).report(&PAGES, |_| {});
    let len = fs::metadata(target.join("large")).expect("it is restored").len();
    assert_eq!(len, (PIECES as u64) << 20);
}
