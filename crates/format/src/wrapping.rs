//! Wrappings: the master secret, encrypted to whatever may open it.
//!
//! ```text
//! | magic "HWrp" | version u8 | count u8 | zero u16 | repository 16 | generation u64 | owner key 32
//! | per wrapping: kind u8 | label length u8 | label (UTF-8) | recovery identity 32, of a recovery
//!   kit only | length u32 | age file | signature 64 |
//! ```
//!
//! The set is signed by the owner key, which is derived from the master secret: a keeper that swaps
//! it for another can not sign it, and whoever unwraps the secret checks. A higher generation
//! replaces a lower one. With a recovery kit stands the identity that it signs in with, so that a
//! keeper lets in exactly the kits of the newest set.

use crate::limits::{LABEL_MAX_BYTES, WRAPPING_MAX_BYTES, WRAPPINGS_MAX};
use crate::signature::split_signed;
use crate::wire::{Reader, put_length};
use crate::{FormatError, PublicKey, RepositoryId, Signature, SignedContext};

const WHAT: &str = "wrapping set";
const MAGIC: &[u8; 4] = b"HWrp";
const VERSION: u8 = 2;

/// What opens a wrapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WrappingKind {
    /// A passphrase.
    Passphrase,
    /// The secret in a recovery kit.
    Recovery,
    /// An age or SSH key of somebody's own.
    Recipient,
}

impl WrappingKind {
    fn code(self) -> u8 {
        match self {
            Self::Passphrase => 1,
            Self::Recovery => 2,
            Self::Recipient => 3,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        [Self::Passphrase, Self::Recovery, Self::Recipient]
            .into_iter()
            .find(|kind| kind.code() == code)
    }
}

/// One encrypted copy of the master secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapping {
    /// What opens it.
    pub kind: WrappingKind,
    /// A name for people, at most 255 bytes.
    pub label: String,
    /// The identity that a recovery kit signs in with. A wrapping for a kit has it and nothing else
    /// has: any other does not read back.
    pub recovery_identity: Option<PublicKey>,
    /// An age file.
    pub sealed: Vec<u8>,
}

/// All encrypted copies of a repository's master secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappingSet {
    /// The repository.
    pub repository: RepositoryId,
    /// Rises with every change.
    pub generation: u64,
    /// The owner's public key.
    pub owner: PublicKey,
    /// At most 64.
    pub wrappings: Vec<Wrapping>,
}

impl WrappingSet {
    /// The bytes to be signed in [`SignedContext::Wrappings`].
    pub fn signed_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024);
        out.extend_from_slice(MAGIC);
        let count = u8::try_from(self.wrappings.len()).unwrap_or(u8::MAX);
        out.extend_from_slice(&[VERSION, count, 0, 0]);
        out.extend_from_slice(self.repository.as_bytes());
        out.extend_from_slice(&self.generation.to_le_bytes());
        out.extend_from_slice(self.owner.as_bytes());
        for wrapping in &self.wrappings {
            let label_len = u8::try_from(wrapping.label.len()).unwrap_or(u8::MAX);
            out.extend_from_slice(&[wrapping.kind.code(), label_len]);
            out.extend_from_slice(wrapping.label.as_bytes());
            let identity = wrapping.recovery_identity.as_ref();
            identity.into_iter().for_each(|key| out.extend_from_slice(key.as_bytes()));
            put_length(&mut out, wrapping.sealed.len());
            out.extend_from_slice(&wrapping.sealed);
        }
        out
    }

    /// The identities of all recovery kits.
    pub fn recovery_identities(&self) -> Vec<PublicKey> {
        self.wrappings.iter().filter_map(|wrapping| wrapping.recovery_identity).collect()
    }

    /// The stored bytes.
    pub fn encode(&self, signature: &Signature) -> Vec<u8> {
        [&self.signed_bytes()[..], signature.as_bytes()].concat()
    }

    /// Reads a set and checks that the owner key in it signed it.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn decode_signed(bytes: &[u8]) -> Result<Self, FormatError> {
        let (signed, signature) = split_signed(WHAT, bytes)?;
        let mut reader = Reader::new(WHAT, signed);
        reader.magic(MAGIC, VERSION)?;
        let [count, 0, 0] = reader.array("count")? else {
            return Err(reader.invalid("reserved fields", "not zero"));
        };
        if usize::from(count) > WRAPPINGS_MAX {
            return Err(reader.invalid("count", "over its limit"));
        }
        let repository = RepositoryId::from_bytes(reader.array("repository")?);
        let generation = reader.u64("generation")?;
        let owner = PublicKey::from_bytes(reader.array("owner")?);
        let wrappings =
            (0..count).map(|_| decode_wrapping(&mut reader)).collect::<Result<_, _>>()?;
        reader.finish()?;
        owner.verify(SignedContext::Wrappings, signed, &signature)?;
        Ok(Self { repository, generation, owner, wrappings })
    }
}

fn decode_wrapping(reader: &mut Reader<'_>) -> Result<Wrapping, FormatError> {
    let kind = WrappingKind::from_code(reader.u8("kind")?)
        .ok_or_else(|| reader.invalid("kind", "unknown"))?;
    let label_len = usize::from(reader.u8("label length")?).min(LABEL_MAX_BYTES);
    let label = std::str::from_utf8(reader.bytes("label", label_len)?)
        .map_err(|_| reader.invalid("label", "not UTF-8"))?
        .to_owned();
    let recovery_identity = match kind {
        WrappingKind::Recovery => Some(PublicKey::from_bytes(reader.array("recovery identity")?)),
        WrappingKind::Passphrase | WrappingKind::Recipient => None,
    };
    let sealed_len = reader.length("wrapping length", WRAPPING_MAX_BYTES)?;
    let sealed = reader.bytes("wrapping", sealed_len)?.to_vec();
    Ok(Wrapping { kind, label, recovery_identity, sealed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::tests::TestKey;
    use proptest::prelude::*;

    fn sample() -> (WrappingSet, Vec<u8>) {
        let key = TestKey::new();
        let wrapping = |kind, label: &str| Wrapping {
            kind,
            label: label.into(),
            recovery_identity: (kind == WrappingKind::Recovery)
                .then(|| PublicKey::from_bytes([7; 32])),
            sealed: vec![8; 30],
        };
        let set = WrappingSet {
            repository: RepositoryId::from_bytes([1; 16]),
            generation: 2,
            owner: key.public(),
            wrappings: vec![
                wrapping(WrappingKind::Passphrase, "passphrase"),
                wrapping(WrappingKind::Recovery, ""),
            ],
        };
        let bytes = set.encode(&key.sign(SignedContext::Wrappings, &set.signed_bytes()));
        (set, bytes)
    }

    #[test]
    fn a_wrapping_set_reads_back() {
        let (set, bytes) = sample();
        assert_eq!(WrappingSet::decode_signed(&bytes), Ok(set));
    }

    proptest! {
        #[test]
        fn any_changed_bit_of_a_wrapping_set_is_refused(at: usize, flip in 1u8..) {
            let mut bytes = sample().1;
            let at = at % bytes.len();
            bytes[at] ^= flip;
            prop_assert!(WrappingSet::decode_signed(&bytes).is_err());
        }
    }
}
