//! A server whose backups lie on a second disk: moved there, read there, missed when it is away, moved out.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use holdall_testkit::files_below;
use serde_json::Value;
use tempfile::TempDir;

use crate::house::{Machine, Outcome, Server, text};
use crate::repair::noise;

/// Longer than a server takes to look twice.
const PATIENCE: Duration = Duration::from_secs(60);

struct Placed {
    machine: Machine,
    _server: Server,
    source: PathBuf,
    /// On another file system than the data folder.
    _shm: TempDir,
    disk: PathBuf,
}

impl Placed {
    fn new() -> Self {
        let machine = Machine::new();
        let server = Server::start(&machine.path("data"));
        machine.pair_with(&server);
        let shm = tempfile::tempdir_in("/dev/shm").unwrap();
        let (source, disk) = (machine.path("source"), shm.path().join("disk"));
        fs::create_dir(&source).unwrap();
        fs::create_dir(&disk).unwrap();
        fs::write(source.join("large"), noise(7, 50_000_000)).unwrap();
        for number in 0..50 {
            fs::write(source.join(format!("small-{number}")), noise(number, 900)).unwrap();
        }
        machine.ok(["backup", text(&source)]);
        let placed = Self { machine, _server: server, source, _shm: shm, disk };
        placed.place(&["add", "large", text(&placed.disk)]).expect(0);
        placed
    }

    fn place(&self, args: &[&str]) -> Outcome {
        let data = self.machine.path("data");
        self.machine.run([&["admin", "--data", text(&data), "place"], args].concat())
    }

    fn listed(&self) -> Value {
        self.place(&["list", "--json"]).expect(0).of_type("place").remove(0)
    }

    /// Waits until so much is so of the place.
    fn wait_until(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let listed = self.listed();
            if is_so(&listed) {
                return listed;
            }
            assert!(begun.elapsed() < PATIENCE, "{listed}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn wait_until_moved(&self) {
        self.wait_until(|place| place["packs"].as_u64() > Some(0));
    }

    /// Restores everything, and compares.
    fn check_restored(&self, name: &str) {
        let (from, target) = (format!("latest:{}", text(&self.source)), self.machine.path(name));
        self.machine.ok(["restore", &from, text(&target)]);
        let compared =
            Command::new("diff").args(["-r", text(&self.source), text(&target)]).output();
        let compared = compared.unwrap();
        assert!(compared.status.success(), "{compared:?}");
        self.machine.ok(["check", "--verify", "all"]);
    }
}

#[test]
fn what_was_backed_up_moves_to_another_disk_and_is_restored_from_there() {
    let placed = Placed::new();
    placed.wait_until_moved();
    let moved: u64 =
        files_below(&placed.disk).iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    assert!(moved > 30_000_000, "{moved}");
    placed.check_restored("restored");

    // Out of it, and back into the data folder.
    let refused = placed.place(&["remove", "large"]).expect(1);
    assert!(refused.stderr.contains("`holdall admin place drain large`"), "{}", refused.stderr);
    placed.place(&["drain", "large"]).expect(0);
    placed.wait_until(|place| place["packs"] == 0);
    placed.check_restored("restored-again");
    placed.place(&["remove", "large"]).expect(0);
    assert!(placed.place(&["list", "--json"]).expect(0).of_type("place").is_empty());
}

#[test]
fn without_its_disk_backups_go_on_and_nothing_is_lost() {
    let placed = Placed::new();
    placed.wait_until_moved();
    let aside = placed.disk.with_file_name("aside");
    fs::rename(&placed.disk, &aside).unwrap();
    assert_eq!(placed.listed()["is_there"], false);
    fs::write(placed.source.join("new"), "new").unwrap();
    placed.machine.ok(["backup", text(&placed.source)]);
    fs::rename(&aside, &placed.disk).unwrap();
    placed.check_restored("restored");
}

#[test]
fn a_folder_that_can_be_no_place_is_refused_with_the_reason() {
    let placed = Placed::new();
    let beside = |name: &str| placed.disk.with_file_name(name);
    for name in ["full", "other"] {
        fs::create_dir(beside(name)).unwrap();
    }
    fs::write(beside("full").join("photo.jpg"), "").unwrap();
    let inside = placed.machine.path("data/inside");
    fs::create_dir(&inside).unwrap();
    for (name, folder, why) in [
        ("inner", &inside, "in the data folder"),
        ("outer", &placed.machine.path(""), "around it"),
        ("same", &placed.machine.path("config"), "on the same disk as the data folder"),
        ("nowhere", &beside("nowhere"), "No such file"),
        ("full", &beside("full"), "is not empty"),
        ("again", &placed.disk, "is the place large already"),
        ("large", &beside("other"), "is the place large already"),
        ("a b", &beside("other"), "a name is"),
    ] {
        let refused = placed.place(&["add", name, text(folder)]).expect(1);
        assert!(refused.stderr.contains(why), "{name}: {}", refused.stderr);
    }
    for folder in ["full", "other"] {
        assert!(!beside(folder).join("holdall-place").exists());
    }
    // The disk that is mounted elsewhere by now.
    fs::rename(&placed.disk, beside("moved")).unwrap();
    placed.place(&["add", "large", text(&beside("moved"))]).expect(0);
    assert_eq!(placed.listed()["is_there"], true);
}
