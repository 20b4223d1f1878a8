//! What is removed goes as late as any other deletion, whole, and leaves nothing behind.

use std::time::Duration;

use holdall_format::ObjectId;
use holdall_protocol::{Denial, Repository, RepositoryError};
use holdall_server::admin::{self, Only};

use crate::world::{World, session};

const DAY: Duration = Duration::from_secs(24 * 3600);

impl World {
    /// So many days pass, on each of which the house is kept.
    fn days(&self, days: u32) {
        for _ in 0..days {
            self.clock.advance(DAY);
            self.admin(&admin::Prune { repository: None, dry_run: false }).unwrap();
        }
    }

    fn remove(&self, name: &str, only: Option<Only>) -> admin::Deletion {
        let asked = self.admin(&admin::Remove { name: name.into(), only }).unwrap();
        asked.deletions.into_iter().next().unwrap()
    }

    fn is_stored(&self, name: &str) -> bool {
        self.folder.path().join("repositories").join(name).exists()
    }

    fn machine_names(&self) -> Vec<String> {
        let machines = self.admin(&admin::ListMachines {}).unwrap().machines;
        machines.into_iter().map(|machine| machine.name).collect()
    }
}

#[test]
fn a_removed_machine_and_its_repository_go_when_the_delay_is_over() {
    let mut world = World::new();
    let machine = world.machine(1);
    let _other = world.machine(2);
    let block = machine.forge().chunks_of_bytes(&[ObjectId::from_bytes([1; 32])], 50_000);
    let repository = machine.connect();
    repository.put_blocks(&session(&repository), &[block]).unwrap();
    world.days(2);

    let asked = world.remove("machine 1", None);
    let refused = machine.connect().usage();
    let is_told = |error: &RepositoryError| {
        matches!(error, RepositoryError::NotAllowed { cause: Denial::Explained, .. })
    };
    assert!(refused.as_ref().is_err_and(is_told), "{refused:?}");
    world.days(6);
    // Nothing that is due goes while the server does not know how much time passed.
    world.clock.jump_ns(30 * 24 * 3600 * 1_000_000_000);
    world.admin(&admin::Prune { repository: None, dry_run: false }).unwrap();
    assert!(world.is_stored("machine-1"));
    assert_eq!(world.machine_names(), ["machine 1", "machine 2"]);
    world.stop();
    world.start();
    world.days(3);
    assert!(!world.is_stored("machine-1"), "{asked:?}");
    assert!(world.is_stored("machine-2"));
    assert_eq!(world.machine_names(), ["machine 2"]);
    assert_eq!(world.admin(&admin::ListDeletions {}).unwrap().deletions, []);
    let left = std::fs::read_dir(world.folder.path().join("repositories")).unwrap().count();
    assert_eq!(left, 1, "what was set aside is deleted");
    let log = world.log.lock().unwrap().join("\n");
    for line in ["repository machine-1 as a whole with machine machine 1", "machine 1 (revoked)"] {
        assert!(log.contains(line), "{line} is not in {log}");
    }
    drop(log);
    // The name is free again, and no kit of the one that is gone stands in the way.
    assert_eq!(world.machine(1).paired.repository, "machine-1");
}

#[test]
fn a_removed_repository_goes_alone_though_it_cannot_be_opened() {
    let mut world = World::new();
    let machine = world.machine(1);
    world.admin(&admin::Rename { name: "machine-1".into(), new: "a".into(), only: None }).unwrap();
    world.stop();
    let folder = world.folder.path().join("repositories/a");
    std::fs::remove_file(folder.join("config")).unwrap();
    std::fs::remove_dir_all(folder.join("spare")).unwrap();
    world.start();
    machine.connect().usage().unwrap_err();
    world.remove("a", Some(Only::Repository));
    world.days(8);
    assert!(!world.is_stored("a"));
    assert_eq!(world.machine_names(), ["machine 1"]);
    let gone = machine.connect().usage();
    assert!(matches!(gone, Err(RepositoryError::NoRepository { .. })), "{gone:?}");
    machine.connect().create(&machine.forge().new_repository()).unwrap();
}

#[test]
fn what_is_cancelled_stays() {
    let mut world = World::new();
    world.machine(1);
    let number = world.remove("machine-1", None).number;
    world.days(5);
    world.admin(&admin::Cancel { number }).unwrap();
    world.days(30);
    assert!(world.is_stored("machine-1"));
    // What somebody noted as another deletion's number cancels nothing.
    world.stop();
    world.start();
    assert_eq!(world.remove("machine-1", None).number, number + 1);
}

#[test]
fn a_rename_that_the_power_cut_short_is_finished_at_the_next_start() {
    let mut world = World::new();
    let machine = world.machine(1);
    world.admin(&admin::Rename { name: "machine-1".into(), new: "a".into(), only: None }).unwrap();
    world.stop();
    let folder = world.folder.path().join("repositories");
    std::fs::rename(folder.join("a"), folder.join("machine-1")).unwrap();
    world.start();
    machine.connect().usage().unwrap();
    assert!(world.is_stored("a"));
}
