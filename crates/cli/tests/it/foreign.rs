//! A repository's folder may be somebody else's: a stick, a share, a copy that others can write to. Whatever is put
//! in the place of one of its files or folders, nothing outside of it is touched, nothing hangs, and the place is named.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use holdall_testkit::{Process, Slice, copy_folder};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use tempfile::TempDir;

use crate::house::{Machine, Outcome, Server, folder, is_root, run_by, small_tree, text};

/// A change meets one replacement in so many.
const SLICES: u64 = 20;
/// A command that takes longer hangs: none takes a second.
const PATIENCE: &str = "60";
const HUNG: Option<i32> = Some(124);
const DAMAGED: Option<i32> = Some(20);

/// What is put in the place of a file or a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Foreign {
    /// A link to what was there, which lies outside now.
    Link,
    DanglingLink,
    /// Another name of what lies outside.
    HardLink,
    Pipe,
    /// One that can be read without end, and takes whatever is written.
    Device,
    /// A folder in a file's place, or a file in a folder's.
    OtherKind,
}

const ALL: [Foreign; 6] = [
    Foreign::Link,
    Foreign::DanglingLink,
    Foreign::HardLink,
    Foreign::Pipe,
    Foreign::Device,
    Foreign::OtherKind,
];

impl Foreign {
    /// Moves what is at `path` to `outside`, and puts this in its place; whether that makes sense there.
    fn put(self, path: &Path, outside: &Path) -> bool {
        let is_folder = fs::symlink_metadata(path).unwrap().is_dir();
        if is_folder && self == Self::HardLink {
            return false;
        }
        fs::rename(path, outside).unwrap();
        let node = |kind, device| {
            mknodat(CWD, path, kind, Mode::RUSR | Mode::WUSR, device).unwrap();
        };
        match self {
            Self::Link => symlink(outside, path).unwrap(),
            Self::DanglingLink => symlink(outside.with_extension("made"), path).unwrap(),
            Self::HardLink => fs::hard_link(outside, path).unwrap(),
            Self::Pipe => node(FileType::Fifo, 0),
            Self::Device => node(FileType::CharacterDevice, makedev(1, 5)),
            Self::OtherKind if is_folder => fs::write(path, "a file").unwrap(),
            Self::OtherKind => fs::create_dir(path).unwrap(),
        }
        true
    }
}

/// All files and folders below a folder, and it itself.
fn all_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    let mut next = 0;
    while let Some(path) = found.get(next).cloned() {
        next += 1;
        if fs::symlink_metadata(&path).unwrap().is_dir() {
            let mut below: Vec<_> =
                fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
            below.sort();
            found.extend(below);
        }
    }
    found
}

/// What lies in a folder: what a change of it would show in.
fn seen(folder: &Path) -> BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)> {
    let see = |path: &PathBuf| {
        let found = fs::symlink_metadata(path).unwrap();
        let content = if found.is_file() { fs::read(path).unwrap() } else { Vec::new() };
        (found.mode(), found.mtime(), found.mtime_nsec(), content)
    };
    all_below(folder).iter().map(|path| (path.clone(), see(path))).collect()
}

/// The slice of all that is put in the place of all that lies in a folder.
fn cases(sound: &Path) -> Vec<(PathBuf, Foreign)> {
    let names = all_below(sound).into_iter().skip(1);
    let of = |path: PathBuf| {
        let name = path.strip_prefix(sound).unwrap().to_owned();
        ALL.map(|foreign| (name.clone(), foreign))
    };
    Slice::one_in(SLICES).pick(names.flat_map(of))
}

/// Copies a folder to a place where nothing of an earlier copy is left.
pub(crate) fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    copy_folder(from, to);
}

/// A machine with a repository that has something of everything, and a tree to back up into it.
struct Place {
    machine: Machine,
    home: TempDir,
}

