//! What goes wrong has an exit code of its own and says what to do.

use std::fs;
use std::process::Stdio;

use holdall_testkit::copy_folder;

use crate::house::{Machine, Outcome, Server, is_root, open_at_once, small_tree};
use crate::mounts::namespace;

#[test]
fn a_wrong_password_is_12_and_a_missing_repository_10() {
    let machine = Machine::new();
    let repo = machine.path("repo");
    let repo = repo.to_str().unwrap();
    let said = machine.run(["snapshots", "-r", repo]).expect(10);
    assert!(said.stderr.contains("holdall init"), "{}", said.stderr);
    machine.init(&["-r", repo]);
    machine.run(["init", "-r", repo]).expect(1);

    let wrong = machine.with_password(Some("battery staple"));
    let said = wrong.run(["snapshots", "-r", repo, "--json"]).expect(12);
    let error = said.of_type("error").pop().unwrap();
    assert_eq!(error["code"], 12);
    assert!(error["hint"].as_str().unwrap().contains("password"));
    let none = wrong.with_password(None);
    let file = none.path("password");
    fs::write(&file, "correct horse\n").unwrap();
    none.ok(["snapshots", "-r", repo, "--password-file", file.to_str().unwrap()]);
}

#[test]
fn a_file_that_is_named_and_not_there_is_refused_also_where_a_key_is_kept() {
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    machine.pair_with(&server);
    let none = machine.path("none");
    for flag in ["--identity", "--password-file"] {
        let said = machine.run(["snapshots", flag, none.to_str().unwrap()]).expect(1);
        assert!(said.stderr.contains("none: No such file"), "{}", said.stderr);
    }
}

#[test]
fn a_server_that_is_down_is_14_whether_it_is_known_or_not() {
    let machine = Machine::new().with_password(None);
    let data = machine.path("data");
    let mut server = Server::start(&data);
    machine.pair_with(&server);
    let place = format!("https://{}", server.address());
    machine.ok(["snapshots"]);
    machine.ok(["snapshots", "-r", &place]);
    let stranger = Machine::new();
    stranger.run(["snapshots", "-r", &place]).expect(13);
    server.process().terminate().unwrap();
    assert!(server.process().wait().unwrap().0.success());

    machine.run(["snapshots"]).expect(14);
    machine.run(["backup", "/usr/share/doc"]).expect(14);
    stranger.run(["snapshots", "-r", &place]).expect(14);
}

#[test]
fn a_target_that_holds_something_is_refused_unless_it_may_be_overwritten() {
    let machine = Machine::new();
    let (repo, source, target) = (machine.path("repo"), machine.path("source"), machine.path("to"));
    let [repo, source, target] = [&repo, &source, &target].map(|path| path.to_str().unwrap());
    small_tree(source.as_ref());
    fs::create_dir(target).unwrap();
    fs::write(format!("{target}/mine"), "mine").unwrap();
    machine.init(&["-r", repo]);
    machine.ok(["backup", "-r", repo, source]);
    let from = format!("latest:{source}");
    machine.run(["restore", "-r", repo, &from, "--target", target]).expect(1);
    machine.ok(["restore", "-r", repo, &from, "--target", target, "--overwrite", "never"]);
    assert_eq!(fs::read(format!("{target}/mine")).unwrap(), b"mine");
    assert!(fs::exists(format!("{target}/docs/letter.txt")).unwrap());
}

#[test]
fn a_target_in_which_nothing_can_be_made_is_named_and_no_success() {
    if !is_root("what is mounted read-only") {
        return;
    }
    let machine = Machine::new();
    let (repo, source, target) = (machine.path("repo"), machine.path("source"), machine.path("to"));
    let [repo, source, target] = [&repo, &source, &target].map(|path| path.to_str().unwrap());
    small_tree(source.as_ref());
    fs::create_dir(target).unwrap();
    machine.init(&["-r", repo]);
    machine.ok(["backup", "-r", repo, source]);
    let script = format!("mount --bind {target} {target}; mount -o remount,ro,bind {target}");
    for from in ["latest", &format!("latest:{source}/docs")] {
        let args = ["restore", "-r", repo, from, "--target", target];
        let said = Outcome::of(&mut namespace(&machine, &script, &args)).expect(1).stderr;
        assert!(said.contains(&format!("{target}: nothing could be restored there")), "{said}");
    }
}

