//! What opens a repository, and what does not any more: in a directory and on a server.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use holdall_format::WrappingSet;

use crate::house::{Machine, Outcome, Server, files_below, is_root, text};
use crate::mounts::namespace;

// Keys for these tests; they open nothing else.
pub(crate) const AGE_PUBLIC: &str =
    "age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa";
pub(crate) const AGE_PRIVATE: &str =
    "# a test\nAGE-SECRET-KEY-1GQ9778VQXMMJVE8SK7J6VT8UJ4HDQAJUVSFCWCM02D8GEWQ72PVQ2Y5J33\n";
const SSH_PUBLIC: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOTyrI6yu2/3mgqc3hfBlETD1ZiPDnixdaf915Bgs7Qc ada@desk";
const SSH_PRIVATE: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW
QyNTUxOQAAACDk8qyOsrtv95oKnN4XwZREw9WYjw54sXWn/deQYLO0HAAAAJB7kGgoe5Bo
KAAAAAtzc2gtZWQyNTUxOQAAACDk8qyOsrtv95oKnN4XwZREw9WYjw54sXWn/deQYLO0HA
AAAEBmioUP8D4CLWcQJYtqZUtdUDEfLZyViZqrJLnNpcJaJuTyrI6yu2/3mgqc3hfBlETD
1ZiPDnixdaf915Bgs7QcAAAACGFkYUBkZXNrAQIDBAU=
-----END OPENSSH PRIVATE KEY-----
";
const LOCKED_PUBLIC: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILlS7cuZ0AUMs8tHvP0PsAKx/9lh5m8l/aggPVwk1Hf0 locked";
const LOCKED_PRIVATE: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABBkdLlN8W
SxscYoedcXsPdWAAAAAQAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAILlS7cuZ0AUMs8tH
vP0PsAKx/9lh5m8l/aggPVwk1Hf0AAAAkExJwaAw6fhNkRnGttDvh5iSID0pByxpAI2+HA
KFXD+VP+fTky+awR5PQh0qbWXHakx3hTlvO3REQwJ3pFaDRBCy3ub5zj0oFEflQp9mJWYk
RShVJUoEkKsF8aEQCZWxfb1KwNUjUlUDAYlRt9WSvOyUM/bCIrhxN7b38ycldGTczxDaW2
39P9F/m1p5ryFACQ==
-----END OPENSSH PRIVATE KEY-----
";
const OLD: &str = "correct horse";
const NEW: &str = "battery staple";

/// A repository of a machine, and ways to open it from elsewhere.
struct Keyed {
    machine: Machine,
    repo: Vec<String>,
    server: Option<Server>,
}

impl Keyed {
    fn in_directory() -> Self {
        let machine = Machine::new();
        let repo = vec!["-r".to_owned(), machine.path("repo").to_str().unwrap().to_owned()];
        let keyed = Self { machine, repo, server: None };
        let (at, kit) = (keyed.path("repo"), keyed.path("kit.txt"));
        keyed.machine.init(&["-r", &at, "--recovery-kit", &kit]);
        keyed
    }

    fn on_server() -> Self {
        let machine = Machine::new();
        let server = Server::start(&machine.path("data"));
        machine.pair_with_password(&server);
        Self { machine, repo: Vec::new(), server: Some(server) }
    }

