//! A repository together with the keys that open it.

use std::path::PathBuf;
use std::sync::Arc;

use holdall_crypto::{MasterSecret, RepositoryKeys, SigningKey};
use holdall_format::{MachineId, PublicKey, RepositoryConfig, SessionId, WrappingSet};
use holdall_protocol::{Repository, RepositoryError, SessionPurpose};
use holdall_tree::Fingerprints;

use crate::EngineError;

/// Where a repository is and who asks: what is there before any key.
pub struct Place {
    /// The repository, in-process or across the wire.
    pub repository: Arc<dyn Repository>,
    /// This machine's key, with which it signs records.
    pub signing: Arc<SigningKey>,
    /// A folder for what may be deleted at any time; made when needed.
    pub cache: PathBuf,
}

impl Place {
    /// Fetches the repository's wrapped master secret.
    ///
    /// # Errors
    /// [`EngineError::Repository`] if there is none or it can not be reached; [`EngineError::Damaged`].
    pub fn wrappings(&self) -> Result<WrappingSet, EngineError> {
        let description = self.repository.describe()?;
        WrappingSet::decode_signed(&description.wrappings)
            .map_err(|error| EngineError::unreadable("the repository's wrappings", &error))
    }

    /// Opens the repository with its master secret.
    ///
    /// # Errors
    /// [`EngineError::Crypto`] if the secret is not this repository's.
    pub fn open(self, secret: &MasterSecret) -> Result<Access, EngineError> {
        let description = self.repository.describe()?;
        let keys = RepositoryKeys::derive(secret);
        let config = keys.check_config(&description.config)?;
        Ok(Access {
            cache: self.cache.join(config.repository.to_string()),
            repository: self.repository,
            keys: Arc::new(keys),
            config,
            machine: description.machine,
            signing: self.signing,
            receipts_from: description.signer,
        })
    }

    /// Makes a new repository there.
    ///
    /// # Errors
    /// [`RepositoryError::AlreadyExists`] if there is one.
    pub fn create(&self, new: &holdall_protocol::NewRepository) -> Result<(), RepositoryError> {
        self.repository.create(new)
    }
}

/// An open repository: everything that a backup, a restore or a check needs.
pub struct Access {
    pub(crate) repository: Arc<dyn Repository>,
    pub(crate) keys: Arc<RepositoryKeys>,
    pub(crate) config: RepositoryConfig,
    pub(crate) machine: MachineId,
    pub(crate) signing: Arc<SigningKey>,
    pub(crate) receipts_from: PublicKey,
    pub(crate) cache: PathBuf,
}

impl Access {
    /// Works in a read session.
    pub(crate) fn reading<T>(
        &self,
        work: impl FnOnce(SessionId) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let session = self.repository.open_session(&SessionPurpose::Read)?.session;
        let done = work(session);
        // What was read is read: a session that is not closed lapses.
        let _ = self.repository.close_session(&session);
        done
    }

    /// What knows this repository's leaves again.
    pub(crate) fn fingerprints(&self) -> Fingerprints {
        let (leaf_key, boundary_key) = (*self.keys.leaf_key(), *self.keys.boundary_key());
        Fingerprints::new(leaf_key, boundary_key, self.config.leaf_bits)
    }

    /// The repository itself.
    pub fn repository(&self) -> &Arc<dyn Repository> {
        &self.repository
    }

    /// The repository's keys.
    pub fn keys(&self) -> &RepositoryKeys {
        &self.keys
    }

    /// This machine's id.
    pub fn machine(&self) -> MachineId {
        self.machine
    }

    /// What every client of the repository must agree on.
    pub fn config(&self) -> &RepositoryConfig {
        &self.config
    }
}
