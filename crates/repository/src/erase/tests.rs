//! What stays of a repository that is erased, also where that was interrupted.

use std::cell::Cell;
use std::fs;

use holdall_format::RepositoryId;
use holdall_protocol::contract::{Forge, TestKey};

use super::*;
use crate::Store;

const MACHINE: holdall_format::MachineId = holdall_format::MachineId::from_bytes([3; 16]);

/// A repository with files of some sizes beside what it has by itself.
struct World {
    temp: tempfile::TempDir,
    key: TestKey,
}

impl World {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let world = Self { temp, key: TestKey::from_seed(&[7; 32]) };
        let forge = Forge::new(1, MACHINE, &[8; 32]);
        Store::create(&world.dir(), &forge.new_repository()).unwrap();
        let sizes = [3 << 20, 1, 0];
        for (name, bytes) in world.files().into_iter().zip(sizes) {
            let path = world.dir().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![7; bytes]).unwrap();
        }
        world
    }

    /// Two packs and a record, the first of which is large.
    fn files(&self) -> [String; 3] {
        let [one, other] = ["00", "01"].map(|byte| format!("packs/{byte}/{}", byte.repeat(32)));
        [one, other, format!("records/{:016x}", 1)]
    }

    fn dir(&self) -> std::path::PathBuf {
        self.temp.path().join("repository")
    }

    /// What stays, as of an owner who has that key.
    fn text(&self, erased_s: u64) -> String {
        let repository = RepositoryId::from_bytes([1; 16]);
        let erased = Erased { repository, owner: self.key.public(), erased_s };
        erased.encode(|context, message| self.key.sign(context, message))
    }

    fn erase(
        &self,
        text: &str,
        told: &dyn Fn(u64),
        interrupt: &AtomicBool,
    ) -> Result<ErasedFiles, RepositoryError> {
        erase(&self.dir(), text, &Erasing { passes: 2, interrupt, told })
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.dir())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

const STAYS: [&str; 3] = ["erased", "holdall-repository", "lock"];

#[test]
fn nothing_stays_but_what_says_so_and_no_repository_begins_anew_there() {
    let world = World::new();
    let mut pack = File::open(world.dir().join(&world.files()[0])).unwrap();
    let written = Cell::new(0);
    let told = |bytes| written.set(written.get() + bytes);
    let done = world.erase(&world.text(1000), &told, &AtomicBool::new(false)).unwrap();
    assert!(done.files > 5 && done.bytes > 3 << 20, "{done:?}");
    assert_eq!(written.get(), 2 * done.bytes);
    assert_eq!(world.names(), STAYS);
    let mut left = Vec::new();
    std::io::Read::read_to_end(&mut pack, &mut left).unwrap();
    assert_eq!(left.len(), 3 << 20);
    assert!(!left.windows(16).any(|sixteen| sixteen == [7; 16]), "what was there is overwritten");

    assert_eq!(erased_in(&world.dir()).unwrap().unwrap().erased_s, 1000);
    let forge = Forge::new(1, MACHINE, &[8; 32]);
    let again = Store::create(&world.dir(), &forge.new_repository()).unwrap_err();
    assert!(again.to_string().contains("was erased on 1970-01-01"), "{again}");
    let opened = crate::recovery_identities_in(&world.dir()).unwrap_err();
    assert!(
        matches!(&opened, RepositoryError::NoRepository { place } if place.contains("erased")),
        "{opened}"
    );
}

