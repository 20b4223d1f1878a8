//! Who this machine is: a random id and an Ed25519 key, kept in the state folder.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use holdall_crypto::{Entropy, SigningKey, SystemEntropy};
use holdall_format::MachineId;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::exit::{Exit, Refusal, is_forbidden};
use crate::state::hex;
use crate::state::private_file;

/// What to do about an identity that cannot be read: nothing is made in its place.
const DAMAGED_HINT: &str = "put back a copy of it; without one, move it away to be a new machine, \
                            which a server lets in by `holdall invite --for MACHINE`";
/// Far more than the file ever has.
const LIMIT_BYTES: u64 = 4096;

/// This machine.
pub(crate) struct Identity {
    /// Its id, kept through a change of keys.
    pub(crate) machine: MachineId,
    /// Signs its records, and signs it in at servers.
    pub(crate) signing: Arc<SigningKey>,
}

/// The file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    machine: String,
    seed: Zeroizing<String>,
}

/// Says where a machine can be kept whose user may not write where it would be.
fn elsewhere(error: anyhow::Error) -> anyhow::Error {
    if !is_forbidden(&error) {
        return error;
    }
    let hint = "see who owns it, or set HOLDALL_CONFIG_DIR and HOLDALL_CACHE_DIR to folders that this \
                user may write to";
    Refusal::new(Exit::Failed, format!("{error:#}")).hint(hint).into()
}

impl Identity {
    /// Reads the identity, or makes and keeps one.
    ///
    /// # Errors
    /// If the file cannot be read, understood or written.
    pub(crate) fn load_or_make(state: &Path) -> Result<Self> {
        let path = state.join("identity.json");
        if private_file::read(&path, LIMIT_BYTES).map_err(elsewhere)?.is_none() {
            // Should another process be quicker, its identity is this machine's.
            private_file::write_new(&path, &Self::new_file()?).map_err(elsewhere)?;
        }
        let bytes = private_file::read(&path, LIMIT_BYTES)?.context("it vanished")?;
        Self::parse(&Zeroizing::new(bytes)).map_err(|error| {
            let message = format!("{} is not this machine's identity: {error}", path.display());
            Refusal::new(Exit::Failed, message).hint(DAMAGED_HINT).into()
        })
    }

    fn new_file() -> Result<Zeroizing<Vec<u8>>> {
        let mut machine = [0; MachineId::LEN];
        SystemEntropy.fill(&mut machine);
        let signing = SigningKey::generate(&mut SystemEntropy);
        let stored = Stored {
            machine: MachineId::from_bytes(machine).to_string(),
            seed: hex::encode(signing.seed()),
        };
        Ok(Zeroizing::new(serde_json::to_vec(&stored)?))
    }

    fn parse(bytes: &[u8]) -> Result<Self> {
        let stored: Stored = serde_json::from_slice(bytes)?;
        let machine = stored.machine.parse()?;
        let seed = hex::decode(&stored.seed).context("the seed is not 64 hexadecimal digits")?;
        Ok(Self { machine, signing: Arc::new(SigningKey::from_seed(&seed)) })
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;
    use crate::exit::hint_of;

    #[test]
    fn who_may_not_write_there_is_told_how_to_be_a_machine_elsewhere() {
        let hint = |kind| {
            let error = anyhow::Error::from(std::io::Error::from(kind)).context("cannot make /x");
            hint_of(&elsewhere(error)).unwrap()
        };
        assert!(hint(ErrorKind::ReadOnlyFilesystem).contains("HOLDALL_CONFIG_DIR"));
        assert!(hint(ErrorKind::PermissionDenied).contains("HOLDALL_CONFIG_DIR"));
        assert!(!hint(ErrorKind::StorageFull).contains("HOLDALL_CONFIG_DIR"));
    }

    #[test]
    fn an_identity_stays_the_same_once_it_is_made() {
        let state = tempfile::tempdir().unwrap();
        let made = Identity::load_or_make(state.path()).unwrap();
        let again = Identity::load_or_make(state.path()).unwrap();
        assert_eq!(made.machine, again.machine);
        assert_eq!(made.signing.public(), again.signing.public());
        std::fs::write(state.path().join("identity.json"), "{}").unwrap();
        assert!(Identity::load_or_make(state.path()).is_err());
    }
}
