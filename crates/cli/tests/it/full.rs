//! A disk that is full, on either side and at any moment: told clearly, nothing lost, and with room it
//! goes on.

use std::fs;
use std::path::Path;

use holdall_testkit::{CompareOptions, Random, compare_trees, has_strace, only_file};

use crate::house::{Machine, Outcome, Server, disk_bytes, files_below, text};
use crate::mounts::Mount;

/// A file of so many bytes that do not compress.
fn write_random(path: &Path, bytes: usize, seed: u64) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("room");
    fs::write(path, Random::new(seed).bytes(bytes)).expect("room");
}

/// Checks that a command failed for want of room, and said where and what to do.
#[track_caller]
fn expect_no_room(outcome: Outcome, place: &str) {
    let said = outcome.expect(1).stderr;
    assert!(said.contains("no room") || said.contains("No space left"), "{said}");
    assert!(said.contains(place) && said.contains("make room"), "{said}");
}

fn check_restores(machine: &Machine, snapshot: &str, source: &Path) {
    let target = machine.path("target");
    let from = format!("{snapshot}:{}", text(source));
    machine.ok(["restore", &from, "--target", text(&target)]);
    assert_eq!(compare_trees(source, &target, &CompareOptions::default()), []);
    fs::remove_dir_all(&target).expect("it can be removed");
}

#[test]
fn a_full_disk_under_a_repository_loses_nothing_wherever_it_runs_out() {
    let machine = Machine::new();
    let Some(disk) = Mount::in_memory(&machine.path("disk"), 64 << 20) else { return };
    let (repo, source) = (text(disk.point()).to_owned(), machine.path("source"));
    // Nearly a pack, which the next backups close.
    write_random(&source.join("first"), 44 << 20, 1);
    machine.init(&["-r", &repo]);
    machine.ok(["backup", "-r", &repo, text(&source)]);
    let mut fulls = 0;
    for (round, left_bytes) in
        [0, 4, 16, 40, 64, 256, 1024, 2048, 2100, 2200, 3072].into_iter().enumerate()
    {
        let seed = round as u64 + 2;
        write_random(&source.join("changing"), 2 << 20, seed);
        let filler = disk.fill_but(left_bytes << 10);
        let outcome = machine.run(["backup", "-r", &repo, text(&source)]);
        let is_full = outcome.code != Some(0);
        if is_full {
            fulls += 1;
            expect_no_room(outcome, &repo);
        }
        let checked = machine.summary(["check", "-r", &repo, "--scrub", "--verify", "all"]);
        assert_eq!(checked["damaged"], serde_json::json!([]), "{left_bytes} KiB were left");
        fs::remove_file(filler).expect("it is there");
        disk.resize((64 + 4 * (round as u64 + 1)) << 20);
        if is_full {
            machine.ok(["backup", "-r", &repo, text(&source)]);
        }
        let from = format!("latest:{}", text(&source));
        let target = machine.path("target");
        machine.ok(["restore", "-r", &repo, &from, "--target", text(&target)]);
        assert_eq!(compare_trees(&source, &target, &CompareOptions::default()), []);
        fs::remove_dir_all(&target).expect("it can be removed");
    }
    assert!(fulls >= 5, "{fulls}");
}

#[test]
fn a_server_with_a_full_disk_serves_reads_and_says_what_it_can_not_do() {
    let machine = Machine::new().with_password(None);
    let Some(disk) = Mount::in_memory(&machine.path("disk"), 32 << 20) else { return };
    let server = Server::start(&disk.point().join("data"));
    machine.pair_with(&server);
    let (small, large) = (machine.path("small"), machine.path("large"));
    write_random(&small.join("file"), 3 << 20, 1);
    write_random(&large.join("file"), 48 << 20, 2);
    let first = machine.summary(["backup", text(&small)])["snapshot_id"].clone();
    let first = first.as_str().expect("an id");
    let address = server.address().to_owned();
    expect_no_room(machine.run(["backup", text(&large)]), &address);

    let filler = disk.fill_but(0);
    expect_no_room(machine.run(["backup", text(&large)]), &address);
    machine.ok(["snapshots"]);
    check_restores(&machine, first, &small);
    assert_eq!(machine.summary(["check", "--scrub"])["damaged"], serde_json::json!([]));
    let data = disk.point().join("data");
    let invited = machine.run(["invite", "--data", text(&data)]);
    if invited.code != Some(0) {
        let said = invited.expect(1).stderr;
        assert!(said.contains("No space left"), "{said}");
    }

    fs::remove_file(filler).expect("it is there");
    disk.resize(128 << 20);
    let second = machine.summary(["backup", text(&large)])["snapshot_id"].clone();
    check_restores(&machine, second.as_str().expect("an id"), &large);
    check_restores(&machine, first, &small);
    assert_eq!(machine.summary(["check", "--scrub"])["damaged"], serde_json::json!([]));
}

