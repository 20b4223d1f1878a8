//! The stored format as others see it: a repository that was made long ago, and a decoder that was
//! written from `docs/format.md` alone. `golden/README.md` says what both are.

mod manifest;

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdall_testkit::{
    CompareOptions, Random, RandomTreeSizes, compare_trees, is_there, mutate_tree, random_tree,
};

use crate::house::{Machine, Outcome, files_below, folder, text};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden");
const PASSWORD: &str = include_str!("../../../../../golden/repository/password");
const LATER_PASSWORD: &str = "another password";
/// The system's, for which the distribution has the modules.
const PYTHON: &str = "/usr/bin/python3";
const MANIFESTS: [&str; 2] = ["manifest-1.txt", "manifest-2.txt"];
/// What the golden repository's paths begin with.
const RECORDED_AS: &str = "golden";
const DAMAGED: i32 = 20;
/// More than a pack.
const PACK_AND_MORE_BYTES: usize = 50 << 20;

/// A copy of the golden repository, which git stores without its empty folders.
struct Golden {
    machine: Machine,
    repository: PathBuf,
}

impl Golden {
    fn new() -> Self {
        let machine = Machine::new().with_password(Some(PASSWORD.trim_end()));
        let repository = machine.path("repository");
        copy_tree(&golden("stored"), &repository);
        Self { machine, repository }
    }

    /// Calls the decoder, with the recovery kit.
    fn decode(&self, args: &[&str]) -> Outcome {
        decode(&self.repository, "--recovery-kit", &golden("recovery-kit.txt"), args)
    }

    /// The ids of its snapshots, as the decoder lists them.
    fn decoded_ids(&self) -> Vec<String> {
        let listed = self.decode(&["--list"]).expect(0).stdout;
        listed.lines().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect()
    }
}

#[test]
fn holdall_restores_the_golden_repository() {
    let golden = Golden::new();
    let repo = text(&golden.repository);
    let listed = golden.machine.ok(["snapshots", "-r", repo, "--json"]).of_type("snapshot");
    assert_eq!(listed.len(), MANIFESTS.len());
    assert_eq!(listed[0]["tags"], serde_json::json!(["first"]));
    assert_eq!(listed[1]["tags"], serde_json::json!(["second", "amended"]));
    assert_eq!(listed[1]["pinned"], true);
    for (snapshot, name) in listed.iter().zip(MANIFESTS) {
        let (id, target) = (snapshot["id"].as_str().unwrap(), golden.machine.path(name));
        golden.machine.ok(["restore", "-r", repo, id, "--target", text(&target)]);
        manifest::check(&target.join(RECORDED_AS), &expected(name));
    }
    let checked = golden.machine.summary(["check", "-r", repo, "--scrub", "--verify", "all"]);
    assert_eq!(checked["damaged"], serde_json::json!([]));
}

#[test]
fn the_decoder_restores_the_golden_repository() {
    if !has_python() {
        return;
    }
    let golden = Golden::new();
    let ids = golden.decoded_ids();
    assert_eq!(ids.len(), MANIFESTS.len());
    for (id, name) in ids.iter().zip(MANIFESTS) {
        let target = golden.machine.path(name);
        golden.decode(&["--snapshot", id, "--target", text(&target)]).expect(0);
        manifest::check(&target.join(RECORDED_AS), &expected(name));
    }
}

#[test]
fn the_decoder_opens_a_repository_by_its_password_and_by_no_other() {
    if !has_python() {
        return;
    }
    let golden = Golden::new();
    let list = |password: &str, code| {
        let file = golden.machine.path("password");
        fs::write(&file, password).unwrap();
        decode(&golden.repository, "--password-file", &file, &["--list"]).expect(code).stdout
    };
    let by_kit = golden.decode(&["--list"]).expect(0).stdout;
    assert_eq!(list(PASSWORD, 0), by_kit);
    assert_eq!(list(LATER_PASSWORD, 0), by_kit);
    assert_eq!(list("no password of it", 12), "");
}

