//! Sectors that a disk cannot read any more, however often it is asked: what parity is for.
//!
//! A real file system says so, a btrfs on an image of which bits were turned; of files too small for that,
//! strace does.

use std::fs;
use std::path::{Path, PathBuf};

use holdall_testkit::has_strace;

use crate::house::{Machine, Outcome, Server, files_below, text};
use crate::mounts::{Mount, SECTOR_BYTES};
use crate::repair::{Kept, fill, grow_old};

/// Room for what is backed up, its parity and what is put aside.
const DISK_BYTES: u64 = 512 << 20;
/// Runs a program where no file gets another name, as on a FAT.
const WITHOUT_LINKS: [&str; 10] = [
    "strace",
    "-f",
    "--seccomp-bpf",
    "-qq",
    "-o",
    "/dev/null",
    "-e",
    "trace=link,linkat",
    "-e",
    "inject=link,linkat:error=EPERM",
];

fn first_pack(repository: &Path) -> PathBuf {
    files_below(&repository.join("packs")).remove(0)
}

/// The sector of a file that has the byte at that place.
fn sector(bytes: &[u8], at: usize) -> &[u8] {
    bytes.chunks(SECTOR_BYTES).nth(at / SECTOR_BYTES).unwrap()
}

/// Loses the sectors of a file that have those bytes.
fn lose(disk: &Mount, path: &Path, places: &[usize]) {
    let bytes = fs::read(path).unwrap();
    let sectors: Vec<&[u8]> = places.iter().map(|at| sector(&bytes, *at)).collect();
    disk.lose(&sectors);
    fs::read(path).expect_err("a part of it is lost");
}

/// A repository on a disk that loses sectors, and a backup there, with so many per cent of parity.
fn kept_on_disk(parity: &str) -> Option<(Mount, Kept)> {
    let machine = Machine::new();
    let disk = Mount::btrfs(&machine.path("disk"), DISK_BYTES)?;
    let repo = disk.point().join("repo");
    let kept = Kept::at(machine, repo);
    kept.machine.ok(kept.args(&["check", "--parity", parity]));
    grow_old(&kept.source);
    kept.backup();
    Some((disk, kept))
}

