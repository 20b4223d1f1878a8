//! Looking into snapshots: what is where, what changed, and what a dump is to other tools.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use holdall_testkit::{
    CompareOptions, Difference, FidelitySizes, Field, compare_trees, fidelity_tree,
};
use serde_json::{Value, json};

use crate::house::{Machine, small_tree};

/// A machine with a repository and a tree.
struct House {
    machine: Machine,
    repo: String,
    source: PathBuf,
}

impl House {
    fn new() -> Self {
        let machine = Machine::new();
        let (repo, source) = (machine.path("repo"), machine.path("source"));
        small_tree(&source);
        let repo = repo.to_str().unwrap().to_owned();
        machine.init(&["-r", &repo]);
        Self { machine, repo, source }
    }

    fn back_up(&self, more: &[&str]) -> String {
        let mut args = vec!["backup", "-r", &self.repo, self.source()];
        args.extend(more);
        self.machine.summary(args)["snapshot_id"].as_str().unwrap().to_owned()
    }

    fn source(&self) -> &str {
        self.source.to_str().unwrap()
    }

    fn at(&self, path: &str) -> String {
        format!("{}/{path}", self.source())
    }

    fn command<A: AsRef<OsStr>>(&self, args: &[A]) -> Command {
        let args = args.iter().map(|arg| arg.as_ref().to_owned());
        self.machine.command(args.chain(["-r".into(), OsString::from(&self.repo)]))
    }

    fn run<A: AsRef<OsStr>>(&self, args: &[A], code: i32) -> crate::house::Outcome {
        let args = args.iter().map(|arg| arg.as_ref().to_owned());
        self.machine.run(args.chain(["-r".into(), OsString::from(&self.repo)])).expect(code)
    }

    fn objects(&self, args: &[&str], message_type: &str) -> Vec<Value> {
        self.run(&[args, &["--json"]].concat(), 0).of_type(message_type)
    }

