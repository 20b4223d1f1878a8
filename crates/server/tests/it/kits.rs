//! Whose recovery kits a server lets in: those that prove themselves, and those that it let in before there were proofs.

use std::fs;
use std::path::PathBuf;

use bytes::Bytes;
use holdall_format::PublicKey;
use holdall_protocol::{HttpRepository, NewRepository, Repository, RepositoryError, ServerAddress};

use crate::world::{Machine, World, identity, quick, recovery_seed};

fn kit_of(number: u8) -> PublicKey {
    identity(&recovery_seed(number)).public()
}

/// What a kit reads from the server.
fn read_with_kit(world: &World, number: u8) -> Result<Bytes, RepositoryError> {
    let kit = identity(&recovery_seed(number));
    let address = ServerAddress { repository: None, ..world.server_address() };
    Ok(HttpRepository::connect(address, &kit, quick())?.describe()?.wrappings)
}

fn assert_unproven(answer: Result<(), RepositoryError>) {
    let refused = answer.unwrap_err().to_string();
    assert!(refused.contains("nothing proves that the recovery kit"), "{refused}");
}

fn folder_of(world: &World, machine: &Machine) -> PathBuf {
    world.folder.path().join("repositories").join(&machine.paired.repository)
}

/// Puts the machine's kit into a set of version 3, as it was before there were proofs.
fn set_back(world: &mut World, machine: &Machine, number: u8) -> Bytes {
    world.stop();
    let set = machine.forge().wrappings_of_version_3(1, kit_of(number));
    let folder = folder_of(world, machine);
    fs::write(folder.join("wrappings/0000000000000001"), &set).unwrap();
    fs::remove_file(folder.join("spare/0000000000000001")).unwrap();
    world.start();
    set
}

#[test]
fn a_machine_that_names_a_stranger_s_recovery_key_is_refused_and_the_stranger_s_kit_works() {
    let world = World::new();
    let machine = world.machine(1);
    let named = machine.forge().wrappings_for_unproven(2, kit_of(2));
    assert_unproven(machine.connect().put_wrappings(&named));

    let empty = world.paired(3);
    let wrappings = empty.forge().wrappings_for_unproven(1, kit_of(2));
    let new = NewRepository { wrappings, ..empty.forge().new_repository() };
    assert_unproven(empty.connect().create(&new));

    let stranger = world.machine(2);
    let shown = stranger.connect().describe().unwrap().wrappings;
    assert_eq!(read_with_kit(&world, 2).unwrap(), shown);
}

#[test]
fn a_kit_from_before_there_were_proofs_signs_in_and_stays_when_the_keys_are_changed() {
    let mut world = World::new();
    let machine = world.machine(1);
    let former = set_back(&mut world, &machine, 1);
    assert_eq!(read_with_kit(&world, 1).unwrap(), former);

    let changed = machine.forge().wrappings_for_unproven(2, kit_of(1));
    machine.connect().put_wrappings(&changed).unwrap();
    world.stop();
    world.start();
    assert_eq!(read_with_kit(&world, 1).unwrap(), changed);

    let named = machine.forge().wrappings_for_unproven(3, kit_of(2));
    assert_unproven(machine.connect().put_wrappings(&named));
    assert!(read_with_kit(&world, 2).is_err());
}

#[test]
fn what_a_machine_puts_back_lets_in_the_kits_from_before_and_no_stranger_s() {
    let mut world = World::new();
    let machine = world.machine(1);
    let former = set_back(&mut world, &machine, 1);
    assert_eq!(read_with_kit(&world, 1).unwrap(), former);
    world.stop();
    let folder = folder_of(&world, &machine);
    for lost in ["wrappings/0000000000000001", "spare/0000000000000001"] {
        fs::write(folder.join(lost), b"torn").unwrap();
    }
    world.start();

    let (forge, repository) = (machine.forge(), machine.connect());
    let put_back = |wrappings: &Bytes| {
        let known = NewRepository { wrappings: wrappings.clone(), ..forge.new_repository() };
        repository.put_back(&known)
    };
    assert_unproven(put_back(&forge.wrappings_of_version_3(1, kit_of(2))));
    put_back(&former).unwrap();
    assert_eq!(repository.describe().unwrap().wrappings, former);
    assert_eq!(read_with_kit(&world, 1).unwrap(), former);
}