#[test]
fn parity_repairs_a_pack_whose_sectors_are_lost_in_content_and_footer_and_those_of_parity_too() {
    for by in [&[][..], &WITHOUT_LINKS] {
        let Some((disk, kept)) = kept_on_disk("10") else { return };
        let pack = first_pack(&kept.repo);
        let whole = fs::read(&pack).unwrap();
        let places = [8192, 1_000_000, whole.len() - 1];
        lose(&disk, &pack, &places);
        let parity = files_below(&kept.repo.join("parity"));
        let parity = parity.iter().find(|path| path.file_name() == pack.file_name()).unwrap();
        lose(&disk, parity, &[100_000]);

        let check = |args: &[&str]| kept.machine.run(kept.args(&[&["check"], args].concat()));
        let found = check(&["--scrub"]).expect(20);
        let name = pack.file_name().unwrap().to_str().unwrap();
        assert!(found.stdout.contains(name), "{found:?}");
        let would = check(&["--repair", "-n", "--json"]).expect(20);
        assert_eq!(would.of_type("repair").len(), 2, "{}", would.stdout);
        let args = kept.args(&["check", "--repair", "--json"]);
        let repaired = match by {
            [] => kept.machine.run(args),
            by => kept.machine.run_by(by, args),
        };
        let repairs = repaired.expect(0).of_type("repair");
        let kinds: Vec<_> = repairs.iter().map(|repair| repair["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["restored", "parity"]);
        assert!(fs::read(&pack).unwrap() == whole);
        check(&["--scrub", "--verify", "all"]).expect(0);
        assert!(kept.restores());

        // The damaged one is kept: itself, or a copy with zeros in place of what could not be read.
        let aside = files_below(&kept.repo.join("quarantine"));
        assert_eq!(aside.len(), 1);
        let Ok(copy) = fs::read(&aside[0]) else {
            assert!(by.is_empty(), "a copy can be read");
            continue;
        };
        let mut expected = whole;
        for at in places {
            let from = at / SECTOR_BYTES * SECTOR_BYTES;
            let to = (from + SECTOR_BYTES).min(expected.len());
            expected[from..to].fill(0);
        }
        assert!(copy == expected && !by.is_empty());
    }
}

#[test]
fn without_parity_the_blocks_around_lost_sectors_are_kept_and_the_next_backup_sends_the_others() {
    let Some((disk, kept)) = kept_on_disk("0") else { return };
    let pack = first_pack(&kept.repo);
    lose(&disk, &pack, &[8192]);
    let repaired = kept.machine.run(kept.args(&["check", "--repair", "--json"])).expect(20);
    let repair = &repaired.of_type("repair")[0];
    assert_eq!((&repair["kind"], &repair["lost_blocks"]), (&"salvaged".into(), &1.into()));
    assert!(repair["kept_blocks"].as_u64() > Some(10), "{repair}");
    assert!(kept.backup()["objects_sent_again"].as_u64() > Some(0));
    kept.machine.ok(kept.args(&["check", "--scrub", "--verify", "all"]));
    assert!(kept.restores());
}

#[test]
fn an_administrator_repairs_lost_sectors_while_the_server_runs() {
    let machine = Machine::new().with_password(None);
    let Some(disk) = Mount::btrfs(&machine.path("disk"), DISK_BYTES) else { return };
    let data = disk.point().join("data");
    let server = Server::start(&data);
    let address = server.address().to_owned();
    machine.pair_with(&server);
    let source = machine.path("source");
    fill(&source);
    machine.ok(["backup", text(&source)]);
    machine.administer(&data, &["scrub", "--parity", "5"]).expect(0);
    drop(server);
    let repositories = fs::read_dir(data.join("repositories")).unwrap();
    let repositories: Vec<_> = repositories.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(repositories.len(), 1);
    lose(&disk, &first_pack(&repositories[0]), &[500_000]);
    let _server = Server::start_by(&mut Server::command_at(&address, &data), &data);

    let restore = |target: &str| -> Outcome {
        let from = format!("latest:{}", source.display());
        machine.run(["restore", &from, "--target", text(&machine.path(target))])
    };
    restore("target").expect(20);
    let found = machine.administer(&data, &["scrub"]).expect(20);
    assert_eq!(found.of_type("scrub")[0]["damaged"].as_array().unwrap().len(), 1);
    let repaired = machine.administer(&data, &["scrub", "--repair"]).expect(0);
    assert_eq!(repaired.of_type("scrub")[0]["damaged"], serde_json::json!([]));
    restore("again").expect(0);
    for file in files_below(&source) {
        let restored = machine.path("again").join(file.strip_prefix(&source).unwrap());
        assert!(fs::read(restored).unwrap() == fs::read(&file).unwrap(), "{}", file.display());
    }
}

#[test]
fn what_can_be_made_anew_is_made_anew_where_the_disk_lost_it() {
    if !has_strace() {
        return;
    }
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    machine.init(&["-r", text(&repo), "--recovery-kit", text(&machine.path("kit"))]);
    fill(&source);
    let place = format!("latest:{}", source.display());
    let target = machine.path("target");
    let restore = ["restore", "-r", text(&repo), &place, "--target", text(&target)];
    let backup = ["backup", "-r", text(&repo), text(&source)];
    let check = ["check", "-r", text(&repo)];
    for (args, part) in
        [(&restore[..], "manifest"), (&check, "manifest"), (&backup, "probes"), (&check, "probes")]
    {
        machine.ok(backup);
        let cache = files_below(&machine.path("cache/embedded"));
        let mut all = cache.into_iter().chain(files_below(&repo));
        let lost = all.find(|path| path.ends_with(part)).unwrap();
        let trace = machine.path("trace");
        let fails = "--inject=read,pread64:error=EIO";
        let by = ["strace", "-f", "-qq", "-o", text(&trace), "-P", text(&lost), fails];
        machine.run_by(&by, args).expect(0);
        assert!(fs::read_to_string(&trace).unwrap().contains("INJECTED"), "{part}");
    }
    machine.ok(check);
}

#[test]
fn what_is_lost_of_a_record_keeps_no_other_snapshot_from_being_restored_and_lets_nothing_go() {
    if !has_strace() {
        return;
    }
    let machine = Machine::new().with_password(Some("a password"));
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    machine.init(&["-r", text(&repo), "--recovery-kit", text(&machine.path("kit"))]);
    fill(&source);
    let backup = ["backup", "-r", text(&repo), text(&source)];
    machine.ok(backup);
    let record = files_below(&repo.join("records")).remove(0);
    fs::write(source.join("new"), "new").unwrap();
    machine.ok(backup);
    let lost = |args: &[&str]| {
        let fails = "--inject=read,pread64:error=EIO";
        let by = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", text(&record), fails];
        machine.run_by(&by, args)
    };
    let repaired = lost(&backup).expect(0);
    assert!(repaired.stderr.contains("put back"), "{}", repaired.stderr);
    let lost = |args: &[&str]| lost(args).expect(20);
    let target = machine.path("target");
    let latest = format!("latest:{}", source.display());
    lost(&["restore", "-r", text(&repo), &latest, "--target", text(&target)]);
    assert_eq!(fs::read(target.join("new")).unwrap(), b"new");
    lost(&["check", "-r", text(&repo)]);
    lost(&["forget", "-r", text(&repo), "--keep-last", "1"]);
    lost(&["prune", "-r", text(&repo)]);
    let listed = machine.ok(["snapshots", "-r", text(&repo), "--json"]).of_type("snapshot");
    assert_eq!(listed.len(), 3);
    machine.ok(["check", "-r", text(&repo), "--verify", "all"]);
}