/// A real file system, unlike memory, takes room when it writes, and for its own notes.
#[test]
fn a_server_whose_ext4_fills_up_in_the_middle_of_a_backup_goes_on_once_there_is_room() {
    let machine = Machine::new().with_password(None);
    let Some(disk) = Mount::ext4(&machine.path("disk"), 256 << 20) else { return };
    let data = disk.point().join("data");
    let server = Server::start(&data);
    machine.pair_with(&server);
    let (small, large) = (machine.path("small"), machine.path("large"));
    write_random(&small.join("file"), 3 << 20, 1);
    let first = machine.summary(["backup", text(&small)])["snapshot_id"].clone();
    let mut acknowledged = vec![first.as_str().expect("an id").to_owned()];
    for (round, left_bytes) in [20 << 20, 9 << 20, 5 << 20, 1 << 20, 64 << 10, 0].iter().enumerate()
    {
        write_random(&large.join("file"), 24 << 20, round as u64 + 2);
        let before = disk_bytes(&data);
        let filler = disk.take_but(*left_bytes);
        expect_no_room(machine.run(["backup", text(&large)]), server.address());
        let stored = disk_bytes(&data) - before;
        assert!(*left_bytes < 5 << 20 || stored > 1 << 20, "{stored} of {left_bytes} bytes");
        let listed = machine.ok(["snapshots", "--json"]).of_type("snapshot");
        assert_eq!(listed.len(), acknowledged.len(), "{left_bytes} bytes were left");
        check_restores(&machine, &acknowledged[0], &small);
        let checked = machine.summary(["check", "--scrub", "--verify", "all"]);
        assert_eq!(checked["damaged"], serde_json::json!([]), "{left_bytes} bytes were left");

        fs::remove_file(filler).expect("it is there");
        let next = machine.summary(["backup", text(&large)])["snapshot_id"].clone();
        acknowledged.push(next.as_str().expect("an id").to_owned());
        check_restores(&machine, &acknowledged[round + 1], &large);
    }
    let checked = machine.summary(["check", "--scrub", "--verify", "all"]);
    assert_eq!(checked["damaged"], serde_json::json!([]));
}

#[test]
fn a_full_cache_is_done_without_and_a_full_state_folder_is_told() {
    let machine = Machine::new();
    let Some(cache) = Mount::in_memory(&machine.path("cache"), 1 << 20) else { return };
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    let repo = text(&repo);
    write_random(&source.join("file"), 3 << 20, 1);
    cache.fill_but(0);
    machine.init(&["-r", repo]);
    machine.ok(["backup", "-r", repo, text(&source)]);
    write_random(&source.join("file"), 52 << 20, 2);
    machine.ok(["backup", "-r", repo, text(&source)]);

    drop(cache);
    machine.ok(["snapshots", "-r", repo]);
    let kept = machine.path("kept");
    fs::rename(machine.path("config/state"), &kept).expect("it is there");
    let state = Mount::in_memory(&machine.path("config/state"), 1 << 20).expect("as before");
    for file in files_below(&kept) {
        let to = state.point().join(file.strip_prefix(&kept).expect("below"));
        fs::create_dir_all(to.parent().expect("a folder")).expect("room");
        fs::copy(&file, to).expect("room");
    }
    state.fill_but(0);
    write_random(&source.join("file"), 1 << 20, 3);
    let outcome = machine.run(["backup", "-r", repo, text(&source), "--json"]).expect(3);
    let said = outcome.of_type("error").pop().expect("it is told")["message"].to_string();
    assert!(said.contains("its receipt could not be kept"), "{said}");
    let listed = machine.ok(["snapshots", "-r", repo, "--json"]).of_type("snapshot");
    assert_eq!(listed.len(), 3);
    assert_eq!(outcome.summary()["snapshot_id"], listed[2]["id"], "what was committed is told");
}

