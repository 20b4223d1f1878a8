//! A repository with snapshots, and the pages that show it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use holdall_testkit::Process;

use super::client::Browser;
use crate::house::{Machine, text};

/// Names that would be markup, header lines, other paths or other letters, if they were taken for more than names.
pub(super) const HOSTILE: [&[u8]; 9] = [
    b"<script>alert(1)<script>".as_slice(),
    b"\"><img src=x onerror=alert(1)>",
    b"new\nline\r\nSet-Cookie: evil=1",
    "gpj.\u{202e}a".as_bytes(),
    b"\xff\xfe.txt",
    b"..\\..\\evil",
    b"%2e%2e",
    b"a&amp;b'?#+ %41;=",
    b"\x01\x1b[31m",
];

/// A machine, its repository in a directory, and `holdall browse` for it.
pub(super) struct Place {
    pub(super) machine: Machine,
    pub(super) process: Process,
    pub(super) address: String,
    pub(super) token: String,
}

impl Place {
    /// Backs up what `fill` makes, and shows it.
    pub(super) fn new(fill: impl FnOnce(&Path)) -> Self {
        let machine = Machine::new();
        machine.init(&["-r", text(&machine.path("repo"))]);
        let source = machine.path("source");
        fs::create_dir(&source).expect("a folder");
        fill(&source);
        back_up(&machine);
        Self::of(machine)
    }

    /// Shows the repository of a machine.
    pub(super) fn of(machine: Machine) -> Self {
        let repo = machine.path("repo");
        Self::by(machine, &["-r", text(&repo)])
    }

    /// Shows what a machine finds by these arguments.
    pub(super) fn by(machine: Machine, args: &[&str]) -> Self {
        let mut command = machine.command([&["browse", "--no-open"], args].concat());
        let mut process = Process::spawn(&mut command).expect("it starts");
        let line = process.wait_for_line("browse at http://").expect("it listens");
        let (address, token) = line
            .trim()
            .trim_start_matches("browse at http://")
            .split_once("/?token=")
            .expect("an address with a token");
        let (address, token) = (address.to_owned(), token.to_owned());
        Self { machine, process, address, token }
    }

    pub(super) fn source(&self) -> PathBuf {
        self.machine.path("source")
    }

    pub(super) fn browser(&self) -> Browser {
        Browser::at(&self.address)
    }

    /// A browser that has the cookie.
    pub(super) fn inside(&self) -> Browser {
        let mut browser = self.browser();
        browser.get(&format!("/?token={}", self.token)).expect(303);
        browser
    }

    /// Ids of the snapshots, oldest first.
    pub(super) fn ids(&self) -> Vec<String> {
        let repo = self.machine.path("repo");
        let listed = self.machine.ok(["snapshots", "--json", "-r", text(&repo)]);
        let ids = listed.of_type("snapshot").into_iter();
        ids.map(|one| one["id"].as_str().expect("an id").to_owned()).collect()
    }

    /// The address of something below the source, in the newest snapshot.
    pub(super) fn at(&self, front: &str, below: &str) -> String {
        let id = self.ids().pop().expect("a snapshot");
        format!("/{front}/{id}{}{below}", text(&self.source()))
    }
}

pub(super) fn back_up(machine: &Machine) {
    machine.ok(["backup", "-r", text(&machine.path("repo")), text(&machine.path("source"))]);
}

/// A file for each hostile name, which holds its number, and a folder of the first.
pub(super) fn hostile_tree(dir: &Path) {
    for (number, name) in HOSTILE.iter().enumerate() {
        fs::write(dir.join(OsStr::from_bytes(name)), format!("number {number}\n")).expect("a file");
    }
    // A slash is in no name.
    let folder = dir.join("<b>folder");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("inside.txt"), "inside\n").expect("a file");
}

/// A name as addresses have it.
pub(super) fn encoded(name: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte: &u8| match plain(*byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    name.iter().map(one).collect()
}
