//! Sources of which nothing is in the snapshot: they are empty, or rules leave out all that is in them.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use crate::house::{Machine, text};

#[test]
fn a_source_that_was_emptied_is_told_until_it_has_something_again_or_that_is_meant() {
    let machine = Machine::new();
    let [repo, disk, other] = ["repo", "disk", "other"].map(|name| machine.path(name));
    let [repo, disk, other] = [&repo, &disk, &other].map(|path| text(path));
    machine.init(&["-r", repo]);
    fs::create_dir(disk).unwrap();
    fs::create_dir(other).unwrap();
    let args = ["backup", "-r", repo, disk, other, "--json"];
    // Nothing ever was there.
    machine.run(args).expect(0);
    fs::write(format!("{disk}/file"), "x").unwrap();
    machine.run(args).expect(0);
    fs::remove_file(format!("{disk}/file")).unwrap();
    for _ in 0..3 {
        let told = machine.run(args).expect(3).of_type("error");
        assert_eq!((told.len(), told[0]["path"].as_str()), (1, Some(disk)), "{told:?}");
    }
    // While it is not there it is not forgotten.
    fs::remove_dir(disk).unwrap();
    machine.run(args).expect(3);
    fs::create_dir(disk).unwrap();
    machine.run(args).expect(3);
    machine.run([&args[..], &["--accept-empty", disk]].concat()).expect(0);
    machine.run([&args[..], &["--accept-empty", repo]].concat()).expect(2);
    fs::write(format!("{disk}/file"), "x").unwrap();
    machine.run(args).expect(0);
}

#[test]
fn a_source_that_was_emptied_is_told_whatever_else_is_backed_up_with_it() {
    let machine = Machine::new();
    let [repo, disk, other] = ["repo", "disk", "other"].map(|name| machine.path(name));
    machine.init(&["-r", text(&repo)]);
    for source in [&disk, &other] {
        fs::create_dir(source).unwrap();
        fs::write(source.join("file"), "x").unwrap();
    }
    let back_up =
        |more: &[&str]| machine.run([&["backup", "-r", text(&repo), text(&disk)], more].concat());
    back_up(&[]).expect(0);
    fs::remove_file(disk.join("file")).unwrap();
    for more in [&[text(&other)][..], &[], &[text(&other)]] {
        let told = back_up(more).expect(3);
        assert!(told.stderr.contains("is its disk mounted?"), "{more:?}: {}", told.stderr);
    }
    back_up(&["--accept-empty", text(&disk)]).expect(0);
    back_up(&[text(&other)]).expect(0);
}

#[test]
fn a_source_within_another_that_was_emptied_is_not_forgotten_while_it_is_not_there() {
    let machine = Machine::new();
    let [repo, source, inner] = ["repo", "source", "source/inner"].map(|name| machine.path(name));
    machine.init(&["-r", text(&repo)]);
    fs::create_dir_all(&inner).unwrap();
    fs::write(inner.join("file"), "x").unwrap();
    let args = ["backup", "-r", text(&repo), text(&source), text(&inner)];
    machine.run(args).expect(0);
    fs::remove_file(inner.join("file")).unwrap();
    machine.run(args).expect(3);
    fs::remove_dir(&inner).unwrap();
    machine.run(args).expect(3);
    fs::create_dir(&inner).unwrap();
    machine.run(args).expect(3);
}

#[test]
fn rules_that_leave_out_all_of_a_source_are_told_and_fail_if_something_was_there() {
    let machine = Machine::new();
    let [repo, source] = ["repo", "source"].map(|name| machine.path(name));
    let [repo, source] = [&repo, &source].map(|path| text(path));
    machine.init(&["-r", repo]);
    fs::create_dir(source).unwrap();
    let below = |name: &str| format!("{source}/{name}");
    fs::write(below("file"), "x").unwrap();
    let args = ["backup", "-r", repo, source];
    let all = [&args[..], &["--exclude", "*"]].concat();
    let told = machine.run(&all).expect(0);
    assert!(told.stderr.contains("rules leave out all that is in it"), "{}", told.stderr);
    machine.run(args).expect(0);
    for _ in 0..2 {
        let told = machine.run(&all).expect(3);
        assert!(told.stderr.contains("rules leave out all that is in it"), "{}", told.stderr);
    }
    machine.run(args).expect(0);
    let tag = "Signature: 8a477f597d28d172789f06886806bc55";
    for (file, content, rule) in [
        (".holdallignore", "*\n", &[][..]),
        ("CACHEDIR.TAG", tag, &["--exclude-caches"]),
        (".nobackup", "", &["--exclude-if-present", ".nobackup"]),
    ] {
        fs::write(below(file), content).unwrap();
        machine.run([&args[..], rule].concat()).expect(3);
        fs::remove_file(below(file)).unwrap();
        machine.run(args).expect(0);
    }
}

#[test]
fn a_source_that_is_no_folder_any_more_is_told_until_it_has_something_again_or_that_is_meant() {
    let machine = Machine::new();
    let [repo, source, other, list] =
        ["repo", "source", "other", "list"].map(|name| machine.path(name));
    machine.init(&["-r", text(&repo)]);
    fs::create_dir(&other).unwrap();
    fs::write(other.join("file"), "x").unwrap();
    fs::write(&list, format!("{}\n{}\n", text(&source), text(&other))).unwrap();
    let typed = ["backup", "-r", text(&repo), text(&source), text(&other), "--json"];
    let listed = ["backup", "-r", text(&repo), "--files-from", text(&list), "--json"];
    let become_other: [fn(&std::path::Path); 3] = [
        |at| symlink("nowhere", at).unwrap(),
        |at| drop(UnixListener::bind(at).unwrap()),
        |at| fs::write(at, "file").unwrap(),
    ];
    for args in [&typed[..], &listed] {
        for become_other in become_other {
            fs::create_dir(&source).unwrap();
            fs::write(source.join("file"), "x").unwrap();
            machine.run(args).expect(0);
            fs::remove_dir_all(&source).unwrap();
            become_other(&source);
            for _ in 0..2 {
                let told = machine.run(args).expect(3).of_type("error");
                assert_eq!((told.len(), told[0]["path"].as_str()), (1, Some(text(&source))));
            }
            machine.run([args, &["--accept-empty", text(&source)]].concat()).expect(0);
            machine.run(args).expect(0);
            fs::remove_file(&source).unwrap();
        }
    }
}

#[test]
fn a_link_with_a_slash_that_leads_nowhere_is_a_source_that_is_missing() {
    let machine = Machine::new();
    let [repo, disk, link, other] =
        ["repo", "disk", "link", "other"].map(|name| machine.path(name));
    machine.init(&["-r", text(&repo)]);
    for folder in [&disk, &other] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("file"), "x").unwrap();
    }
    symlink(&disk, &link).unwrap();
    let slash = format!("{}/", text(&link));
    let args = ["backup", "-r", text(&repo), &slash, text(&other), "--json"];
    machine.run(args).expect(0);
    fs::rename(&disk, machine.path("away")).unwrap();
    for _ in 0..2 {
        let told = machine.run(args).expect(3).of_type("error");
        assert_eq!((told.len(), told[0]["path"].as_str()), (1, Some(text(&link))), "{told:?}");
    }
    let alone = machine.run(["backup", "-r", text(&repo), &slash]).expect(1);
    assert!(alone.stderr.contains("is a link that leads nowhere"), "{}", alone.stderr);
    // It is known even where the folder is back, and empty.
    fs::create_dir(&disk).unwrap();
    machine.run(args).expect(3);
    machine.run([&args[..], &["--accept-empty", text(&link)]].concat()).expect(0);
}
