//! Receipts: the repository's signed answer to a record, and both as they are stored.
//!
//! ```text
//! receipt: | magic "HRct" | version u8 | clock sure u8 | zero u16 | repository 16 | record hash 32
//!          | log position u64 | received i64 (ns since 1970) | signer 32 | signature 64 |
//! stored:  | record length u32 | record | receipt |
//! ```
//!
//! Receipts are ordered by log position. The time is for people, and for retention only where the
//! clock was known to be good.

use crate::limits::RECORD_MAX_BYTES;
use crate::signature::split_signed;
use crate::wire::{Reader, put_length};
use crate::{
    FormatError, PublicKey, Record, RecordHash, RepositoryId, Signature, Signatures, SignedContext,
};

const WHAT: &str = "receipt";
const MAGIC: &[u8; 4] = b"HRct";
const VERSION: u8 = 1;
/// Length of a receipt with its signature.
pub const RECEIPT_BYTES: usize = 168;

/// What a repository states of a record that it published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Whether the clock was known to be good when the record came.
    pub clock_sure: bool,
    /// The repository.
    pub repository: RepositoryId,
    /// The record that is answered.
    pub record: RecordHash,
    /// Where it stands among everything that the repository ever received.
    pub log_position: u64,
    /// When it came, in nanoseconds since 1970 UTC.
    pub received_ns: i64,
    /// Who signed: the server's identity, or the machine itself for an embedded repository.
    pub signer: PublicKey,
}

impl Receipt {
    /// The bytes to be signed in [`SignedContext::Receipt`].
    pub fn signed_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[VERSION, u8::from(self.clock_sure), 0, 0]);
        out.extend_from_slice(self.repository.as_bytes());
        out.extend_from_slice(self.record.as_bytes());
        out.extend_from_slice(&self.log_position.to_le_bytes());
        out.extend_from_slice(&self.received_ns.to_le_bytes());
        out.extend_from_slice(self.signer.as_bytes());
        out
    }

    /// Reads a receipt and checks that the signer it names signed it; whether that signer is the
    /// pinned one is for the caller to compare.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn decode_signed(bytes: &[u8]) -> Result<Self, FormatError> {
        Self::decode_with(bytes, Signatures::Check)
    }

    fn decode_with(bytes: &[u8], signatures: Signatures) -> Result<Self, FormatError> {
        let (signed, signature) = split_signed(WHAT, bytes)?;
        let mut reader = Reader::new(WHAT, signed);
        reader.magic(MAGIC, VERSION)?;
        let clock_sure = match reader.array("flags")? {
            [0, 0, 0] => false,
            [1, 0, 0] => true,
            _ => return Err(reader.invalid("flags", "unknown")),
        };
        let receipt = Self {
            clock_sure,
            repository: RepositoryId::from_bytes(reader.array("repository")?),
            record: RecordHash::from_bytes(reader.array("record")?),
            log_position: reader.u64("log position")?,
            received_ns: i64::from_le_bytes(reader.array("received")?),
            signer: PublicKey::from_bytes(reader.array("signer")?),
        };
        reader.finish()?;
        receipt.signer.verify_unless_checked(
            SignedContext::Receipt,
            signed,
            &signature,
            signatures,
        )?;
        Ok(receipt)
    }
}

/// A record with its receipt, published as one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// The machine's record.
    pub record: Record,
    /// The repository's answer.
    pub receipt: Receipt,
    /// The receipt's bytes with its signature.
    pub receipt_bytes: Vec<u8>,
}

impl StoredRecord {
    /// Joins a record and a receipt that was just signed.
    pub fn new(record: Record, receipt: Receipt, signature: &Signature) -> Self {
        let receipt_bytes = [&receipt.signed_bytes()[..], signature.as_bytes()].concat();
        Self { record, receipt, receipt_bytes }
    }

    /// The stored bytes.
    pub fn encode(&self) -> Vec<u8> {
        Self::join(&self.record.encode(), &self.receipt_bytes)
    }

    /// The stored bytes of a record and its receipt; nobody has looked whether they fit.
    pub fn join(record: &[u8], receipt: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(4 + record.len() + receipt.len());
        put_length(&mut out, record.len());
        out.extend_from_slice(record);
        out.extend_from_slice(receipt);
        out
    }