impl Place {
    fn new() -> Self {
        let (machine, home) = (Machine::new(), folder());
        let place = Self { machine, home };
        let (tree, repo) = (place.path("tree"), place.path("sound"));
        small_tree(&tree);
        place.machine.init(&["-r", text(&repo)]);
        let back_up = |tag: &str| {
            place.machine.ok(["backup", "-q", "-r", text(&repo), "--tag", tag, text(&tree)])
        };
        back_up("first");
        // Parity closes the tails, and the second run begins new ones.
        place.machine.ok(["check", "-q", "-r", text(&repo), "--parity", "5"]);
        fs::write(tree.join("more.bin"), holdall_testkit::Random::new(6).bytes(300_000)).unwrap();
        back_up("second");
        place.machine.ok(["tag", "-q", "-r", text(&repo), "--add", "third", "latest"]);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn run(machine: &Machine, repo: &Path, args: &[&str]) -> Outcome {
        let command = machine.command([&["-r", text(repo)], args].concat());
        let outcome = Outcome::of(&mut run_by(&["timeout", "--kill-after=1", PATIENCE], &command));
        assert_ne!(outcome.code, HUNG, "{args:?}");
        assert!(outcome.code.is_some_and(|code| code < 100), "{args:?}: {outcome:?}");
        outcome
    }

    /// Puts something in the place of `name` in a copy of the repository, runs every kind of command, and says what
    /// came of it.
    fn meet(&self, name: &Path, foreign: Foreign) -> Option<Met> {
        let (repo, outside) = (self.path("repo"), self.path("outside"));
        let _ = fs::remove_dir_all(&outside);
        fs::create_dir(&outside).unwrap();
        copy(&self.path("sound"), &repo);
        fs::write(outside.join("theirs"), "theirs").unwrap();
        if !foreign.put(&repo.join(name), &outside.join("moved")) {
            return None;
        }
        let before = seen(&outside);
        let (tree, restored) = (self.path("tree"), self.path("restored"));
        let commands: [&[&str]; 9] = [
            &["snapshots"],
            &["restore", "latest", "--target", text(&restored)],
            &["backup", "-q", text(&tree)],
            &["tag", "-q", "--add", "x", "latest"],
            &["forget", "-q", "--keep-last", "1", "--dry-run"],
            &["prune", "-q"],
            &["compact", "-q"],
            &["check", "-q"],
            &["check", "-q", "--repair"],
        ];
        // One that has not seen the repository before: what another copy became later is not missed in this one.
        let machine = Machine::new();
        let outcomes = commands.map(|args| Self::run(&machine, &repo, args));
        let _ = fs::remove_dir_all(&restored);
        let kept = seen(&outside) == before;
        let is_named = |outcome: &Outcome| {
            let said = format!("{}{}", outcome.stdout, outcome.stderr);
            said.contains(text(name)) || said.contains(text(name.file_name().unwrap().as_ref()))
        };
        let refusals = outcomes.iter().filter(|outcome| outcome.code == DAMAGED);
        let is_told = refusals.clone().count() == 0 || refusals.clone().any(is_named);
        Some(Met { codes: outcomes.each_ref().map(|outcome| outcome.code), kept, is_told })
    }
}

/// What came of it.
#[derive(Debug)]
struct Met {
    codes: [Option<i32>; 9],
    kept: bool,
    is_told: bool,
}

#[test]
fn whatever_is_put_in_a_repository_s_place_nothing_outside_is_touched() {
    if !is_root("make devices") {
        return;
    }
    let place = Place::new();
    let mut wrong = Vec::new();
    for (name, foreign) in cases(&place.path("sound")) {
        let Some(met) = place.meet(&name, foreign) else { continue };
        println!("{:<60} {foreign:<14?} {:?}", name.display(), met.codes.map(|code| code.unwrap()));
        if !met.kept || !met.is_told {
            wrong.push(format!("{} as {foreign:?}: {met:?}", name.display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A server's data folder with a machine that has backed up, and the tree that it has.
pub(crate) struct ServedPlace {
    home: TempDir,
    address: String,
}

impl ServedPlace {
    pub(crate) fn new() -> Self {
        let home = folder();
        let server = Server::start(&home.path().join("sound"));
        let place = Self { address: server.address().to_owned(), home };
        small_tree(&place.path("tree"));
        fs::create_dir(place.path("paired")).unwrap();
        let machine = Machine::in_folder(place.path("paired"));
        machine.pair_with(&server);
        machine.ok(["backup", "-q", text(&place.path("tree"))]);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Copies of the data folder and of the machine, which so knows nothing of what another copy became.
    pub(crate) fn copies(&self) -> (PathBuf, Machine) {
        let [data, machine] = ["data", "machine"].map(|name| self.path(name));
        copy(&self.path("sound"), &data);
        copy(&self.path("paired"), &machine);
        (data, Machine::in_folder(machine))
    }

    /// Starts a server on such a copy, at the address that the machine knows.
    pub(crate) fn serve(&self, data: &Path) -> Process {
        Process::spawn(&mut Server::command_at(&self.address, data)).unwrap()
    }

    /// Starts a server where something stands in the place of `name`, asks an administrator's question and has the
    /// machine back up; says whether what lies outside is as it was.
    fn meet(&self, name: &Path, foreign: Foreign) -> Option<bool> {
        let (outside, (data, machine)) = (self.path("outside"), self.copies());
        let _ = fs::remove_dir_all(&outside);
        fs::create_dir(&outside).unwrap();
        if !foreign.put(&data.join(name), &outside.join("moved")) {
            return None;
        }
        let before = seen(&outside);
        let mut server = self.serve(&data);
        let listens = server.wait_for_line("listening on https://").map_err(|error| error.kind());
        assert_ne!(listens, Err(ErrorKind::TimedOut), "{} {foreign:?}", name.display());
        let codes = listens.is_ok().then(|| {
            let admin = machine.administer(&data, &["machines"]);
            let command = machine.command(["backup", "-q", text(&self.path("tree"))]);
            let run = &mut run_by(&["timeout", "--kill-after=1", PATIENCE], &command);
            [admin.code, Outcome::of(run).code]
        });
        println!("{:<60} {foreign:<14?} {codes:?}", name.display());
        assert!(codes.is_none_or(|codes| codes.iter().all(|code| *code < HUNG)));
        drop(server);
        Some(seen(&outside) == before)
    }
}

#[test]
fn whatever_is_put_in_a_server_s_place_nothing_outside_is_touched() {
    if !is_root("make devices") {
        return;
    }
    let place = ServedPlace::new();
    let mut wrong = cases(&place.path("sound"));
    wrong.retain(|(name, foreign)| place.meet(name, *foreign).is_some_and(|kept| !kept));
    assert!(wrong.is_empty(), "{wrong:#?}");
}
