//! The power is cut at every moment of a restore, and the disk keeps as little as it may: the next restore with
//! `--overwrite if-newer` leaves exactly what the snapshot has, and nothing of its own beside it.
//!
//! A length, a time and a mode may outlive content that was written before them. What looks finished is trusted by
//! the next restore, so it must not look so before its content is on the disk.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use holdall_testkit::{
    CompareOptions, History, Image, Random, Slice, State, Watch, compare_trees, failing,
    has_strace, memory, setting, states,
};

use crate::house::{Machine, Outcome, is_root, run_by, text};

/// Of each of the two scenes.
const STATES: u64 = 1200;
/// A change meets one state in so many.
const SLICES: u64 = 24;

/// A repository with one snapshot of a small tree.
struct Scene {
    machine: Machine,
    source: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let machine = Machine::new();
        let source = machine.path("source");
        fs::create_dir_all(source.join("shut/empty")).expect("a folder");
        let mut random = Random::new(3);
        for (name, bytes, mode) in [
            ("letter", 700, 0o644),
            ("shut/read-only", 3000, 0o444),
            ("shut/nothing", 0, 0o600),
            ("shut/one", 9000, 0o755),
            ("shut/zeros", 0, 0o640),
        ] {
            fs::write(source.join(name), random.bytes(bytes)).expect("a file");
            fs::set_permissions(source.join(name), PermissionsExt::from_mode(mode)).expect("ours");
        }
        fs::write(source.join("shut/zeros"), [0; 5000]).expect("a file");
        fs::set_permissions(source.join("shut"), PermissionsExt::from_mode(0o555)).expect("ours");
        machine.init(&["-r", text(&machine.path("repo"))]);
        machine.ok(["backup", "-r", text(&machine.path("repo")), text(&source)]);
        Self { machine, source }
    }

    /// The same names with other content, and older.
    fn older(&self) -> Image {
        let folder = memory().expect("a folder");
        fs::create_dir_all(folder.path().join("shut/empty")).expect("a folder");
        for name in ["letter", "shut/read-only", "shut/nothing", "shut/one", "shut/zeros"] {
            let path = folder.path().join(name);
            fs::write(&path, "older").expect("a file");
            let file = fs::File::open(&path).expect("it is there");
            file.set_modified(UNIX_EPOCH + Duration::from_secs(1)).expect("ours");
        }
        Image::read_with_metadata(folder.path()).expect("it can be read")
    }

    fn restore(&self, target: &Path) -> std::process::Command {
        let (repo, from) = (self.machine.path("repo"), format!("latest:{}", text(&self.source)));
        let args = ["restore", "-r", text(&repo), &from, "--target", text(target)];
        self.machine.command(args.into_iter().chain(["--overwrite", "if-newer"]))
    }

    /// What a restore into a folder that holds `before` may be cut to.
    fn states(&self, before: &Image, seed: u64) -> Vec<State> {
        let folder = memory().expect("a folder");
        let disk = folder.path().join("disk");
        before.lay_down(&disk).expect("it can be made");
        let mut history =
            History::new(&disk, &folder.path().join("notes"), before, "").with_metadata();
        let watch = Watch::new(&folder.path().join("trace"));
        let done = watch.run(&self.restore(&disk), &mut history, None).expect("strace runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(self.differs(&disk), None);
        states(&history, seed, STATES as usize / 2)
    }

    /// What a folder holds that the source does not, or the other way round.
    fn differs(&self, target: &Path) -> Option<String> {
        let found = compare_trees(&self.source, target, &CompareOptions::default());
        (!found.is_empty()).then(|| format!("{found:?}"))
    }

    /// Restores once more into some of these states, and expects the whole tree.
    fn goes_on_from(&self, states: Vec<State>) {
        let there = states.len();
        let states = Slice::one_in(SLICES).pick(states);
        println!("{} of {there} states", states.len());
        let failed = failing(&states, |state, folder| {
            let disk = folder.join("disk");
            state.image.lay_down(&disk).map_err(|error| error.to_string())?;
            let done = self.restore(&disk).output().map_err(|error| error.to_string())?;
            let wrong = match done.status.success() {
                true => self.differs(&disk),
                false => Some(String::from_utf8_lossy(&done.stderr).into_owned()),
            };
            fs::remove_dir_all(&disk).map_err(|error| error.to_string())?;
            wrong.map_or(Ok(()), |wrong| Err(format!("{wrong}\n  {}", state.what)))
        });
        assert!(failed.is_empty(), "{} of {}: {}", failed.len(), states.len(), failed.join("\n"));
    }
}

fn seed() -> u64 {
    setting("HOLDALL_POWER_SEED", Slice::one_in(SLICES).seed(1))
}

#[test]
fn a_restore_whose_power_was_cut_is_finished_by_the_next() {
    if !has_strace() || !is_root("write what others may only read") {
        return;
    }
    let scene = Scene::new();
    scene.goes_on_from(scene.states(&Image::default(), seed()));
}

#[test]
fn a_restore_over_older_files_whose_power_was_cut_leaves_nothing_beside_them() {
    if !has_strace() || !is_root("write what others may only read") {
        return;
    }
    let scene = Scene::new();
    scene.goes_on_from(scene.states(&scene.older(), seed()));
}

#[test]
fn what_a_disk_did_not_take_is_told_and_left_unfinished() {
    if !has_strace() {
        return;
    }
    let scene = Scene::new();
    let target = scene.machine.path("target");
    scene.older().lay_down(&target).expect("it can be made");
    fs::remove_file(target.join("letter")).expect("it is there");
    let trace = scene.machine.path("trace");
    let inject = ["-e", "trace=syncfs", "-e", "inject=syncfs:error=EIO:when=1"];
    let by = [&["strace", "-f", "-o", text(&trace)][..], &inject].concat();
    let done = Outcome::of(&mut run_by(&by, &scene.restore(&target))).expect(3);
    let told = "target/letter: it may not be on the disk and stays unfinished";
    assert!(
        done.stderr.contains(told) && done.stderr.contains("again with --overwrite"),
        "{}",
        done.stderr
    );
    let mode = fs::metadata(target.join("letter")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o7777, 0o1200);
    assert_eq!(fs::read(target.join("shut/one")).expect("it is there"), b"older");
    assert_eq!(fs::read_dir(target.join("shut")).expect("it is there").count(), 5);
    Outcome::of(&mut scene.restore(&target)).expect(0);
    assert_eq!(scene.differs(&target), None);
}
