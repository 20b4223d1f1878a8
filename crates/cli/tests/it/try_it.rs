//! `try` on real trees: what the computer and the project themselves consist of.

use std::fs;
use std::path::{Path, PathBuf};

use holdall_testkit::{Process, Random, Slice};

use crate::house::{Machine, Outcome, files_below, folder, small_tree, text};

/// A change tries one file in so many of a real tree.
const SLICES: u64 = 31;

#[test]
fn a_small_tree_is_identical_and_nothing_is_left_behind() {
    let machine = Machine::new().with_password(None);
    let source = machine.path("source");
    small_tree(&source);
    fs::write(source.join(".holdallignore"), "large.*\n").unwrap();
    let work = folder();
    let mut command = machine.command(["try", "--json", source.to_str().unwrap()]);
    let objects = Outcome::of(command.env("TMPDIR", work.path())).expect(0).objects();
    let runs: Vec<_> = objects.iter().filter_map(|object| object["run"].as_str()).collect();
    assert_eq!(runs, ["first backup", "unchanged backup", "restore", "try"]);
    let all = objects.last().unwrap();
    assert_eq!(all["identical"], true);
    assert_eq!(all["differences"], 0);
    assert!(all["verdict"]["limited_by"].is_string());
    assert_eq!(all["unchanged_backup"]["files_new"], 0);
    assert!(files_below(work.path()).is_empty());
    for folder in ["home", "config", "cache"] {
        assert!(!machine.path(folder).exists(), "{folder} was made");
    }

    let words = machine.ok(["try", source.to_str().unwrap()]).stdout;
    assert!(words.contains("identical"), "{words}");
    // Each run is over in a moment, in which nothing limited it.
    assert!(!words.contains("limited by nothing"), "{words}");
    assert!(words.contains("loopback") && words.contains("cache"), "{words}");
}

#[test]
fn an_interrupted_attempt_leaves_nothing_behind() {
    let machine = Machine::new();
    let (source, work) = (machine.path("source"), folder());
    fs::create_dir(&source).unwrap();
    fs::write(source.join("large"), Random::new(2).bytes(64 << 20)).unwrap();
    let mut command = machine.command(["try", "--json", source.to_str().unwrap()]);
    let mut process = Process::spawn(command.env("TMPDIR", work.path())).unwrap();
    process.wait_for_line("{\"message_type\":\"status\"").unwrap();
    process.terminate().unwrap();
    let (status, _) = process.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 0);
}

#[test]
fn without_room_on_a_real_disk_nothing_is_begun() {
    if !Path::new("/dev/shm").is_dir() {
        return;
    }
    let machine = Machine::new();
    let source = tempfile::tempdir_in("/dev/shm").unwrap();
    small_tree(source.path());
    let mut command = machine.command(["try", source.path().to_str().unwrap()]);
    // Both are RAM disks; what is left is /var/tmp, and that is a real one.
    command.env("TMPDIR", "/dev/shm").env("HOLDALL_CACHE_DIR", source.path().join("cache"));
    let said = command.output().unwrap();
    let words = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(!words.contains("work folder       /dev/shm"), "{words}");
}

#[test]
fn usr_comes_back_identical() {
    comes_back_identical(Path::new("/usr"));
}

#[test]
fn the_projects_own_target_folder_comes_back_identical() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    comes_back_identical(target);
}

/// Tries a slice of the regular files of a folder, or the folder itself with all that it holds. What changes while
/// the tests run is named and left out by `try` itself.
fn comes_back_identical(dir: &Path) {
    let slice = Slice::one_in(SLICES);
    let machine = Machine::new().with_password(None);
    let mut files = files_below(dir);
    files.sort();
    assert!(files.len() > 1_000);
    let files = slice.pick(files);
    let source = match slice.is_everything() {
        true => dir.to_owned(),
        false => copied(&files, &machine.path("slice")),
    };
    let done = machine.run(["try", "--json", text(&source)]);
    let all = done.summary();
    assert_eq!(all["identical"], true, "{} differ: {}", all["differences"], all["different_paths"]);
    // Some may have gone since, a tenth at most.
    let compared = all["items_compared"].as_u64().unwrap();
    assert!(compared > files.len() as u64 * 9 / 10, "{compared} of {} files", files.len());
    assert!(matches!(done.code, Some(0 | 3)), "{}", done.stderr);
}

/// Copies files, each under its whole path, to below a folder.
fn copied(files: &[PathBuf], to: &Path) -> PathBuf {
    for file in files {
        let copy = to.join(file.strip_prefix("/").unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        // Another test's files come and go.
        let _ = fs::copy(file, copy);
    }
    to.to_owned()
}
