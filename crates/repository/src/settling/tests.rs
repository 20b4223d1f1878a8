//! Packs that move between the directory and places: what is kept is whole at every moment, and found.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use holdall_format::{ObjectId, TombstoneReason};
use holdall_protocol::{Repository, RepositoryError, ScrubDamage, SessionPurpose};

use super::*;
use crate::index::Listing;
use crate::place::{Place, id};
use crate::storage::placed::make_place;

const IDS: [&str; 2] = ["0123456789abcdef", "fedcba9876543210"];
const CHUNKS: u32 = 5;

/// A repository whose chunks each lie in a pack of their own, and folders that are places.
struct Placed {
    place: Place,
    disks: tempfile::TempDir,
}

impl Placed {
    fn new() -> Self {
        let (place, disks) = (Place::new(), tempfile::tempdir().unwrap());
        for id in IDS {
            fs::create_dir(disks.path().join(id)).unwrap();
            make_place(&disks.path().join(id), id).unwrap();
        }
        place.back_up_in_small_packs(&chunks());
        place.store.appender().unwrap().close_open_tail(true);
        let placed = Self { place, disks };
        placed.places(&[(IDS[0], false)]).unwrap();
        placed
    }

    fn folder(&self, place: &str) -> PathBuf {
        self.disks.path().join(place)
    }

    fn places(&self, places: &[(&str, bool)]) -> Result<(), RepositoryError> {
        let place = |(id, is_draining): &(&str, bool)| PackPlace {
            id: (*id).to_owned(),
            folder: self.folder(id),
            is_draining: *is_draining,
        };
        self.place.store.set_places(&places.iter().map(place).collect::<Vec<_>>())
    }

    fn settle(&self) -> Settled {
        self.place.store.settle(&AtomicBool::new(false)).unwrap()
    }

    /// How many files of packs are below the directory, and below each place.
    fn packs(&self) -> [usize; 3] {
        let root = self.place.store.layout().root().path().join("packs");
        [root, self.folder(IDS[0]), self.folder(IDS[1])].map(|folder| files_below(&folder))
    }

    /// Reads everything again, by the keeper and by a client.
    fn check_all(&self) {
        assert_eq!(self.place.machine().scrub(&mut |_| {}).unwrap().damaged, []);
        self.place.store.packs().forget(|_| true);
        for chunk in chunks() {
            self.fetch(chunk).unwrap();
        }
    }

    fn fetch(&self, chunk: ObjectId) -> Result<(), String> {
        let machine = self.place.machine();
        let session = machine.open_session(&SessionPurpose::Read).unwrap().session;
        let fetched = machine.fetch_objects(&session, &[chunk], 0);
        machine.close_session(&session).unwrap();
        let fetched = fetched.map_err(|error| format!("{error:?}"))?;
        match fetched.blocks.len() {
            1 => Ok(()),
            blocks => Err(format!("{blocks} blocks")),
        }
    }

    fn opened_without_cache(self) -> Self {
        Self { place: self.place.opened_without_cache(), disks: self.disks }
    }
}

fn chunks() -> Vec<ObjectId> {
    (1..=CHUNKS).map(id).collect()
}

/// Files but for what says whose a place and a folder in it are.
fn files_below(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let count = |path: PathBuf| match path.is_dir() {
        true => files_below(&path),
        false => usize::from(!path.ends_with("holdall-place") && !path.ends_with("owner")),
    };
    entries.map(|entry| count(entry.unwrap().path())).sum()
}

#[test]
fn packs_of_chunks_move_to_their_place_and_nodes_stay() {
    let placed = Placed::new();
    assert_eq!(placed.packs(), [6, 0, 0]);
    let settled = placed.settle();
    assert_eq!((settled.packs, settled.waiting), (5, 0), "{settled:?}");
    assert!(settled.bytes > 5000, "{settled:?}");
    assert_eq!(placed.packs(), [1, 5, 0]);
    assert_eq!(placed.settle(), Settled::default());
    placed.check_all();
    let placed = placed.opened_without_cache();
    placed.check_all();
    assert_eq!(placed.place.blocks_of_packs().len(), 6);
}

#[test]
fn what_is_let_go_of_goes_from_its_place() {
    let placed = Placed::new();
    placed.settle();
    for snapshot in placed.place.snapshots() {
        placed.place.store.forget(&[snapshot], TombstoneReason::Request).unwrap();
    }
    placed.place.prune();
    placed.place.pass_grace();
    placed.place.prune();
    assert_eq!(placed.packs(), [0, 0, 0]);
    placed.places(&[]).unwrap();
}

