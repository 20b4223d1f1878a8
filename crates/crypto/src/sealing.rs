//! Block keys: each block has a key of its own, derived from everything that its header says.
//!
//! ```text
//! epoch key               = BLAKE3 keyed(sealing key of the epoch's secret, epoch u32le)
//! key 32 | commitment 32  = BLAKE3 keyed XOF(epoch key, first 104 bytes of the header)
//! salt                    = BLAKE3 keyed(hedge key, "salt" | random 32 | counter u64le | what decides
//!                           the payload: kind, level and version of zstd, ids or a record's bytes)
//! ```
//!
//! The salt is in those 104 bytes, so a key seals one block only and the nonce can be zero. BLAKE3
//! binds the key to its input, so nobody can make one payload that opens under two keys; AES-GCM
//! and ChaCha20-Poly1305 alone do not promise that (Albertini et al., "How to Abuse and Fix
//! Authenticated Encryption Without Key Commitment", USENIX Security 2022). Should the random
//! source repeat itself, counter and content still keep salts apart; where both are equal, the
//! block is the same block.

use aws_lc_rs::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, Tag, UnboundKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use holdall_format::{BLOCK_HEADER_BYTES, BlockHeader, RepositoryId, Suite};
use zeroize::Zeroizing;

use crate::key_ring::derive;
use crate::{CryptoError, KeyRing};

/// What block keys are derived from.
///
/// Secret: keys leave memory when dropped; neither printed nor cloned.
pub struct SealingKeys {
    repository: RepositoryId,
    first: EpochKey,
    later: Vec<EpochKey>,
    hedge: Zeroizing<[u8; 32]>,
}

impl SealingKeys {
    pub(crate) fn new(repository: RepositoryId, ring: &KeyRing) -> Self {
        let (first, later) = ring.secrets();
        let later = (2..).zip(later).map(|(epoch, secret)| EpochKey::new(epoch, secret)).collect();
        let first = EpochKey::new(1, first);
        let hedge = ring.derive("holdall v1 salt hedge key");
        Self { repository, first, later, hedge }
    }

    /// The repository that sealed blocks name.
    pub(crate) fn repository(&self) -> RepositoryId {
        self.repository
    }

    /// The key from which all block keys of an epoch are derived; none for one that the key ring
    /// does not have.
    pub(crate) fn epoch(&self, epoch: u32) -> Option<&EpochKey> {
        std::iter::once(&self.first).chain(&self.later).find(|key| key.epoch == epoch)
    }

    /// The key of the newest epoch, in which new blocks are sealed.
    pub(crate) fn newest(&self) -> &EpochKey {
        self.later.last().unwrap_or(&self.first)
    }

    /// A hash keyed for salts and shuffles, begun with what makes this block's draw its own.
    pub(crate) fn hedged(&self, purpose: &'static [u8; 4], draw: &Draw) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_keyed(&self.hedge);
        hasher.update(purpose).update(&draw.random).update(&draw.counter.to_le_bytes());
        hasher
    }
}

/// What a sealer draws for one block.
pub(crate) struct Draw {
    /// From the random source, of whatever quality.
    pub(crate) random: [u8; 32],
    /// Counts the sealer's blocks.
    pub(crate) counter: u64,
}

/// An epoch's key.
pub(crate) struct EpochKey {
    epoch: u32,
    key: Zeroizing<[u8; 32]>,
}

impl EpochKey {
    /// The key of an epoch that has that secret.
    fn new(epoch: u32, secret: &[u8; 32]) -> Self {
        let sealing = derive(secret, "holdall v1 sealing key");
        let key = blake3::keyed_hash(&sealing, &epoch.to_le_bytes());
        Self { epoch, key: Zeroizing::new(*key.as_bytes()) }
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The block's key and the commitment to it. Any commitment already in the header is not used.
    pub(crate) fn block(&self, header: &BlockHeader) -> Result<BlockKey, CryptoError> {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&header.derivation_input());
        let mut derived = Zeroizing::new([0; 64]);
        hasher.finalize_xof().fill(&mut derived[..]);
        let (key, commitment) = derived.split_at(32);
        let algorithm = match header.suite {
            Suite::Aes256Gcm => &AES_256_GCM,
            Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        };
        let key = UnboundKey::new(algorithm, key).map_err(|_| CryptoError::NotAuthentic)?;
        let mut block = BlockKey { key: LessSafeKey::new(key), commitment: [0; 32] };
        block.commitment.copy_from_slice(commitment);
        Ok(block)
    }
}

/// The key of one block.
pub(crate) struct BlockKey {
    key: LessSafeKey,
    pub(crate) commitment: [u8; 32],
}

impl BlockKey {
    /// Encrypts in place and returns the tag.
    pub(crate) fn seal(
        &self,
        header: &[u8; BLOCK_HEADER_BYTES],
        payload: &mut [u8],
    ) -> Result<Tag, CryptoError> {
        self.key
            .seal_in_place_separate_tag(zero_nonce(), Aad::from(header), payload)
            .map_err(|_| CryptoError::NotAuthentic)
    }

    /// Checks commitment and tag and decrypts `sealed` into `plain`, which has the same length.
    /// What is in `plain` after an error is not to be used.
    pub(crate) fn open(
        &self,
        header: &BlockHeader,
        sealed: &[u8],
        tag: &[u8],
        plain: &mut [u8],
    ) -> Result<(), CryptoError> {
        verify_slices_are_equal(&self.commitment, &header.commitment)
            .and_then(|()| {
                let aad = Aad::from(header.encode());
                self.key.open_separate_gather(zero_nonce(), aad, sealed, tag, plain)
            })
            .map_err(|_| CryptoError::NotAuthentic)
    }
}

/// The nonce of every block: its key is used once.
fn zero_nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

/// The suite that is fastest here: AES where the processor has instructions for it, which every
/// other processor then reads more slowly, but as well.
pub fn suite_for_this_cpu() -> Suite {
    if cpu_has_aes() { Suite::Aes256Gcm } else { Suite::ChaCha20Poly1305 }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn cpu_has_aes() -> bool {
    std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq")
}

#[cfg(target_arch = "aarch64")]
fn cpu_has_aes() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
fn cpu_has_aes() -> bool {
    false
}
