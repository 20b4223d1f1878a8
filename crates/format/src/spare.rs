//! The spare: a second copy of what nothing in a repository can be read without, in one small file.
//!
//! ```text
//! | magic "HSpr" | version u8 | zero 3 | configuration length u32 | configuration
//! | set length u32 | wrapping set | checksum 32 |
//! ```
//!
//! Configuration and set are as they are stored elsewhere, with their own signatures; the checksum is the BLAKE3 of
//! all before it. A client keeps the same of every repository that it opened.

use crate::limits::WRAPPING_SET_MAX_BYTES;
use crate::wire::Reader;
use crate::{FormatError, RepositoryConfig, WrappingSet};

const WHAT: &str = "spare";
const MAGIC: &[u8; 4] = b"HSpr";
const VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = 32;
/// No configuration of any version is longer.
const CONFIG_MAX_BYTES: usize = 4 << 10;

/// Longest spare.
pub const SPARE_MAX_BYTES: usize = WRAPPING_SET_MAX_BYTES + CONFIG_MAX_BYTES + 64;

/// A configuration and a set of wrappings that belong together, both signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spare {
    /// The configuration.
    pub config: RepositoryConfig,
    /// Its bytes as they were signed.
    pub config_bytes: Vec<u8>,
    /// The set.
    pub wrappings: WrappingSet,
    /// Its bytes as they were signed.
    pub wrappings_bytes: Vec<u8>,
}

impl Spare {
    /// Puts the two together.
    ///
    /// # Errors
    /// [`FormatError`] if either is not what it should be, or they are of two repositories.
    pub fn of(config_bytes: &[u8], wrappings_bytes: &[u8]) -> Result<Self, FormatError> {
        let config = RepositoryConfig::decode_signed(config_bytes)?;
        let wrappings = WrappingSet::decode_signed(wrappings_bytes)?;
        if wrappings.repository != config.repository || wrappings.owner != config.owner {
            let reason = "not of the configuration's repository";
            return Err(FormatError::Invalid { what: WHAT, field: "wrapping set", reason });
        }
        let (config_bytes, wrappings_bytes) = (config_bytes.to_vec(), wrappings_bytes.to_vec());
        Ok(Self { config, config_bytes, wrappings, wrappings_bytes })
    }

    /// The stored bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(
            self.config_bytes.len() + self.wrappings_bytes.len() + 16 + CHECKSUM_BYTES,
        );
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[VERSION, 0, 0, 0]);
        for part in [&self.config_bytes, &self.wrappings_bytes] {
            out.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes());
            out.extend_from_slice(part);
        }
        let checksum = blake3::hash(&out);
        out.extend_from_slice(checksum.as_bytes());
        out
    }

    /// Reads what [`Spare::encode`] wrote. Untrusted: any bytes.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new(WHAT, bytes);
        reader.magic(MAGIC, VERSION)?;
        if reader.array("zero")? != [0; 3] {
            return Err(reader.invalid("reserved fields", "not zero"));
        }
        let mut part = |field, limit| {
            let declared = reader.u32(field)?;
            if declared as usize > limit {
                let (declared, limit) = (declared.into(), limit as u64);
                return Err(FormatError::OverLimit { what: WHAT, field, declared, limit });
            }
            reader.bytes(field, declared as usize)
        };
        let config = part("configuration", CONFIG_MAX_BYTES)?;
        let wrappings = part("wrapping set", WRAPPING_SET_MAX_BYTES)?;
        let checksum: [u8; CHECKSUM_BYTES] = reader.array("checksum")?;
        reader.finish()?;
        let front = bytes.len().checked_sub(CHECKSUM_BYTES).and_then(|end| bytes.get(..end));
        if front.is_none_or(|front| *blake3::hash(front).as_bytes() != checksum) {
            return Err(FormatError::HashMismatch { what: WHAT, field: "checksum" });
        }
        Self::of(config, wrappings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::tests::TestKey;
    use crate::{ChunkerName, RepositoryId, SignedContext, Suite, Wrapping, WrappingKind};
    use proptest::prelude::*;

    /// A configuration and a set of the repositories of these bytes.
    fn parts(config: u8, set: u8) -> (Vec<u8>, Vec<u8>) {
        let (key, repository) = (TestKey::new(), |byte| RepositoryId::from_bytes([byte; 16]));
        let config = RepositoryConfig {
            repository: repository(config),
            chunker: ChunkerName::ToeplitzAes,
            suite: Suite::Aes256Gcm,
            leaf_bits: 3,
            inline_limit_bytes: 512,
            owner: key.public(),
        };
        let wrapping = Wrapping {
            kind: WrappingKind::Recipient,
            label: "laptop".into(),
            recovery_identity: None,
            recipient: "age1".into(),
            locked: None,
            sealed: vec![8; 30],
        };
        let set = WrappingSet {
            repository: repository(set),
            generation: 2,
            owner: key.public(),
            later_epochs: vec![],
            wrappings: vec![wrapping],
        };
        let config = config.encode(&key.sign(SignedContext::Config, &config.signed_bytes()));
        (config, set.encode(&key.sign(SignedContext::Wrappings, &set.signed_bytes())))
    }

    fn sample() -> Spare {
        let (config, set) = parts(1, 1);
        Spare::of(&config, &set).unwrap()
    }

    #[test]
    fn a_spare_reads_back_and_parts_of_two_repositories_are_none() {
        assert_eq!(Spare::decode(&sample().encode()), Ok(sample()));
        let (config, set) = parts(1, 2);
        assert!(Spare::of(&config, &set).is_err());
    }

    proptest! {
        #[test]
        fn any_changed_byte_and_any_end_of_a_spare_is_refused(at: prop::sample::Index, flip in 1u8..) {
            let good = sample().encode();
            let at = at.index(good.len());
            prop_assert!(Spare::decode(&good[..at]).is_err());
            let mut changed = good;
            changed[at] ^= flip;
            prop_assert!(Spare::decode(&changed).is_err());
        }

        #[test]
        fn what_reads_is_written_again(bytes: Vec<u8>) {
            if let Ok(spare) = Spare::decode(&bytes) {
                prop_assert_eq!(spare.encode(), bytes);
            }
        }
    }
}
