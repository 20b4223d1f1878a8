//! The embedded repository: a directory, no server.

use std::fs;

use holdall_testkit::{CompareOptions, compare_trees};

use crate::house::{Machine, Outcome, small_tree};

/// A machine with a repository and a tree.
fn prepared() -> (Machine, String, String) {
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    small_tree(&source);
    let text = |path: &std::path::Path| path.to_str().expect("UTF-8").to_owned();
    let (repo, source) = (text(&repo), text(&source));
    machine.init(&["-r", &repo, "--recovery-kit", &text(&machine.path("kit.txt"))]);
    (machine, repo, source)
}

#[test]
fn a_tree_goes_into_a_directory_and_comes_back() {
    let (machine, repo, source) = prepared();
    let first = machine.summary(["backup", "-r", &repo, &source, "--tag", "first"]);
    assert_eq!(first["files_new"], 4);
    assert_eq!(first["errors"], 0);
    let again = machine.summary(["backup", "-r", &repo, &source]);
    assert_eq!((&again["files_new"], &again["files_changed"]), (&0.into(), &0.into()));
    assert_eq!(again["files_unmodified"], 4);

    let target = machine.path("target");
    let from = format!("latest:{source}");
    let to = target.to_str().unwrap();
    let restored = machine.summary(["restore", "-r", &repo, &from, "--target", to]);
    assert_eq!(restored["files_restored"], 4);
    assert_eq!(compare_trees(source.as_ref(), &target, &CompareOptions::default()), []);

    let whole = machine.path("whole");
    machine.ok(["restore", "-r", &repo, "latest", "--target", whole.to_str().unwrap()]);
    let below = whole.join(source.trim_start_matches('/'));
    assert_eq!(compare_trees(source.as_ref(), &below, &CompareOptions::default()), []);

    let checked = machine.summary(["check", "-r", &repo, "--scrub", "--verify", "all"]);
    assert_eq!(checked["damaged"], serde_json::json!([]));
    assert_eq!(checked["snapshots"], 2);
}

#[test]
fn snapshots_are_listed_with_all_their_fields_and_can_be_chosen() {
    let (machine, repo, source) = prepared();
    machine.ok(["backup", "-r", &repo, &source, "--tag", "red", "--host", "attic"]);
    machine.ok(["backup", "-r", &repo, &format!("{source}/docs"), "--tag", "blue"]);
    let listed = machine.ok(["snapshots", "-r", &repo, "--json"]).of_type("snapshot");
    assert_eq!(listed.len(), 2);
    let first = &listed[0];
    assert_eq!(first["paths"], serde_json::json!([source]));
    assert_eq!((&first["host"], &first["tags"][0]), (&"attic".into(), &"red".into()));
    assert_eq!(first["items"], listed[0]["items"]);
    assert!(first["bytes"].as_u64().unwrap() > 3_000_000);
    assert_eq!(first["sequence"], 1);
    for (field, digits) in [("id", 64), ("machine", 32), ("series", 32)] {
        assert_eq!(first[field].as_str().unwrap().len(), digits, "{field}");
    }
    assert!(first["received"].as_str().unwrap().ends_with('Z'));
    assert_ne!(first["series"], listed[1]["series"]);

    let tagged = ["snapshots", "-r", &repo, "--tag", "blue", "--json"];
    assert_eq!(machine.ok(tagged).of_type("snapshot"), [listed[1].clone()]);
    let hosted = ["snapshots", "-r", &repo, "--machine", "attic", "--json"];
    assert_eq!(machine.ok(hosted).of_type("snapshot"), [listed[0].clone()]);
    let elsewhere = ["snapshots", "-r", &repo, "--path", "/elsewhere", "--json"];
    assert!(machine.ok(elsewhere).of_type("snapshot").is_empty());
    let words = machine.ok(["snapshots", "-r", &repo]).stdout;
    assert!(words.contains("attic") && words.contains("[red]"), "{words}");
}

