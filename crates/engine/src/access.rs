//! A repository together with the keys that open it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use holdall_crypto::{KeyRing, RepositoryKeys, SigningKey, sign_wrappings};
use holdall_format::{
    MachineId, PublicKey, RepositoryConfig, SessionId, Spare, Wrapping, WrappingSet,
};
use holdall_protocol::{
    Description, NewRepository, Repository, RepositoryError, SessionPurpose, Traffic,
};
use holdall_tree::Fingerprints;

use crate::EngineError;
use crate::cache::private_folder::make_private;
use crate::run::lock;

/// Where a repository is and who asks: what is there before any key.
pub struct LockedRepository {
    /// The repository, in-process or across the wire.
    pub repository: Arc<dyn Repository>,
    /// This machine's key, with which it signs records.
    pub signing: Arc<SigningKey>,
    /// A folder for what may be deleted at any time; made when needed.
    pub cache: PathBuf,
    /// What the repository said of itself when it was first asked.
    described: OnceLock<Description>,
    /// What it said of itself an earlier time, to be put back should that be lost there.
    kept: Option<Spare>,
    was_put_back: OnceLock<()>,
}

impl LockedRepository {
    /// A place that was not asked yet.
    pub fn new(repository: Arc<dyn Repository>, signing: Arc<SigningKey>, cache: PathBuf) -> Self {
        let (described, was_put_back) = Default::default();
        Self { repository, signing, cache, described, kept: None, was_put_back }
    }

    /// The same place, which is given back what it said of itself an earlier time, should it have lost that. What it
    /// has already to be given back goes first.
    #[must_use]
    pub fn keeping(self, kept: Option<Spare>) -> Self {
        Self { kept: self.kept.or(kept), ..self }
    }

    /// Whether the repository had lost what it says of itself, and was given it back.
    pub fn was_put_back(&self) -> bool {
        self.was_put_back.get().is_some()
    }

    /// What the repository says of itself in clear, to be kept.
    ///
    /// # Errors
    /// As for [`LockedRepository::wrappings`].
    pub fn spare(&self) -> Result<Spare, EngineError> {
        let Description { config, wrappings, .. } = self.describe()?;
        Spare::of(config, wrappings)
            .map_err(|error| EngineError::unreadable("what the repository says of itself", &error))
    }

    /// Makes what a repository says of itself anew, from its keys, where no copy of it is sound.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`] if it is not that repository's, or one is sound.
    pub fn put_back(&self, known: &NewRepository) -> Result<(), RepositoryError> {
        self.repository.put_back(known)?;
        // Once is enough to tell.
        let _ = self.was_put_back.set(());
        Ok(())
    }

    /// Asks what the repository is, once.
    fn describe(&self) -> Result<&Description, RepositoryError> {
        if let Some(described) = self.described.get() {
            return Ok(described);
        }
        let described = self.repository.describe().or_else(|error| self.described_again(error))?;
        Ok(self.described.get_or_init(|| described))
    }

    /// Gives the repository back what was kept, and asks again; otherwise the `error` stands.
    fn described_again(&self, error: RepositoryError) -> Result<Description, RepositoryError> {
        match (&error, &self.kept) {
            (RepositoryError::Damaged { .. }, Some(kept)) => {
                let known = NewRepository {
                    config: kept.config_bytes.clone().into(),
                    wrappings: kept.wrappings_bytes.clone().into(),
                };
                self.put_back(&known).map_err(|_| error)?;
                self.repository.describe()
            }
            _ => Err(error),
        }
    }

    /// Fetches the repository's wrapped key ring.
    ///
    /// # Errors
    /// [`EngineError::Repository`] if there is none or it cannot be reached; [`EngineError::Damaged`].
    pub fn wrappings(&self) -> Result<WrappingSet, EngineError> {
        let description = self.describe()?;
        WrappingSet::decode_signed(&description.wrappings)
            .map_err(|error| EngineError::unreadable("the repository's wrappings", &error))
    }

    /// Opens the repository with its key ring.
    ///
    /// # Errors
    /// [`EngineError::Crypto`] if the ring is not this repository's.
    pub fn open(self, ring: &KeyRing) -> Result<UnlockedRepository, EngineError> {
        let description = self.describe()?;
        let keys = RepositoryKeys::derive(ring);
        let config = keys.check_config(&description.config)?;
        let (machine, receipts_from) = (description.machine, description.signer);
        let cache = self.cache.join(config.repository.to_string());
        // Who needs it meets what keeps it from being made.
        let _ = make_private(&cache);
        Ok(UnlockedRepository {
            cache,
            repository: self.repository,
            keys: Arc::new(keys),
            config,
            machine,
            signing: self.signing,
            receipts_from,
            traffic_told: Mutex::default(),
        })
    }

    /// Has the repository take `wrappings` in place of those that it has, of the generation before; gives what it says of
    /// itself then.
    ///
    /// # Errors
    /// [`EngineError::Crypto`] if there are too many; if the repository refuses, as it does when the keys were changed
    /// meanwhile.
    pub fn replace_wrappings(
        &self,
        ring: &KeyRing,
        generation: u64,
        wrappings: Vec<Wrapping>,
    ) -> Result<Spare, EngineError> {
        let keys = RepositoryKeys::derive(ring);
        let bytes = sign_wrappings(&keys, generation.saturating_add(1), wrappings)?.into();
        self.repository.put_wrappings(&bytes)?;
        Spare::of(&self.spare()?.config_bytes, &bytes)
            .map_err(|error| EngineError::unreadable("what the repository says of itself", &error))
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
pub struct UnlockedRepository {
    pub(crate) repository: Arc<dyn Repository>,
    pub(crate) keys: Arc<RepositoryKeys>,
    pub(crate) config: RepositoryConfig,
    pub(crate) machine: MachineId,
    pub(crate) signing: Arc<SigningKey>,
    pub(crate) receipts_from: PublicKey,
    pub(crate) cache: PathBuf,
    /// The traffic that a summary has told already.
    pub(crate) traffic_told: Mutex<Traffic>,
}

impl UnlockedRepository {
    /// Bytes on the wire since the repository was reached, or since this was asked last.
    pub(crate) fn take_traffic(&self) -> Traffic {
        let (now, mut told) = (self.repository.traffic(), lock(&self.traffic_told));
        let before = std::mem::replace(&mut *told, now);
        Traffic {
            sent_bytes: now.sent_bytes.saturating_sub(before.sent_bytes),
            received_bytes: now.received_bytes.saturating_sub(before.received_bytes),
        }
    }

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

    /// What knows this repository's leaves again as long as owners have the names of which this is the
    /// digest.
    pub(crate) fn fingerprints(&self, owners: &[u8; 32]) -> Fingerprints {
        let leaf_key = *blake3::keyed_hash(self.keys.leaf_key(), owners).as_bytes();
        let boundary_key = *self.keys.boundary_key();
        Fingerprints::new(leaf_key, boundary_key, self.config.leaf_bits)
    }

    /// Whether the repository is in a directory, where the machine itself gives receipts, and not on a server.
    pub fn is_in_directory(&self) -> bool {
        self.receipts_from == self.signing.public()
    }

    /// Its folder for what may be deleted at any time.
    pub fn cache(&self) -> &Path {
        &self.cache
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
