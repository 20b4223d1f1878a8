//! Making and describing a repository.

use bytes::Bytes;
use holdall_format::{RepositoryId, WrappingSet};

use super::ContractWorld;
use super::cases;
use super::fixture::{Fixture, assert_refused};
use super::forge::{Forge, TestKey};
use crate::{NewRepository, RepositoryError};

cases![
    what_was_never_made_can_not_be_described,
    what_was_made_is_described_and_stays_so_after_a_restart,
    a_repository_is_not_made_twice,
    parts_that_do_not_fit_each_other_are_refused,
    wrappings_are_replaced_by_the_next_generation_and_stay_so_after_a_restart,
    the_current_wrappings_again_change_nothing,
    wrappings_of_another_generation_are_refused,
    wrappings_that_are_not_the_owners_are_refused,
    a_recovery_kit_that_nothing_proves_is_refused,
    key_epochs_are_added_and_none_is_taken_back,
    of_two_changes_of_the_wrappings_at_once_one_wins,
];

fn what_was_never_made_can_not_be_described(world: &mut dyn ContractWorld) {
    let answer = world.repository().describe();
    assert!(matches!(answer, Err(RepositoryError::NoRepository { .. })), "got {answer:?}");
}

fn what_was_made_is_described_and_stays_so_after_a_restart(world: &mut dyn ContractWorld) {
    let machine = world.machine();
    let fixture = Fixture::new(world);
    let first = fixture.repository.describe().expect("it was just made");
    assert_eq!(first.config, fixture.forge.config());
    assert_eq!(first.wrappings, fixture.forge.wrappings(1));
    assert_eq!(first.machine, machine);
    let fixture = fixture.restarted();
    assert_eq!(fixture.repository.describe().expect("it is still there"), first);
}

fn a_repository_is_not_made_twice(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let answer = fixture.repository.create(&fixture.forge.new_repository());
    assert!(matches!(answer, Err(RepositoryError::AlreadyExists { .. })), "got {answer:?}");
    let described = fixture.repository.describe().expect("the first one is untouched");
    assert_eq!(described.config, fixture.forge.config());
}

fn parts_that_do_not_fit_each_other_are_refused(world: &mut dyn ContractWorld) {
    let repository = world.repository();
    let forge = Forge::new(1, world.machine(), &world.machine_seed());
    let other = Forge::new(2, world.machine(), &world.machine_seed());
    let good = forge.new_repository();

    let foreign_wrappings = NewRepository { wrappings: other.wrappings(1), ..good.clone() };
    assert_refused(repository.create(&foreign_wrappings));
    let mut config = good.config.to_vec();
    config[10] ^= 1;
    assert_refused(repository.create(&NewRepository { config: config.into(), ..good.clone() }));
    let nothing = NewRepository { wrappings: Bytes::new(), ..good.clone() };
    assert_refused(repository.create(&nothing));

    let kit = TestKey::from_seed(&[77; 32]).public();
    for wrappings in [forge.wrappings_for_unproven(1, kit), forge.wrappings_of_version_3(1, kit)] {
        assert_refused(repository.create(&NewRepository { wrappings, ..good.clone() }));
    }

    let answer = repository.describe();
    assert!(matches!(answer, Err(RepositoryError::NoRepository { .. })), "got {answer:?}");
    repository.create(&good).expect("nothing of the refused ones is in the way");
}

fn wrappings(fixture: &Fixture<'_>) -> Bytes {
    fixture.repository.describe().expect("it is made").wrappings
}

fn wrappings_are_replaced_by_the_next_generation_and_stay_so_after_a_restart(
    world: &mut dyn ContractWorld,
) {
    let mut fixture = Fixture::new(world);
    for generation in 2..5 {
        let next = fixture.forge.wrappings(generation);
        fixture.repository.put_wrappings(&next).expect("it is the next");
        assert_eq!(wrappings(&fixture), next);
        fixture = fixture.restarted();
        assert_eq!(wrappings(&fixture), next);
    }
}

fn the_current_wrappings_again_change_nothing(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    for generation in [1, 2, 2] {
        let set = fixture.forge.wrappings(generation);
        fixture.repository.put_wrappings(&set).expect("an answer may be lost");
        assert_eq!(wrappings(&fixture), set);
    }
}