#[test]
fn latest_of_a_folder_has_all_of_it_and_the_report_names_the_snapshot() {
    let (machine, repo, source) = prepared();
    let whole = machine.summary(["backup", "-r", &repo, &source])["snapshot_id"].clone();
    let part = format!("{source}/docs");
    let newer = machine.summary(["backup", "-r", &repo, &part])["snapshot_id"].clone();

    let target = machine.path("target");
    let to = target.to_str().unwrap();
    let from = format!("latest:{source}");
    let restored = machine.summary(["restore", "-r", &repo, &from, "--target", to]);
    assert_eq!(restored["snapshot_id"], whole, "the newer one has a part of it");
    assert_eq!(compare_trees(source.as_ref(), &target, &CompareOptions::default()), []);
    let again = ["--overwrite", "always", "--dry-run"];
    let of_part = ["restore", "-r", &repo, &format!("{from}/docs"), "--target", to];
    assert_eq!(machine.summary([&of_part[..], &again].concat())["snapshot_id"], newer);

    let said =
        machine.ok([&["restore", "-r", &repo, "latest", "--target", to], &again[..]].concat());
    let id = newer.as_str().unwrap();
    assert!(said.stdout.contains(&format!("snapshot {id:.10} of ")), "{}", said.stdout);
    assert!(said.stdout.contains(&part) && said.stderr.contains("1 other"), "{said:?}");
}

#[test]
fn a_listing_shows_children_or_everything_below() {
    let (machine, repo, source) = prepared();
    machine.ok(["backup", "-r", &repo, &source]);
    let children = machine.ok(["ls", "-r", &repo, "latest", &source]).stdout;
    let expected = ["docs", "large.bin", "link"].map(|name| format!("{source}/{name}"));
    assert_eq!(children.lines().collect::<Vec<_>>(), expected);
    let all = machine.ok(["ls", "-r", &repo, "latest", &source, "--recursive", "--json"]);
    let all = all.of_type("entry");
    assert_eq!(all.len(), 6);
    let link = all.iter().find(|entry| entry["kind"] == "symlink").expect("the link");
    assert_eq!(link["link_target"], "docs/letter.txt");
    let long = machine.ok(["ls", "-r", &repo, "latest", &format!("{source}/link"), "-l"]).stdout;
    assert!(long.starts_with("lrwxrwxrwx") && long.trim_end().ends_with("-> docs/letter.txt"));
    machine.run(["ls", "-r", &repo, "latest", "/nothing/there"]).expect(1);
}

#[test]
fn what_is_excluded_or_chosen_is_left_out_or_taken() {
    let (machine, repo, source) = prepared();
    fs::write(format!("{source}/docs/CACHEDIR.TAG"), "Signature: 8a477f597d28d172789f06886806bc55")
        .unwrap();
    fs::write(format!("{source}/.holdallignore"), "link\n").unwrap();
    let patterns = machine.path("patterns");
    fs::write(&patterns, "# a comment\n*.none\n").unwrap();
    machine.ok([
        "backup",
        "-r",
        &repo,
        &source,
        "--exclude-caches",
        "--iexclude",
        "LARGE.*",
        "--exclude-file",
        patterns.to_str().unwrap(),
    ]);
    let all = machine.ok(["ls", "-r", &repo, "latest", &source, "--recursive"]).stdout;
    assert!(!all.contains("letter.txt") && !all.contains("large.bin") && !all.contains("/link"));
    assert!(all.contains("/docs"), "{all}");

    machine.ok(["backup", "-r", &repo, &format!("{source}/docs")]);
    let target = machine.path("target");
    machine.ok([
        "restore",
        "-r",
        &repo,
        "latest",
        "--target",
        target.to_str().unwrap(),
        "--include",
        "*.txt",
        "--exclude",
        "empty.*",
    ]);
    let below = target.join(source.trim_start_matches('/')).join("docs");
    let names: Vec<_> = fs::read_dir(below).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["letter.txt"]);
}

#[test]
fn what_is_read_at_one_place_is_recorded_at_another() {
    let (machine, repo, source) = prepared();
    let read_as = format!("{source}=/home/ada");
    machine.ok(["backup", "-r", &repo, &source, "--as", &read_as]);
    let names = machine.ok(["ls", "-r", &repo, "latest", "/home/ada/docs"]).stdout;
    assert!(names.contains("/home/ada/docs/letter.txt"), "{names}");
    let idle = ["backup", "-r", &repo, &source, "--as", &read_as, "--as", "/nonexist=/x"];
    let said = machine.run(idle).expect(2).stderr;
    assert!(said.contains("no source is /nonexist"), "{said}");
}