#[test]
fn what_a_deleted_repository_had_in_places_goes_with_it() {
    let placed = Placed::new();
    placed.settle();
    let dir = placed.place.store.layout().root().path().to_owned();
    fs::write(placed.folder(IDS[0]).join("photo.jpg"), "").unwrap();
    let (folder, aside) = (placed.folder(IDS[0]), placed.disks.path().join("aside"));
    fs::rename(&folder, &aside).unwrap();
    assert_eq!(clear_places(&dir).unwrap().len(), 1);
    fs::rename(&aside, &folder).unwrap();
    assert_eq!(placed.packs(), [1, 6, 0]);
    assert_eq!(clear_places(&dir).unwrap(), []);
    assert_eq!(placed.packs(), [1, 1, 0], "the photo is not ours");
}

#[test]
fn a_place_that_is_away_is_named_and_loses_nothing() {
    let placed = Placed::new();
    placed.settle();
    let (folder, aside) = (placed.folder(IDS[0]), placed.disks.path().join("aside"));
    fs::rename(&folder, &aside).unwrap();
    placed.place.store.packs().forget(|_| true);
    // Another disk in its stead is not taken for it, nor an empty folder.
    let told = format!("PlaceAway({folder:?})");
    for makes in [None, Some(IDS[1])] {
        fs::create_dir(&folder).unwrap();
        makes.iter().for_each(|id| make_place(&folder, id).unwrap());
        // Nothing is damaged of which nothing is known.
        let scrubbed = placed.place.machine().scrub(&mut |_| {}).unwrap_err();
        assert!(format!("{scrubbed:?}").contains(&told), "{scrubbed:?}");
        let repaired =
            placed.place.store.repair(false, &AtomicBool::new(false), &mut |_| {}).unwrap_err();
        assert!(format!("{repaired:?}").contains(&told), "{repaired:?}");
        assert!(placed.fetch(id(1)).unwrap_err().contains(&told));
        fs::remove_dir_all(&folder).unwrap();
    }
    // Backups go on, and what they bring waits.
    let block = placed.place.forge.chunks_of_bytes(&[id(100)], 1000);
    placed.place.machine().put_blocks(&placed.place.session(), &[block]).unwrap();
    placed.place.store.appender().unwrap().close_open_tail(false);
    let settled = placed.settle();
    assert_eq!((settled.packs, settled.waiting), (0, 1), "{settled:?}");
    assert!(settled.why.unwrap().contains("none of the storage places is there"));
    fs::rename(&aside, &folder).unwrap();
    assert_eq!(placed.settle().packs, 1);
    placed.check_all();
}

#[test]
fn a_copy_of_the_directory_takes_nothing_away_in_a_place() {
    let placed = Placed::new();
    placed.settle();
    let owner =
        placed.folder(IDS[0]).join(placed.place.store.repository().to_string()).join("owner");
    let own = fs::read_to_string(&owner).unwrap();
    fs::write(&owner, own.replace("inode ", "inode 1")).unwrap();
    placed.places(&[(IDS[0], true)]).unwrap();
    assert_eq!(placed.settle().packs, 5);
    assert_eq!(placed.packs(), [6, 5, 0], "the other copy has them still");
    placed.places(&[(IDS[0], false)]).unwrap();
    let settled = placed.settle();
    assert_eq!((settled.packs, settled.waiting), (0, 5), "{settled:?}");
    assert!(settled.why.unwrap().contains("another copy of this repository"));
    fs::remove_file(&owner).unwrap();
    assert_eq!(placed.settle().packs, 5);
    placed.check_all();
}

#[test]
fn a_pack_that_somebody_put_back_into_the_directory_is_not_taken_for_one_of_two() {
    let placed = Placed::new();
    placed.settle();
    let layout = placed.place.store.layout().clone();
    let below = placed.folder(IDS[0]).join(placed.place.store.repository().to_string());
    let name = *chunk_packs(&placed).first().unwrap();
    let folder = layout.root().path().join("packs").join(&name.to_string()[..2]);
    fs::create_dir_all(&folder).unwrap();
    let there = below.join(&name.to_string()[..2]).join(name.to_string());
    fs::rename(&there, folder.join(name.to_string())).unwrap();
    assert_eq!(placed.settle().packs, 1);
    assert_eq!(placed.packs(), [1, 5, 0]);
    placed.check_all();
}

fn chunk_packs(placed: &Placed) -> Vec<PackName> {
    let state = placed.place.store.index().state();
    let chunks = state.packs.iter().filter(|pack| pack.kind == BlockKind::Chunks);
    chunks.map(|pack| pack.name).collect()
}