#[test]
fn a_full_target_is_told_and_has_no_half_files() {
    let machine = Machine::new();
    let Some(disk) = Mount::in_memory(&machine.path("disk"), 8 << 20) else { return };
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    let repo = text(&repo);
    for number in 0..5 {
        write_random(&source.join(format!("file-{number}")), 3 << 20, number);
    }
    machine.init(&["-r", repo]);
    machine.ok(["backup", "-r", repo, text(&source)]);
    let from = format!("latest:{}", text(&source));
    let target = disk.point().join("target");
    let restore = ["restore", "-r", repo, &from, "--target", text(&target)];
    let outcome = machine.run(restore);
    assert!(matches!(outcome.code, Some(1 | 3)), "{outcome:?}");
    assert!(outcome.stderr.contains("no storage space"), "{}", outcome.stderr);
    for file in files_below(&target) {
        let original = source.join(file.strip_prefix(&target).expect("below"));
        assert!(fs::read(&file).unwrap() == fs::read(&original).unwrap(), "{}", file.display());
    }
    disk.resize(64 << 20);
    machine.ok(restore.iter().chain(&["--overwrite", "always"]));
    assert_eq!(compare_trees(&source, &target, &CompareOptions::default()), []);
}

#[test]
fn a_share_that_has_no_room_says_so_when_a_file_is_closed() {
    if !has_strace() {
        return;
    }
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    let repo = text(&repo);
    // Large ones are written behind, small ones are not; the largest are written in pieces.
    for (name, bytes) in [("first", 100), ("large", 9 << 20), ("middle", 1 << 20), ("small", 1000)]
    {
        write_random(&source.join(name), bytes, bytes as u64);
    }
    machine.init(&["-r", repo]);
    machine.ok(["backup", "-r", repo, text(&source)]);
    let from = format!("latest:{}", text(&source));
    for name in ["large", "middle", "small"] {
        for (error, code) in [("EDQUOT", 1), ("EIO", 3)] {
            let target = machine.path(&format!("target-{name}-{code}"));
            let (file, fails) = (target.join(name), format!("inject=close:error={error}"));
            let by = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", text(&file), "-e", &fails];
            let restore = ["restore", "-r", repo, &from, "--target", text(&target)];
            let told = machine.run_by(&by, restore).expect(code);
            assert!(told.stderr.contains(name), "{}", told.stderr);
            assert!(!file.exists() && (code == 1 || target.join("first").exists()), "{name}");
        }
    }
}

#[test]
fn what_is_verified_is_read_from_the_disk() {
    if !has_strace() {
        return;
    }
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    write_random(&source.join("file"), 1000, 1);
    machine.init(&["-r", text(&repo)]);
    machine.ok(["backup", "-r", text(&repo), text(&source)]);
    let (from, target) = (format!("latest:{}", text(&source)), machine.path("target"));
    let trace = machine.path("trace");
    let by = ["strace", "-f", "-y", "-o", text(&trace), "-e", "trace=syncfs,fadvise64,pread64"];
    let restore = ["restore", "-r", text(&repo), &from, "--target", text(&target), "--verify"];
    machine.run_by(&by, restore).expect(0);
    let trace = fs::read_to_string(trace).expect("a trace");
    let of_file = format!("<{}>", text(&target.join("file")));
    let calls = trace.lines().filter(|line| line.contains(&of_file));
    let names = calls.filter_map(|line| line.split_once('(')?.0.split_whitespace().last());
    assert_eq!(names.collect::<Vec<_>>(), ["syncfs", "fadvise64", "pread64"], "{trace}");
}