#[test]
fn times_that_64_bits_of_nanoseconds_do_not_hold_are_told_and_compared() {
    let (machine, repo, source) = prepared();
    let file = fs::File::options().write(true).open(format!("{source}/docs/letter.txt")).unwrap();
    let year_2400 = std::time::UNIX_EPOCH + std::time::Duration::from_secs(13_569_465_600);
    file.set_modified(year_2400).unwrap();
    machine.ok(["backup", "-r", &repo, &source]);
    let docs = format!("{source}/docs");
    let listed = machine.ok(["ls", "-r", &repo, "latest", &docs, "--json"]).of_type("entry");
    assert!(listed.iter().any(|one| one["mtime"] == "2400-01-01T00:00:00Z"), "{listed:?}");
    let found = |when: &str| {
        let args = ["find", "-r", &repo, "letter.txt", "--newer", when, "--json"];
        machine.ok(args).of_type("match").len()
    };
    assert_eq!([found("2399-12-31"), found("2400-01-02"), found("2500-01-01")], [1, 0, 0]);
}

#[test]
fn a_dry_run_stores_nothing_and_a_list_of_files_is_read() {
    let (machine, repo, source) = prepared();
    let list = machine.path("list");
    fs::write(&list, format!("{source}/docs\n\n{source}/large.bin\n")).unwrap();
    let args = ["backup", "-r", &repo, "--files-from", list.to_str().unwrap(), "--json"];
    let dry = machine.ok(args.iter().chain(&["--dry-run"])).summary();
    assert_eq!(dry["snapshot_id"], serde_json::Value::Null);
    assert!(machine.ok(["snapshots", "-r", &repo, "--json"]).of_type("snapshot").is_empty());
    let real = machine.ok(args).summary();
    assert_eq!(real["files_new"], 3);
}

#[test]
fn another_computer_with_the_password_restores_what_this_one_backed_up() {
    let (machine, repo, source) = prepared();
    let id = machine.summary(["backup", "-r", &repo, &source])["snapshot_id"].clone();
    let id = id.as_str().unwrap();
    let other = Machine::new();
    let target = other.path("target");
    let from = format!("{}:{source}", &id[..8]);
    other.ok(["restore", "-r", &repo, &from, "--target", target.to_str().unwrap()]);
    assert_eq!(compare_trees(source.as_ref(), &target, &CompareOptions::default()), []);
    other.ok(["backup", "-r", &repo, &source]);
    assert_eq!(machine.ok(["snapshots", "-r", &repo, "--json"]).of_type("snapshot").len(), 2);
}

#[test]
fn the_repository_is_left_out_of_what_it_lies_in() {
    let (machine, _, source) = prepared();
    let repo = format!("{source}/docs/my [first] repo*");
    machine.init(&["-r", &repo, "--recovery-kit", machine.path("k").to_str().unwrap()]);
    let args = ["backup", "-r", &repo, &source, "--as", &format!("{source}=/home/ada")];
    let said = machine.ok(args).stderr;
    assert!(said.contains("is of the repository itself and is left out"), "{said}");
    let again = machine.summary(args);
    assert_eq!((&again["files_new"], &again["files_unmodified"]), (&0.into(), &4.into()));
    let all = machine.ok(["ls", "-r", &repo, "latest", "/home/ada", "--recursive"]).stdout;
    assert!(all.contains("letter.txt") && !all.contains("repo"), "{all}");
}

#[test]
fn a_repository_that_is_not_backed_up_to_is_a_folder_like_any_other() {
    let (machine, repo, source) = prepared();
    let other = format!("{source}/other");
    machine.init(&["-r", &other, "--recovery-kit", machine.path("k").to_str().unwrap()]);
    let done = machine.ok(["backup", "-r", &repo, &source]);
    assert!(!done.stderr.contains("left out"), "{}", done.stderr);
    let all = machine.ok(["ls", "-r", &repo, "latest", &other]).stdout;
    assert!(all.contains("holdall-repository") && all.contains("config"), "{all}");
}

