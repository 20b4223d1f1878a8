//! Two texts that look alike: what is not seen of them is named.

use std::fs;

use super::place::{Place, back_up};

/// A text, what it became, and what the comparison says of that.
const PAIRS: [(&str, &str, &str); 8] = [
    ("a\r\nb\r\n", "a\nb\n", "lines that end as on Windows (CRLF): 2 before, 0 now"),
    ("a\nb\n", "a  \nb\t\n", "lines with blanks at their end: 0 before, 2 now"),
    ("a\nb\n", "\u{feff}a\nb\n", "byte order marks: 0 before, 1 now"),
    ("a\nb\n", "a\nb", "newlines at the end: 1 before, 0 now"),
    ("a\nb\n", "a\rb\n", "carriage returns within lines: 0 before, 1 now"),
    ("ab\n", "a\u{200b}b\n", "other characters that are not seen: 0 before, 1 now"),
    ("a b\n", "a\u{a0}b\n", "\\u{a0}"),
    ("\u{e9}\n", "e\u{301}\n", "\\u{301}"),
];

#[test]
fn texts_that_look_alike_are_told_apart_by_what_is_not_seen() {
    let place = Place::new(|source| {
        for (number, (old, _, _)) in PAIRS.iter().enumerate() {
            fs::write(source.join(number.to_string()), old).expect("a file");
        }
        fs::write(source.join("same"), "a\r\nb").expect("a file");
    });
    for (number, (_, new, _)) in PAIRS.iter().enumerate() {
        fs::write(place.source().join(number.to_string()), new).expect("a file");
    }
    back_up(&place.machine);
    let (ids, mut browser) = (place.ids(), place.inside());
    let mut compared = |name: &str| {
        let diff = place.at("diff", &format!("/{name}"));
        browser.get(&format!("{diff}?old={}&new={}", ids[0], ids[1])).expect(200).text()
    };
    for (number, (_, _, said)) in PAIRS.iter().enumerate() {
        let page = compared(&number.to_string());
        assert!(page.contains(said), "{said} in {page}");
        assert!(!page.contains("the same"), "{page}");
    }
    let same = compared("same");
    assert!(same.contains("The text is the same.") && !same.contains("CRLF"), "{same}");
}