#[test]
fn what_was_done_is_done_where_standard_output_is_full() {
    let machine = Machine::new();
    let (repo, source, kit) = (machine.path("repo"), machine.path("source"), machine.path("kit"));
    let [repo, source, kit] = [&repo, &source, &kit].map(|path| path.to_str().unwrap());
    small_tree(source.as_ref());
    let into_full = |args: &[&str], code: i32| {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = machine.command(args).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let output = output.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        said
    };
    let said = into_full(&["init", "-r", repo], 1);
    assert!(said.contains("the repository was made") && said.contains("key add"), "{said}");
    open_at_once(repo.as_ref(), "correct horse");
    let added = into_full(&["init", "-r", &format!("{repo}2"), "--recovery-kit", kit], 0);
    assert!(added.contains("recovery kit written to"), "{added}");
    for more in [&[][..], &["--json"]] {
        let said = into_full(&[&["backup", "-r", repo, source], more].concat(), 0);
        assert!(said.contains("was committed"), "{said}");
    }
    assert_eq!(machine.ok(["snapshots", "-r", repo, "--json"]).of_type("snapshot").len(), 2);
    let said = into_full(&["snapshots", "-r", repo, "--json"], 1);
    assert!(said.contains("No space left"), "{said}");
    let [target, second] = ["target", "second-kit"].map(|name| machine.path(name));
    let [target, second] = [&target, &second].map(|path| path.to_str().unwrap());
    for (args, done) in [
        (&["restore", "latest", "--target", target][..], "what could be restored was"),
        (&["tag", "latest", "--add", "x"], "1 snapshot changed"),
        (&["key", "add", "--recovery-kit", second, "--label", "safe"], "added the key \"safe\""),
        (&["key", "rotate"], "were rotated"),
        (&["key", "remove", "safe"], "\"safe\" does not open"),
        (&["forget", "latest", "--prune"], "1 snapshot was forgotten"),
        (&["forget", "--keep-last", "1", "--prune"], "the repository was pruned"),
        (&["prune", "--json"], "the repository was pruned"),
    ] {
        let said = into_full(&[args, &["-r", repo]].concat(), 0);
        assert!(said.contains(done), "{args:?}: {said}");
    }
    assert_eq!(machine.ok(["snapshots", "-r", repo, "--json"]).of_type("snapshot").len(), 1);
    into_full(&["forget", "latest", "-r", repo, "-n"], 1);
}

#[test]
fn what_uses_nothing_of_the_user_needs_neither_a_home_folder_nor_settings() {
    let machine = Machine::new();
    let (data, pages) = (machine.path("data"), machine.path("pages"));
    let [data_text, pages] = [&data, &pages].map(|path| path.to_str().unwrap());
    fs::create_dir(machine.path("config")).unwrap();
    fs::write(machine.path("config/config.toml"), "nonsense").unwrap();
    let mut serve = Server::command(&data);
    let _server = Server::start_by(
        serve.env_clear().env("HOLDALL_CONFIG_DIR", machine.path("config")),
        &data,
    );
    for args in [
        &["version"][..],
        &["completions", "bash"],
        &["man", pages],
        &["invite", "--data", data_text],
        &["admin", "--data", data_text, "machines"],
    ] {
        machine.ok(args);
        let mut homeless = machine.command(args);
        for name in ["HOME", "HOLDALL_CONFIG_DIR", "HOLDALL_CACHE_DIR"] {
            homeless.env_remove(name);
        }
        Outcome::of(&mut homeless).expect(0);
    }
    machine.run(["snapshots", "-r", "repo"]).expect(2);
}

#[test]
fn a_snapshot_that_is_not_there_or_not_clear_is_told() {
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    let [repo, source] = [&repo, &source].map(|path| path.to_str().unwrap());
    small_tree(source.as_ref());
    machine.init(&["-r", repo]);
    let said = machine.run(["ls", "-r", repo, "latest"]).expect(1);
    assert!(said.stderr.contains("holdall snapshots"), "{}", said.stderr);
    let mut first_digits = std::collections::BTreeSet::new();
    // There are sixteen digits, so at the latest the seventeenth id begins like another.
    let shared = loop {
        let id = machine.summary(["backup", "-r", repo, source])["snapshot_id"].to_string();
        let digit = id.trim_matches('"')[..1].to_owned();
        if !first_digits.insert(digit.clone()) {
            break digit;
        }
    };
    let said = machine.run(["ls", "-r", repo, &shared]).expect(1);
    assert!(said.stderr.contains("several"), "{}", said.stderr);
    machine.run(["ls", "-r", repo, "zz"]).expect(1);
}

