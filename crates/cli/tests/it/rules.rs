//! Rules that can match nothing, and rules that did not.

use std::fs;
use std::os::unix::fs::symlink;

use crate::house::{Machine, small_tree, text};

/// A machine with a repository and a source.
fn machine() -> (Machine, String, String) {
    let machine = Machine::new();
    let [repo, source] = ["repo", "source"].map(|name| text(&machine.path(name)).to_owned());
    small_tree(source.as_ref());
    machine.init(&["-r", &repo]);
    (machine, repo, source)
}

#[test]
fn an_include_that_met_nothing_is_an_error_that_names_it() {
    let (machine, repo, source) = machine();
    let name = format!("{source}/E01 [1080p].mkv");
    fs::write(&name, "film").unwrap();
    machine.ok(["backup", "-r", &repo, &source]);
    let letter = format!("{source}/docs/letter.txt");
    let restore = |target: &str, more: &[&str]| {
        let target = machine.path(target);
        let args =
            ["restore", "-r", &repo, "latest", "--target", text(&target), "--include", &name];
        machine.run([&args[..], more].concat())
    };
    for (target, more) in [("words", &[][..]), ("quiet", &["-q"])] {
        let told = restore(target, more).expect(1);
        assert!(told.stderr.contains("E01 [1080p].mkv: nothing"), "{}", told.stderr);
    }
    let told = restore("json", &["--json"]).expect(1).of_type("error");
    assert_eq!((told.len(), told[0]["code"].as_u64()), (1, Some(1)), "{told:?}");

    let told = restore("both", &["-q", "--include", &letter]).expect(3);
    assert!(told.stderr.contains("E01 [1080p].mkv: nothing"), "{}", told.stderr);
    let restored = machine.path(&format!("both/{letter}"));
    assert_eq!(fs::read_to_string(restored).unwrap(), "Dear reader,\n");
    // An include of a folder above, and one that another one decides, met something.
    let args = ["restore", "-r", &repo, &format!("latest:{source}/docs"), "--target"];
    let target = machine.path("above");
    let more =
        [text(&target), "--include", &source, "--include", "*.txt", "--exclude", "*.no", "--json"];
    let summary = machine.ok([&args[..], &more].concat()).summary();
    assert_eq!(summary["rules_unmatched"], serde_json::json!(["*.no"]));
    assert_eq!(summary["files_restored"], 2);
}

#[test]
fn a_rule_that_can_match_nothing_is_refused() {
    let (machine, repo, source) = machine();
    let link = machine.path("link");
    symlink(&source, &link).unwrap();
    let linked = format!("{}/", text(&link));
    let real = format!("{source}/docs");
    let read_as = format!("{source}=/recorded");
    let refused = |from: &str, rule: &[&str]| {
        machine.run([&["backup", "-r", &repo, from], rule].concat()).expect(2);
    };
    for mark in ["", ".", "a/b", "NAME:HEADER"] {
        refused(&source, &["--exclude-if-present", mark]);
    }
    for pattern in ["", "# a comment", "./docs", "a/../b", "a//b"] {
        refused(&source, &["--exclude", pattern]);
        refused(&source, &["--iexclude", pattern]);
    }
    refused(&linked, &["--exclude", &real]);
    refused(&source, &["--as", &read_as, "--exclude", &real]);
    assert!(machine.ok(["snapshots", "-r", &repo, "--json"]).of_type("snapshot").is_empty());
    let recorded = format!("{}/docs", text(&link));
    machine.ok(["backup", "-r", &repo, &linked, "--exclude", &recorded]);
    let target = machine.path("target");
    for option in ["--include", "--exclude"] {
        machine
            .run(["restore", "-r", &repo, "latest", "--target", text(&target), option, ""])
            .expect(2);
    }
}

#[test]
fn an_exclude_that_met_nothing_is_said() {
    let (machine, repo, source) = machine();
    let args = ["backup", "-r", &repo, &source, "--exclude", "*.o", "--exclude", "*.txt"];
    let more = ["--exclude", "docs/letter.txt", "--exclude-if-present", ".nobackup"];
    let told = machine.summary([&args[..], &more].concat());
    let unmatched = ["*.o", "docs/letter.txt", "--exclude-if-present .nobackup"];
    assert_eq!(told["rules_unmatched"], serde_json::json!(unmatched));
    let quiet = machine.ok(args);
    assert!(!format!("{}{}", quiet.stdout, quiet.stderr).contains("met nothing"), "{quiet:?}");
    let told = machine.ok([&args[..], &["-v"]].concat());
    assert!(told.stderr.contains("*.o: this rule met nothing"), "{}", told.stderr);
    assert!(!told.stderr.contains("*.txt: this rule"), "{}", told.stderr);
}