    /// The bytes that a dump writes.
    fn dumped(&self, what: &OsStr) -> Vec<u8> {
        let output = self.command(&[OsStr::new("dump"), what]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }
}

#[test]
fn names_are_found_in_the_snapshots_that_have_them_newest_first() {
    let house = House::new();
    let odd = OsString::from_vec(b"odd \xff.txt".to_vec());
    fs::write(house.source.join(&odd), "odd").unwrap();
    let first = house.back_up(&["--tag", "first"]);
    fs::remove_file(house.source.join(&odd)).unwrap();
    fs::write(house.source.join("Notes.TXT"), "12345").unwrap();
    let second = house.back_up(&[]);

    let found = house.objects(&["find", "*.txt", "-i"], "match");
    let summed: Vec<_> = found
        .iter()
        .map(|found| (found["snapshot"].as_str().unwrap(), found["path"].as_str().unwrap()))
        .map(|(snapshot, path)| (snapshot, path.rsplit('/').next().unwrap()))
        .collect();
    let (first, second) = (&first[..], &second[..]);
    let expected = [
        (second, "Notes.TXT"),
        (second, "empty.txt"),
        (second, "letter.txt"),
        (first, "empty.txt"),
        (first, "letter.txt"),
        (first, "odd \u{fffd}.txt"),
    ];
    assert_eq!(summed, expected);
    assert_eq!((&found[0]["size"], &found[0]["kind"]), (&json!(5), &json!("file")));
    assert!(found[0]["mtime"].as_str().unwrap().ends_with('Z'));
    assert!(found[0]["path_base64"].is_null() && found[5]["path_base64"].is_string());

    let words = house.run(&["find", "*.txt", "!empty*"], 0).stdout;
    let lines: Vec<_> = words.lines().collect();
    assert_eq!(lines.len(), 5, "{words}");
    assert!(lines[0].starts_with(&format!("snapshot {} ", &second[..10])), "{words}");
    assert_eq!(lines[1], format!("  {}", house.at("docs/letter.txt")));
    assert_eq!(lines[4], format!("  {}", house.at("odd \\xff.txt")));
}

#[test]
fn what_is_found_can_be_narrowed_down() {
    let house = House::new();
    let first = house.back_up(&["--tag", "first", "--host", "attic"]);
    fs::write(house.source.join("docs/new.txt"), "new").unwrap();
    let old = File::options().write(true).open(house.source.join("docs/empty.txt")).unwrap();
    old.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(86_400)).unwrap();
    let second = house.back_up(&[]);
    let found = |args: &[&str]| {
        let found = house.objects(&[&["find"], args].concat(), "match");
        let told = |found: &Value| {
            let path = found["path"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
            (found["snapshot"].as_str().unwrap().to_owned(), path)
        };
        found.iter().map(told).collect::<Vec<_>>()
    };
    let of = |id: &str, name: &str| (id.to_owned(), name.to_owned());
    let letter = [of(&first, "letter.txt")];
    assert_eq!(found(&["letter.*", "--tag", "first"]), letter);
    assert_eq!(found(&["letter.*", "--machine", "attic"]), letter);
    assert_eq!(found(&["letter.*", "--snapshot", &first[..9]]), letter);
    assert_eq!(found(&["letter.*", "--path", "/elsewhere"]), []);
    assert_eq!(found(&["e*", "--type", "d", "--snapshot", "latest"]), [of(&second, "empty")]);
    assert_eq!(found(&["*", "--type", "l", "--snapshot", &first]), [of(&first, "link")]);
    let latest = ["*.txt", "--snapshot", "latest"];
    assert_eq!(
        found(&[&latest[..], &["--older", "1970-01-03"]].concat()),
        [of(&second, "empty.txt")]
    );
    let newer = [of(&second, "letter.txt"), of(&second, "new.txt")];
    assert_eq!(found(&[&latest[..], &["--newer", "1d"]].concat()), newer);
    let below = house.at("docs/**");
    assert_eq!(found(&[&below, "--snapshot", &first]).len(), 3);

    let nothing = house.run(&["find", "*.none"], 0);
    assert!(nothing.stdout.is_empty() && nothing.stderr.contains("nothing was found"));
    house.run(&["find", "[z-a]"], 2);
    house.run(&["find", "x", "--newer", "yesterday"], 2);
    house.run(&["find"], 2);
    house.run(&["find", "x", "--snapshot", "77777777"], 1);
}

#[test]
fn two_snapshots_differ_in_what_was_done_between_them() {
    let house = House::new();
    let first = house.back_up(&[]);
    let odd = OsString::from_vec(b"odd \xff".to_vec());
    fs::write(house.source.join(&odd), "12345").unwrap();
    fs::remove_file(house.source.join("docs/empty.txt")).unwrap();
    quiet_edit(&house.source.join("docs/letter.txt"));
    fs::set_permissions(house.source.join("large.bin"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::remove_file(house.source.join("link")).unwrap();
    fs::create_dir(house.source.join("link")).unwrap();
    let second = house.back_up(&[]);

    let brief = house.run(&["diff", &first, &second], 0).stdout;
    let expected: Vec<_> =
        [("-", "docs/empty.txt"), ("M", "docs/letter.txt"), ("T", "link"), ("+", "odd \\xff")]
            .map(|(letter, path)| format!("{letter} {}", house.at(path)))
            .into();
    let lines: Vec<_> = brief.lines().collect();
    assert_eq!(lines[..4], expected, "{brief}");
    assert!(lines[4].starts_with("1 added, 1 removed, 1 changed, 1 of another type, "), "{brief}");
    let whole = house.run(&["diff", &first, "latest", "--metadata"], 0).stdout;
    let mode = format!("U {} [mode]", house.at("large.bin"));
    assert!(whole.lines().any(|line| line == mode), "{whole}");
    let edited = format!("M {} [content]", house.at("docs/letter.txt"));
    assert!(whole.lines().any(|line| line == edited), "{whole}");

    let changes = house.objects(&["diff", &first, &second, "--metadata"], "change");
    let of = |path: &str| changes.iter().find(|change| change["path"] == house.at(path)).unwrap();
    assert_eq!(of("docs/letter.txt")["what"], json!(["content"]));
    assert_eq!(
        (&of("large.bin")["change"], &of("large.bin")["what"]),
        (&json!("metadata"), &json!(["mode"]))
    );
    assert_eq!(of("docs")["what"], json!(["mtime"]));
    let odd = changes.iter().find(|change| change["path_base64"].is_string()).unwrap();
    assert_eq!((&odd["change"], &odd["size_after"]), (&json!("added"), &json!(5)));
    let summary = house.run(&["diff", &first, &second, "--json"], 0).summary();
    let count = |field: &str| summary[field].as_u64().unwrap();
    assert_eq!(["added", "removed", "changed", "type_changed"].map(count), [1; 4]);
    assert_eq!((count("bytes_added"), count("bytes_removed")), (5 + 13, 13));

    let below = house.run(&["diff", &first, &second, &house.at("docs")], 0).stdout;
    assert_eq!(below.lines().collect::<Vec<_>>()[..2], expected[..2]);
    let same = house.run(&["diff", &second, &second, "--json"], 0);
    assert_eq!((same.of_type("change").len(), &same.summary()["added"]), (0, &json!(0)));
    house.run(&["diff", &first, &second, "/nothing/there"], 1);
    house.run(&["diff", &first, "77777777"], 1);
    house.run(&["diff", &first, &second, "relative"], 1);
}

/// Replaces content by other content of the same length, and puts the modification time back.
fn quiet_edit(file: &Path) {
    let before = fs::metadata(file).unwrap();
    let opened = File::options().write(true).open(file).unwrap();
    opened.write_all_at(b"Dier", 0).unwrap();
    opened.set_modified(before.modified().unwrap()).unwrap();
}

#[test]
fn a_path_has_a_history() {
    let house = House::new();
    let path = house.at("docs/new \u{fc}.txt");
    house.back_up(&[]);
    fs::write(&path, "one").unwrap();
    let created = house.back_up(&["--tag", "a"]);
    house.back_up(&["--tag", "a"]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let closed = house.back_up(&[]);
    fs::write(&path, "three").unwrap();
    let edited = house.back_up(&["--tag", "a"]);
    fs::remove_file(&path).unwrap();
    let removed = house.back_up(&[]);

    let versions = house.objects(&["history", &path], "history");
    let told: Vec<_> = versions
        .iter()
        .map(|version| (version["snapshot"].as_str().unwrap(), version["change"].as_str().unwrap()))
        .collect();
    let expected = [
        (&removed[..], "removed"),
        (&edited, "content"),
        (&closed, "metadata"),
        (&created, "created"),
    ];
    assert_eq!(told, expected);
    assert!(versions[0]["size"].is_null() && versions[1]["size"] == 5);
    assert_eq!(versions[1]["what"], json!(["content", "mtime"]));
    assert_eq!((&versions[2]["what"], &versions[3]["what"]), (&json!(["mode"]), &json!([])));
    let words = house.run(&["history", &path], 0).stdout;
    assert_eq!(words.lines().count(), 5, "{words}");
    assert!(words.lines().nth(2).unwrap().ends_with("content [content, mtime]"), "{words}");

    let tagged = house.objects(&["history", &path, "--tag", "a"], "history");
    assert_eq!(tagged.len(), 2);
    house.run(&["history", &path, "--machine", "nobody"], 1);
    house.run(&["history", &house.at("never")], 1);
    house.run(&["history", "relative"], 1);
}

#[test]
fn latest_is_the_newest_that_the_filter_takes_wherever_a_snapshot_is_named() {
    let house = House::new();
    let path = house.at("note");
    let note = |text: &str, tag: &str| {
        fs::write(&path, text).unwrap();
        house.back_up(&["--tag", tag])
    };
    let (one, two) = (note("one", "a"), note("two", "b"));
    fs::remove_file(&path).unwrap();
    house.back_up(&["--tag", "c"]);

    for (tag, id) in [("a", &one), ("b", &two)] {
        house.run(&["ls", "latest", &path, "--tag", tag], 0);
        let target = house.machine.path(tag);
        let (from, target_text) = (format!("latest:{path}"), target.to_str().unwrap());
        let restored = ["restore", &from, "--target", target_text, "--tag", tag];
        assert_eq!(house.objects(&restored, "summary")[0]["snapshot_id"], **id);
        let dumped = house.run(&["dump", &from, "--tag", tag], 0).stdout;
        assert_eq!(dumped, if tag == "a" { "one" } else { "two" });
    }
    let changed = house.run(&["diff", &one, "latest", &path, "--path", house.source()], 0).stdout;
    assert!(changed.contains(&format!("- {path}")), "{changed}");
    let same = house.run(&["diff", &one, "latest", "--tag", "a"], 0).stdout;
    assert!(same.starts_with("0 added, 0 removed, 0 changed"), "{same}");
    house.run(&["history", &path, "--path", "/elsewhere"], 1);
    assert_eq!(house.objects(&["history", &path, "--tag", "b"], "history").len(), 1);

    let target = house.machine.path("none");
    let target = target.to_str().unwrap();
    for args in [
        &["ls", &one, "--tag", "b"][..],
        &["diff", &one, &two, "--tag", "b"],
        &["restore", &one, "--target", target, "--tag", "b"],
        &["dump", &format!("{one}:/"), "--tag", "b"],
    ] {
        let refused = house.run(args, 2).stderr;
        assert!(refused.contains("is none of those that --machine"), "{args:?}: {refused}");
    }
    let none = house.run(&["ls", "latest", &path, "--machine", "nobody"], 1).stderr;
    assert!(none.contains(&format!("no snapshot latest of {path}: --machine")), "{none}");
    assert!(!house.machine.path("none").exists());
}

#[test]
fn a_dumped_file_is_exactly_its_bytes() {
    let house = House::new();
    let odd = house.source.join(OsStr::from_bytes(b"odd \xff"));
    let holey = File::create(&odd).unwrap();
    holey.set_len(5_000_000).unwrap();
    holey.write_all_at(b"in the middle", 2_345_678).unwrap();
    house.back_up(&[]);
    let what = |path: &Path| [b"latest:", path.as_os_str().as_bytes()].concat();
    for path in [&odd, &house.source.join("large.bin"), &house.source.join("docs/empty.txt")] {
        let dumped = house.dumped(OsStr::from_bytes(&what(path)));
        assert!(dumped == fs::read(path).unwrap(), "{}", path.display());
    }

    let target = house.machine.path("dumped");
    let large = format!("latest:{}", house.at("large.bin"));
    let args = ["dump", &large, "--target", target.to_str().unwrap()];
    let summary = house.run(&[&args[..], &["--json"]].concat(), 0).summary();
    assert_eq!((&summary["format"], &summary["bytes"]), (&json!("file"), &json!(3_000_000)));
    assert!(fs::read(&target).unwrap() == fs::read(house.source.join("large.bin")).unwrap());
    house.run(&args, 1);
    house.run(&["dump", &large, "--json"], 2);
    house.run(&["dump", "latest"], 2);
    house.run(&["dump", &format!("latest:{}", house.at("link"))], 1);
    house.run(&["dump", &format!("latest:{}", house.at("nothing"))], 1);
}

#[test]
fn an_archive_is_not_written_to_a_terminal_and_a_reader_may_have_had_enough() {
    let house = House::new();
    house.back_up(&[]);
    let what = format!("latest:{}", house.source());
    let holdall = house.command(&["dump", &what]);
    let words: Vec<_> = std::iter::once(holdall.get_program())
        .chain(holdall.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    // `script` runs a command on a terminal of its own.
    let mut script = Command::new("script");
    script.args(["-qefc", &words.join(" "), "/dev/null"]).stdin(Stdio::null()).env_clear();
    script.envs(holdall.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = script.output().expect("script is there");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("not for a terminal") && !told.contains("ustar"), "{told}");

    let mut command = house.command(&["dump", &what]);
    let mut reader = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut start = [0; 512];
    let mut stdout = reader.stdout.take().unwrap();
    stdout.read_exact(&mut start).unwrap();
    drop(stdout);
    let output = reader.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn gnu_tar_unpacks_an_archive_into_the_tree_that_was_backed_up() {
    let house = House::new();
    fs::remove_dir_all(&house.source).unwrap();
    fs::create_dir(&house.source).unwrap();
    // tar takes no path that is longer than the system takes at once.
    let sizes = FidelitySizes { deep_path_bytes: 3_500, ..FidelitySizes::small() };
    fidelity_tree(&house.source, &sizes).expect("the tree can be made");
    house.back_up(&[]);
    let target = house.machine.path("target");
    fs::create_dir(&target).unwrap();
    let mut dump = house.command(&["dump", &format!("latest:{}", house.source())]);
    let mut dump = dump.stdout(Stdio::piped()).spawn().unwrap();
    let mut tar = Command::new("tar");
    tar.args(["--xattrs", "--xattrs-include=*", "--acls", "--numeric-owner"]);
    // It finds times before 1970 and after today hard to believe, and sets them.
    tar.args(["--warning=no-timestamp", "-xpf", "-", "-C"]);
    let unpacked = tar.arg(&target).stdin(dump.stdout.take().unwrap()).output().unwrap();
    assert!(dump.wait().unwrap().success());
    let told = String::from_utf8_lossy(&unpacked.stderr);
    assert!(unpacked.status.success(), "{told}");
    assert_eq!(told, "");

    let root = holdall_sys::users::effective_uid() == 0;
    let options = CompareOptions { owners: root, ..CompareOptions::default() };
    let differences = compare_trees(&house.source, &target, &options);
    let left: Vec<_> = differences.iter().filter(|one| !is_beyond_tar(one)).collect();
    assert!(left.is_empty(), "{} differ: {:#?}", left.len(), &left[..left.len().min(40)]);
}

/// What GNU tar cannot unpack as it was.
fn is_beyond_tar(difference: &Difference) -> bool {
    match difference.field {
        // An archive has no place for a socket.
        Field::Missing => difference.path == b"special/socket",
        _ => false,
    }
}