#[test]
fn the_decoder_refuses_a_pack_with_a_changed_byte() {
    if !has_python() {
        return;
    }
    let golden = Golden::new();
    let packs = files_below(&golden.repository.join("packs"));
    assert_eq!(packs.len(), 2);
    for pack in packs {
        // Payloads, then footer and trailer.
        for place in [0.0, 0.3, 0.6, 0.9, 0.99, 0.999] {
            check_refused(&pack, place, |target| golden.decode(&["--target", text(target)]));
        }
    }
}

#[test]
fn the_decoder_refuses_a_tombstone_with_a_changed_byte() {
    if !has_python() {
        return;
    }
    let golden = Golden::new();
    let [tombstone] = &files_below(&golden.repository.join("tombstones"))[..] else {
        panic!("one snapshot was forgotten");
    };
    for place in [0.0, 0.1, 0.2, 0.6, 0.999] {
        check_refused(tombstone, place, |target| golden.decode(&["--target", text(target)]));
    }
}

#[test]
fn the_decoder_restores_what_forgetting_and_pruning_leave() {
    if !has_python() {
        return;
    }
    let golden = Golden::new();
    // On a share, packs that are condemned stay for a while.
    fs::create_dir(golden.repository.join("lease")).unwrap();
    let repo = text(&golden.repository);
    golden.machine.ok(["forget", "-r", repo, "--keep-tag", "second", "--prune"]);
    let condemned = files_below(&golden.repository.join("condemned"));
    assert!(!condemned.is_empty(), "nothing was condemned");
    for mark in condemned {
        let pack = mark.file_name().expect("a name").to_str().expect("digits");
        let pack = golden.repository.join("packs").join(&pack[..2]).join(pack);
        write(&pack, b"what nothing needs");
    }
    let target = golden.machine.path("target");
    golden.decode(&["--target", text(&target)]).expect(0);
    manifest::check(&target.join(RECORDED_AS), &expected(MANIFESTS[1]));
    assert_eq!(golden.decoded_ids().len(), 1);
}

#[test]
fn the_decoder_restores_what_holdall_stores_today() {
    if !has_python() {
        return;
    }
    let fresh = Fresh::new(|source| {
        let sizes = RandomTreeSizes { entries: 200, max_file_bytes: 60_000 };
        random_tree(source, 20, &sizes).unwrap();
        let large = Random::new(21).bytes(PACK_AND_MORE_BYTES);
        fs::write(source.join("large"), large).unwrap();
        let sparse = fs::File::create(source.join("sparse")).unwrap();
        sparse.set_len(1 << 34).unwrap();
        for number in 0..300 {
            sparse.write_all_at(b"an island in it", number << 22).unwrap();
        }
    });
    mutate_tree(&fresh.source, 22, 30).unwrap();
    fresh.backup();
    assert!(!files_below(&fresh.repository.join("packs")).is_empty(), "no pack was closed");
    assert!(!files_below(&fresh.repository.join("tails")).is_empty(), "no tail is open");
    fresh.check_decoded();
}

#[test]
fn the_decoder_restores_a_copy_that_says_its_age() {
    if !has_python() {
        return;
    }
    let fresh = Fresh::new(|source| {
        random_tree(source, 24, &RandomTreeSizes { entries: 20, max_file_bytes: 9_000 }).unwrap();
    });
    let [copies, kit] = ["copies", "kit-of-copies.txt"].map(|name| fresh.machine.path(name));
    fresh.machine.init(&["-r", text(&copies), "--recovery-kit", text(&kit)]);
    let copy = ["copy", "--from", text(&fresh.repository), "-r", text(&copies)];
    let mut copy = fresh.machine.command(copy);
    Outcome::of(copy.env("HOLDALL_FROM_PASSWORD", "correct horse")).expect(0);
    Fresh { repository: copies, kit, ..fresh }.check_decoded();
}

