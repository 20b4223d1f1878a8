//! Patterns as they are typed, and what is said of those that cannot be read.

use std::fs;

use crate::house::{Machine, small_tree};

#[test]
fn a_pattern_that_can_not_be_read_is_wrong_usage_and_its_place_is_told() {
    let machine = Machine::new();
    let repo = machine.path("repo");
    let (source, file) = (machine.path("source"), machine.path("patterns"));
    let [repo, source, list] = [&repo, &source, &file].map(|path| path.to_str().unwrap());
    small_tree(source.as_ref());
    fs::write(&file, b"*.o\n\n# fine\nbad[\n\xff\n").unwrap();
    machine.init(&["-r", repo]);
    let backup = |more: [&str; 2]| machine.run(["backup", "-r", repo, source, more[0], more[1]]);
    let said = backup(["--exclude-file", list]).expect(2).stderr;
    assert!(said.contains(&format!("{list}, line 4: pattern \"bad[\": ")), "{said}");
    for option in ["--exclude", "--iexclude"] {
        let said = backup([option, "a\\"]).expect(2).stderr;
        assert!(said.contains(&format!("{option}: pattern \"a\\\\\": ")), "{said}");
    }
    assert!(machine.ok(["snapshots", "-r", repo, "--json"]).of_type("snapshot").is_empty());
}

#[test]
fn what_a_record_does_not_take_is_refused_before_anything_is_read() {
    let machine = Machine::new();
    let [repo, source, list] = ["repo", "source", "list"].map(|name| machine.path(name));
    let [repo, source, list] = [&repo, &source, &list].map(|path| path.to_str().unwrap());
    small_tree(source.as_ref());
    machine.init(&["-r", repo]);
    let backup = |more: &[&str]| machine.run([&["backup", "-r", repo, source], more].concat());
    let refused = |more: &[&str], why: &str| {
        let said = backup(more).expect(2).stderr;
        assert!(said.contains(why) && said.contains("hint: "), "{said}");
    };
    fs::write(list, (0..5000).map(|number| format!("/p{number}\n")).collect::<String>()).unwrap();
    refused(&["--files-from", list], "5001 paths; a snapshot has at most 4096");
    refused(&["--exclude-file", list], "5000 exclude patterns; a snapshot has at most 4096");
    refused(&["--host", &"h".repeat(1025)], "the host name has 1025 bytes; 1024 are allowed");
    assert!(machine.ok(["snapshots", "-r", repo, "--json"]).of_type("snapshot").is_empty());

    // What says nothing does not count.
    fs::write(list, "# comment\n\n  \n".repeat(2000) + "*.tmp\n").unwrap();
    backup(&["--exclude-file", list]).expect(0);
}

#[test]
fn lines_of_a_holdallignore_that_can_not_be_read_are_told_and_the_others_count() {
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    let [repo, source] = [&repo, &source].map(|path| path.to_str().unwrap());
    small_tree(source.as_ref());
    fs::write(format!("{source}/docs/.holdallignore"), b"bad[\nletter.*\n!empty.txt").unwrap();
    machine.init(&["-r", repo]);
    let args = ["backup", "-r", repo, source, "--exclude", "empty*", "--json"];
    let told = machine.run(args).expect(3).of_type("error");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["path"], format!("{source}/docs"));
    assert!(told[0]["message"].as_str().unwrap().contains("line 1"), "{}", told[0]);
    // What the command line leaves out no .holdallignore takes back in.
    let left = machine.ok(["ls", "-r", repo, "latest", &format!("{source}/docs")]).stdout;
    assert_eq!(left.trim(), format!("{source}/docs/.holdallignore"));
}

#[test]
fn a_holdallignore_that_is_no_file_is_said_once_not_to_count() {
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    let [repo, source] = [&repo, &source].map(|path| path.to_str().unwrap());
    small_tree(source.as_ref());
    fs::write(machine.path("rules"), "*.txt\n").unwrap();
    std::os::unix::fs::symlink(machine.path("rules"), format!("{source}/.holdallignore")).unwrap();
    fs::create_dir(format!("{source}/docs/.holdallignore")).unwrap();
    machine.init(&["-r", repo]);
    let told = machine.run(["backup", "-r", repo, source]).expect(0);
    let said: Vec<_> = told.stderr.lines().filter(|line| line.contains(".holdallignore")).collect();
    assert_eq!(said.len(), 1, "{told:?}");
    assert!(said[0].contains(&format!("{source}/.holdallignore")), "{said:?}");
    let left = machine.ok(["ls", "-r", repo, "latest", &format!("{source}/docs")]).stdout;
    assert!(left.contains("letter.txt"), "{left}");
}
