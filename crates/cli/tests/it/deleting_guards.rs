//! What `restore --delete` never touches, wherever it is: what is excluded, repositories, and what holdall keeps and
//! uses.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::deleting::{ALWAYS, BEFORE, Home};
use crate::house::{Outcome, is_root, text};
use crate::mounts::{Mount, namespace};

#[test]
fn what_lies_in_an_excluded_folder_stays_however_that_is_named() {
    let home = Home::new();
    let thesis = home.home.join("letters/new/thesis.tex");
    fs::create_dir(thesis.parent().unwrap()).unwrap();
    fs::write(&thesis, "months").unwrap();
    let absolute = home.home.join("letters");
    let with_slash = format!("{}/", absolute.display());
    for pattern in ["letters", "letters/", "**/letters", text(&absolute), &with_slash] {
        let outcome = home.restore(&["--exclude", pattern]).expect(0);
        assert!(thesis.exists(), "{pattern}: {}", outcome.stdout);
        assert!(!outcome.stderr.contains("matches nothing"), "{pattern}: {}", outcome.stderr);
    }
}

#[test]
fn an_exclude_that_meets_nothing_is_told_before_anything_goes() {
    let home = Home::new();
    fs::write(home.home.join("letters/extra"), "extra").unwrap();
    let outcome = home.restore(&["-n", "--exclude", "letters/*", "--exclude", "*.odt"]).expect(0);
    assert!(outcome.stderr.contains("--exclude letters/* matches nothing"), "{}", outcome.stderr);
    assert_eq!(outcome.stderr.matches("matches nothing").count(), 1, "{}", outcome.stderr);
}

/// Makes a folder of the snapshot a repository.
fn begin_in(home: &Home, folder: &Path) {
    home.machine.init(&["-r", text(folder)]);
    home.machine.ok(["backup", "-r", text(folder), text(&home.home.join("letters"))]);
}

#[test]
fn a_repository_that_was_begun_in_folders_of_the_snapshot_stays_whole() {
    let home = Home::new();
    let usb = home.home.join("usb");
    for name in ["packs", "spare", "wrappings"] {
        fs::create_dir_all(usb.join(name)).unwrap();
    }
    home.back_up();
    begin_in(&home, &usb);
    let before = home.files();
    let outcome = home.restore(&[]).expect(0);
    assert_eq!(home.files(), before, "{}", outcome.stdout);
    assert_eq!(outcome.stderr.matches("is a repository").count(), 1, "{}", outcome.stderr);
    // Nor does one without its marker go, in a folder of the snapshot or anywhere else.
    let moved = home.home.join("moved");
    fs::rename(&usb, &moved).unwrap();
    fs::remove_file(moved.join("holdall-repository")).unwrap();
    let before = crate::house::files_below(&moved);
    let outcome = home.restore(&[]).expect(0);
    assert_eq!(crate::house::files_below(&moved), before, "{}", outcome.stdout);
}

#[test]
fn a_target_that_lies_in_a_repository_is_refused() {
    let home = Home::new();
    let records = home.repo.join("records");
    let before = crate::house::files_below(&home.repo);
    let what = format!("latest:{}", home.home.display());
    for target in [&records, &home.repo] {
        let args = [&["restore", &*what, text(target), "-r", text(&home.repo)], &ALWAYS[..]];
        let refused = home.machine.run(args.concat()).expect(1).stderr;
        assert!(refused.contains("a repository"), "{refused}");
        assert_eq!(crate::house::files_below(&home.repo), before);
    }
}

#[test]
fn what_another_users_holdall_keeps_stays() {
    let home = Home::new();
    let state = home.home.join(".local/state/holdall");
    fs::create_dir_all(state.join("keys")).unwrap();
    let key = state.join("keys/00112233445566778899aabbccddeeff");
    for file in [state.join("identity.json"), state.join("pairings.json"), key.clone()] {
        fs::write(file, "{}").unwrap();
    }
    fs::write(home.home.join(".local/extra"), "extra").unwrap();
    let outcome = home.restore(&[]).expect(0);
    assert!(key.exists() && state.join("identity.json").exists(), "{}", outcome.stdout);
    assert!(!home.home.join(".local/extra").exists());
    assert!(outcome.stderr.contains("holdall's own"), "{}", outcome.stderr);
}

#[test]
fn below_what_holdall_keeps_nothing_is_deleted_though_it_is_named() {
    let home = Home::new();
    let state = home.home.join("own/state");
    fs::create_dir_all(state.join("keys")).unwrap();
    fs::write(state.join("keys/old"), "old").unwrap();
    home.back_up();
    fs::write(state.join("keys/new"), "new").unwrap();
    let what = format!("latest:{}", state.join("keys").display());
    let args = [&["restore", &*what, "-r", text(&home.repo)], &ALWAYS[..]].concat();
    let mut command = home.machine.command(&args);
    command.env("HOLDALL_CONFIG_DIR", home.home.join("own"));
    let refused = Outcome::of(&mut command).expect(1).stderr;
    assert!(refused.contains("holdall's own"), "{refused}");
    assert!(state.join("keys/new").exists());
}

#[test]
fn a_link_at_the_target_is_refused_and_what_it_points_to_stays() {
    let home = Home::new();
    let outside = home.machine.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("mine"), "mine").unwrap();
    fs::remove_dir_all(&home.home).unwrap();
    symlink(&outside, &home.home).unwrap();
    let refused = home.restore(&[]).expect(1).stderr;
    assert!(refused.contains("is a link"), "{refused}");
    let what = format!("latest:{}", home.home.display());
    let target = format!("{}/", home.home.display());
    let args = [&["restore", &*what, &target, "-r", text(&home.repo)], &ALWAYS[..]].concat();
    home.machine.run(args).expect(1);
    assert!(outside.join("mine").exists());
}