fn wrappings_of_another_generation_are_refused(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let kit = [TestKey::from_seed(&[77; 32])];
    let current = fixture.forge.wrappings(2);
    fixture.repository.put_wrappings(&current).unwrap();
    for generation in [0, 1, 2, 4, u64::MAX] {
        let other = fixture.forge.wrappings_for_kits(generation, &kit);
        assert_refused(fixture.repository.put_wrappings(&other));
    }
    assert_eq!(wrappings(&fixture), current);
}

fn wrappings_that_are_not_the_owners_are_refused(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let machine = fixture.forge.machine;
    let foreign = Forge::new(2, machine, &[2; 32]).wrappings(2);
    let mut own_id = Forge::new(2, machine, &[2; 32]);
    own_id.repository = fixture.forge.repository;
    let mut owners = Forge::new(1, machine, &[2; 32]);
    owners.repository = RepositoryId::from_bytes([2; RepositoryId::LEN]);
    let empty = fixture.forge.wrappings_of(2, vec![]);
    let mut mangled = fixture.forge.wrappings(2).to_vec();
    mangled[80] ^= 1;
    for bad in
        [foreign, own_id.wrappings(2), owners.wrappings(2), empty, mangled.into(), Bytes::new()]
    {
        assert_refused(fixture.repository.put_wrappings(&bad));
    }
    assert_eq!(wrappings(&fixture), fixture.forge.wrappings(1));
}

fn a_recovery_kit_that_nothing_proves_is_refused(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let (forge, kit) = (&fixture.forge, [TestKey::from_seed(&[77; 32])]);
    let elsewhere = Forge::new(2, forge.machine, &[2; 32]).wrappings_for_kits(2, &kit);
    let elsewhere = WrappingSet::decode_signed(&elsewhere).expect("a set");
    let named = kit[0].public();
    for set in [
        forge.wrappings_for_unproven(2, named),
        forge.wrappings_of_version_3(2, named),
        forge.wrappings_of(2, elsewhere.wrappings),
    ] {
        assert_refused(fixture.repository.put_wrappings(&set));
    }
    assert_eq!(wrappings(&fixture), forge.wrappings(1));
    let put = |set: &Bytes| fixture.repository.put_wrappings(set);
    put(&forge.wrappings_for_kits(2, &kit)).expect("the kit proves itself");
    put(&forge.wrappings_for_unproven(3, named)).expect("it was there before");
    put(&forge.wrappings(4)).expect("the kit is taken away");
    assert_refused(put(&forge.wrappings_for_unproven(5, named)));
}

fn key_epochs_are_added_and_none_is_taken_back(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let put = |set: &Bytes| fixture.repository.put_wrappings(set);
    let [second, third, other] = [81, 82, 83].map(|seed| TestKey::from_seed(&[seed; 32]));
    let chain = [second, third];
    let rotated = fixture.forge.wrappings_in_epoch(2, &chain[..1]);
    put(&rotated).expect("the owner begins an epoch");
    assert_refused(put(&fixture.forge.wrappings(3)));
    assert_refused(put(&fixture.forge.wrappings_in_epoch(3, &[other])));
    assert_eq!(wrappings(&fixture), rotated);
    for (generation, epochs) in [(3, 1), (4, 2)] {
        let next = fixture.forge.wrappings_in_epoch(generation, &chain[..epochs]);
        put(&next).expect("it has the epoch that is there, or one more");
        assert_eq!(wrappings(&fixture), next);
    }
    assert_refused(put(&fixture.forge.wrappings_in_epoch(5, &chain[..1])));
}

fn of_two_changes_of_the_wrappings_at_once_one_wins(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let sets: Vec<_> = (1..5)
        .map(|seed| {
            let kit = TestKey::from_seed(&[seed; 32]);
            fixture.forge.wrappings_for_kits(2, &[kit])
        })
        .collect();
    let done: Vec<_> = std::thread::scope(|scope| {
        let repository = &fixture.repository;
        let put = |set| scope.spawn(move || repository.put_wrappings(set).is_ok());
        let threads: Vec<_> = sets.iter().map(put).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(done.iter().filter(|done| **done).count(), 1, "{done:?}");
    let won = sets.iter().zip(&done).find(|(_, done)| **done).unwrap().0;
    assert_eq!(wrappings(&fixture), *won);
}
