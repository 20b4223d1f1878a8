//! Damage that is repaired: by parity, by the next backup, and by a server's administrator.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use holdall_testkit::Random;

use crate::house::{Machine, Server, files_below, text};

/// Bytes that do not compress.
pub(crate) fn noise(seed: u8, len_bytes: usize) -> Vec<u8> {
    Random::new(seed.into()).bytes(len_bytes)
}

/// Waits until no file is so young that a backup reads it again: only time makes it older.
pub(crate) fn grow_old(source: &Path) {
    let changed = |path: &PathBuf| {
        SystemTime::UNIX_EPOCH + Duration::from_secs(fs::metadata(path).unwrap().ctime() as u64)
    };
    let newest = files_below(source).iter().map(changed).max().unwrap();
    while newest.elapsed().is_ok_and(|age| age < Duration::from_secs(4)) {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Folders with files of every size, 100 MB in all: some packs of content.
pub(crate) fn fill(source: &Path) {
    for folder in 0..10u8 {
        let dir = source.join(format!("folder-{folder}"));
        fs::create_dir_all(&dir).unwrap();
        for file in 0..20u8 {
            fs::write(dir.join(format!("small-{file}")), noise(file, 2000)).unwrap();
        }
        fs::write(dir.join("large"), noise(folder + 100, 10_000_000)).unwrap();
    }
}

pub(crate) fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// A repository in a directory, and the folder that is backed up.
pub(crate) struct Kept {
    pub(crate) machine: Machine,
    pub(crate) repo: PathBuf,
    pub(crate) source: PathBuf,
}

impl Kept {
    pub(crate) fn new() -> Self {
        let machine = Machine::new();
        let repo = machine.path("repo");
        Self::at(machine, repo)
    }

    pub(crate) fn at(machine: Machine, repo: PathBuf) -> Self {
        let source = machine.path("source");
        let kit = machine.path("kit");
        machine.init(&["-r", text(&repo), "--recovery-kit", text(&kit)]);
        fill(&source);
        Self { machine, repo, source }
    }

    pub(crate) fn args<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        [args, &["-r", text(&self.repo)]].concat()
    }

    pub(crate) fn backup(&self) -> serde_json::Value {
        self.machine.ok(self.args(&["backup", text(&self.source), "--json"])).summary()
    }

    pub(crate) fn restores(&self) -> bool {
        let out = tempfile::tempdir().unwrap();
        let latest = format!("latest:{}", self.source.display());
        self.machine.ok(self.args(&["restore", &latest, "--target", text(out.path())]));
        let files = files_below(&self.source);
        let same = |file: &PathBuf| {
            let restored = out.path().join(file.strip_prefix(&self.source).unwrap());
            fs::read(restored).unwrap() == fs::read(file).unwrap()
        };
        !files.is_empty() && files.iter().all(same)
    }
}

#[test]
fn parity_repairs_a_pack_and_a_dry_run_says_so_first() {
    let kept = Kept::new();
    let told = kept.machine.ok(kept.args(&["check", "--parity", "5"])).stdout;
    assert!(
        told.contains("5 % of each pack") && !told.contains("whole"),
        "nothing was read: {told}"
    );
    kept.backup();
    let pack = files_below(&kept.repo.join("packs")).remove(0);
    let whole = fs::read(&pack).unwrap();
    [5000, 1_000_000, whole.len() - 40].into_iter().for_each(|at| flip(&pack, at));

    let found = kept.machine.run(kept.args(&["check", "--repair", "-n", "--json"]));
    assert_eq!(found.code, Some(20), "{}", found.stderr);
    assert_eq!(found.of_type("repair")[0]["kind"], "restored");
    assert_eq!(found.of_type("repair")[0]["pieces"], 3);
    assert_eq!(found.summary()["repaired"], 0);
    assert!(fs::read(&pack).unwrap() != whole, "a dry run changes nothing");

    let repaired = kept.machine.ok(kept.args(&["check", "--repair", "--json"]));
    assert_eq!(repaired.summary()["repaired"], 1);
    assert!(fs::read(&pack).unwrap() == whole);
    assert_eq!(files_below(&kept.repo.join("quarantine")).len(), 1);
    assert!(kept.restores());
}

#[test]
fn what_no_repair_can_repair_comes_again_with_the_next_backup() {
    let kept = Kept::new();
    grow_old(&kept.source);
    kept.backup();
    // Nodes lie in a tail still, content in packs: the first of each, and all caches are lost.
    let pack = files_below(&kept.repo.join("packs")).remove(0);
    flip(&pack, 5000);
    let tails = files_below(&kept.repo.join("tails"));
    let is_nodes =
        |path: &&PathBuf| text(path).contains("nodes.") && text(path).ends_with("payload");
    for (damaged, lost_caches) in [(&pack, false), (tails.iter().find(is_nodes).unwrap(), true)] {
        if lost_caches {
            // What was durable when something came behind it is damaged now; else it may be torn.
            fs::write(kept.source.join("later"), "later").unwrap();
            kept.backup();
            flip(damaged, 3000);
            fs::remove_dir_all(kept.machine.path("cache")).unwrap();
        }
        let repaired = kept.machine.run(kept.args(&["check", "--repair", "--json"]));
        assert_eq!(repaired.code, Some(20), "{}", repaired.stderr);
        let repairs = repaired.of_type("repair");
        let [repair] = &repairs[..] else { panic!("{}{}", repaired.stdout, repaired.stderr) };
        assert_eq!(repair["kind"], if lost_caches { "tail" } else { "salvaged" });
        assert_eq!(repair["lost_blocks"], 1);
        assert_eq!(repaired.summary()["repaired"], 1);

        let again = kept.backup();
        assert_eq!(again["errors"], 0);
        assert!(lost_caches || again["objects_sent_again"].as_u64().unwrap() > 0, "{again}");
        if lost_caches {
            // What only an older state of the folders above had, nobody can send again.
            // Rules let nothing go meanwhile.
            kept.machine.run(kept.args(&["forget", "--keep-last", "1"])).expect(20);
            let listed = kept.machine.ok(kept.args(&["snapshots", "--json"])).of_type("snapshot");
            let ids: Vec<&str> = listed.iter().map(|one| one["id"].as_str().unwrap()).collect();
            kept.machine.ok(kept.args(&[&["forget"], &ids[..ids.len() - 1]].concat()));
        }
        kept.machine.ok(kept.args(&["check", "--scrub", "--verify", "all"]));
        assert!(kept.restores());
        let after = kept.backup();
        assert_eq!(after["objects_sent_again"], 0);
        assert!(after["data_added"].as_u64().unwrap() < 10_000, "{after}");
    }
}

/// What cannot be read of the snapshot before counts as stored, so the new one needs it too.
#[test]
fn a_backup_that_meets_a_damaged_snapshot_does_not_end_as_if_all_were_well() {
    let kept = Kept::new();
    // More leaves than one, wherever these begin: of one alone the second backup would share nothing with the first.
    (0..2000).for_each(|number| fs::write(kept.source.join(number.to_string()), "").unwrap());
    grow_old(&kept.source);
    kept.backup();
    fs::write(kept.source.join("later"), "later").unwrap();
    kept.backup();
    let is_nodes =
        |path: &&PathBuf| text(path).contains("nodes.") && text(path).ends_with("payload");
    let tails = files_below(&kept.repo.join("tails"));
    let nodes = tails.iter().find(is_nodes).unwrap();
    // Of the first backup: what was durable when something came behind it.
    flip(nodes, 300);
    fs::remove_dir_all(kept.machine.path("cache")).unwrap();
    let source = kept.source.to_str().unwrap();
    let told = kept.machine.run(kept.args(&["backup", source]));
    assert_eq!(told.code, Some(20), "{}", told.stderr);
    assert!(told.stderr.contains("the snapshot before is damaged"), "{}", told.stderr);
}

#[test]
fn an_administrator_repairs_what_a_server_keeps() {
    let machine = Machine::new().with_password(None);
    let data = machine.path("data");
    let server = Server::start(&data);
    machine.pair_with(&server);
    let source = machine.path("source");
    fill(&source);
    let admin = |args: &[&str]| machine.administer(&data, &[&["scrub"], args].concat());
    let refused = machine.run(["check", "--repair"]);
    assert_eq!(refused.code, Some(13), "{}", refused.stderr);
    assert!(refused.stderr.contains("admin scrub --repair"), "{}", refused.stderr);
    machine.ok(["backup", text(&source)]);
    let parity = admin(&["--parity", "10"]);
    assert!(parity.of_type("scrub")[0]["parity_made"].as_u64().unwrap() > 0);

    let repository = fs::read_dir(data.join("repositories")).unwrap().next().unwrap().unwrap();
    let pack = files_below(&repository.path().join("packs")).remove(0);
    let whole = fs::read(&pack).unwrap();
    flip(&pack, 77_777);
    let found = admin(&["--repair", "--dry-run"]);
    assert_eq!(found.code, Some(20));
    assert_eq!(found.of_type("scrub")[0]["repaired"].as_array().unwrap().len(), 1);
    let repaired = admin(&["--repair"]);
    assert_eq!(repaired.code, Some(0), "{}", repaired.stderr);
    assert_eq!(repaired.of_type("scrub")[0]["damaged"], serde_json::json!([]));
    assert!(fs::read(&pack).unwrap() == whole);
}
