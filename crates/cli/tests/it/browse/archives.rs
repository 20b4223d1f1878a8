//! What has no place in a zip.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::place::Place;

#[test]
fn a_zip_lists_what_has_no_place_in_it_and_the_page_before_says_so() {
    let place = Place::new(|source| {
        fs::write(source.join("file"), "text").expect("a file");
        fs::write(source.join("not-in-this-zip.TXT"), "mine").expect("a file");
        symlink(OsStr::from_bytes(b"\xff"), source.join("no text")).expect("a link");
        symlink("file", source.join("text")).expect("a link");
        fs::create_dir(source.join("folder")).expect("a folder");
        let mode = Mode::from_bits_retain(0o600);
        mknodat(CWD, source.join("folder/pipe"), FileType::Fifo, mode, 0).expect("a pipe");
    });
    let mut browser = place.inside();
    let page = browser.get(&place.at("at", "")).expect(200).text();
    assert!(page.contains("NOT-IN-THIS-ZIP.txt"), "{page}");
    let zip = browser.get(&place.at("zip", "")).expect(200);
    let file = place.machine.path("a.zip");
    fs::write(&file, &zip.bytes).expect("a file");
    let list = "import sys, zipfile\n\
                z = zipfile.ZipFile(sys.argv[1])\n\
                print(sorted(z.namelist()))\n\
                print(z.read('NOT-IN-THIS-ZIP-2.txt').decode())";
    let listed = Command::new("python3").args(["-c", list]).arg(&file).output().expect("it starts");
    let said = String::from_utf8(listed.stdout).expect("UTF-8");
    let names = "['NOT-IN-THIS-ZIP-2.txt', 'file', 'folder/', 'not-in-this-zip.TXT', 'text']";
    assert!(said.contains(names), "{said}");
    assert!(said.contains("no text: a link to what is no text"), "{said}");
    assert!(said.contains("folder/pipe: a pipe"), "{said}");
    let zip = browser.get(&place.at("zip", "/folder")).expect(200);
    assert!(zip.bytes.windows(15).any(|some| some == b"NOT-IN-THIS-ZIP"));
}
