//! A directory that its own computer has open, when another comes over a share for the first time: the lock of the
//! one does not reach the other.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use holdall_format::{MachineId, ObjectId, RecordKind};
use holdall_protocol::contract::{ContractWorld, Forge, TestKey};
use holdall_protocol::{
    CommitAnswer, OwnedRepository, Repository, RepositoryError, SessionPurpose,
};
use holdall_repository::{EmbeddedRepository, Store};

use crate::house::{House, id, names};
use crate::world::signer;

fn files_in(folder: &Path) -> BTreeSet<OsString> {
    fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name()).collect()
}

/// Opens the directory as another machine does over a share.
fn over_the_share(house: &House) -> (EmbeddedRepository, Forge) {
    let dir = house.world.dir();
    fs::remove_file(dir.join("lock")).unwrap();
    // Its first step, where locks hold on one computer only.
    fs::create_dir(dir.join("lease")).unwrap();
    let cache = house.world.folder().join("cache of another");
    let store = Store::open(&dir, &cache, signer(), house.world.clock.clone()).unwrap();
    let (machine, seed) = (MachineId::from_bytes([3; 16]), [3; 32]);
    let another = store.for_machine(machine, TestKey::from_seed(&seed).public());
    (another, Forge::new(1, machine, &seed))
}

fn back_up(machine: &EmbeddedRepository, forge: &Forge, root: &str, chunks: &[ObjectId]) {
    let purpose = SessionPurpose::Backup { parents: vec![] };
    let session = machine.open_session(&purpose).unwrap().session;
    machine.put_blocks(&session, &[forge.chunks_of_bytes(chunks, 1 << 20)]).unwrap();
    machine.put_blocks(&session, &[forge.nodes(&[(id(root), chunks)])]).unwrap();
    let bytes = forge.record(RecordKind::Snapshot, id(root), None);
    let answer = machine.commit(&session, &bytes).unwrap();
    assert!(matches!(answer, CommitAnswer::Committed(_)), "{answer:?}");
}

fn assert_lost<T: std::fmt::Debug>(answer: Result<T, RepositoryError>) {
    let said = answer.unwrap_err();
    assert!(matches!(said, RepositoryError::InUse { .. }), "{said}");
    assert!(said.to_string().contains("over a share"), "{said}");
}

#[test]
fn whoever_comes_over_a_share_first_leaves_the_open_tails_behind_and_the_other_publishes_nothing_more()
 {
    let mut house = House::new();
    house.snapshot("before", &names(0..3), 5000);
    let session = house.session(&[]);
    house.put(&session, "half", &names(3..6), 5000);
    let tails = house.world.dir().join("tails");
    let written_to = files_in(&tails);

    let (another, forge) = over_the_share(&house);
    assert!(written_to.is_disjoint(&files_in(&tails)), "{written_to:?}");
    let ours = house.repository();
    assert_lost(ours.put_blocks(&session, &[house.forge.chunks(&[id("late")])]));
    let bytes = house.forge.record(RecordKind::Snapshot, id("half"), house.head);
    assert_lost(ours.commit(&session, &bytes));
    assert_lost(ours.prune(false));
    let wrappings = house.forge.wrappings(2);
    assert_lost(ours.put_wrappings(&wrappings));

    back_up(&another, &forge, "theirs", &[id("their chunk")]);
    assert_eq!(another.scrub(&mut |_| {}).unwrap().damaged, []);
    drop((another, ours));
    house.world.restart();
    house.assert_whole();
    let all = [names(0..6), ["before", "half", "theirs", "their chunk"].map(String::from).to_vec()];
    assert!(all.concat().iter().all(|name| house.has(id(name))), "what was acknowledged is there");
    house.snapshot("half", &names(3..6), 5000);
}

/// A server needs no restart.
#[test]
fn a_store_whose_lease_is_lost_is_worth_opening_again() {
    let mut house = House::new();
    let store = house.store();
    assert!(!store.reopen_would_recover());
    let (another, _) = over_the_share(&house);
    assert!(store.reopen_would_recover());
    drop(another);
    drop(store);
    let store = house.store();
    assert!(!store.reopen_would_recover());
}
