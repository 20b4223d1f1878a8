//! Sources of which nothing is in the snapshot: they are empty, or rules leave out all that is in them.

use std::fs;

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
