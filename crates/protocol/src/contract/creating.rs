//! Making and describing a repository.

use bytes::Bytes;

use super::ContractWorld;
use super::cases;
use super::fixture::{Fixture, assert_refused};
use super::forge::Forge;
use crate::{NewRepository, RepositoryError};

cases![
    what_was_never_made_can_not_be_described,
    what_was_made_is_described_and_stays_so_after_a_restart,
    a_repository_is_not_made_twice,
    parts_that_do_not_fit_each_other_are_refused,
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

    let answer = repository.describe();
    assert!(matches!(answer, Err(RepositoryError::NoRepository { .. })), "got {answer:?}");
    repository.create(&good).expect("nothing of the refused ones is in the way");
}