    /// The receipt in stored bytes, unless they are too short to have one.
    pub fn receipt_in(stored: &[u8]) -> Option<&[u8]> {
        stored.last_chunk::<RECEIPT_BYTES>().map(|receipt| &receipt[..])
    }

    /// Reads both and checks both signatures, and that the receipt is for this record.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        Self::decode_with(bytes, Signatures::Check)
    }

    /// The same where both signatures may have been checked before.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn decode_with(bytes: &[u8], signatures: Signatures) -> Result<Self, FormatError> {
        let mut reader = Reader::new("stored record", bytes);
        let record_len = reader.length("record length", RECORD_MAX_BYTES)?;
        let record = Record::decode_with(reader.bytes("record", record_len)?, signatures)?;
        let receipt_bytes = reader.remaining();
        let receipt = Receipt::decode_with(receipt_bytes, signatures)?;
        if receipt.record != record.hash() || receipt.repository != record.head.repository {
            return Err(FormatError::HashMismatch { what: WHAT, field: "record hash" });
        }
        Ok(Self { record, receipt, receipt_bytes: receipt_bytes.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::tests::TestKey;
    use proptest::prelude::*;

    fn sample() -> StoredRecord {
        let key = TestKey::new();
        let record = crate::record::tests::sample();
        let receipt = Receipt {
            clock_sure: true,
            repository: record.head.repository,
            record: record.hash(),
            log_position: 17,
            received_ns: 1_700_000_000_000_000_000,
            signer: key.public(),
        };
        let signature = key.sign(SignedContext::Receipt, &receipt.signed_bytes());
        StoredRecord::new(record, receipt, &signature)
    }

    #[test]
    fn a_stored_record_reads_back() {
        let stored = sample();
        let bytes = stored.encode();
        assert_eq!(StoredRecord::receipt_in(&bytes), Some(&stored.receipt_bytes[..]));
        assert_eq!(StoredRecord::receipt_in(&bytes[..RECEIPT_BYTES - 1]), None);
        assert_eq!(StoredRecord::decode(&bytes), Ok(stored));
    }

    #[test]
    fn a_receipt_for_another_record_is_refused() {
        let mut stored = sample();
        stored.receipt.record = RecordHash::from_bytes([0; 32]);
        let key = TestKey::new();
        let signature = key.sign(SignedContext::Receipt, &stored.receipt.signed_bytes());
        let swapped = StoredRecord::new(stored.record, stored.receipt, &signature);
        assert!(StoredRecord::decode(&swapped.encode()).is_err());
    }

    #[test]
    fn both_signatures_are_checked_unless_they_were() {
        let key = TestKey::new();
        let mut inner = sample();
        *inner.record.head_bytes.last_mut().unwrap() ^= 1;
        inner.receipt.record = inner.record.hash();
        let signature = key.sign(SignedContext::Receipt, &inner.receipt.signed_bytes());
        let inner = StoredRecord::new(inner.record, inner.receipt, &signature);
        let mut outer = sample();
        *outer.receipt_bytes.last_mut().unwrap() ^= 1;
        let mut other = sample();
        *other.record.sealed.last_mut().unwrap() ^= 1;
        let is_read = |stored: &StoredRecord| {
            [Signatures::Check, Signatures::CheckedBefore]
                .map(|signatures| StoredRecord::decode_with(&stored.encode(), signatures).is_ok())
        };
        assert_eq!(is_read(&sample()), [true, true]);
        assert_eq!(is_read(&inner), [false, true], "that of the machine does not hold");
        assert_eq!(is_read(&outer), [false, true], "that of the keeper does not hold");
        assert_eq!(is_read(&other), [false, false], "the receipt is for other bytes");
    }

    proptest! {
        #[test]
        fn any_changed_bit_of_a_stored_record_is_refused(at: usize, flip in 1u8..) {
            let mut bytes = sample().encode();
            let at = at % bytes.len();
            bytes[at] ^= flip;
            prop_assert!(StoredRecord::decode(&bytes).is_err());
        }
    }
}
