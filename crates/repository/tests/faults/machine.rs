//! The machine that a script runs on, the same in every process: its keys, and a clock that stands.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use holdall_format::{MachineId, PublicKey, Signature, SignedContext};
use holdall_protocol::contract::{Forge, TestKey};
use holdall_repository::{Clock, EmbeddedRepository, ReceiptSigner};

const MACHINE: MachineId = MachineId::from_bytes([7; 16]);
const MACHINE_SEED: [u8; 32] = [8; 32];
/// A moment at which clocks are believed.
const NOW_NS: i64 = 1_900_000_000_000_000_000;

struct Standing;

impl Clock for Standing {
    fn now_ns(&self) -> i64 {
        NOW_NS
    }
}

struct Signer(TestKey);

/// Made once, since thousands of states are opened with it.
static SIGNER: LazyLock<Arc<Signer>> =
    LazyLock::new(|| Arc::new(Signer(TestKey::from_seed(&MACHINE_SEED))));

impl ReceiptSigner for Signer {
    fn public(&self) -> PublicKey {
        self.0.public()
    }

    fn sign(&self, context: SignedContext, message: &[u8]) -> Signature {
        self.0.sign(context, message)
    }
}

/// What makes the machine's blocks and records.
pub(crate) fn forge() -> Forge {
    Forge::new(1, MACHINE, &MACHINE_SEED)
}

/// The repository of a disk as the machine opens it; its folder's own folder has to be made too.
pub(crate) fn open(disk: &Path) -> EmbeddedRepository {
    let (dir, cache) = (disk.join("new/repository"), disk.join("cache"));
    let signer = SIGNER.clone();
    EmbeddedRepository::at(&dir, &cache, MACHINE, signer.public(), signer, Arc::new(Standing))
}