#[test]
fn a_move_that_was_cut_short_is_made_again() {
    let placed = Placed::new();
    let layout = placed.place.store.layout().clone();
    let names: Vec<PackName> =
        placed.place.store.index().state().packs.iter().map(|pack| pack.name).collect();
    let below = placed.folder(IDS[0]).join(placed.place.store.repository().to_string());
    let all: Vec<_> = names.iter().filter(|name| is_of_chunks(&placed, name)).collect();
    // A copy that is not whole; one that has its name; one that is named in the directory, too.
    fs::create_dir_all(below.join("tmp")).unwrap();
    fs::write(below.join("tmp").join(all[0].to_string()), "half").unwrap();
    for pack in [all[1], all[2]] {
        let folder = below.join(&pack.to_string()[..2]);
        fs::create_dir_all(&folder).unwrap();
        let to = folder.join(pack.to_string());
        // The one that is not named may be anything.
        match pack == all[1] {
            true => fs::write(to, "not what it should be").unwrap(),
            false => drop(fs::copy(layout.pack(pack).path(), to).unwrap()),
        }
    }
    let length = fs::metadata(layout.pack(all[2]).path()).unwrap().len();
    let folder = layout.root().path().join("placed").join(&all[2].to_string()[..2]);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{}.{}.{length:x}", all[2], IDS[0])), "").unwrap();
    let placed = placed.opened_without_cache();
    placed.check_all();
    assert_eq!(placed.settle().waiting, 0);
    assert_eq!(placed.packs(), [1, 5, 0]);
    placed.check_all();
    placed.opened_without_cache().check_all();
}

fn is_of_chunks(placed: &Placed, name: &PackName) -> bool {
    let state = placed.place.store.index().state();
    state.packs.iter().any(|pack| pack.name == *name && pack.kind == BlockKind::Chunks)
}

#[test]
fn a_place_is_emptied_into_another_or_into_the_directory() {
    let placed = Placed::new();
    placed.settle();
    let refused = placed.places(&[(IDS[1], false)]).unwrap_err();
    assert!(refused.to_string().contains("drain it first"), "{refused}");
    placed.places(&[(IDS[0], true), (IDS[1], false)]).unwrap();
    assert_eq!(placed.settle().packs, 5);
    assert_eq!(placed.packs(), [1, 0, 5]);
    assert_eq!(packs_in_place(placed.place.store.layout().root().path(), IDS[0]).unwrap(), 0);
    placed.check_all();
    placed.places(&[(IDS[1], true)]).unwrap();
    assert_eq!(placed.settle().packs, 5);
    assert_eq!(placed.packs(), [6, 0, 0]);
    placed.places(&[]).unwrap();
    placed.check_all();
    placed.opened_without_cache().check_all();
}

#[test]
fn who_reads_and_lists_meanwhile_misses_nothing() {
    let placed = Placed::new();
    let is_done = AtomicBool::new(false);
    let wanted = placed.place.blocks_of_packs().len();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..50 {
                for draining in [false, true] {
                    placed.places(&[(IDS[0], draining)]).unwrap();
                    assert_eq!(placed.settle().packs, 5);
                }
            }
            is_done.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            while !is_done.load(Ordering::Acquire) {
                let listing = Listing::read(placed.place.store.layout()).unwrap();
                assert_eq!(listing.packs.len(), wanted);
                assert!(listing.unreadable_files.is_empty(), "{listing:?}");
            }
        });
        while !is_done.load(Ordering::Acquire) {
            placed.place.store.packs().forget(|_| true);
            chunks().into_iter().for_each(|chunk| placed.fetch(chunk).unwrap());
        }
    });
}

#[test]
fn a_pack_that_is_damaged_in_a_place_on_another_disk_is_repaired() {
    // Another file system than that of the directory.
    let Ok(disks) = tempfile::tempdir_in("/dev/shm") else { return };
    let placed = Placed { disks, ..Placed::new() };
    fs::create_dir(placed.folder(IDS[1])).unwrap();
    make_place(&placed.folder(IDS[1]), IDS[1]).unwrap();
    placed.places(&[]).unwrap();
    placed.places(&[(IDS[1], false)]).unwrap();
    assert_eq!(placed.settle().packs, 5);
    let repository = placed.place.store.repository().to_string();
    let below = placed.folder(IDS[1]).join(repository);
    let packs: Vec<_> = holdall_testkit::files_below(&below);
    let packs: Vec<_> = packs.iter().filter(|path| !path.ends_with("owner")).collect();
    fs::write(packs[0], "nothing of a pack").unwrap();
    fs::remove_file(packs[1]).unwrap();
    let repair = || placed.place.store.repair(false, &AtomicBool::new(false), &mut |_| {});
    let repaired = repair().unwrap();
    assert!(!repaired.repairs.is_empty(), "{repaired:?}");
    let again = placed.place.machine().scrub(&mut |_| {}).unwrap();
    let is_of_pack = |damage: &ScrubDamage| matches!(damage, ScrubDamage::Pack { .. });
    assert!(!again.damaged.iter().any(is_of_pack), "{again:?}");
}
