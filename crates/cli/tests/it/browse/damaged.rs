//! A repository of which something is damaged: what can be read is shown, and what cannot is named.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::client::{Answer, Browser};
use super::place::{Place, back_up};
use crate::house::{Machine, text};
use crate::repair::flip;
use holdall_testkit::Random;

const LARGE_BYTES: usize = 6 << 20;

fn tail(machine: &Machine, of: &str) -> PathBuf {
    let tails = fs::read_dir(machine.path("repo/tails")).expect("tails");
    let mut tails = tails.map(|one| one.expect("a file").path());
    let is_it = |path: &PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        name.starts_with(of) && name.ends_with(".payload")
    };
    tails.find(is_it).expect("it is there")
}

fn len(path: &PathBuf) -> usize {
    fs::metadata(path).expect("it is there").len() as usize
}

#[test]
fn the_versions_of_a_file_are_listed_though_another_snapshot_is_damaged() {
    let machine = Machine::new();
    machine.init(&["-r", text(&machine.path("repo"))]);
    let source = machine.path("source");
    fs::create_dir(&source).expect("a folder");
    let mut ends = vec![0];
    for version in ["one", "two", "three"] {
        fs::write(source.join("file"), version).expect("a file");
        back_up(&machine);
        ends.push(len(&tail(&machine, "nodes")));
    }
    // The second's nodes.
    (ends[1]..ends[2]).step_by(100).for_each(|at| flip(&tail(&machine, "nodes"), at));
    fs::remove_dir_all(machine.path("cache")).expect("it was there");
    let place = Place::of(machine);
    let (ids, mut browser) = (place.ids(), place.inside());
    let of = |id: &str| format!("/at/{id}{}/file", text(&place.source()));
    let page = browser.get(&of(&ids[2])).expect(200);
    assert!(page.text().contains("three"), "{}", page.text());
    assert!(page.links().contains(&of(&ids[0])), "{:?}", page.links());
    assert!(page.text().contains("cannot be read"), "{}", page.text());
    assert!(page.text().contains(&ids[1][..10]), "{}", page.text());
    browser.get(&of(&ids[0])).expect(200);
    browser.get(&of(&ids[1])).expect(500);
    // The command line says the same.
    let repo = place.machine.path("repo");
    let told = place.machine.run(["history", "-r", text(&repo), text(&source.join("file"))]);
    let told = told.expect(20);
    assert!(told.stdout.contains(&ids[0][..10]), "{told:?}");
    assert!(told.stderr.contains(&ids[1][..10]), "{told:?}");
}

/// A folder of two files, of which the second cannot be read to its end.
fn cut() -> Place {
    let place = Place::new(|source| {
        fs::write(source.join("a.txt"), "whole\n").expect("a file");
        fs::write(source.join("b.bin"), Random::new(5).bytes(LARGE_BYTES)).expect("a file");
    });
    let tail = tail(&place.machine, "chunks");
    let from = len(&tail) * 3 / 4;
    (from..len(&tail)).step_by(100_000).for_each(|at| flip(&tail, at));
    place
}

/// Unpacks what came of an archive; it has to say that this is not all.
fn refuses(place: &Place, name: &str, bytes: &[u8], command: &[&str]) {
    let (file, to) = (place.machine.path(name), place.machine.path(&format!("{name}-to")));
    fs::write(&file, bytes).expect("a file");
    fs::create_dir(&to).expect("a folder");
    let mut unpack = Command::new(command[0]);
    unpack.args(&command[1..]).arg(&file).current_dir(&to);
    unpack.stdout(Stdio::null()).stderr(Stdio::null());
    assert!(!unpack.status().expect("it starts").success(), "{command:?} takes it for whole");
}

/// What is said on the page that is shown next, and on that of all that went wrong.
fn told(browser: &mut Browser, name: &str) {
    for page in ["/", "/wrong"] {
        let page = browser.get(page).expect(200).text();
        assert!(page.contains(name) && page.contains("damaged"), "{page}");
    }
    let later = browser.get("/").expect(200).text();
    assert!(!later.contains("cut off") && later.contains("href=\"/wrong\""), "{later}");
}

/// A download that was cut behind its beginning: of what was not sent yet when the damage was met, nothing comes.
fn cut_behind(browser: &mut Browser, path: &str) -> Answer {
    let downloads = (0..20).map(|_| browser.get_cut(path));
    let mut long = downloads.filter(|cut| cut.bytes.len() > 100_000);
    long.next().expect("one that began")
}

#[test]
fn what_is_cut_of_a_download_is_told_on_the_next_page_and_by_who_unpacks_it() {
    let place = cut();
    let mut browser = place.inside();
    let none = browser.get("/").expect(200).text();
    assert!(!none.contains("/wrong"), "{none}");

    let file = browser.get(&place.at("get", "/b.bin")).expect(200);
    assert!(!file.is_whole() && file.bytes.len() > 1_000_000, "{}", file.bytes.len());
    told(&mut browser, "b.bin");
    let zip = cut_behind(&mut browser, &place.at("zip", ""));
    let python = "import sys, zipfile; zipfile.ZipFile(sys.argv[1])";
    refuses(&place, "a.zip", &zip.bytes, &["python3", "-c", python]);
    told(&mut browser, "source");
    let tar = cut_behind(&mut browser, &place.at("tar", ""));
    refuses(&place, "a.tar", &tar.bytes, &["tar", "-xf"]);
    refuses(
        &place,
        "b.tar",
        &tar.bytes,
        &["python3", "-c", "import sys, tarfile; tarfile.open(sys.argv[1]).extractall()"],
    );
    told(&mut browser, "source");

    let folder = browser.get(&place.at("at", "")).expect(200).text();
    assert!(folder.contains("notice bad") && folder.contains("was cut off"), "{folder}");
}