/// With a pack that cannot be read the log goes on far behind, which is written down before anything else is:
/// on a full disk by a name alone.
#[test]
fn a_full_disk_with_a_damaged_pack_has_room_to_say_where_the_log_goes_on() {
    let machine = Machine::new();
    let Some(disk) = Mount::in_memory(&machine.path("disk"), 192 << 20) else { return };
    let (repo, source) = (disk.point().join("repository"), machine.path("source"));
    write_random(&source.join("first"), 70 << 20, 1);
    machine.init(&["-r", text(&repo)]);
    machine.ok(["backup", "-r", text(&repo), text(&source)]);
    let packs = files_below(&repo.join("packs"));
    let pack = packs.first().expect("so much closes one");
    let bytes = fs::metadata(pack).expect("it is there").len();
    fs::File::options()
        .write(true)
        .open(pack)
        .and_then(|pack| pack.set_len(bytes - 9))
        .expect("cut");

    let filler = disk.take_but(0);
    expect_no_room(machine.run(["backup", "-r", text(&repo), text(&source)]), text(&repo));
    let position = only_file(&repo.join("positions"), "", "");
    assert_eq!(fs::metadata(position).expect("it is there").len(), 0);
    fs::remove_file(filler).expect("it is there");
    machine.ok(["backup", "-r", text(&repo), text(&source)]);
    let target = machine.path("target");
    let from = format!("latest:{}", text(&source));
    machine.ok(["restore", "-r", text(&repo), &from, "--target", text(&target)]);
    assert_eq!(compare_trees(&source, &target, &CompareOptions::default()), []);
}

/// Packs that are half dead need room for a copy of the other half.
#[test]
fn a_prune_on_a_full_disk_begins_with_what_needs_no_room_and_says_what_it_lacks() {
    let machine = Machine::new();
    let Some(disk) = Mount::in_memory(&machine.path("disk"), 256 << 20) else { return };
    let (repo, source) = (text(disk.point()).to_owned(), machine.path("source"));
    machine.init(&["-r", &repo]);
    let back_up = || {
        let done = machine.summary(["backup", "-r", &repo, text(&source)]);
        done["snapshot_id"].as_str().expect("an id").to_owned()
    };
    let file = |number: u64| source.join(format!("file-{number}"));
    (0..24).for_each(|number| write_random(&file(number), 5 << 19, number));
    let halved = back_up();
    (0..24).step_by(2).for_each(|number| fs::remove_file(file(number)).expect("it is there"));
    let kept = back_up();
    machine.ok(["forget", "-r", &repo, &halved]);
    let filler = disk.fill_but(1 << 20);
    let stored = || disk_bytes(disk.point()) - fs::metadata(&filler).map_or(0, |file| file.len());
    let before = stored();
    expect_no_room(machine.run(["prune", "-r", &repo]), &repo);
    assert!(stored() >= before, "nothing could go");

    fs::remove_file(&filler).expect("it is there");
    write_random(&source.join("dead"), 60 << 20, 99);
    let dead = back_up();
    fs::remove_file(source.join("dead")).expect("it is there");
    let last = back_up();
    machine.ok(["forget", "-r", &repo, &dead]);
    disk.fill_but(1 << 20);
    let before = stored();
    machine.ok(["prune", "-r", &repo]);
    assert!(stored() + (40 << 20) < before, "what is wholly dead went");
    machine.ok(["prune", "-r", &repo]);
    assert!(stored() < 45 << 20, "and made room for the rest: {}", stored());
    let modified = fs::metadata(&source).and_then(|dir| dir.modified()).expect("a time");
    for snapshot in [kept, last] {
        let (from, target) = (format!("{snapshot}:{}", text(&source)), machine.path("target"));
        machine.ok(["restore", "-r", &repo, &from, "--target", text(&target)]);
        // Between the two a file came and went.
        fs::File::open(&target).and_then(|dir| dir.set_modified(modified)).expect("it is ours");
        assert_eq!(compare_trees(&source, &target, &CompareOptions::default()), []);
        fs::remove_dir_all(&target).expect("it can be removed");
    }
}
