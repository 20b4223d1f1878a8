//! A repository's keys: one for each purpose, all derived from its key ring.
//!
//! BLAKE3's derive-key mode with a context of its own for each purpose keeps them independent: a
//! key that became known says nothing of another one. Changing a context would make another
//! repository of the same secret, so they carry a version and never change.

use std::sync::Arc;

use holdall_format::{
    ChunkerName, ObjectId, PublicKey, RepositoryConfig, RepositoryId, SeriesId, SignedContext,
    Suite, TagToken,
};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::key_ring::derive;
use crate::{CryptoError, KeyRing, SealingKeys, SigningKey, letters};

/// Groups of four letters in a fingerprint: 100 bits.
const FINGERPRINT_GROUPS: usize = 5;

type Key = Zeroizing<[u8; 32]>;

/// Every key of a repository, meant to be shared behind an `Arc`.
///
/// Secret: keys leave memory when dropped; neither printed nor cloned.
pub struct RepositoryKeys {
    repository: RepositoryId,
    owner: SigningKey,
    later_epochs: Vec<SigningKey>,
    ids: IdKeys,
    boundary: Key,
    chunker: Key,
    series: Key,
    tags: Key,
    hardlinks: Key,
    leaves: Key,
    checked: Key,
    sealing: Arc<SealingKeys>,
}

impl RepositoryKeys {
    /// Derives all keys.
    pub fn derive(ring: &KeyRing) -> Self {
        let repository = first16(&ring.derive("holdall v1 repository id"));
        let repository = RepositoryId::from_bytes(repository);
        Self {
            repository,
            owner: SigningKey::from_seed(&ring.derive("holdall v1 owner signing key")),
            later_epochs: ring.secrets().1.map(epoch_signing_key).collect(),
            ids: IdKeys {
                chunk: *ring.derive("holdall v1 chunk id key"),
                node: *ring.derive("holdall v1 node id key"),
            },
            boundary: ring.derive("holdall v1 tree boundary key"),
            chunker: ring.derive("holdall v1 chunker key"),
            series: ring.derive("holdall v1 series key"),
            tags: ring.derive("holdall v1 tag token key"),
            hardlinks: ring.derive("holdall v1 hard link group key"),
            leaves: ring.derive("holdall v1 leaf fingerprint key"),
            checked: ring.derive("holdall v1 checked records key"),
            sealing: Arc::new(SealingKeys::new(repository, ring)),
        }
    }

    /// The repository's id.
    pub fn repository(&self) -> RepositoryId {
        self.repository
    }

