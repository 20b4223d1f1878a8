//! Restores of many things at once, and what is said of those that are not restored.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::client::Browser;
use super::ended;
use super::place::Place;
use crate::house::{files_below, small_tree, text};

/// Files that are ticked.
const MANY: usize = 3500;
/// Letters of each name, so that the form of all of them is larger than most servers take.
const NAME_LETTERS: usize = 220;
/// Bytes of a letter that is sent by its number.
const NUMBER_BYTES: usize = 3;
/// What a form may be longer than.
const LARGE_FORM_BYTES: usize = 2 << 20;
/// Room beside twice the command's time, for a computer that does something else now and then.
const BESIDE: Duration = Duration::from_secs(5);

/// Restores `items`, below the source, and gives what is said of them.
fn restored(
    place: &Place,
    browser: &mut Browser,
    items: &[String],
    more: &[(&str, &str)],
) -> String {
    let page = browser.get(&place.at("at", "")).expect(200);
    let (token, snapshot) = (page.field("token"), page.field("snapshot"));
    let paths: Vec<_> =
        items.iter().map(|item| format!("{}/{item}", text(&place.source()))).collect();
    let paths = paths.iter().map(|path| ("item", &**path));
    let fields: Vec<_> = [("token", &*token), ("snapshot", &*snapshot)]
        .into_iter()
        .chain(more.iter().copied())
        .chain(paths)
        .collect();
    let begun = browser.post("/restore", &fields).expect(303);
    ended(browser, &begun).text()
}

fn names() -> Vec<String> {
    (0..MANY).map(|number| format!("{number:0NAME_LETTERS$}")).collect()
}

#[test]
fn thousands_of_ticked_files_take_less_than_twice_the_time_of_the_command() {
    let names = names();
    assert!(names.len() * NAME_LETTERS * NUMBER_BYTES > LARGE_FORM_BYTES);
    let place = Place::new(|source| {
        names.iter().for_each(|name| fs::write(source.join(name), name).expect("a file"));
        fs::write(source.join("other"), "not ticked").expect("a file");
    });
    let (repo, to) = (place.machine.path("repo"), place.machine.path("by-command"));
    let started = Instant::now();
    place.machine.ok(["restore", "-r", text(&repo), "latest", "--to", text(&to)]);
    let most = started.elapsed() * 2 + BESIDE;

    let mut browser = place.inside();
    let elsewhere = place.machine.path("elsewhere");
    let folder = [("where", "folder"), ("folder", text(&elsewhere))];
    let started = Instant::now();
    let said = restored(&place, &mut browser, &names, &folder);
    assert!(started.elapsed() < most, "{:?} of {most:?}", started.elapsed());
    assert!(said.contains("Done.") && said.contains("3,500 files"), "{said}");
    let here = files_below(&elsewhere);
    assert_eq!(here.len(), MANY);
    here.iter().for_each(|file| is_as_it_was(file));

    // Where it was: what is gone comes back, and all else beside what is there.
    let (gone, there) = names.split_at(MANY / 2);
    for name in gone {
        fs::remove_file(place.source().join(name)).expect("it is there");
    }
    for name in there {
        fs::write(place.source().join(name), "mine").expect("a file");
    }
    let said = restored(&place, &mut browser, &names, &[("where", "place")]);
    assert!(said.contains("Done.") && said.contains("each as NAME.restored-"), "{said}");
    gone.iter().for_each(|name| is_as_it_was(&place.source().join(name)));
    for name in there {
        assert_eq!(fs::read_to_string(place.source().join(name)).expect("it is there"), "mine");
    }
    let all = files_below(&place.source());
    assert_eq!(all.len(), MANY + there.len() + 1);
    let beside: Vec<_> = all.iter().filter(|file| text(file).contains(".restored-")).collect();
    assert_eq!(beside.len(), there.len());
    beside.into_iter().for_each(|file| is_as_it_was(file));
}

/// Checks that a file, by whatever name it came back, holds the name that it had.
fn is_as_it_was(file: &Path) {
    let name = file.file_name().expect("a name").to_str().expect("UTF-8");
    assert_eq!(fs::read_to_string(file).expect("a file"), name[..NAME_LETTERS]);
}

#[test]
fn a_form_that_is_too_long_is_answered_with_a_sentence() {
    let place = Place::new(small_tree);
    let refused = place.inside().post("/restore", &[("item", &"x".repeat(12 << 20))]).expect(413);
    assert!(refused.text().contains("Tick the folder"), "{}", refused.text());
}

#[test]
fn the_counts_of_a_second_restore_add_up_and_say_what_was_there() {
    let place = Place::new(small_tree);
    let mut browser = place.inside();
    let elsewhere = place.machine.path("elsewhere");
    let to = [("where", "folder"), ("folder", text(&elsewhere))];
    let items = ["docs".to_owned(), "large.bin".to_owned()];
    let said = restored(&place, &mut browser, &items, &to);
    let counts = "3 files, 3.0 MB, restored; 2 folders restored";
    assert!(said.contains(counts), "{said}");
    fs::remove_file(elsewhere.join("large.bin")).expect("it was there");
    let said = restored(&place, &mut browser, &items, &to);
    let counts =
        "1 file, 3.0 MB, restored; 2 files there already and kept; 2 folders there already";
    assert!(said.contains(counts), "{said}");
}