#[test]
fn the_decoder_refuses_a_repository_with_a_changed_byte() {
    if !has_python() {
        return;
    }
    let fresh = Fresh::new(|source| {
        random_tree(source, 23, &RandomTreeSizes { entries: 40, max_file_bytes: 9_000 }).unwrap();
    });
    fresh.check_decoded();
    let mut files = files_below(&fresh.repository);
    // What a reader does not need.
    let is_needed = |file: &PathBuf| {
        !["lock", "probes"].iter().any(|name| file.ends_with(name))
            && !["spare", "positions"].iter().any(|name| file.parent().unwrap().ends_with(name))
    };
    files.retain(is_needed);
    assert_eq!(files.len(), 8, "marker, configuration, wrappings, record, two tails: {files:?}");
    for file in files {
        for place in [0.0, 0.35, 0.7, 0.999] {
            check_refused(&file, place, |target| fresh.decode(target));
        }
    }
}

/// A repository that was just made, of one source.
struct Fresh {
    machine: Machine,
    source: PathBuf,
    repository: PathBuf,
    kit: PathBuf,
}

impl Fresh {
    /// Makes the source and backs it up.
    fn new(make: impl FnOnce(&Path)) -> Self {
        let machine = Machine::new();
        let (source, repository) = (machine.path("source"), machine.path("repository"));
        fs::create_dir(&source).unwrap();
        make(&source);
        let kit = machine.path("kit.txt");
        machine.init(&["-r", text(&repository), "--recovery-kit", text(&kit)]);
        let fresh = Self { machine, source, repository, kit };
        fresh.backup();
        fresh
    }

    fn backup(&self) {
        let args = ["backup", "-r", text(&self.repository), text(&self.source)];
        assert_eq!(self.machine.summary(args)["errors"], 0);
    }

    fn decode(&self, target: &Path) -> Outcome {
        let args = ["--target", text(target)];
        decode(&self.repository, "--recovery-kit", &self.kit, &args)
    }

    /// Has the decoder restore the latest snapshot, and compares it with the source.
    #[track_caller]
    fn check_decoded(&self) {
        let target = self.machine.path("target");
        self.decode(&target).expect(0);
        let restored = target.join(self.source.strip_prefix("/").unwrap());
        let options = CompareOptions {
            owners: holdall_sys::users::effective_uid() == 0,
            ..CompareOptions::default()
        };
        assert_eq!(compare_trees(&self.source, &restored, &options), []);
    }
}

/// Changes the byte at a part of the file's length, sees the decoder refuse, and puts it back.
#[track_caller]
fn check_refused(file: &Path, place: f64, decode: impl FnOnce(&Path) -> Outcome) {
    let whole = fs::read(file).unwrap();
    let at = (whole.len() as f64 * place) as usize;
    let mut changed = whole.clone();
    changed[at] ^= 0x10;
    write(file, &changed);
    let outcome = decode(folder().path());
    write(file, &whole);
    assert_eq!(outcome.code, Some(DAMAGED), "byte {at} of {file:?}: {}", outcome.stderr);
    assert!(outcome.stderr.starts_with("damaged: "), "{}", outcome.stderr);
}

/// Writes into a file that is there, whatever its mode: published files are read-only.
fn write(file: &Path, bytes: &[u8]) {
    fs::remove_file(file).unwrap();
    fs::File::create(file).unwrap().write_all(bytes).unwrap();
}

/// Calls the decoder.
fn decode(repository: &Path, opener: &str, opened_by: &Path, args: &[&str]) -> Outcome {
    let mut command = Command::new(PYTHON);
    command.arg("-B").arg(format!("{GOLDEN}/decoder/restore.py"));
    Outcome::of(command.arg(repository).arg(opener).arg(opened_by).args(args))
}

/// Whether there is Python with what the decoder needs.
fn has_python() -> bool {
    let mut command = Command::new(PYTHON);
    let output = command.args(["-c", "import cryptography, zstandard"]).output();
    let found = output.is_ok_and(|output| output.status.success());
    is_there("python3-cryptography and python3-zstandard", found)
}

fn golden(name: &str) -> PathBuf {
    Path::new(GOLDEN).join("repository").join(name)
}

fn expected(name: &str) -> String {
    fs::read_to_string(golden(name)).expect("it is stored")
}

fn copy_tree(from: &Path, to: &Path) {
    for file in files_below(from) {
        let copy = to.join(file.strip_prefix(from).expect("it is below"));
        fs::create_dir_all(copy.parent().expect("a folder")).expect("room");
        fs::copy(file, copy).expect("room");
    }
}
