//! Checking Ed25519 signatures. Every signature is over a context and the bytes as they are stored:
//! a signature of one kind of structure is never one of another, and nothing is serialised anew to
//! be checked.

use std::fmt;

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};

use crate::FormatError;
use crate::id::write_hex;

/// Length of a signature.
pub const SIGNATURE_BYTES: usize = 64;

/// What a signature is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignedContext {
    /// A machine's record.
    Record,
    /// The answer to a record.
    Receipt,
    /// What stays of a forgotten record.
    Tombstone,
    /// The wrappings of a key ring.
    Wrappings,
    /// The key of the next epoch.
    Epoch,
    /// A repository's configuration.
    Config,
    /// That a recovery identity is a repository's.
    RecoveryIdentity,
    /// What stays of an erased repository.
    Erased,
}

/// Signs receipts: a server's identity, or the machine itself for an embedded repository.
pub trait ReceiptSigner: Send + Sync {
    /// Whose signatures they are.
    fn public(&self) -> PublicKey;

    /// Signs `message` in that context.
    fn sign(&self, context: SignedContext, message: &[u8]) -> Signature;
}

impl SignedContext {
    /// The bytes to sign: the context, a zero byte, and `message`.
    pub fn message(self, message: &[u8]) -> Vec<u8> {
        let context = match self {
            Self::Record => "holdall v1 record",
            Self::Receipt => "holdall v1 receipt",
            Self::Tombstone => "holdall v1 tombstone",
            Self::Wrappings => "holdall v1 wrappings",
            Self::Epoch => "holdall v1 epoch",
            Self::Config => "holdall v1 config",
            Self::RecoveryIdentity => "holdall v1 recovery identity",
            Self::Erased => "holdall v1 erased",
        };
        [context.as_bytes(), &[0], message].concat()
    }

    /// The structure's name for errors.
    fn what(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Receipt => "receipt",
            Self::Tombstone => "tombstone",
            Self::Wrappings => "wrapping set",
            Self::Epoch => "key epoch",
            Self::Config => "repository configuration",
            Self::RecoveryIdentity => "recovery identity",
            Self::Erased => "erased repository",
        }
    }
}

/// Whether signatures are checked while a structure is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signatures {
    /// They are.
    Check,
    /// They are not: whoever reads has checked them before, of these very bytes.
    CheckedBefore,
}

/// An Ed25519 public key: of a machine, a server, or a repository's owner.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Length in bytes.
    pub const LEN: usize = 32;

    /// Wraps the bytes; whether they are a point of the curve shows when a signature is checked.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Checks that this key signed `message` in that context, unless that was done before.
    pub(crate) fn verify_unless_checked(
        &self,
        context: SignedContext,
        message: &[u8],
        signature: &Signature,
        signatures: Signatures,
    ) -> Result<(), FormatError> {
        match signatures {
            Signatures::Check => self.verify(context, message, signature),
            Signatures::CheckedBefore => Ok(()),
        }
    }

    /// Checks that this key signed `message` in that context.
    ///
    /// # Errors
    /// [`FormatError::BadSignature`].
    pub fn verify(
        &self,
        context: SignedContext,
        message: &[u8],
        signature: &Signature,
    ) -> Result<(), FormatError> {
        UnparsedPublicKey::new(&ED25519, &self.0)
            .verify(&context.message(message), &signature.0)
            .map_err(|_| FormatError::BadSignature { what: context.what() })
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, out)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PublicKey({self})")
    }
}

/// An Ed25519 signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; SIGNATURE_BYTES]);

impl Signature {
    /// Wraps the bytes.
    pub const fn from_bytes(bytes: [u8; SIGNATURE_BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &[u8; SIGNATURE_BYTES] {
        &self.0
    }
}

/// Splits `bytes` into what was signed and the signature behind it.
pub(crate) fn split_signed<'a>(
    what: &'static str,
    bytes: &'a [u8],
) -> Result<(&'a [u8], Signature), FormatError> {
    let (signed, signature) =
        bytes.split_last_chunk::<SIGNATURE_BYTES>().ok_or(FormatError::CutShort {
            what,
            field: "signature",
            needed_bytes: SIGNATURE_BYTES as u64,
            present_bytes: bytes.len() as u64,
        })?;
    Ok((signed, Signature(*signature)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};

    /// A fixed key for tests of signed structures.
    pub(crate) struct TestKey(Ed25519KeyPair);

    impl TestKey {
        pub(crate) fn new() -> Self {
            Self::of(42)
        }

        pub(crate) fn of(seed: u8) -> Self {
            Self(Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap())
        }

        pub(crate) fn public(&self) -> PublicKey {
            PublicKey(self.0.public_key().as_ref().try_into().unwrap())
        }

        pub(crate) fn sign(&self, context: SignedContext, message: &[u8]) -> Signature {
            Signature(self.0.sign(&context.message(message)).as_ref().try_into().unwrap())
        }
    }

    #[test]
    fn a_signature_holds_in_its_own_context_only() {
        let key = TestKey::new();
        let signature = key.sign(SignedContext::Record, b"bytes");
        assert_eq!(key.public().verify(SignedContext::Record, b"bytes", &signature), Ok(()));
        for (context, message) in
            [(SignedContext::Receipt, &b"bytes"[..]), (SignedContext::Record, b"byte")]
        {
            assert!(key.public().verify(context, message, &signature).is_err());
        }
    }
}