#[test]
fn a_repository_that_was_rolled_back_is_damage_and_not_an_empty_list() {
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    let [repo, source] = [&repo, &source].map(|path| path.to_str().unwrap());
    small_tree(source.as_ref());
    machine.init(&["-r", repo]);
    let old = machine.path("old");
    copy_folder(repo.as_ref(), &old);
    machine.ok(["backup", "-r", repo, source]);
    fs::remove_dir_all(repo).unwrap();
    copy_folder(&old, repo.as_ref());
    machine.run(["snapshots", "-r", repo]).expect(20);
    machine.run(["check", "-r", repo]).expect(20);
    // It is told once more, and backed up all the same.
    machine.run(["backup", "-r", repo, source]).expect(20);
    machine.ok(["snapshots", "-r", repo]);
}

#[test]
fn a_snapshot_that_was_committed_is_done_even_if_nobody_reads_so() {
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    let [repo, source] = [&repo, &source].map(|path| path.to_str().unwrap());
    small_tree(source.as_ref());
    machine.init(&["-r", repo]);
    let unheard = |args: &[&str]| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        machine.command(args).stdout(writer).status().unwrap().code()
    };
    assert_eq!(unheard(&["backup", "-r", repo, source]), Some(0));
    // What is missing is told as an object, too.
    let missing = format!("{source}/missing");
    assert_eq!(unheard(&["backup", "-r", repo, source, &missing, "--json"]), Some(3));
    assert_eq!(unheard(&["snapshots", "-r", repo]), Some(1));
    let made = machine.summary(["backup", "-r", repo, source]);
    assert_eq!(made["files_new"], 0, "{made}");
}

#[test]
fn damaged_bytes_are_found_and_named() {
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    let [repo, source] = [&repo, &source].map(|path| path.to_str().unwrap());
    small_tree(source.as_ref());
    machine.init(&["-r", repo]);
    machine.ok(["backup", "-r", repo, source]);
    let largest = crate::house::files_below(repo.as_ref());
    let largest = largest.into_iter().max_by_key(|file| fs::metadata(file).unwrap().len()).unwrap();
    let mut bytes = fs::read(&largest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let mut permissions = fs::metadata(&largest).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o600);
    fs::set_permissions(&largest, permissions).unwrap();
    fs::write(&largest, bytes).unwrap();
    let advice = "`holdall check --verify all` names the paths that are affected";
    let said = machine.run(["check", "-r", repo]).expect(20).stdout;
    assert!(said.contains(advice) && !said.contains("damaged path"), "{said}");
    let said = machine.run(["check", "-r", repo, "--verify", "all"]).expect(20).stdout;
    assert!(!said.contains(advice) && said.contains("damaged path"), "{said}");
    let checked =
        machine.run(["check", "-r", repo, "--scrub", "--verify", "all", "--json"]).expect(20);
    let damaged = checked.summary()["damaged"].clone();
    let kinds: Vec<_> = damaged.as_array().unwrap().iter().map(|one| one["kind"].clone()).collect();
    // Damage in a tail looks like a torn write, whose objects are missing then.
    assert!(kinds.contains(&"block".into()) || kinds.contains(&"object".into()), "{damaged}");
    assert!(kinds.contains(&"path".into()), "{damaged}");
}

#[test]
fn wrong_usage_is_2_and_says_how_it_is_meant() {
    let machine = Machine::new().with_password(None);
    machine.run(["backup"]).expect(2);
    machine.run(["no-such-command"]).expect(2);
    let said = machine.run(["snapshots"]).expect(2);
    assert!(said.stderr.contains("holdall pair"), "{}", said.stderr);
    machine.run(["init", "-r", "s3://bucket/x"]).expect(2);
    machine.run(["pair", "not-an-invite"]).expect(2);
    let repo = machine.path("repo");
    // There is no terminal to ask for a password at, in a new session.
    let mut command = std::process::Command::new("setsid");
    command.arg("--wait").arg(crate::house::HOLDALL).args(["init", "-r"]).arg(&repo);
    command.env("HOLDALL_CONFIG_DIR", machine.path("config"));
    command.env("HOLDALL_CACHE_DIR", machine.path("cache"));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    machine.ok(["--help"]);
    machine.ok(["backup", "--help"]);
    let version = machine.ok(["version", "--json"]).objects();
    assert_eq!(version[0]["version"], env!("CARGO_PKG_VERSION"));
}
