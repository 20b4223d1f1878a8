//! A repository's configuration: what must be known before anything in it can be read.
//!
//! ```text
//! | magic "HCfg" | version u8 | chunker u8 | suite u8 | leaf bits u8 | repository 16
//! | inline limit u16 | zero 6 | owner key 32 | signature 64 |
//! ```
//!
//! It is signed by the owner key, which is derived from the master secret. Whoever holds the secret
//! derives that key and the repository's id again and compares, so a keeper cannot swap the file.

use crate::signature::split_signed;
use crate::wire::Reader;
use crate::{FormatError, PublicKey, RepositoryId, Signature, SignedContext, Suite};

/// The file that marks the directory of a repository.
pub const REPOSITORY_MARKER: &str = "holdall-repository";
/// The file of its configuration.
pub const CONFIG_FILE: &str = "config";

const WHAT: &str = "repository configuration";
const MAGIC: &[u8; 4] = b"HCfg";
const VERSION: u8 = 3;

/// How content is cut into chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChunkerName {
    /// A pseudorandom function of a rolling hash, both derived from the repository's key: 320 KiB at
    /// least, 512 KiB on average, 2 MiB at most.
    ToeplitzAes,
}

impl ChunkerName {
    fn code(self) -> u8 {
        match self {
            Self::ToeplitzAes => 2,
        }
    }
}

/// What every client of a repository must agree on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryConfig {
    /// The repository's id, derived from its master secret.
    pub repository: RepositoryId,
    /// How content is cut.
    pub chunker: ChunkerName,
    /// The cipher of new blocks.
    pub suite: Suite,
    /// A tree's leaf has 2^bits entries on average; so has an interior node.
    pub leaf_bits: u8,
    /// Contents up to this many bytes live in their entry.
    pub inline_limit_bytes: u16,
    /// The owner's public key, derived from the master secret.
    pub owner: PublicKey,
}

impl RepositoryConfig {
    /// The bytes to be signed in [`SignedContext::Config`].
    pub fn signed_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[VERSION, self.chunker.code(), self.suite.code(), self.leaf_bits]);
        out.extend_from_slice(self.repository.as_bytes());
        out.extend_from_slice(&self.inline_limit_bytes.to_le_bytes());
        out.extend_from_slice(&[0; 6]);
        out.extend_from_slice(self.owner.as_bytes());
        out
    }

    /// The stored bytes.
    pub fn encode(&self, signature: &Signature) -> Vec<u8> {
        [&self.signed_bytes()[..], signature.as_bytes()].concat()
    }

    /// Reads a configuration and checks that the owner key in it signed it.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn decode_signed(bytes: &[u8]) -> Result<Self, FormatError> {
        let (signed, signature) = split_signed(WHAT, bytes)?;
        let mut reader = Reader::new(WHAT, signed);
        reader.magic(MAGIC, VERSION)?;
        if reader.u8("chunker")? != ChunkerName::ToeplitzAes.code() {
            return Err(reader.invalid("chunker", "not one that this version cuts with"));
        }
        let suite = Suite::from_code(reader.u8("suite")?)
            .ok_or_else(|| reader.invalid("suite", "unknown to this version"))?;
        let leaf_bits = reader.u8("leaf bits")?;
        if !(1..=8).contains(&leaf_bits) {
            return Err(reader.invalid("leaf bits", "not from 1 to 8"));
        }
        let repository = RepositoryId::from_bytes(reader.array("repository")?);
        let inline_limit_bytes = reader.u16("inline limit")?;
        if inline_limit_bytes > 4096 {
            return Err(reader.invalid("inline limit", "over 4096"));
        }
        if reader.array("zero")? != [0; 6] {
            return Err(reader.invalid("reserved fields", "not zero"));
        }
        let owner = PublicKey::from_bytes(reader.array("owner")?);
        reader.finish()?;
        owner.verify(SignedContext::Config, signed, &signature)?;
        let chunker = ChunkerName::ToeplitzAes;
        Ok(Self { repository, chunker, suite, leaf_bits, inline_limit_bytes, owner })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::tests::TestKey;
    use proptest::prelude::*;

    fn sample() -> (RepositoryConfig, Vec<u8>) {
        let key = TestKey::new();
        let config = RepositoryConfig {
            repository: RepositoryId::from_bytes([1; 16]),
            chunker: ChunkerName::ToeplitzAes,
            suite: Suite::ChaCha20Poly1305,
            leaf_bits: 5,
            inline_limit_bytes: 512,
            owner: key.public(),
        };
        let bytes = config.encode(&key.sign(SignedContext::Config, &config.signed_bytes()));
        (config, bytes)
    }

    #[test]
    fn a_configuration_reads_back() {
        let (config, bytes) = sample();
        assert_eq!(RepositoryConfig::decode_signed(&bytes), Ok(config));
    }

    proptest! {
        #[test]
        fn any_changed_bit_of_a_configuration_is_refused(at: usize, flip in 1u8..) {
            let mut bytes = sample().1;
            let at = at % bytes.len();
            bytes[at] ^= flip;
            prop_assert!(RepositoryConfig::decode_signed(&bytes).is_err());
        }
    }
}