    /// A short text over owner key and repository id, by which people compare repositories.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.owner.public(), &self.repository)
    }

    /// The keys of object ids.
    pub fn ids(&self) -> &IdKeys {
        &self.ids
    }

    /// The key of the hash that chooses where a tree's nodes end.
    ///
    /// Secret: with it, node sizes say something of paths.
    pub fn boundary_key(&self) -> &[u8; 32] {
        &self.boundary
    }

    /// The key of the chunker.
    ///
    /// Secret: with it, chunk sizes say something of content.
    pub fn chunker_key(&self) -> &[u8; 32] {
        &self.chunker
    }

    /// The key of the fingerprints by which a tree's leaf is known again. They stay on the computer
    /// that made them.
    ///
    /// Secret: with it, a leaf can be passed off as one of other files.
    pub fn leaf_key(&self) -> &[u8; 32] {
        &self.leaves
    }

    /// What only who has the keys can have written beside records whose signatures were checked, by the
    /// digest of their bytes. It stays on the computer that made it.
    pub fn checked_mark(&self, digest: &[u8; 32]) -> [u8; 32] {
        *blake3::keyed_hash(&self.checked, digest).as_bytes()
    }

    /// The series of what is backed up; `what` is its canonical description.
    pub fn series(&self, what: &[u8]) -> SeriesId {
        SeriesId::from_bytes(first16(blake3::keyed_hash(&self.series, what).as_bytes()))
    }

    /// A tag's token, by which a keeper tells tags apart without reading them.
    pub fn tag_token(&self, tag: &str) -> TagToken {
        TagToken::from_bytes(first16(blake3::keyed_hash(&self.tags, tag.as_bytes()).as_bytes()))
    }

    /// The group of a file with several names: the same for each of them, and, because it is made
    /// of the mount point's path and not of a device number, the same after a reboot.
    pub fn hardlink_group(&self, mount_point: &[u8], inode: u64) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new_keyed(&self.hardlinks);
        // The number comes first: it has a fixed length, so no two inputs run together.
        hasher.update(&inode.to_le_bytes()).update(mount_point);
        first16(hasher.finalize().as_bytes())
    }

    /// The owner's key, which signs the configuration, and is that of the first epoch.
    pub fn owner(&self) -> &SigningKey {
        &self.owner
    }

    /// The keys of the epochs behind the first, in their order.
    pub fn later_epochs(&self) -> &[SigningKey] {
        &self.later_epochs
    }

    /// The newest epoch's key, which signs the wrappings.
    pub fn newest_epoch(&self) -> &SigningKey {
        self.later_epochs.last().unwrap_or(&self.owner)
    }

    /// What [`crate::Sealer`] and [`crate::Opener`] take their block keys from.
    pub fn sealing(&self) -> Arc<SealingKeys> {
        Arc::clone(&self.sealing)
    }

    /// The signed bytes of a new repository's configuration.
    ///
    /// # Errors
    /// [`CryptoError::Format`] if a value is outside the limits of [`RepositoryConfig`].
    pub fn new_config(
        &self,
        suite: Suite,
        leaf_bits: u8,
        inline_limit_bytes: u16,
    ) -> Result<Vec<u8>, CryptoError> {
        let config = RepositoryConfig {
            repository: self.repository,
            chunker: ChunkerName::ToeplitzAes,
            suite,
            leaf_bits,
            inline_limit_bytes,
            owner: self.owner.public(),
        };
        let signature = self.owner.sign(SignedContext::Config, &config.signed_bytes());
        let bytes = config.encode(&signature);
        self.check_config(&bytes)?;
        Ok(bytes)
    }

    /// Reads a configuration and checks that it is this repository's own.
    ///
    /// Untrusted: a keeper may hand out any bytes.
    ///
    /// # Errors
    /// [`CryptoError::Format`] if the bytes or the signature are refused,
    /// [`CryptoError::SwappedConfig`] if owner or repository are not the derived ones.
    pub fn check_config(&self, bytes: &[u8]) -> Result<RepositoryConfig, CryptoError> {
        let config = RepositoryConfig::decode_signed(bytes)?;
        if config.owner != self.owner.public() || config.repository != self.repository {
            return Err(CryptoError::SwappedConfig);
        }
        Ok(config)
    }
}

/// The keys of object ids, one for each kind, so that a chunk's id is never a node's.
///
/// Secret: with them, anybody can tell whether a known content is stored. May be cloned into
/// threads; leaves memory when dropped.
#[derive(Clone, ZeroizeOnDrop)]
pub struct IdKeys {
    chunk: [u8; 32],
    node: [u8; 32],
}

impl IdKeys {
    /// The id of a chunk with these plain bytes.
    pub fn chunk_id(&self, plain: &[u8]) -> ObjectId {
        ObjectId::from_bytes(*blake3::keyed_hash(&self.chunk, plain).as_bytes())
    }

    /// The id of a node: over the number of its references (u32), the references, and its body.
    ///
    /// `refs` are ascending and distinct, as in the table.
    pub fn node_id(&self, refs: &[ObjectId], body: &[u8]) -> ObjectId {
        let mut hasher = blake3::Hasher::new_keyed(&self.node);
        let count = u32::try_from(refs.len()).unwrap_or(u32::MAX);
        hasher.update(&count.to_le_bytes());
        refs.iter().for_each(|id| {
            hasher.update(id.as_bytes());
        });
        hasher.update(body);
        ObjectId::from_bytes(*hasher.finalize().as_bytes())
    }
}