#[test]
fn the_files_that_open_the_repository_stay_and_links_to_holdalls_folders() {
    let home = Home::new();
    let password = home.home.join("new/mypassword");
    let elsewhere = home.machine.path("elsewhere");
    fs::create_dir_all(password.parent().unwrap()).unwrap();
    fs::create_dir_all(elsewhere.join("state")).unwrap();
    fs::write(&password, "correct horse\n").unwrap();
    fs::write(home.home.join("new/extra"), "extra").unwrap();
    let config = home.home.join("new/config");
    symlink(&elsewhere, &config).unwrap();
    let mut command = home.command(&["--password-file", text(&password)]);
    command.env("HOLDALL_CONFIG_DIR", &config).env_remove("HOLDALL_PASSWORD");
    let outcome = Outcome::of(&mut command).expect(0);
    assert!(password.exists(), "{}", outcome.stdout);
    assert!(config.symlink_metadata().is_ok(), "{}", outcome.stdout);
    assert!(!home.home.join("new/extra").exists());
}

#[test]
fn another_spelling_of_what_the_snapshot_has_stays_and_is_told() {
    let home = Home::new();
    fs::write(home.home.join("letters/caf\u{e9}"), "first").unwrap();
    fs::write(home.home.join("letters/both"), "first").unwrap();
    home.back_up();
    let letters = home.home.join("letters");
    fs::rename(letters.join("will.odt"), letters.join("WILL.odt")).unwrap();
    fs::rename(letters.join("caf\u{e9}"), letters.join("Cafe\u{301}")).unwrap();
    fs::write(letters.join("BOTH"), "extra").unwrap();
    let outcome = home.restore(&[]).expect(0);
    assert!(letters.join("WILL.odt").exists(), "{}", outcome.stdout);
    assert!(letters.join("Cafe\u{301}").exists(), "{}", outcome.stdout);
    assert_eq!(outcome.stderr.matches("another spelling").count(), 2, "{}", outcome.stderr);
    assert!(!letters.join("BOTH").exists(), "both are there, so that one of them is extra");
}

#[test]
fn what_a_killed_restore_left_is_not_listed() {
    let home = Home::new();
    fs::write(home.home.join("letters/.holdall-0123456789abcdef.partial"), "left").unwrap();
    let outcome = home.restore(&[]).expect(0);
    assert!(!outcome.stdout.contains("to delete"), "{}", outcome.stdout);
}

#[test]
fn layers_on_several_disks_are_one_file_system() {
    let home = Home::new();
    let Some(disk) = Mount::in_memory(&home.machine.path("disk"), 1 << 20) else { return };
    let lower = home.machine.path("lower");
    for folder in [&lower.join("new"), &disk.point().join("upper"), &disk.point().join("work")] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(lower.join("new/extra"), "extra").unwrap();
    let target = home.machine.path("target");
    fs::create_dir(&target).unwrap();
    let script = format!(
        "mount -t overlay overlay -o lowerdir={},upperdir={d}/upper,workdir={d}/work {}",
        lower.display(),
        target.display(),
        d = disk.point().display()
    );
    let what = format!("latest:{}", home.home.display());
    let args = [&["restore", &*what, text(&target), "-r", text(&home.repo)], &ALWAYS[..]].concat();
    let outcome = Outcome::of(&mut namespace(&home.machine, &script, &args)).expect(0);
    assert!(outcome.stdout.contains("to delete:"), "{}{}", outcome.stdout, outcome.stderr);
    assert!(!outcome.stderr.contains("another file system"), "{}", outcome.stderr);
}

#[test]
fn what_cannot_be_deleted_is_summed_up_as_that_and_the_rest_goes() {
    const AS_NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    if !is_root("have a folder that cannot be changed") {
        return;
    }
    let home = Home::new();
    let new = home.home.join("new");
    fs::create_dir_all(new.join("closed")).unwrap();
    fs::write(new.join("closed/file"), "extra").unwrap();
    fs::write(new.join("last"), "extra").unwrap();
    let top = home.machine.path("");
    let given = Command::new("chown").args(["-R", "-h", "65534:65534"]).arg(&top).status().unwrap();
    let taken = Command::new("chown").arg("0:0").arg(new.join("closed")).status().unwrap();
    assert!(given.success() && taken.success());
    let what = format!("latest:{}", home.home.display());
    let args = [&["restore", &*what, "-r", text(&home.repo)], &ALWAYS[..]].concat();
    let outcome = home.machine.run_by(&AS_NOBODY, args).expect(3);
    assert!(outcome.stdout.contains("1 could not be deleted"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains("could not be restored"), "{}", outcome.stdout);
    let mut kept = BEFORE.to_vec();
    kept.push("new/closed/file");
    assert_eq!(home.files(), kept);
}

#[test]
fn what_stays_and_why_is_told_to_programs_too() {
    let home = Home::new();
    fs::create_dir_all(home.home.join("disk/lost+found")).unwrap();
    home.machine.init(&["-r", text(&home.home.join("disk/other"))]);
    let outcome = home.restore(&["--json", "-q"]).expect(0);
    let mut kept = outcome.of_type("kept");
    kept.sort_by_key(|one| one["path"].as_str().unwrap_or_default().to_owned());
    let of = |at: usize, field: &str| kept[at][field].as_str().unwrap_or_default().to_owned();
    assert_eq!(kept.len(), 2, "{}", outcome.stdout);
    assert!(of(0, "path").ends_with("disk/lost+found"), "{}", outcome.stdout);
    assert!(of(0, "reason").contains("its file system"), "{}", outcome.stdout);
    assert!(of(1, "reason").contains("a repository"), "{}", outcome.stdout);
}
