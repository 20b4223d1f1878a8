//! Key epochs behind the first: each one's public key, signed by the key of the epoch before.
//!
//! ```text
//! | public key 32 | signature 64 |          signed: | repository 16 | epoch u32 | public key 32 |
//! ```
//!
//! The first epoch's key is the owner's. Whoever has the keys of one epoch can begin the next, and
//! nobody can take one back: a keeper lets nobody replace a longer chain by a shorter or another one,
//! and whoever knows an epoch's key misses it in a chain that was set back.

use crate::wire::Reader;
use crate::{FormatError, PublicKey, RepositoryId, Signature, SignedContext};

/// An epoch's public key, as the one before signed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyEpoch {
    /// The epoch's public key.
    pub key: PublicKey,
    /// Over [`KeyEpoch::signed_bytes`] in [`SignedContext::Epoch`], by the key of the epoch before.
    pub signature: Signature,
}

impl KeyEpoch {
    /// Bytes of one.
    pub(crate) const BYTES: usize = 96;

    /// The bytes to be signed for an epoch, counted from 1, that has this key.
    pub fn signed_bytes(repository: RepositoryId, epoch: u32, key: &PublicKey) -> Vec<u8> {
        [&repository.as_bytes()[..], &epoch.to_le_bytes(), key.as_bytes()].concat()
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.key.as_bytes());
        out.extend_from_slice(self.signature.as_bytes());
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, FormatError> {
        let key = PublicKey::from_bytes(reader.array("epoch key")?);
        let signature = Signature::from_bytes(reader.array("epoch signature")?);
        Ok(Self { key, signature })
    }
}

/// The key of the last of these epochs, each of which has to be signed by the one before; the owner's
/// for none.
///
/// # Errors
/// [`FormatError::BadSignature`].
pub(crate) fn newest_key(
    repository: RepositoryId,
    owner: PublicKey,
    later: &[KeyEpoch],
) -> Result<PublicKey, FormatError> {
    let mut newest = owner;
    for (epoch, next) in (2..).zip(later) {
        let signed = KeyEpoch::signed_bytes(repository, epoch, &next.key);
        newest.verify(SignedContext::Epoch, &signed, &next.signature)?;
        newest = next.key;
    }
    Ok(newest)
}
