//! The machine that a script runs on, the same in every process: its keys, and a clock that stands.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use holdall_format::MachineId;
use holdall_protocol::contract::{Forge, TestKey};
use holdall_repository::EmbeddedRepository;
use holdall_testkit::FakeClock;

const MACHINE: MachineId = MachineId::from_bytes([7; 16]);
const MACHINE_SEED: [u8; 32] = [8; 32];
/// A moment at which clocks are believed.
const NOW_SECS: i64 = 1_900_000_000;
/// Made once, since thousands of states are opened with it.
static SIGNER: LazyLock<Arc<TestKey>> =
    LazyLock::new(|| Arc::new(TestKey::from_seed(&MACHINE_SEED)));

/// What makes the machine's blocks and records.
pub(crate) fn forge() -> Forge {
    Forge::new(1, MACHINE, &MACHINE_SEED)
}

/// The repository of a disk as the machine opens it; its folder's own folder has to be made too.
pub(crate) fn open(disk: &Path) -> EmbeddedRepository {
    let (dir, cache) = (disk.join("new/repository"), disk.join("cache"));
    let signer = SIGNER.clone();
    EmbeddedRepository::at(
        &dir,
        &cache,
        MACHINE,
        signer.public(),
        signer,
        Arc::new(FakeClock::at(NOW_SECS)),
    )
}
