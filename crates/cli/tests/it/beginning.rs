//! A computer with a small repository in a directory, laid down anew for each of many runs that go
//! wrong, each in its own way.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use holdall_testkit::{CompareOptions, Field, Image, Random, compare_trees};
use rustix::fs::{CWD, FileType, Mode, XattrFlags, lsetxattr, mknodat};

use crate::house::{Machine, Outcome, files_below, text};
use crate::keys::{AGE_PRIVATE, AGE_PUBLIC};
use crate::repair::flip;

/// What is done while something goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Backup,
    Prune,
    Restore,
    /// Parity is made for all packs.
    Parity,
    /// What is damaged is repaired.
    Repair,
}

impl Work {
    /// How many there are.
    pub(crate) const ALL: usize = Self::Repair as usize + 1;
}

/// Parity that is made, in percent of each pack.
pub(crate) const PARITY: &str = "5";

/// What all runs begin with: a computer with a repository, and what it backs up.
pub(crate) struct Beginning {
    folder: tempfile::TempDir,
    fingerprint: String,
    image: Image,
}

impl Beginning {
    /// A repository with snapshots, two of which are forgotten and not pruned.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir_in(memory()).expect("a folder");
        let mut beginning = Self { folder, fingerprint: String::new(), image: Image::default() };
        let machine = Machine::in_folder(beginning.machine(0));
        fs::write(beginning.identity(), AGE_PRIVATE).expect("a file");
        let source = beginning.source();
        fs::create_dir_all(source.join("docs/empty")).expect("a folder");
        let kit = machine.path("kit.txt");
        let repo = machine.path("repo");
        let repo = text(&repo);
        let made = machine.summary(["init", "-r", repo, "--recovery-kit", text(&kit)]);
        beginning.fingerprint = made["fingerprint"].as_str().expect("a text").to_owned();
        machine.ok(["key", "add", "--recipient", AGE_PUBLIC, "-r", repo]);
        let mut random = Random::new(3);
        for round in 0..4 {
            for (name, bytes) in [("a", 3000), ("docs/b", 100), ("docs/large", 70_000)] {
                fs::write(source.join(name), random.bytes(bytes)).expect("a file");
            }
            fs::write(source.join(format!("stays {round}")), random.bytes(900)).expect("a file");
            beginning.run(&machine, &["backup", text(&source)]).expect(0);
        }
        beginning.run(&machine, &["forget", "--keep-last", "2"]).expect(0);
        // What a backup finds new.
        fs::write(source.join("docs/b"), random.bytes(5000)).expect("a file");
        fs::write(source.join("new"), random.bytes(2000)).expect("a file");
        make_special(&source);
        beginning.from(&machine)
    }

    /// The same with a pack, which has no parity.
    pub(crate) fn packed() -> Self {
        let beginning = Self::new();
        let machine = beginning.fresh(0, Work::Parity);
        fill_a_pack(&beginning.source());
        beginning.work(Work::Backup, &machine, &[], "").expect(0);
        beginning.from(&machine)
    }

    /// The same with parity, and a pack that is damaged in three places.
    pub(crate) fn damaged() -> Self {
        let beginning = Self::packed();
        let machine = beginning.fresh(0, Work::Repair);
        beginning.work(Work::Parity, &machine, &[], "").expect(0);
        damage(&machine.path("repo"));
        beginning.from(&machine)
    }

    /// Begins with what that machine has now.
    fn from(self, machine: &Machine) -> Self {
        let image = Image::read(&machine.path("")).expect("it can be read");
        fs::remove_dir_all(machine.path("")).expect("it can be removed");
        Self { image, ..self }
    }

    fn machine(&self, number: usize) -> PathBuf {
        let folder = self.folder.path().join(format!("machine-{number}"));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    pub(crate) fn source(&self) -> PathBuf {
        self.folder.path().join("source")
    }

    fn identity(&self) -> PathBuf {
        self.folder.path().join("identity")
    }

    pub(crate) fn run(&self, machine: &Machine, args: &[&str]) -> Outcome {
        self.run_by(machine, &[], args)
    }

    /// Runs a command that opens the repository with a key of its own, which takes no time.
    fn run_by(&self, machine: &Machine, by: &[&str], args: &[&str]) -> Outcome {
        Outcome::of(&mut self.command_by(machine, by, args))
    }

    fn command_by(&self, machine: &Machine, by: &[&str], args: &[&str]) -> Command {
        let (repo, identity) = (machine.path("repo"), self.identity());
        let opens = ["-r", text(&repo), "--identity", text(&identity)];
        machine.command_by(by, [args, &opens, &["--fingerprint", &self.fingerprint]].concat())
    }

    pub(crate) fn work(&self, work: Work, machine: &Machine, by: &[&str], target: &str) -> Outcome {
        Outcome::of(&mut self.command(work, machine, by, target))
    }

    pub(crate) fn command(
        &self,
        work: Work,
        machine: &Machine,
        by: &[&str],
        target: &str,
    ) -> Command {
        let (source, target) = (self.source(), machine.path(target));
        let from = format!("latest:{}", text(&source));
        match work {
            Work::Backup => self.command_by(machine, by, &["backup", text(&source)]),
            Work::Prune => self.command_by(machine, by, &["prune"]),
            Work::Restore => {
                self.command_by(machine, by, &["restore", &from, "--target", text(&target)])
            }
            Work::Parity => self.command_by(machine, by, &["check", "--parity", PARITY]),
            Work::Repair => self.command_by(machine, by, &["check", "--repair"]),
        }
    }

    /// Restores into what another restore has left, and keeps what is there.
    pub(crate) fn resume(&self, machine: &Machine, target: &Path) -> Outcome {
        let from = format!("latest:{}", text(&self.source()));
        let into = ["--target", text(target), "--overwrite", "never"];
        self.run(machine, &[&["restore", &from], &into[..]].concat())
    }

    /// A computer on which nothing of what is to be tested was done.
    pub(crate) fn fresh(&self, number: usize, work: Work) -> Machine {
        let folder = self.machine(number);
        self.image.lay_down(&folder).expect("room");
        let machine = Machine::in_folder(folder);
        if work == Work::Restore {
            self.run(&machine, &["backup", text(&self.source())]).expect(0);
        }
        machine
    }

    /// The folder that holds all of its machines, and what they back up.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn assert_restored(&self, target: &Path, what: &str) {
        let differences = compare_trees(&self.source(), target, &CompareOptions::default());
        assert_eq!(differences, [], "{what}");
    }

    /// The same of a restore that was killed and resumed; a link, which has no mode to tell by, may
    /// be as it was made.
    pub(crate) fn assert_resumed(&self, target: &Path, what: &str) {
        let differences = compare_trees(&self.source(), target, &CompareOptions::default());
        let (link, other): (Vec<_>, Vec<_>) =
            differences.into_iter().partition(|difference| difference.path == b"link");
        assert_eq!(other, [], "{what}");
        let is_of_its_making = |field: &Field| matches!(field, Field::Mtime | Field::Xattr(_));
        assert!(link.iter().all(|link| is_of_its_making(&link.field)), "{what}: {link:?}");
    }
}