#[test]
fn whoever_is_interrupted_goes_on_and_nothing_can_be_opened_meanwhile() {
    let world = World::new();
    let stop = AtomicBool::new(false);
    // Behind what opens it, which has some kilobytes.
    let told = |bytes: u64| stop.store(bytes > 100_000, Ordering::Relaxed);
    let ended = world.erase(&world.text(1000), &told, &stop).unwrap_err();
    assert!(matches!(ended, RepositoryError::Interrupted), "{ended}");
    assert!(world.names().iter().any(|name| name == "packs"));
    for gone in ["wrappings", "spare", "config"] {
        assert!(!world.dir().join(gone).exists(), "{gone}");
    }
    let opened = crate::recovery_identities_in(&world.dir()).unwrap_err();
    assert!(matches!(&opened, RepositoryError::NoRepository { .. }), "{opened}");
    world.erase(&world.text(2000), &|_| (), &AtomicBool::new(false)).unwrap();
    assert_eq!(world.names(), STAYS);
    assert_eq!(erased_in(&world.dir()).unwrap().unwrap().erased_s, 1000, "since the first time");
}

#[test]
fn a_link_is_none_of_the_repositorys_and_what_it_points_to_stays() {
    let world = World::new();
    let elsewhere = world.temp.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("mine"), "mine").unwrap();
    let link = world.dir().join("packs/02");
    std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
    let error = world.erase(&world.text(1000), &|_| (), &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("packs/02 is none of the repository's"), "{error}");
    fs::remove_file(link).unwrap();
    world.erase(&world.text(1000), &|_| (), &AtomicBool::new(false)).unwrap();
    assert_eq!(world.names(), STAYS);
    assert_eq!(fs::read(elsewhere.join("mine")).unwrap(), b"mine");
}

#[test]
fn what_comes_while_it_is_erased_is_not_destroyed() {
    let world = World::new();
    let mine = world.dir().join("records/mine");
    let told = |_| fs::write(&mine, "mine").unwrap();
    let error = world.erase(&world.text(1000), &told, &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("mine is none of the repository's"), "{error}");
    fs::rename(&mine, world.temp.path().join("mine")).unwrap();
    world.erase("", &|_| (), &AtomicBool::new(false)).unwrap();
    assert_eq!(world.names(), STAYS);
    assert!(!is_anything_left(&world.dir()).unwrap());
}

#[test]
fn what_is_none_of_the_repositorys_keeps_it_from_being_destroyed() {
    let world = World::new();
    let erase = || world.erase(&world.text(1000), &|_| (), &AtomicBool::new(false));
    let photos = world.dir().join("photos");
    fs::create_dir(&photos).unwrap();
    fs::write(photos.join("mine"), "mine").unwrap();
    let error = erase().unwrap_err().to_string();
    assert!(error.contains("photos is none of the repository's"), "{error}");
    fs::remove_dir_all(&photos).unwrap();
    let copy = world.temp.path().join("copy");
    fs::hard_link(world.dir().join(&world.files()[0]), &copy).unwrap();
    let error = erase().unwrap_err().to_string();
    assert!(error.contains("has another name"), "{error}");
    assert!(world.dir().join("wrappings").is_dir(), "nothing was destroyed");
    assert!(erased_in(&world.dir()).unwrap().is_none());
    fs::remove_file(copy).unwrap();
    erase().unwrap();
    assert_eq!(world.names(), STAYS);
}

#[test]
fn a_text_alone_makes_no_folder_one_that_is_being_erased() {
    let world = World::new();
    fs::write(world.dir().join("erased"), world.text(1000)).unwrap();
    assert!(erased_in(&world.dir()).unwrap().is_none());
}

#[test]
fn a_file_that_is_called_as_what_stays_is_nobodys_to_write_over() {
    let world = World::new();
    let erase = || world.erase(&world.text(1000), &|_| (), &AtomicBool::new(false));
    for mine in ["mine", &"long ".repeat(1000)] {
        fs::write(world.dir().join("erased"), mine).unwrap();
        let error = erase().unwrap_err().to_string();
        assert!(error.contains("erased is none of the repository's"), "{error}");
        assert_eq!(fs::read(world.dir().join("erased")).unwrap(), mine.as_bytes());
    }
    // As one that was interrupted leaves it.
    fs::write(world.dir().join("erased"), "holdall era").unwrap();
    erase().unwrap();
    assert_eq!(erased_in(&world.dir()).unwrap().unwrap().erased_s, 1000);
}
