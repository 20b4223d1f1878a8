//! Recovery identities: the public key that a recovery kit signs in with, and the proof that who named it has it.
//!
//! ```text
//! | public key 32 | proof length u8, 0 or 64 | proof |      signed: | repository 16 | owner key 32 | public key 32 |
//! ```
//!
//! Without a proof, anybody could name a key of somebody else, who could not use it elsewhere then. The proof is
//! about nothing that changes with the set, so that it is copied from set to set without the kit. Sets of version 3
//! have none.

use crate::wire::Reader;
use crate::{FormatError, PublicKey, RepositoryId, SIGNATURE_BYTES, Signature, SignedContext};

/// What a recovery kit signs in with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryIdentity {
    /// The public key.
    pub key: PublicKey,
    /// Over [`RecoveryIdentity::signed_bytes`] in [`SignedContext::RecoveryIdentity`], by that key. A wrapping that
    /// was made before there were proofs has none.
    pub proof: Option<Signature>,
}

impl RecoveryIdentity {
    /// The bytes to be signed to prove that this key is the repository's.
    pub fn signed_bytes(repository: RepositoryId, owner: &PublicKey, key: &PublicKey) -> Vec<u8> {
        [&repository.as_bytes()[..], owner.as_bytes(), key.as_bytes()].concat()
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.key.as_bytes());
        match &self.proof {
            Some(proof) => {
                out.push(SIGNATURE_BYTES as u8);
                out.extend_from_slice(proof.as_bytes());
            }
            None => out.push(0),
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>, has_proofs: bool) -> Result<Self, FormatError> {
        let key = PublicKey::from_bytes(reader.array("recovery identity")?);
        let proof_bytes = if has_proofs { reader.u8("proof length")? } else { 0 };
        let proof = match usize::from(proof_bytes) {
            0 => None,
            SIGNATURE_BYTES => Some(Signature::from_bytes(reader.array("proof")?)),
            _ => return Err(reader.invalid("proof length", "neither 0 nor 64")),
        };
        Ok(Self { key, proof })
    }

    /// Checks the proof, if there is one.
    ///
    /// # Errors
    /// [`FormatError::BadSignature`].
    pub(crate) fn verify(
        &self,
        repository: RepositoryId,
        owner: &PublicKey,
    ) -> Result<(), FormatError> {
        let Some(proof) = &self.proof else { return Ok(()) };
        let signed = Self::signed_bytes(repository, owner, &self.key);
        self.key.verify(SignedContext::RecoveryIdentity, &signed, proof)
    }
}