fn epoch_signing_key(secret: &[u8; 32]) -> SigningKey {
    SigningKey::from_seed(&derive(secret, "holdall v1 epoch signing key"))
}

fn first16(hash: &[u8; 32]) -> [u8; 16] {
    let mut out = [0; 16];
    out.copy_from_slice(hash.split_at(16).0);
    out
}

impl KeyRing {
    /// The id of its repository. It derives all keys.
    pub fn repository(&self) -> RepositoryId {
        RepositoryKeys::derive(self).repository()
    }

    /// The fingerprint of [`RepositoryKeys::fingerprint`]. It derives all keys.
    pub fn fingerprint(&self) -> String {
        RepositoryKeys::derive(self).fingerprint()
    }
}

/// The same text of a repository whose owner's key and id are known.
pub fn fingerprint(owner: &PublicKey, repository: &RepositoryId) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("holdall v1 repository fingerprint");
    hasher.update(owner.as_bytes()).update(repository.as_bytes());
    letters::grouped(hasher.finalize().as_bytes(), FINGERPRINT_GROUPS, '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemEntropy;

    fn keys(byte: u8) -> RepositoryKeys {
        RepositoryKeys::derive(&KeyRing::from_master([byte; 32]))
    }

    #[test]
    fn another_secret_gives_other_keys_throughout() {
        let (one, two) = (keys(1), keys(2));
        assert_ne!(one.repository(), two.repository());
        assert_ne!(one.fingerprint(), two.fingerprint());
        assert_ne!(one.owner().public(), two.owner().public());
        assert_ne!(one.ids().chunk_id(b"x"), two.ids().chunk_id(b"x"));
        assert_ne!(one.ids().node_id(&[], b"x"), two.ids().node_id(&[], b"x"));
        assert_ne!(one.boundary_key(), two.boundary_key());
        assert_ne!(one.chunker_key(), two.chunker_key());
        assert_ne!(one.leaf_key(), two.leaf_key());
        assert_ne!(one.series(b"x"), two.series(b"x"));
        assert_ne!(one.tag_token("x"), two.tag_token("x"));
        assert_ne!(one.hardlink_group(b"/", 1), two.hardlink_group(b"/", 1));
    }

    #[test]
    fn a_new_epoch_leaves_all_names_and_has_another_signer() {
        let ring = KeyRing::from_master([1; 32]);
        let next = RepositoryKeys::derive(&ring.with_new_epoch(&mut SystemEntropy).unwrap());
        let first = keys(1);
        assert_eq!(next.fingerprint(), first.fingerprint());
        assert_eq!(next.owner().public(), first.owner().public());
        assert_eq!(next.ids().chunk_id(b"x"), first.ids().chunk_id(b"x"));
        assert_eq!(next.series(b"x"), first.series(b"x"));
        assert_eq!(first.newest_epoch().public(), first.owner().public());
        assert_ne!(next.newest_epoch().public(), first.owner().public());
        assert_eq!(next.later_epochs().len(), 1);
    }

    #[test]
    fn a_node_is_named_by_its_references_and_its_body_apart() {
        let ids = keys(1);
        let ids = ids.ids();
        let id = ObjectId::from_bytes([7; 32]);
        assert_ne!(ids.node_id(&[id], b""), ids.node_id(&[], id.as_bytes()));
        assert_ne!(ids.node_id(&[], b"same"), ids.chunk_id(b"same"));
    }

    #[test]
    fn a_configuration_of_another_secret_is_refused() {
        let bytes = keys(1).new_config(Suite::Aes256Gcm, 5, 512).unwrap();
        let config = keys(1).check_config(&bytes).unwrap();
        assert_eq!((config.leaf_bits, config.inline_limit_bytes), (5, 512));
        assert_eq!(keys(2).check_config(&bytes), Err(CryptoError::SwappedConfig));
    }

    #[test]
    fn a_configuration_outside_the_limits_is_not_written() {
        assert!(keys(1).new_config(Suite::Aes256Gcm, 9, 512).is_err());
        assert!(keys(1).new_config(Suite::Aes256Gcm, 5, 5000).is_err());
    }
}