#[test]
fn a_filter_that_no_snapshot_matches_is_told_from_a_repository_without_any() {
    let (machine, repo, source) = prepared();
    let listed = |more: &[&str]| machine.ok([&["snapshots", "-r", &repo], more].concat()).stdout;
    assert!(listed(&["--tag", "x"]).contains("`holdall backup PATH` makes one"));
    machine.ok(["backup", "-r", &repo, &source]);
    for filter in [["--machine", "nope"], ["--tag", "x"], ["--path", "/nowhere"]] {
        let said = listed(&filter);
        assert!(said.starts_with("no snapshot matches") && said.contains("1 in all"), "{said}");
    }
}

#[test]
fn that_a_directory_is_written_without_a_limit_is_told() {
    let (machine, repo, source) = prepared();
    let limited = ["backup", "-r", &repo, &source, "--limit-upload", "1M"];
    let said = machine.ok(limited).stderr;
    assert!(said.contains("a directory is written without a limit"), "{said}");
    let said = machine.ok(&limited[..4]).stderr;
    assert!(!said.contains("limit"), "{said}");
}

#[test]
fn its_own_cache_is_left_out_with_other_caches() {
    let (machine, repo, source) = prepared();
    let back_up = || {
        let args = ["backup", "-r", &repo, &source, "--exclude-caches", "--json"];
        let mut command = machine.command(args);
        Outcome::of(command.env("HOLDALL_CACHE_DIR", format!("{source}/cache"))).expect(0).summary()
    };
    back_up();
    let again = back_up();
    assert_eq!((&again["files_new"], &again["files_changed"]), (&0.into(), &0.into()));
    assert!(fs::exists(format!("{source}/cache/embedded")).unwrap(), "it is used");
}

#[test]
fn configuration_state_and_cache_may_lie_in_one_folder() {
    let (machine, repo, source) = prepared();
    let run = |args: &[&str]| {
        let mut command = machine.command(args);
        command.env_remove("HOLDALL_CONFIG_DIR").env_remove("HOLDALL_CACHE_DIR");
        for folder in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
            command.env(folder, machine.path("all"));
        }
        Outcome::of(&mut command).expect(0)
    };
    for _ in 0..2 {
        run(&["backup", "-r", &repo, &source]);
    }
    let tag = machine.path("all/holdall/CACHEDIR.TAG");
    assert!(!tag.exists(), "what must be backed up lies there too");
    let target = machine.path("target");
    let from = format!("latest:{source}");
    run(&["restore", "-r", &repo, &from, "--target", target.to_str().unwrap()]);
    assert_eq!(compare_trees(source.as_ref(), &target, &CompareOptions::default()), []);
}

#[test]
fn an_unreadable_source_is_told_and_the_rest_is_backed_up() {
    let (machine, repo, source) = prepared();
    let done = machine.run(["backup", "-r", &repo, &source, "/no/such/path", "--json"]).expect(3);
    assert_eq!(done.summary()["files_new"], 4);
    let told = done.of_type("error");
    assert!(told.iter().any(|error| error["path"] == "/no/such/path"), "{told:?}");
    let below_a_file = format!("{source}/docs/letter.txt/child");
    for missing in ["/no/such/path", &below_a_file] {
        let said = machine.run(["backup", "-r", &repo, missing]).expect(1).stderr;
        assert!(said.contains("nothing to back up"), "{said}");
    }
    assert_eq!(machine.ok(["snapshots", "-r", &repo, "--json"]).of_type("snapshot").len(), 1);
}

#[test]
fn a_forgotten_password_is_made_up_for_by_the_recovery_kit() {
    let (machine, repo, source) = prepared();
    machine.ok(["backup", "-r", &repo, &source]);
    let other = Machine::new().with_password(None);
    let kit = machine.path("kit.txt");
    other.run(["pair", "--recovery-kit", kit.to_str().unwrap()]).expect(2);
    let paired = other.summary(["pair", "-r", &repo, "--recovery-kit", kit.to_str().unwrap()]);
    assert_eq!((&paired["place"], &paired["reads_only"]), (&repo.as_str().into(), &false.into()));
    assert_eq!(other.ok(["snapshots", "-r", &repo, "--json"]).of_type("snapshot").len(), 1);
}
