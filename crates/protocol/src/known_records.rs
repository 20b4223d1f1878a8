//! Which records a client asks for, and what it says of those that it has already, so that they are not sent again.
//!
//! It is a hash over all of them, not the last one's name: one that was damaged, replaced or lost
//! anywhere among them makes another hash, and the client then lists all of them anew. So records
//! that are not sent are noticed to be wrong as they would be if they were.

use bytes::Bytes;

const CONTEXT: &str = "holdall v1 known records";

/// Which records to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordQuery {
    /// Only those whose log position is above this.
    pub after_position: u64,
    /// At most this many; never more than [`crate::MAX_RECORDS`].
    pub limit: usize,
    /// What the records up to there must be, for those who have them; `None` for any.
    pub known: Option<RecordsDigest>,
}

/// A stored record and its receipt as they lie in the repository. Nobody has looked whether they are
/// whole: whoever lists records does, and one that is damaged keeps no other from being listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRecord {
    /// The log position that it lies at.
    pub position: u64,
    /// Its bytes; empty if they cannot be read.
    pub stored: Bytes,
}

/// BLAKE3 in the mode of key derivation over records in order of log position: of each its position
/// (u64), the length of its stored bytes (u64), and these, none if they cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordsDigest([u8; 32]);

impl RecordsDigest {
    /// That of these records.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a ListedRecord>) -> Self {
        let mut digesting = RecordsDigesting::new();
        records.into_iter().for_each(|record| digesting.add(record));
        digesting.finish()
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Display for RecordsDigest {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        blake3::Hash::from_bytes(self.0).to_hex().fmt(out)
    }
}

impl std::str::FromStr for RecordsDigest {
    type Err = blake3::HexError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        blake3::Hash::from_hex(text).map(|hash| Self(*hash.as_bytes()))
    }
}

/// A digest of records that are read one after another.
#[derive(Debug)]
pub struct RecordsDigesting(blake3::Hasher);

impl RecordsDigesting {
    /// Before the first record.
    #[expect(clippy::new_without_default, reason = "nothing is digested by default")]
    pub fn new() -> Self {
        Self(blake3::Hasher::new_derive_key(CONTEXT))
    }

    /// Adds the next one.
    pub fn add(&mut self, record: &ListedRecord) {
        self.0.update(&record.position.to_le_bytes());
        self.0.update(&(record.stored.len() as u64).to_le_bytes());
        self.0.update(&record.stored);
    }

    /// The digest of all that were added.
    pub fn finish(&self) -> RecordsDigest {
        RecordsDigest(*self.0.finalize().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_difference_is_another_digest() {
        let record = |position, stored: &'static [u8]| ListedRecord {
            position,
            stored: Bytes::from_static(stored),
        };
        let digests = [
            RecordsDigest::of(&[]),
            RecordsDigest::of(&[record(1, b"one"), record(2, b"two")]),
            RecordsDigest::of(&[record(1, b"one"), record(3, b"two")]),
            RecordsDigest::of(&[record(1, b"One"), record(2, b"two")]),
            RecordsDigest::of(&[record(1, b""), record(2, b"two")]),
            RecordsDigest::of(&[record(2, b"two")]),
        ];
        for (at, one) in digests.iter().enumerate() {
            assert_eq!(one.to_string().parse().ok(), Some(*one));
            assert!(digests.iter().skip(at + 1).all(|other| one != other), "{at}");
        }
    }
}