    fn path(&self, name: &str) -> String {
        self.machine.path(name).to_str().unwrap().to_owned()
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn args(&self, args: &[&str]) -> Vec<String> {
        args.iter().map(|arg| (*arg).to_owned()).chain(self.repo.iter().cloned()).collect()
    }

    fn ok(&self, args: &[&str]) -> Outcome {
        self.machine.ok(self.args(args))
    }

    fn run(&self, args: &[&str]) -> Outcome {
        self.machine.run(self.args(args))
    }

    /// Runs `snapshots` without a kept key, with that password.
    fn open(&self, password: &str, more: &[&str]) -> Outcome {
        // On a server the machine signs in with its own key, and then needs the repository's.
        let _ = fs::remove_dir_all(self.machine.path("config/state/keys"));
        let mut command = self.machine.command(self.args(&[&["snapshots"], more].concat()));
        Outcome::of(command.env("HOLDALL_PASSWORD", password))
    }

    fn keys(&self) -> Vec<(String, String)> {
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let listed = self.ok(&["key", "list", "--json"]).of_type("key");
        listed.iter().map(|key| (text(&key["kind"]), text(&key["label"]))).collect()
    }
}

fn each_key_opens_after_add_and_not_after_remove(keyed: &Keyed) {
    let age = keyed.file("age.txt", AGE_PRIVATE);
    let ssh = keyed.file("ssh.txt", SSH_PRIVATE);
    let locked = keyed.file("locked.txt", LOCKED_PRIVATE);
    let second = keyed.file("second.txt", "second\n");
    let locked_public = keyed.file("locked.pub", LOCKED_PUBLIC);
    keyed.ok(&["key", "add", "--recipient", AGE_PUBLIC, "--label", "age"]);
    keyed.ok(&["key", "add", "--recipient", SSH_PUBLIC]);
    keyed.ok(&["key", "add", "--recipient-file", &locked_public]);
    let add = ["key", "add", "--passphrase", "--new-password-file", &second, "--json"];
    assert_eq!(keyed.ok(&add).summary()["keys"], 6);
    let names = ["recovery kit", "passphrase", "age", "ada@desk", "locked", "passphrase 2"];
    let labels: Vec<_> = keyed.keys().into_iter().map(|(_, label)| label).collect();
    assert_eq!(labels, names);

    let ways: [(&str, &str, &[&str]); 4] = [
        ("age", "wrong", &["--identity", &age]),
        ("ada@desk", "wrong", &["--identity", &ssh]),
        ("locked", "open sesame", &["--identity", &locked]),
        ("passphrase 2", "second", &[]),
    ];
    keyed.open("wrong", &[]).expect(12);
    keyed.open("wrong", &["--identity", &locked]).expect(12);
    for (label, password, more) in ways {
        keyed.open(password, more).expect(0);
        keyed.ok(&["key", "remove", label]);
        keyed.open(password, more).expect(12);
    }
    assert_eq!(keyed.keys().len(), 2);
}

#[test]
fn each_key_of_a_directory_opens_after_add_and_not_after_remove() {
    each_key_opens_after_add_and_not_after_remove(&Keyed::in_directory());
}

#[test]
fn each_key_on_a_server_opens_after_add_and_not_after_remove() {
    let keyed = Keyed::on_server();
    each_key_opens_after_add_and_not_after_remove(&keyed);
    let sets = fs::read_dir(keyed.machine.path("data/repositories")).unwrap();
    let repository = sets.map(|entry| entry.unwrap().path()).next().unwrap();
    assert_eq!(fs::read_dir(repository.join("wrappings")).unwrap().count(), 9);
}

fn a_password_is_changed(keyed: &Keyed) {
    let mut command = keyed.machine.command(keyed.args(&["key", "change"]));
    let changed = Outcome::of(command.env("HOLDALL_NEW_PASSWORD", NEW)).expect(0);
    let mut command = keyed.machine.command(keyed.args(&["key", "list", "--json"]));
    let listed = Outcome::of(command.env("HOLDALL_PASSWORD", NEW)).expect(0).of_type("key");
    assert!(listed.len() == 2 && listed.iter().all(|key| key["generation"] == 2), "{listed:?}");
    assert!(
        changed.stderr.contains("an older copy of the repository's keys"),
        "{}",
        changed.stderr
    );
    keyed.open(OLD, &[]).expect(12);
    keyed.open(NEW, &[]).expect(0);
}

#[test]
fn the_password_of_a_directory_is_changed_and_the_old_one_s_key_is_gone() {
    let keyed = Keyed::in_directory();
    let old = keyed.machine.path("repo/wrappings/0000000000000001");
    assert!(old.exists());
    a_password_is_changed(&keyed);
    assert!(!old.exists());
}

#[test]
fn the_password_of_a_paired_machine_is_changed_and_an_administrator_can_go_back() {
    let mut keyed = Keyed::on_server();
    a_password_is_changed(&keyed);
    drop(keyed.server.take());
    let repositories = keyed.machine.path("data/repositories");
    let repository = fs::read_dir(repositories).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(repository.join("wrappings/0000000000000002")).unwrap();
    fs::remove_dir_all(repository.join("spare")).unwrap();
    let server = Server::start(&keyed.machine.path("data"));
    keyed.repo = vec!["-r".to_owned(), format!("https://{}", server.address())];
    keyed.server = Some(server);
    keyed.open(OLD, &[]).expect(0);
    keyed.open(NEW, &[]).expect(12);
}

#[test]
fn a_second_recovery_kit_reads_from_a_server_and_the_removed_one_does_not() {
    let keyed = Keyed::on_server();
    let (first, second) = (keyed.path("kit.txt"), keyed.path("second.txt"));
    let recovers = |kit: &str| {
        let computer = Machine::new().with_password(None);
        let paired = computer.run(["pair", "--recovery-kit", kit]);
        (paired.code, computer)
    };
    keyed.ok(&["key", "add", "--recovery-kit", &second, "--label", "safe"]);
    keyed.run(&["key", "add", "--recovery-kit", &second]).expect(1);
    for kit in [&first, &second] {
        let (code, computer) = recovers(kit);
        assert_eq!(code, Some(0));
        computer.ok(["snapshots"]);
        // It reads, and may change nothing.
        computer.run(["key", "add", "--recipient", AGE_PUBLIC]).expect(13);
        computer.run(["key", "remove", "safe"]).expect(13);
    }
    let (_, computer) = recovers(&first);
    keyed.ok(&["key", "remove", "recovery kit"]);
    computer.run(["snapshots"]).expect(13);
    assert_eq!(recovers(&first).0, Some(13));
    assert_eq!(recovers(&second).0, Some(0));
    let last = keyed.ok(&["key", "remove", "safe"]).stderr;
    assert!(last.contains("that was the last recovery kit"), "{last}");
    assert_eq!(recovers(&second).0, Some(13));
}

#[test]
fn a_recovery_kit_signs_in_and_stays_proven_after_the_keys_were_changed_and_rotated() {
    let keyed = Keyed::on_server();
    let (kit, file) = (keyed.path("kit.txt"), keyed.file("new.txt", "new\n"));
    keyed.ok(&["key", "change", "--new-password-file", &file]);
    keyed.ok(&["key", "rotate"]);
    keyed.ok(&["key", "add", "--recipient", AGE_PUBLIC]);
    Machine::new().with_password(None).ok(["pair", "--recovery-kit", &kit]);
    let repositories = fs::read_dir(keyed.machine.path("data/repositories")).unwrap();
    let repository = repositories.map(|entry| entry.unwrap().path()).next().unwrap();
    let set = WrappingSet::decode_signed(&fs::read(newest_set(&repository)).unwrap()).unwrap();
    assert_eq!((set.generation, set.recovery_identities().len()), (4, 1));
    assert_eq!(set.unproven_identity(&[]), None);
}

#[test]
fn a_second_recovery_kit_opens_a_directory() {
    let keyed = Keyed::in_directory();
    let second = keyed.path("second.txt");
    keyed.ok(&["key", "add", "--recovery-kit", &second]);
    let recovers = || {
        let computer = Machine::new().with_password(None);
        computer.run(keyed.args(&["pair", "--recovery-kit", &second]))
    };
    recovers().expect(0);
    keyed.ok(&["key", "remove", "recovery kit 2"]);
    recovers().expect(12);
}

#[test]
fn a_kit_for_what_is_mounted_read_only_does_not_stay() {
    if !is_root("what is mounted read-only") {
        return;
    }
    let keyed = Keyed::in_directory();
    let (repo, kit) = (keyed.path("repo"), keyed.path("second.txt"));
    let script = format!("mount --bind {repo} {repo}; mount -o remount,ro,bind {repo}");
    let none = format!("{repo}/none");
    let add = keyed.args(&["key", "add", "--recovery-kit", &kit]);
    let init = ["init", "-r", &none, "--recovery-kit", &kit].map(str::to_owned);
    for args in [add, init.to_vec()] {
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let said = Outcome::of(&mut namespace(&keyed.machine, &script, &args)).expect(1);
        assert!(said.stderr.contains("mounted read-only"), "{}", said.stderr);
        assert!(!said.stderr.contains("may have been"), "{}", said.stderr);
        assert!(!Path::new(&kit).exists(), "{args:?}");
    }
}

#[test]
fn the_last_key_stays_and_what_makes_no_sense_is_refused() {
    let keyed = Keyed::in_directory();
    let file = keyed.file("new.txt", "new\n");
    keyed.run(&["key", "add"]).expect(2);
    keyed.run(&["key", "add", "--recipient", "age1nonsense"]).expect(2);
    keyed
        .run(&["key", "add", "--passphrase", "--label", "3", "--new-password-file", &file])
        .expect(2);
    keyed.run(&["key", "remove", "3"]).expect(1);
    keyed.run(&["key", "change", "recovery kit", "--new-password-file", &file]).expect(2);
    keyed.file("new.txt", "\n");
    keyed.run(&["key", "change", "--new-password-file", &file]).expect(1);
    assert_eq!(keyed.keys().len(), 2);
    keyed.ok(&["key", "remove", "1"]);
    let refused = keyed.run(&["key", "remove", "1"]).expect(1);
    assert!(refused.stderr.contains("it is the last key"), "{}", refused.stderr);
    assert_eq!(keyed.keys(), [("passphrase".to_owned(), "passphrase".to_owned())]);
}

#[test]
fn of_two_changes_at_once_one_is_told() {
    let keyed = Keyed::on_server();
    let file = keyed.file("new.txt", "new\n");
    let command = || {
        let add = ["key", "add", "--passphrase", "--new-password-file", &file, "--json"];
        let mut command = keyed.machine.command(keyed.args(&add));
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    let children: Vec<_> = (0..4).map(|_| command()).collect();
    let codes: Vec<_> =
        children.into_iter().map(|mut child| child.wait().unwrap().code().unwrap()).collect();
    let done = codes.iter().filter(|code| **code == 0).count();
    assert!(done >= 1 && codes.iter().all(|code| [0, 1].contains(code)), "{codes:?}");
    // What was acknowledged is there, and nothing else.
    assert_eq!(keyed.keys().len(), 2 + done);
}

/// The key epochs of all blocks that lie there.
fn sealed_epochs(repository: &Path) -> BTreeSet<u32> {
    let mut epochs = BTreeSet::new();
    for file in files_below(repository) {
        let bytes = fs::read(file).unwrap();
        let headers = bytes.windows(28).filter(|window| window.starts_with(b"HBlk\x01"));
        epochs.extend(headers.map(|header| u32::from_le_bytes(header[24..].try_into().unwrap())));
    }
    epochs
}

/// The newest set of wrappings of a repository.
fn newest_set(repository: &Path) -> PathBuf {
    let sets = fs::read_dir(repository.join("wrappings")).unwrap();
    sets.map(|set| set.unwrap().path()).max().unwrap()
}

/// Backs up before and after a rotation, and restores both.
fn after_a_rotation_all_keys_open_all_snapshots(keyed: &Keyed, repository: &Path) {
    let (age, tree) = (keyed.file("age.txt", AGE_PRIVATE), keyed.path("tree"));
    keyed.ok(&["key", "add", "--recipient", AGE_PUBLIC]);
    fs::create_dir(&tree).unwrap();
    let put = |name: &str| fs::write(Path::new(&tree).join(name), name.repeat(1000)).unwrap();
    put("before");
    let first = keyed.ok(&["backup", &tree, "--json"]).summary();
    assert_eq!(sealed_epochs(repository), BTreeSet::from([1]));

    let rotated = keyed.ok(&["key", "rotate", "--json"]);
    assert_eq!((rotated.summary()["epoch"].as_u64(), rotated.of_type("key").len()), (Some(2), 3));
    put("after");
    let second = keyed.ok(&["backup", &tree, "--json"]).summary();
    assert_eq!(sealed_epochs(repository), BTreeSet::from([1, 2]));
    assert_eq!(second["files_unmodified"], 1, "what is there already is not sent again: {second}");

    keyed.ok(&["check", "--verify", "all"]);
    for (snapshot, names) in [(first, 1), (second, 2)] {
        let (id, target) = (snapshot["snapshot_id"].as_str().unwrap(), keyed.path("target"));
        keyed.ok(&["restore", &format!("{id}:{tree}"), "--target", &target]);
        assert_eq!(fs::read_dir(&target).unwrap().count(), names);
        fs::remove_dir_all(target).unwrap();
    }
    keyed.open(OLD, &[]).expect(0);
    keyed.open("wrong", &["--identity", &age]).expect(0);
    keyed.open("wrong", &[]).expect(12);
}

#[test]
fn a_rotation_of_a_directory_s_keys_seals_anew_and_is_not_set_back_unseen() {
    let keyed = Keyed::in_directory();
    let repository = keyed.machine.path("repo");
    after_a_rotation_all_keys_open_all_snapshots(&keyed, &repository);
    let kit = keyed.path("kit.txt");
    let computer = Machine::new().with_password(None);
    computer.run(keyed.args(&["pair", "--recovery-kit", &kit])).expect(0);
    computer.run(keyed.args(&["snapshots"])).expect(0);

    // Somebody who had the former keys puts the set back that they signed.
    let before = fs::read(newest_set(&repository)).unwrap();
    keyed.ok(&["key", "rotate"]);
    fs::remove_file(newest_set(&repository)).unwrap();
    fs::remove_dir_all(repository.join("spare")).unwrap();
    fs::write(repository.join("wrappings/0000000000000003"), before).unwrap();
    for args in [&["snapshots"][..], &["backup", &keyed.path("tree")], &["key", "list"]] {
        let refused = keyed.run(args).expect(20);
        assert!(refused.stderr.contains("set back to what they were before"), "{}", refused.stderr);
    }
    // A computer that saw nothing of the second rotation cannot know.
    computer.run(keyed.args(&["snapshots"])).expect(0);
}

#[test]
fn a_paired_machine_rotates_its_keys_and_another_that_keeps_them_asks_once() {
    let mut keyed = Keyed::on_server();
    let repositories = keyed.machine.path("data/repositories");
    let repository = fs::read_dir(repositories).unwrap().next().unwrap().unwrap().path();
    let kept = keyed.machine.path("config/state/keys");
    let former = fs::read_dir(&kept).unwrap().next().unwrap().unwrap().path();
    let former_ring = fs::read(&former).unwrap();
    after_a_rotation_all_keys_open_all_snapshots(&keyed, &repository);

    // As another computer has it, which kept the key before.
    let keep = |ring: &[u8]| {
        fs::create_dir_all(&kept).unwrap();
        fs::write(&former, ring).unwrap();
    };
    let snapshots = |password: Option<&str>| {
        let mut command = keyed.machine.command(keyed.args(&["snapshots"]));
        command.env_remove("HOLDALL_PASSWORD");
        password.map(|password| command.env("HOLDALL_PASSWORD", password));
        Outcome::of(&mut command)
    };
    keep(&former_ring);
    snapshots(Some("wrong")).expect(12);
    let asked = snapshots(None);
    assert!(asked.code != Some(0) && asked.stderr.contains("the keys were rotated"), "{asked:?}");
    snapshots(Some(OLD)).expect(0);
    snapshots(None).expect(0);
    let ring = fs::read(&former).unwrap();
    assert!(ring.len() > former_ring.len());

    // The server shows the keys from before, as its administrator may, too.
    drop(keyed.server.take());
    fs::remove_file(newest_set(&repository)).unwrap();
    fs::remove_dir_all(repository.join("spare")).unwrap();
    let server = Server::start(&keyed.machine.path("data"));
    keyed.repo = vec!["-r".to_owned(), format!("https://{}", server.address())];
    keyed.server = Some(server);
    keep(&ring);
    let refused = keyed.run(&["snapshots"]).expect(20);
    assert!(refused.stderr.contains("set back to what they were before"), "{}", refused.stderr);
    // Nor is it had to forget what it knows by being paired with the kit.
    keyed.run(&["pair", "--recovery-kit", &keyed.path("kit.txt")]).expect(20);
    assert_eq!(fs::read(&former).unwrap(), ring);
}

/// The byte of a repository's configuration that names the cipher: `docs/format.md`, chapter 8.
const SUITE_AT: usize = 6;

#[test]
fn a_repository_is_sealed_with_the_cipher_that_was_asked_for() {
    let machine = Machine::new();
    let path = |name: &str| machine.path(name).to_str().unwrap().to_owned();
    fs::write(path("file"), [7; 100_000]).unwrap();
    let suite_of = |cipher: &str| {
        let (repository, target) = (path(cipher), path(&format!("{cipher}.back")));
        let ok = |words: &[&str]| machine.ok([&["-r", &repository], words].concat());
        ok(&["init", "--cipher", cipher]);
        ok(&["backup", &path("file")]);
        ok(&["restore", &format!("latest:{}", path("file")), "--target", &target]);
        assert_eq!(fs::read(Path::new(&target).join("file")).unwrap(), [7; 100_000], "{cipher}");
        fs::read(Path::new(&repository).join("config")).unwrap()[SUITE_AT]
    };
    assert_eq!(["aes-256-gcm", "chacha20-poly1305"].map(suite_of), [1, 2]);
}

/// Seen: the list of what opens a repository lacked what opens it every day.
#[test]
fn the_list_of_keys_tells_that_this_computer_keeps_one() {
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    machine.pair(&server.invite_with(&["--name", "desk"]));
    let told = machine.ok(["key", "list"]).stderr;
    assert!(told.contains("this computer keeps a key"), "{told}");
    let in_a_folder = Machine::new();
    let repo = in_a_folder.path("repo");
    in_a_folder.init(&["-r", text(&repo)]);
    let told = in_a_folder.ok(["key", "list", "-r", text(&repo)]).stderr;
    assert!(!told.contains("keeps a key"), "{told}");
}
