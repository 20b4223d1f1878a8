//! Sets of wrappings as files: what stays of older ones, and what is in the way of a new one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use bytes::Bytes;
use holdall_protocol::contract::{ContractWorld, Forge, TestKey};
use holdall_protocol::{Repository, RepositoryError};
use holdall_repository::{EmbeddedRepository, Store};

use crate::world::{MACHINE, MACHINE_SEED, World, signer};

fn forge() -> Forge {
    Forge::new(1, MACHINE, &MACHINE_SEED)
}

fn made() -> World {
    let world = World::new();
    world.handle().create(&forge().new_repository()).unwrap();
    world
}

/// The repository as a server shares it.
fn shared(world: &World) -> EmbeddedRepository {
    let store =
        Store::open(&world.dir(), &world.cache_dir(), signer(), world.clock.clone()).unwrap();
    store.for_machine(MACHINE, TestKey::from_seed(&MACHINE_SEED).public())
}

fn files(world: &World) -> Vec<String> {
    let names = fs::read_dir(world.dir().join("wrappings")).unwrap();
    let mut names: Vec<_> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

fn described(repository: &impl Repository) -> Bytes {
    repository.describe().unwrap().wrappings
}

#[test]
fn a_directory_of_ones_own_keeps_no_older_set() {
    let world = made();
    for generation in 2..4 {
        world.handle().put_wrappings(&forge().wrappings(generation)).unwrap();
        assert_eq!(files(&world), [format!("{generation:016x}")]);
        assert_eq!(described(&*world.handle()), forge().wrappings(generation));
    }
}

#[test]
fn the_same_set_again_removes_what_an_attempt_that_was_cut_left() {
    let mut world = made();
    fs::write(world.dir().join("wrappings/0000000000000002"), forge().wrappings(2)).unwrap();
    world.restart();
    world.handle().put_wrappings(&forge().wrappings(2)).unwrap();
    assert_eq!(files(&world), ["0000000000000002"]);
}

#[test]
fn a_shared_repository_keeps_every_set_and_goes_back_when_the_newest_is_taken_away() {
    let world = made();
    let repository = shared(&world);
    for generation in 2..4 {
        repository.put_wrappings(&forge().wrappings(generation)).unwrap();
    }
    assert_eq!(files(&world).len(), 3);
    assert_eq!(described(&repository), forge().wrappings(3));
    drop(repository);
    fs::remove_file(world.dir().join("wrappings/0000000000000003")).unwrap();
    fs::remove_file(world.dir().join("spare/0000000000000003")).unwrap();
    let repository = shared(&world);
    assert_eq!(described(&repository), forge().wrappings(2));
    repository.put_wrappings(&forge().wrappings(3)).unwrap();
}

#[test]
fn a_file_that_is_in_the_way_of_the_next_set_is_not_replaced() {
    let world = made();
    let repository = shared(&world);
    let path = world.dir().join("wrappings/0000000000000002");
    fs::write(&path, "foreign").unwrap();
    let refused = repository.put_wrappings(&forge().wrappings(2));
    assert!(matches!(refused, Err(RepositoryError::Damaged { .. })), "{refused:?}");
    assert_eq!(fs::read(&path).unwrap(), b"foreign");
    assert_eq!(described(&repository), forge().wrappings(1));
}

#[test]
fn a_newest_set_that_can_not_be_read_is_damage_and_no_older_one_counts() {
    let of_another = Forge::new(2, MACHINE, &MACHINE_SEED).wrappings(2);
    for content in [b"torn".to_vec(), of_another.to_vec(), forge().wrappings(3).to_vec()] {
        let mut world = made();
        fs::write(world.dir().join("wrappings/0000000000000002"), content).unwrap();
        world.restart();
        let answer = world.handle().describe();
        let Err(RepositoryError::Damaged { what, .. }) = &answer else { panic!("{answer:?}") };
        assert!(what.ends_with("wrappings/0000000000000002"), "{what}");
    }
}

#[test]
fn wrapped_keys_are_for_their_owner_alone() {
    let world = made();
    for folder in ["wrappings", "spare"] {
        let mode = fs::metadata(world.dir().join(folder)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{folder}: {mode:o}");
    }
}

#[test]
fn what_is_no_set_is_left_alone() {
    let mut world = made();
    let folder = world.dir().join("wrappings");
    fs::create_dir_all(folder.join("@eaDir/0000000000000001")).unwrap();
    fs::create_dir(folder.join("00000000000000ff")).unwrap();
    fs::write(folder.join("0000000000000001~"), "an editor's").unwrap();
    fs::write(folder.join("00000000000000FE"), "no generation").unwrap();
    world.restart();
    world.handle().put_wrappings(&forge().wrappings(2)).unwrap();
    let kept =
        ["0000000000000001~", "0000000000000002", "00000000000000FE", "00000000000000ff", "@eaDir"];
    assert_eq!(files(&world), kept);
    assert_eq!(described(&*world.handle()), forge().wrappings(2));
}

#[test]
fn no_more_sets_are_kept_than_a_thousand() {
    let world = made();
    for older in 2..1001 {
        let path = world.dir().join(format!("wrappings/{older:016x}"));
        fs::write(path, forge().wrappings(older)).unwrap();
    }
    let repository = shared(&world);
    let refused = repository.put_wrappings(&forge().wrappings(1001)).unwrap_err().to_string();
    assert!(refused.contains("1000 times"), "{refused}");
    drop(repository);
    fs::remove_file(world.dir().join("wrappings/0000000000000007")).unwrap();
    shared(&world).put_wrappings(&forge().wrappings(1001)).unwrap();
}

#[test]
fn a_set_that_got_its_name_in_an_attempt_that_failed_is_taken_when_it_comes_again() {
    let world = made();
    let repository = shared(&world);
    fs::write(world.dir().join("wrappings/0000000000000002"), forge().wrappings(2)).unwrap();
    repository.put_wrappings(&forge().wrappings(2)).unwrap();
    assert_eq!(described(&repository), forge().wrappings(2));
}

#[test]
fn wrappings_are_not_changed_while_another_process_writes() {
    let world = made();
    let other = shared(&world);
    let handle: Arc<dyn Repository> = world.handle();
    let refused = handle.put_wrappings(&forge().wrappings(2));
    assert!(matches!(refused, Err(RepositoryError::InUse { .. })), "{refused:?}");
    drop(other);
    handle.put_wrappings(&forge().wrappings(2)).unwrap();
}
