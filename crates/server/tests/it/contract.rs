//! The contract of a repository, kept over the wire and through restarts of the server.

use std::sync::Arc;

use holdall_format::MachineId;
use holdall_protocol::Repository;
use holdall_protocol::contract::{self, ContractWorld};

use crate::world::{Machine, World};

struct OverTheWire {
    world: World,
    machine: Machine,
}

impl ContractWorld for OverTheWire {
    fn repository(&self) -> Arc<dyn Repository> {
        Arc::new(self.machine.connect())
    }

    fn machine(&self) -> MachineId {
        self.machine.id()
    }

    fn machine_seed(&self) -> [u8; 32] {
        self.machine.seed
    }

    fn restart(&mut self) {
        self.world.stop();
        self.world.start();
    }
}

#[test]
fn a_repository_on_a_server_keeps_the_contract() {
    contract::run(&|| {
        let world = World::new();
        let machine = world.paired(1);
        Box::new(OverTheWire { world, machine })
    });
}