#[test]
fn what_is_taken_and_what_is_left_out_is_listed_with_its_rule() {
    let (machine, repo, source) = machine();
    let file = |name: &str, content: &str| fs::write(format!("{source}/{name}"), content).unwrap();
    fs::create_dir(format!("{source}/cache")).unwrap();
    file("cache/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55");
    file("docs/.holdallignore", "letter.*\n");
    let rules = ["--exclude", "em*", "--exclude-caches", "--exclude-larger-than", "2M"];
    let args = |more: &[&'static str]| {
        let command = ["backup", "-r", &repo, &source];
        [&command[..], &rules, more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let left_out = [
        ("cache", "what is in it, --exclude-caches".to_owned()),
        ("docs/empty", "em*".to_owned()),
        ("docs/empty.txt", "em*".to_owned()),
        ("docs/letter.txt", format!("letter.* in {source}/docs/.holdallignore")),
        ("large.bin", "--exclude-larger-than 2.0 MB".to_owned()),
    ];
    let line = |word: &str, name: &str, rule: &str| format!("{word:<10} {source}/{name}{rule}\n");
    let is_listed = |told: &str, word: &str, name: &str| told.contains(&line(word, name, ""));

    // Of a dry run, all that would be done.
    let told = machine.ok(args(&["-n", "-v"])).stdout;
    for (name, rule) in &left_out {
        assert!(told.contains(&line("left out", name, &format!(" ({rule})"))), "{name}: {told}");
    }
    assert!(is_listed(&told, "new", "docs/.holdallignore"), "{told}");
    let before = |one: &str, other: &str| told.find(one).unwrap() < told.find(other).unwrap();
    assert!(before("docs/.holdallignore", "docs/empty") && before("docs/empty", "/link"), "{told}");
    assert!(told.contains("4 items left out by rules"), "{told}");
    assert!(told.contains("1 file, 3.0 MB, left out as too large"), "{told}");
    assert!(told.contains(&format!("would go to {repo}\n")), "{told}");

    // A backup lists what it leaves out, and all with -vv.
    let told = machine.ok(args(&["-v"])).stdout;
    assert_eq!(told.matches("left out  ").count(), left_out.len(), "{told}");
    assert!(!is_listed(&told, "new", "link"), "{told}");
    assert!(!told.contains("-v names"), "{told}");
    file("docs/more", "more");
    let told = machine.ok(args(&["-vv"])).stdout;
    assert_eq!(told.matches("left out  ").count(), left_out.len(), "{told}");
    for (word, name) in [("new", "docs/more"), ("changed", "docs"), ("unchanged", "link")] {
        assert!(is_listed(&told, word, name), "{word} {name}: {told}");
    }
    // What was changed a moment before it was read is read again, and may be changed: no more is known before that.
    let told = machine.ok(args(&["-n", "-v"])).stdout;
    assert!(!told.contains("new  ") && !told.contains("unchanged  "), "{told}");
    assert!(!machine.ok(args(&[])).stdout.contains("docs"));

    let told = machine.ok(args(&["-n", "-vv", "--json"]));
    let items = told.of_type("item");
    let rules: Vec<_> = items.iter().filter(|item| item["action"] == "left_out").collect();
    for (item, (name, rule)) in rules.iter().zip(&left_out) {
        assert_eq!(
            (&item["path"], &item["rule"]),
            (&format!("{source}/{name}").into(), &(&**rule).into())
        );
    }
    let summary = told.summary();
    let [all, files, bytes] = ["items_left_out", "files_too_large", "bytes_too_large"];
    assert_eq!(
        (&summary[all], &summary[files], &summary[bytes]),
        (&5.into(), &1.into(), &3_000_000.into())
    );
    let taken = summary["total_items_processed"].as_u64().unwrap();
    assert_eq!(items.len() as u64, taken + 5);
}

#[test]
fn a_file_that_is_too_large_is_taken_if_it_is_what_is_backed_up() {
    let (machine, repo, source) = machine();
    let film = format!("{source}/large.bin");
    let args = ["backup", "-r", &repo, &source, &film, "--exclude-larger-than"];
    let told = machine.summary([&args[..], &["2999999"]].concat());
    assert_eq!((&told["files_too_large"], &told["items_left_out"]), (&0.into(), &0.into()));
    assert!(machine.ok(["ls", "-r", &repo, "latest", &source]).stdout.contains("large.bin"));
    let told = machine.summary([&args[..4], &args[5..], &["3000000"]].concat());
    assert_eq!(told["files_too_large"], 0);
    machine.run([&args[..], &["much"]].concat()).expect(2);
}

#[test]
fn includes_of_which_nothing_is_left_are_told_as_what_they_are() {
    let (machine, repo, source) = machine();
    machine.ok(["backup", "-r", &repo, &source]);
    let letter = format!("{source}/docs/letter.txt");
    let restore = |rules: &[&str]| {
        let target = machine.path("target");
        let args = ["restore", "-r", &repo, "latest", "--target", text(&target)];
        machine.run([&args[..], rules].concat())
    };
    let told = restore(&["--include", &letter, "--exclude", "letter.txt"]).expect(1);
    assert!(told.stderr.contains("that --exclude does not leave out"), "{}", told.stderr);
    let told = restore(&["--include", "!docs"]).expect(2);
    assert!(told.stderr.contains("takes nothing"), "{}", told.stderr);
    let told = restore(&["--include", "letter.txt", "--include", "!letter.txt"]).expect(1);
    assert!(!told.stderr.contains("--exclude"), "{}", told.stderr);
}

#[test]
fn a_file_of_rules_or_of_paths_that_has_no_end_is_refused() {
    let (machine, repo, source) = machine();
    let endless = ["--exclude-file", "/dev/zero"];
    machine.run([&["backup", "-r", &repo, &source], &endless[..]].concat()).expect(2);
    machine.ok(["backup", "-r", &repo, &source, "--exclude-file", "/dev/null"]);
}
