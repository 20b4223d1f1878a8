//! The contract suite, on both ways to have a directory.

use holdall_protocol::contract::run;

use crate::world::{SharedWorld, World};

#[test]
fn a_repository_in_a_directory_keeps_the_contract() {
    run(&|| Box::new(World::new()));
}

#[test]
fn a_store_that_is_shared_keeps_the_contract_after_every_restart() {
    run(&|| Box::new(SharedWorld::new()));
}
