//! What is restored without a target comes back where it was, beside what is there, and nothing of that is touched. Paths may be
//! relative, and the target may be named as `cp` has it.

use std::fs;
use std::os::unix::fs::{chown, lchown};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::house::{Machine, Outcome, files_below, is_root, text};

/// A machine with a key that is kept, a repository, and a snapshot of a folder with letters.
fn backed_up() -> (Machine, PathBuf, PathBuf) {
    let machine = Machine::new();
    let (home, repo) = (machine.path("home"), machine.path("repo"));
    fs::create_dir_all(home.join("letters/old")).unwrap();
    fs::write(home.join("letters/will.odt"), "first").unwrap();
    fs::write(home.join("letters/old/note"), "old note").unwrap();
    machine.init(&["-r", text(&repo)]);
    machine.ok(["backup", "-r", text(&repo), text(&home)]);
    (machine, home, repo)
}

/// Runs a command in a folder.
fn run_in(machine: &Machine, folder: &Path, repo: &Path, args: &[&str]) -> Outcome {
    let mut command: Command = machine.command([args, &["-r", text(repo)]].concat());
    Outcome::of(command.current_dir(folder))
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_comes_back_where_it_was_and_beside_what_is_there() {
    let (machine, home, repo) = backed_up();
    let letters = home.join("letters");
    let restore = |more: &[&str]| {
        run_in(&machine, &letters, &repo, &[&["restore", "latest:will.odt"], more].concat())
    };
    fs::write(letters.join("will.odt"), "mine").unwrap();
    let said = restore(&[]).expect(0).stdout;
    assert_eq!(fs::read(letters.join("will.odt")).unwrap(), b"mine");
    let beside = names(&letters).into_iter().find(|name| name.contains("restored-")).unwrap();
    assert!(
        beside.starts_with("will.odt.restored-20") && said.contains(&beside),
        "{beside}: {said}"
    );
    assert_eq!(fs::read(letters.join(&beside)).unwrap(), b"first");
    // Another one on the same day.
    let told = restore(&["--json"]).expect(0).summary();
    let other = told["restored_to"]["path"].as_str().unwrap().to_owned();
    assert!(other.ends_with("-2"), "{other}");
    assert_eq!(names(&letters).len(), 4, "{:?}", names(&letters));

    let skipped = restore(&["--overwrite", "never"]).expect(0).stdout;
    assert!(!skipped.contains("restored as"), "{skipped}");

    restore(&["-n"]).expect(0);
    assert_eq!(names(&letters).len(), 4);
    restore(&["--overwrite", "always"]).expect(0);
    assert_eq!(fs::read(letters.join("will.odt")).unwrap(), b"first");
    fs::remove_file(letters.join("will.odt")).unwrap();
    let said = restore(&[]).expect(0).stdout;
    assert!(said.contains(&format!("restored as {}", text(&letters.join("will.odt")))), "{said}");
    assert_eq!(fs::read(letters.join("will.odt")).unwrap(), b"first");
    assert_eq!(names(&letters).len(), 4, "{:?}", names(&letters));
}

#[test]
fn a_folder_comes_back_where_it_was_and_beside_what_is_there() {
    let (machine, home, repo) = backed_up();
    let letters = home.join("letters");
    let restore = |path: &str| run_in(&machine, &home, &repo, &["restore", path]);
    fs::write(letters.join("will.odt"), "mine").unwrap();
    restore("latest:letters").expect(0);
    assert_eq!(fs::read(letters.join("will.odt")).unwrap(), b"mine");
    let beside =
        names(&home).into_iter().find(|name| name.starts_with("letters.restored-")).unwrap();
    assert_eq!(fs::read(home.join(&beside).join("will.odt")).unwrap(), b"first");
    assert_eq!(fs::read(home.join(&beside).join("old/note")).unwrap(), b"old note");

    fs::remove_dir_all(&letters).unwrap();
    restore("latest:./letters/").expect(0);
    assert_eq!(fs::read(letters.join("old/note")).unwrap(), b"old note");
    // What of it is gone, with all above it.
    fs::remove_dir_all(&letters).unwrap();
    restore("latest:letters/old").expect(0);
    assert_eq!(names(&letters), ["old"]);
    restore("latest:letters/none").expect(1);
}

#[test]
fn a_whole_snapshot_is_not_put_among_what_is_there() {
    let (machine, home, repo) = backed_up();
    let before = files_below(&machine.path("home")).len();
    for whole in ["latest", "latest:/"] {
        let refused = run_in(&machine, &home, &repo, &["restore", whole]).expect(2).stderr;
        assert!(refused.contains("where to?") && refused.contains("DIR"), "{refused}");
    }
    assert_eq!(files_below(&machine.path("home")).len(), before);
}

#[test]
fn the_target_may_be_a_second_argument_or_come_after_to() {
    let (machine, home, repo) = backed_up();
    let restored = |args: &[&str], target: &str| {
        run_in(&machine, &machine.path(""), &repo, &[&["restore"], args].concat()).expect(0);
        fs::read(machine.path(target)).unwrap()
    };
    let letters = format!("latest:{}", text(&home.join("letters")));
    assert_eq!(restored(&[&letters, "a"], "a/will.odt"), b"first");
    assert_eq!(restored(&[&letters, "--to", "b"], "b/will.odt"), b"first");
    assert_eq!(restored(&[&letters, "--target", "c"], "c/will.odt"), b"first");
    let below = format!("d{}", text(&home.join("letters/will.odt")));
    assert_eq!(restored(&["latest", "d"], &below), b"first");
    run_in(&machine, &home, &repo, &["restore", "latest", "e", "--to", "f"]).expect(2);
}

#[test]
fn paths_in_a_snapshot_begin_in_the_current_folder() {
    let (machine, home, repo) = backed_up();
    let said = |args: &[&str]| run_in(&machine, &home, &repo, args).expect(0).stdout;
    assert_eq!(
        said(&["ls", "latest", "letters/old"]).trim_end(),
        text(&home.join("letters/old/note"))
    );
    assert_eq!(said(&["dump", "latest:letters/will.odt"]), "first");
    assert!(said(&["history", "letters/will.odt"]).contains("created"));
    assert!(said(&["snapshots", "--path", "letters", "--json"]).contains("snapshot"));
    assert_eq!(said(&["diff", "latest", "latest", "letters", "-q"]), "");
    let none = run_in(&machine, &home, &repo, &["ls", "latest", "none"]).expect(1).stderr;
    assert!(none.contains(text(&home.join("none"))), "{none}");
}

/// Seen: names of zones were taken for UTC, which every container sets so.
#[test]
fn times_are_those_of_the_zone_that_tz_names() {
    let (machine, home, repo) = backed_up();
    let old = home.join("letters/old/note");
    let touched = Command::new("touch").args(["-d", "2026-07-01T10:00:00Z"]).arg(&old).status();
    assert!(touched.unwrap().success());
    machine.ok(["backup", "-r", text(&repo), text(&home)]);
    for (zone, hour) in [
        ("Europe/Berlin", "12:00 CEST"),
        ("America/New_York", "06:00 EDT"),
        ("America/Sao_Paulo", "07:00 -03"),
        ("UTC", "10:00 UTC"),
    ] {
        let mut command = machine.command(["ls", "-l", "latest", text(&old), "-r", text(&repo)]);
        let said = Outcome::of(command.env("TZ", zone)).expect(0).stdout;
        assert!(said.contains(&format!("2026-07-01 {hour}")), "{zone}: {said}");
    }
}

#[test]
fn root_is_led_nowhere_else_by_a_link_of_another_user() {
    if !is_root("whose links are followed") {
        return;
    }
    let (machine, home, repo) = backed_up();
    let (letters, elsewhere) = (home.join("letters"), machine.path("elsewhere"));
    fs::create_dir(&elsewhere).unwrap();
    fs::rename(&letters, home.join("moved")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &letters).unwrap();
    lchown(&letters, Some(65534), Some(65534)).unwrap();
    chown(&home, Some(65534), Some(65534)).unwrap();
    for path in ["letters", "letters/will.odt", "letters/old"] {
        for overwrite in [&[][..], &["--overwrite", "always"]] {
            let path = format!("latest:{path}");
            let args = [&["restore", &*path], overwrite].concat();
            let outcome = run_in(&machine, &home, &repo, &args);
            assert_eq!(names(&elsewhere), [""; 0], "{path}");
            // The link itself stays, and its folder is restored beside it.
            let is_beside = path == "latest:letters" && overwrite.is_empty();
            let ended = outcome.expect(if is_beside { 0 } else { 1 });
            assert!(is_beside || ended.stderr.contains("symbolic link"), "{}", ended.stderr);
        }
    }
    // Root's own link leads where root wants.
    lchown(&letters, Some(0), Some(0)).unwrap();
    chown(&home, Some(0), Some(0)).unwrap();
    run_in(&machine, &home, &repo, &["restore", "latest:letters/will.odt"]).expect(0);
    assert_eq!(names(&elsewhere), ["will.odt"]);
}

#[test]
fn what_a_killed_restore_left_is_not_taken_for_another_snapshot_s_file() {
    let (machine, home, repo) = backed_up();
    let letters = home.join("letters");
    fs::write(letters.join("will.odt"), "mine").unwrap();
    let said = run_in(&machine, &letters, &repo, &["restore", "latest:will.odt"]).expect(0).stdout;
    let beside = names(&letters).into_iter().find(|name| name.contains("restored-")).unwrap();
    assert!(said.contains(&beside), "{said}");
    // As it was called by an earlier version, and can be made by anybody.
    let left = letters.join(format!(".{beside}-2.unfinished"));
    fs::create_dir(&left).unwrap();
    fs::write(left.join("will.odt"), "not from the snapshot").unwrap();
    run_in(&machine, &letters, &repo, &["restore", "latest:will.odt"]).expect(0);
    assert_eq!(fs::read(letters.join(format!("{beside}-2"))).unwrap(), b"first");
}

#[test]
fn a_folder_takes_the_place_of_a_file_only_if_that_is_overwritten_in_any_case() {
    let (machine, home, repo) = backed_up();
    let letters = home.join("letters");
    fs::remove_dir_all(&letters).unwrap();
    fs::write(&letters, "a file by now").unwrap();
    let restore = |more: &[&str]| {
        run_in(&machine, &home, &repo, &[&["restore", "latest:letters"], more].concat())
    };
    for when in ["never", "if-newer"] {
        let said = restore(&["--overwrite", when]).expect(1).stderr;
        assert!(said.contains("is no folder") && said.contains("--overwrite always"), "{said}");
    }
    assert_eq!(fs::read(&letters).unwrap(), b"a file by now");
    restore(&["--overwrite", "always", "-n"]).expect(0);
    assert_eq!(fs::read(&letters).unwrap(), b"a file by now");
    let said = restore(&["--overwrite", "always"]).expect(0).stdout;
    assert!(said.contains(&format!("restored as {}", text(&letters))), "{said}");
    assert_eq!(fs::read(letters.join("old/note")).unwrap(), b"old note");
    assert_eq!(names(&home), ["letters"]);
}

#[test]
fn nothing_is_left_of_a_restore_in_which_nothing_was_wanted() {
    let (machine, home, repo) = backed_up();
    let wants_nothing = ["--include", "nix"];
    let restore = |more: &[&str]| {
        let args = [&["restore", "latest:letters"], more, &wants_nothing].concat();
        run_in(&machine, &home, &repo, &args).expect(1)
    };
    restore(&["target"]);
    restore(&[]);
    assert_eq!(names(&home), ["letters"]);
    fs::create_dir(home.join("target")).unwrap();
    restore(&["target"]);
    assert_eq!(names(&home), ["letters", "target"], "it was there");
}
