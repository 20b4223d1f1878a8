//! Names of places and passwords as people and other programs write them: what no shell has read, what an editor left
//! in a file, and what is said of it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::house::{Machine, Outcome, Server, small_tree, text};

#[test]
fn a_home_folder_is_known_where_no_shell_puts_it() {
    let machine = Machine::new();
    let home = machine.path("home");
    small_tree(&home.join("tree"));
    fs::create_dir(machine.path("config")).unwrap();
    let config = "repository = \"~/repo\"\npassword_file = \"~/pw\"\n";
    fs::write(machine.path("config/config.toml"), config).unwrap();
    fs::write(home.join("pw"), "pw\n").unwrap();
    let machine = machine.with_password(None);
    machine.ok(["init", "--recovery-kit", text(&home.join("kit"))]);
    assert!(home.join("repo/config").exists());
    machine.ok(["backup", text(&home.join("tree"))]);
    let target = machine.path("out");
    machine.ok(["restore", "latest:~/tree", "--target", text(&target)]);
    assert!(target.join("large.bin").exists());
    let refused = machine.run(["backup", "~/tree"]).expect(2).stderr;
    assert!(refused.contains("~/tree") && refused.contains("./~/tree"), "{refused}");
}

#[test]
fn folders_of_the_user_that_are_not_absolute_count_as_unset() {
    let machine = Machine::new();
    let run = |args: &[&str]| {
        let mut command = machine.command(args);
        command.env_remove("HOLDALL_CONFIG_DIR").env_remove("HOLDALL_CACHE_DIR");
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
            command.env(name, "relative");
        }
        fs::create_dir_all(machine.path("here")).unwrap();
        Outcome::of(command.current_dir(machine.path("here")))
    };
    let repo = machine.path("repo");
    run(&["init", "-r", text(&repo), "--recovery-kit", text(&machine.path("kit"))]).expect(0);
    assert!(!machine.path("here/relative").exists());
    assert!(machine.path("home/.local/state/holdall").exists());
}

#[test]
fn a_password_is_taken_whole_or_refused_and_never_told() {
    let machine = Machine::new().with_password(None);
    let (repo, file) = (machine.path("repo"), machine.path("password"));
    let kit = machine.path("kit");
    let init = ["init", "-r", text(&repo), "--recovery-kit", text(&kit)];
    let given = ["--password-file", text(&file)];
    let run = |password: &[u8], args: &[&str]| {
        fs::write(&file, password).unwrap();
        machine.run([args, &given].concat())
    };
    let refused = run(&[b'x'; 5000], &init).expect(2).stderr;
    assert!(refused.contains("longer than 4096 bytes"), "{refused}");
    let mut by_command = machine.command(init);
    by_command.env("HOLDALL_PASSWORD_COMMAND", "head -c 5000 /dev/zero | tr '\\0' x");
    assert!(Outcome::of(&mut by_command).expect(2).stderr.contains("longer than 4096 bytes"));

    let secret = b"unspeakable\xff";
    let from_file = run(secret, &init);
    let mut by_variable = machine.command(init);
    let from_variable = Outcome::of(by_variable.env("HOLDALL_PASSWORD", OsStr::from_bytes(secret)));
    for told in [from_file, from_variable] {
        let told = told.expect(2).stderr;
        assert!(told.contains("not UTF-8") && !told.contains("unspeakable"), "{told}");
    }
    assert!(!repo.exists());

    run(b"pw\n", &init).expect(0);
    let snapshots = ["snapshots", "-r", text(&repo)];
    for (odd, part) in [
        (&b"\xef\xbb\xbfpw\n"[..], "byte order mark"),
        (b"pw\r\r\n", "carriage return"),
        (b"pw\n\n", "empty line"),
        (b"p\0w", "zero byte"),
    ] {
        let refused = run(odd, &snapshots).expect(12).stderr;
        assert!(refused.contains(part), "{refused}");
    }
    run(b"pw\r\n", &snapshots).expect(0);
    let [second, second_kit] = ["other", "k"].map(|name| machine.path(name));
    let other = ["init", "-r", text(&second), "--recovery-kit", text(&second_kit)];
    let refused = run(b"pw\0", &other).expect(2).stderr;
    assert!(refused.contains("zero byte"), "{refused}");
    let too_long = "x".repeat(4097);
    let mut command = machine.command(other);
    let refused = Outcome::of(command.env("HOLDALL_PASSWORD", &too_long)).expect(2).stderr;
    assert!(refused.contains("longer than 4096 bytes"), "{refused}");
    let noted = run(b"pw\n\n", &other).expect(0).stderr;
    assert!(noted.contains("empty line"), "{noted}");
}

#[test]
fn standard_input_is_read_for_one_thing_alone() {
    let machine = Machine::new();
    let args = ["backup", "--files-from", "-", "--password-file", "/dev/stdin", "-r", "repo"];
    let refused = machine.run(args).expect(2).stderr;
    assert!(refused.contains("--files-from") && refused.contains("--password-file"), "{refused}");
}

#[test]
fn a_home_folder_that_nobody_names_is_no_folder_of_that_name() {
    let machine = Machine::new();
    let here = machine.path("here");
    fs::create_dir(&here).unwrap();
    for name in ["HOLDALL_REPOSITORY", "HOLDALL_CACHE_DIR", "HOLDALL_CONFIG_DIR"] {
        let mut command = machine.command(["init"]);
        command.env_remove("HOME").env("HOLDALL_REPOSITORY", here.join("repo"));
        let refused = Outcome::of(command.env(name, "~/x").current_dir(&here)).expect(2).stderr;
        assert!(refused.contains("HOME"), "{name}: {refused}");
        assert_eq!(fs::read_dir(&here).unwrap().count(), 0, "{name}");
    }
    let mut command = machine.command(["init", "--recovery-kit", text(&here.join("kit"))]);
    command.env("HOLDALL_REPOSITORY", "~/repo").env("HOLDALL_CACHE_DIR", "~/cache");
    Outcome::of(command.current_dir(&here)).expect(0);
    assert!(machine.path("home/repo").exists() && !here.join("~").exists());
}

#[test]
fn the_default_repository_is_no_name_for_a_new_machine_s() {
    let machine = Machine::new();
    let data = machine.path("data");
    let _server = Server::start(&data);
    let mut command = machine.command(["invite", "--data", text(&data)]);
    Outcome::of(command.env("HOLDALL_REPOSITORY", machine.path("repo"))).expect(0);
}
