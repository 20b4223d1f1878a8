//! A disk without any room: who may write is still known, and what nothing needs can go.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use holdall_format::{Record, RecordKind};
use holdall_protocol::contract::{ContractWorld, Forge};
use holdall_protocol::{OwnedRepository, Repository};
use holdall_repository::PruneOptions;
use holdall_testkit::is_there;

use crate::house::{House, id, names};
use crate::world::{MACHINE, MACHINE_SEED, World};

/// A small file system in memory, mounted until this is dropped.
struct Disk {
    point: PathBuf,
}

impl Disk {
    /// `None` for who may not mount.
    fn mount(point: &Path) -> Option<Self> {
        fs::create_dir_all(point).unwrap();
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=96m,mode=755", "holdall-test"]).arg(point);
        let mounted = command.output().unwrap().status.success();
        is_there("the right to mount (root)", mounted).then(|| Self { point: point.to_owned() })
    }

    /// Takes all room that is left, again after some was given back.
    fn fill(&self) {
        let mut filler = File::options().append(true).create(true).open(self.filler()).unwrap();
        while filler.write(&[1; 4096]).is_ok_and(|taken| taken > 0) {}
    }

    fn make_room(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.point.join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.point).status();
    }
}

/// The one lease file: its number and what it says.
fn lease(disk: &Disk) -> (String, String) {
    let path = holdall_testkit::only_file(&disk.point.join("repository/lease"), "", "");
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    (name, fs::read_to_string(path).unwrap())
}

/// A repository on such a disk, with a lease as on a share, in which a pack is that nothing needs, and
/// a checkpoint that a snapshot followed. It is closed.
fn with_a_dead_pack() -> Option<(House, Disk)> {
    let mut world = World::new();
    world.close();
    let disk = Disk::mount(world.folder())?;
    world.restart();
    // As on a share: who writes must have the highest number.
    fs::create_dir_all(world.dir().join("lease")).unwrap();
    let forge = Forge::new(1, MACHINE, &MACHINE_SEED);
    world.handle().create(&forge.new_repository()).unwrap();
    let mut house = House { world, forge, head: None };
    let dead = house.snapshot("dead", &names(0..12), 4 << 20);
    let session = house.session(&[]);
    house.put(&session, "early", &names(20..21), 1000);
    let checkpoint = house.forge.record(RecordKind::Checkpoint, id("early"), house.head);
    house.repository().commit(&session, &checkpoint).unwrap();
    let checkpoint = Record::decode(&checkpoint).unwrap();
    house.head = Some((checkpoint.hash(), checkpoint.head.sequence));
    house.snapshot_of_nodes("kept");
    house.repository().forget(&[dead]).unwrap();
    house.world.close();
    Some((house, disk))
}

#[test]
fn a_full_share_is_opened_to_write_by_the_name_of_a_lease_alone() {
    let Some((mut house, disk)) = with_a_dead_pack() else { return };
    let (number, said) = lease(&disk);
    assert!(said.ends_with("released\n"), "{said}");
    disk.fill();
    let store = house.store();
    let (next, said) = lease(&disk);
    assert!(next > number);
    assert!(said.contains("process"), "what was given back made room: {said:?}");
    drop(store);
    assert!(lease(&disk).1.ends_with("released\n"), "and so did this");

    let given_back = disk.point.join("repository/lease").join(lease(&disk).0);
    // Removed, it makes no room.
    fs::hard_link(&given_back, disk.point.join("held")).unwrap();
    disk.fill();
    let store = house.store();
    assert_eq!(lease(&disk).1, "");
    disk.make_room();
    drop(store);
    assert!(lease(&disk).1.ends_with("released\n"));
    house.world.restart();
    house.snapshot("next", &names(22..24), 1000);
    house.assert_whole();
}

#[test]
fn a_prune_on_a_disk_without_any_room_lets_go_what_nothing_needs() {
    let Some((mut house, disk)) = with_a_dead_pack() else { return };
    let store = house.store();
    let prune = || {
        let options = PruneOptions { grace: Duration::ZERO, sparse_part: 4 };
        store.prune(&options, &AtomicBool::new(false)).unwrap()
    };
    // What is removed at a start has made some room.
    disk.fill();
    let first = prune();
    assert_eq!((first.condemned_packs, first.deleted_packs), (1, 1), "{first:?}");
    assert_eq!((first.checkpoints_forgotten, first.waiting_packs), (0, 0), "{first:?}");
    let second = prune();
    assert_eq!(second.checkpoints_forgotten, 1, "it made room for their tombstones");
    drop(store);
    disk.make_room();
    house.world.restart();
    assert!(house.has(id("leaf 7")));
    house.assert_whole();
}
