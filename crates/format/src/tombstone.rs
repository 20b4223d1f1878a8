//! Tombstones: what stays of a forgotten record, so that retention and omission can be told apart.
//!
//! ```text
//! | magic "HTmb" | version u8 | reason u8 | zero u16 | record hash 32 | receipt's log position u64
//! | forgotten i64 (ns since 1970) | signer 32 | head length u32 | head (signed) | signature 64 |
//! ```

use crate::signature::split_signed;
use crate::wire::{Reader, put_length};
use crate::{FormatError, PublicKey, RecordHash, RecordHead, Signature, Signatures, SignedContext};

const WHAT: &str = "tombstone";
const MAGIC: &[u8; 4] = b"HTmb";
const VERSION: u8 = 1;
const HEAD_MAX_BYTES: usize = 64 << 10;

/// Why a record was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TombstoneReason {
    /// The retention policy let it go.
    Retention,
    /// An administrator, or the owner of an embedded repository, asked for it.
    Request,
}

impl TombstoneReason {
    fn code(self) -> u8 {
        match self {
            Self::Retention => 1,
            Self::Request => 2,
        }
    }
}

/// The clear half of a forgotten record and who forgot it when and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tombstone {
    /// Why.
    pub reason: TombstoneReason,
    /// The record's hash.
    pub record: RecordHash,
    /// The log position of the record's receipt.
    pub log_position: u64,
    /// When it was forgotten, in nanoseconds since 1970 UTC.
    pub forgotten_ns: i64,
    /// Who signs the tombstone.
    pub signer: PublicKey,
    /// The record's signed head.
    pub head_bytes: Vec<u8>,
}

impl Tombstone {
    /// The bytes to be signed in [`SignedContext::Tombstone`].
    pub fn signed_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(128 + self.head_bytes.len());
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[VERSION, self.reason.code(), 0, 0]);
        out.extend_from_slice(self.record.as_bytes());
        out.extend_from_slice(&self.log_position.to_le_bytes());
        out.extend_from_slice(&self.forgotten_ns.to_le_bytes());
        out.extend_from_slice(self.signer.as_bytes());
        put_length(&mut out, self.head_bytes.len());
        out.extend_from_slice(&self.head_bytes);
        out
    }

    /// The stored bytes.
    pub fn encode(&self, signature: &Signature) -> Vec<u8> {
        [&self.signed_bytes()[..], signature.as_bytes()].concat()
    }

    /// Whether `bytes` begin as a tombstone does, and as no stored record can: where records are
    /// listed, a tombstone lies in the place of the record that it stands for.
    pub fn is_begun_by(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// Reads a tombstone; checks its signature and that of the head inside.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn decode_signed(bytes: &[u8]) -> Result<(Self, RecordHead), FormatError> {
        Self::decode_with(bytes, Signatures::Check)
    }

    /// The same where both signatures may have been checked before.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn decode_with(
        bytes: &[u8],
        signatures: Signatures,
    ) -> Result<(Self, RecordHead), FormatError> {
        let (signed, signature) = split_signed(WHAT, bytes)?;
        let mut reader = Reader::new(WHAT, signed);
        reader.magic(MAGIC, VERSION)?;
        let reason = match reader.array("reason")? {
            [1, 0, 0] => TombstoneReason::Retention,
            [2, 0, 0] => TombstoneReason::Request,
            _ => return Err(reader.invalid("reason", "unknown")),
        };
        let record = RecordHash::from_bytes(reader.array("record")?);
        let log_position = reader.u64("log position")?;
        let forgotten_ns = i64::from_le_bytes(reader.array("forgotten")?);
        let signer = PublicKey::from_bytes(reader.array("signer")?);
        let head_len = reader.length("head length", HEAD_MAX_BYTES)?;
        let head_bytes = reader.bytes("head", head_len)?.to_vec();
        reader.finish()?;
        signer.verify_unless_checked(SignedContext::Tombstone, signed, &signature, signatures)?;
        let head = RecordHead::decode_signed(&head_bytes, signatures)?;
        Ok((Self { reason, record, log_position, forgotten_ns, signer, head_bytes }, head))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::tests::TestKey;
    use proptest::prelude::*;

    fn sample() -> (Tombstone, Vec<u8>) {
        let key = TestKey::new();
        let record = crate::record::tests::sample();
        let tombstone = Tombstone {
            reason: TombstoneReason::Retention,
            record: record.hash(),
            log_position: 3,
            forgotten_ns: 5,
            signer: key.public(),
            head_bytes: record.head_bytes,
        };
        let signature = key.sign(SignedContext::Tombstone, &tombstone.signed_bytes());
        let bytes = tombstone.encode(&signature);
        (tombstone, bytes)
    }

    #[test]
    fn a_tombstone_keeps_the_signed_head() {
        let (tombstone, bytes) = sample();
        let (read, head) = Tombstone::decode_signed(&bytes).unwrap();
        assert_eq!((read, head.sequence), (tombstone, 4));
    }

    #[test]
    fn both_signatures_are_checked_unless_they_were() {
        let key = TestKey::new();
        let (tombstone, bytes) = sample();
        let mut outer = bytes.clone();
        *outer.last_mut().unwrap() ^= 1;
        let mut inner = tombstone;
        *inner.head_bytes.last_mut().unwrap() ^= 1;
        let inner = inner.encode(&key.sign(SignedContext::Tombstone, &inner.signed_bytes()));
        for (bytes, holds) in [(bytes, true), (outer, false), (inner, false)] {
            let is_read = |signatures| Tombstone::decode_with(&bytes, signatures).is_ok();
            assert_eq!(is_read(Signatures::Check), holds);
            assert!(is_read(Signatures::CheckedBefore));
        }
    }

    proptest! {
        #[test]
        fn any_changed_bit_of_a_tombstone_is_refused(at: usize, flip in 1u8..) {
            let mut bytes = sample().1;
            let at = at % bytes.len();
            bytes[at] ^= flip;
            prop_assert!(Tombstone::decode_signed(&bytes).is_err());
        }
    }
}