/// Makes what takes calls of its own: a link, a pipe, a file with a hole, and attributes, where the file system
/// has those.
fn make_special(source: &Path) {
    let (hole, link) = (source.join("docs/hole"), source.join("link"));
    let file = fs::File::create(&hole).expect("room");
    file.write_all_at(b"behind a hole", 200_000).expect("room");
    symlink("docs/hole", &link).expect("room");
    let mode = Mode::from_raw_mode(0o600);
    mknodat(CWD, source.join("pipe"), FileType::Fifo, mode, 0).expect("room");
    let _ = lsetxattr(&hole, "user.origin", b"here", XattrFlags::empty());
    // For root.
    let _ = lsetxattr(&link, "trusted.origin", b"here", XattrFlags::empty());
}

/// Writes a file that is more than a pack holds.
pub(crate) fn fill_a_pack(source: &Path) {
    fs::write(source.join("large"), Random::new(8).bytes(50 << 20)).expect("room");
}

/// Turns bits of the largest pack there, at its beginning, in the middle and near its end.
pub(crate) fn damage(folder: &Path) {
    let len = |path: &PathBuf| fs::metadata(path).expect("it is there").len();
    let is_pack = |path: &PathBuf| path.components().any(|part| part.as_os_str() == "packs");
    let packs = files_below(folder).into_iter().filter(is_pack);
    let pack = packs.max_by_key(len).expect("a pack");
    let bytes = len(&pack) as usize;
    [5000, bytes / 2, bytes - 40].into_iter().for_each(|at| flip(&pack, at));
}

/// Where nothing waits for a disk.
fn memory() -> &'static Path {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { shared } else { Path::new("/tmp") }
}
