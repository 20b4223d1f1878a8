//! Who this machine is: a random id and an Ed25519 key, kept in the state folder.

use std::path::Path;
use std::sync::Arc;

use holdall_crypto::{Entropy, SigningKey, SystemEntropy};
use holdall_format::MachineId;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::error::{StateError, StateFile};
use crate::hex;
use crate::private_file;

/// Far more than the file ever has.
const LIMIT_BYTES: u64 = 4096;

/// This machine.
pub struct Identity {
    /// Its id, kept through a change of keys.
    pub machine: MachineId,
    /// Signs its records, and signs it in at servers.
    pub signing: Arc<SigningKey>,
}

/// The file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    machine: String,
    seed: Zeroizing<String>,
}

impl Identity {
    /// Reads the identity, or makes and keeps one.
    ///
    /// # Errors
    /// If the file cannot be read, understood or written.
    pub fn load_or_make(state: &Path) -> Result<Self, StateError> {
        let path = state.join("identity.json");
        if private_file::read_kind(StateFile::Identity, &path, LIMIT_BYTES)?.is_none() {
            // Should another process be quicker, its identity is this machine's.
            private_file::write_new(&path, &Self::new_file()?)?;
        }
        let bytes = Zeroizing::new(private_file::read(&path, LIMIT_BYTES)?.unwrap_or_default());
        Self::parse(&bytes)
            .map_err(|reason| StateError::damaged(StateFile::Identity, &path, reason))
    }

    fn new_file() -> Result<Zeroizing<Vec<u8>>, serde_json::Error> {
        let mut machine = [0; MachineId::LEN];
        SystemEntropy.fill(&mut machine);
        let signing = SigningKey::generate(&mut SystemEntropy);
        let stored = Stored {
            machine: MachineId::from_bytes(machine).to_string(),
            seed: hex::encode(signing.seed()),
        };
        Ok(Zeroizing::new(serde_json::to_vec(&stored)?))
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let stored: Stored = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let machine = stored.machine.parse::<MachineId>().map_err(|error| error.to_string())?;
        let seed = hex::decode(&stored.seed).ok_or("the seed is not 64 hexadecimal digits")?;
        Ok(Self { machine, signing: Arc::new(SigningKey::from_seed(&seed)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
