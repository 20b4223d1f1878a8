//! Restoring over what is there: what is kept is exactly the user's, and what is made fits to it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use holdall_testkit::has_strace;

use crate::house::{Machine, Outcome, run_by, text};
use crate::mounts::Share;

/// A repository with a snapshot of a folder.
struct Saved {
    machine: Machine,
    source: PathBuf,
}

impl Saved {
    /// Backs up what `fill` makes.
    fn new(fill: impl FnOnce(&Path)) -> Self {
        let machine = Machine::new();
        let source = machine.path("source");
        fs::create_dir(&source).expect("a folder");
        fill(&source);
        machine.init(&["-r", text(&machine.path("repo"))]);
        machine.ok(["backup", "-r", text(&machine.path("repo")), text(&source)]);
        Self { machine, source }
    }

    /// Restores the folder itself into `target`.
    fn restore(&self, target: &Path, more: &[&str]) -> Outcome {
        Outcome::of(&mut self.restoring(target, more))
    }

    fn restoring(&self, target: &Path, more: &[&str]) -> Command {
        let (repo, from) = (self.machine.path("repo"), format!("latest:{}", text(&self.source)));
        let args = ["restore", "-r", text(&repo), &from, "--target", text(target), "--json"];
        self.machine.command(args.iter().chain(more))
    }

    /// The same, killed when every file is made and none is finished.
    fn killed(&self, target: &Path, more: &[&str]) {
        let trace = self.machine.path("trace");
        let inject = ["-e", "trace=syncfs", "-e", "inject=syncfs:signal=KILL:when=1"];
        let by = [&["strace", "-f", "-o", text(&trace)][..], &inject].concat();
        let done = Outcome::of(&mut run_by(&by, &self.restoring(target, more)));
        assert_ne!(done.code, Some(0), "{done:?}");
    }
}

/// What the last line of a restore notes.
fn notes(done: &Outcome) -> Vec<String> {
    let notes = done.summary()["notes"].as_array().expect("a list").clone();
    notes.iter().map(|note| note.as_str().expect("a note").to_owned()).collect()
}

fn group_of_four(source: &Path) {
    fs::write(source.join("a"), "one").expect("a file");
    for name in ["b", "c", "d"] {
        fs::hard_link(source.join("a"), source.join(name)).expect("a link");
    }
}

fn inodes(target: &Path) -> Vec<u64> {
    let inode = |name| fs::metadata(target.join(name)).expect("it is there").ino();
    ["a", "b", "c", "d"].map(inode).to_vec()
}

#[test]
fn names_of_one_file_are_linked_to_the_one_that_is_there_and_kept() {
    let saved = Saved::new(group_of_four);
    for overwrite in ["never", "if-newer"] {
        let target = saved.machine.path(overwrite);
        saved.restore(&target, &[]).expect(0);
        fs::remove_file(target.join("b")).expect("it is there");
        fs::remove_file(target.join("d")).expect("it is there");
        let kept = fs::metadata(target.join("a")).expect("it is there").ino();
        let done = saved.restore(&target, &["--overwrite", overwrite]).expect(0);
        assert_eq!(inodes(&target), [kept; 4], "{overwrite}");
        assert_eq!(notes(&done), [""; 0], "{overwrite}");
    }
}

#[test]
fn names_of_one_file_that_is_another_now_are_linked_to_each_other() {
    let saved = Saved::new(group_of_four);
    let target = saved.machine.path("target");
    fs::create_dir(&target).expect("a folder");
    fs::write(target.join("a"), "the user's own").expect("a file");
    let done = saved.restore(&target, &["--overwrite", "never"]).expect(0);
    let [a, b, c, d] = inodes(&target)[..] else { panic!("four") };
    assert!(a != b && b == c && c == d, "{:?}", inodes(&target));
    assert_eq!(fs::read(target.join("a")).expect("it is there"), b"the user's own");
    assert_eq!(notes(&done), ["1 link was restored as a copy of its file"]);
}

#[test]
fn names_that_are_kept_apart_from_the_one_that_was_restored_are_told() {
    let saved = Saved::new(group_of_four);
    let target = saved.machine.path("target");
    saved.restore(&target, &[]).expect(0);
    fs::remove_file(target.join("a")).expect("it is there");
    let done = saved.restore(&target, &["--overwrite", "never"]).expect(0);
    let told = "3 links were kept, apart from their files that were restored: --overwrite always links them again";
    assert_eq!(notes(&done), [told]);
    saved.restore(&target, &["--overwrite", "never", "--strict"]).expect(3);
    let done = saved.restore(&target, &["--overwrite", "always"]).expect(0);
    assert_eq!(inodes(&target), [inodes(&target)[0]; 4]);
    assert_eq!(notes(&done), [""; 0]);
}

