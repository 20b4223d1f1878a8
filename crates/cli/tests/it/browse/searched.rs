//! Names that look like patterns, and patterns that are none.

use std::fs;

use super::place::Place;

#[test]
fn a_pattern_says_what_it_means_and_what_is_none_is_text() {
    let place = Place::new(|source| {
        for name in ["photo [1].jpg", "photo 1.jpg", "why?.txt", "broken [name.txt", "a*b"] {
            fs::write(source.join(name), name).expect("a file");
        }
    });
    let mut browser = place.inside();
    let mut found = |query: &str| {
        let page = browser.get(&format!("/search?{query}")).expect(200);
        let names = page.links().into_iter().filter(|link| link.starts_with("/at/"));
        let names = names.map(|link| link.rsplit('/').next().unwrap_or_default().to_owned());
        (page.text(), names.collect::<Vec<_>>())
    };
    let (page, names) = found("q=photo%20%5B1%5D.jpg");
    assert_eq!(names, ["photo%201.jpg"]);
    assert!(page.contains("as=text"), "{page}");
    let (_, names) = found("q=photo%20%5B1%5D.jpg&as=text");
    assert_eq!(names, ["photo%20%5B1%5D.jpg"]);
    let (page, names) = found("q=n%20%5Bname");
    assert_eq!(names, ["broken%20%5Bname.txt"]);
    assert!(page.contains("no pattern"), "{page}");
    let (_, names) = found("q=why%3F&as=text");
    assert_eq!(names, ["why%3F.txt"]);
    let (_, names) = found("q=a*b&as=text");
    assert_eq!(names, ["a%2Ab"]);
    let (page, _) = found("q=%23&as=text");
    assert!(page.contains("Nothing has such a name."), "{page}");
    let (page, _) = found("");
    assert!(page.contains("<code>*</code>") && page.contains("<code>?</code>"), "{page}");
}