/// A folder with a file and a folder of the modes that what is being made has.
fn odd_modes(folder: &Path) {
    fs::create_dir_all(folder.join("shut")).expect("a folder");
    for name in ["mine", "shut/file"] {
        fs::write(folder.join(name), text(folder)).expect("a file");
    }
    set_mode(&folder.join("mine"), 0o1200);
    set_mode(&folder.join("shut"), 0o1700);
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("ours");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").mode() & 0o7777
}

/// Whether what [`odd_modes`] made there is as it was.
fn assert_kept(folder: &Path) {
    for name in ["mine", "shut/file"] {
        assert_eq!(fs::read(folder.join(name)).expect("it is there"), text(folder).as_bytes());
    }
    assert_eq!(
        [folder.join("mine"), folder.join("shut")].map(|path| mode(&path)),
        [0o1200, 0o1700]
    );
}

/// A snapshot of what the user has too, and of more.
fn mine_and_more(source: &Path) {
    fs::create_dir(source.join("shut")).expect("a folder");
    for name in ["mine", "more", "shut/file"] {
        fs::write(source.join(name), "of the snapshot").expect("a file");
    }
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    for name in ["mine", "more", "shut/file"] {
        let file = fs::File::open(source.join(name)).expect("it is there");
        file.set_modified(long_ago).expect("ours");
    }
}

#[test]
fn what_has_the_mode_of_half_a_restore_is_the_users_where_none_was_killed() {
    let saved = Saved::new(mine_and_more);
    for overwrite in ["never", "if-newer"] {
        let target = saved.machine.path(overwrite);
        odd_modes(&target);
        saved.restore(&target, &["--overwrite", overwrite]).expect(0);
        assert_eq!(fs::read(target.join("more")).expect("it is there"), b"of the snapshot");
        assert_eq!(fs::read(target.join("mine")).expect("it is there"), text(&target).as_bytes());
        assert_eq!(mode(&target.join("mine")), 0o1200);
        if overwrite == "never" {
            assert_kept(&target);
        }
        assert_eq!(fs::read_dir(&target).expect("a folder").count(), 3, "nothing else is left");
    }
}

#[test]
fn a_file_of_the_users_with_the_name_of_the_mark_is_told() {
    const MARK: &str = ".holdall-restore.unfinished";
    let saved = Saved::new(|source| fs::write(source.join(MARK), "mine").expect("room"));
    let target = saved.machine.path("target");
    let told = saved.restore(&target, &[]).expect(3);
    let told = told.stdout + &told.stderr;
    assert!(told.contains(MARK) && told.contains("holdall dump"), "{told}");
}

#[test]
fn what_a_killed_restore_left_is_told_from_what_was_the_users_before() {
    if !has_strace() {
        return;
    }
    let saved = Saved::new(mine_and_more);
    let target = saved.machine.path("target");
    odd_modes(&target);
    let never = ["--overwrite", "never"];
    saved.killed(&target, &never);
    assert_eq!(mode(&target.join("more")), 0o1200);
    // The user may go on with a part of it.
    let (below, part) = (target.join("shut"), format!("latest:{}/shut", text(&saved.source)));
    fs::remove_file(below.join("file")).expect("it is there");
    saved.killed(&target, &never);
    assert_eq!(mode(&below.join("file")), 0o1200);
    let (repo, overwrite) = (saved.machine.path("repo"), ["--overwrite", "if-newer"]);
    let args = ["restore", "-r", text(&repo), &part, "--target", text(&below)];
    saved.machine.run(args.iter().chain(&overwrite)).expect(0);
    assert_eq!(fs::read(below.join("file")).expect("it is there"), b"of the snapshot");
    assert_eq!(mode(&below.join("file")), 0o644);
    saved.restore(&target, &never).expect(0);
    assert_eq!(fs::read(target.join("more")).expect("it is there"), b"of the snapshot");
    assert_eq!(mode(&target.join("more")), 0o644);
    assert_eq!(fs::read(target.join("mine")).expect("it is there"), text(&target).as_bytes());
    assert_eq!(mode(&target.join("mine")), 0o1200);
    assert_eq!(fs::read_dir(&target).expect("a folder").count(), 3, "nothing else is left");
}

/// Over sshfs a file's change time is its modification time, which may be that of the snapshot already.
#[test]
fn what_a_killed_restore_left_where_no_change_times_are_kept_is_finished() {
    if !has_strace() {
        return;
    }
    let Some(share) = Share::new() else { return };
    let mount = share.mount("mounted", &[]);
    let saved = Saved::new(mine_and_more);
    let (target, never) = (mount.point().join("target"), ["--overwrite", "never"]);
    saved.killed(&target, &never);
    let half = fs::metadata(target.join("more")).expect("it is there");
    assert_eq!((half.mode() & 0o7777, half.ctime()), (0o1200, 1_000_000_000));
    saved.restore(&target, &never).expect(0);
    assert_eq!(mode(&target.join("more")), 0o644);
    assert_eq!(fs::read_dir(&target).expect("a folder").count(), 3, "nothing else is left");
}
