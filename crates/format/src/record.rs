//! Records: the signed description of a snapshot or a checkpoint, or a change to one.
//!
//! ```text
//! head:  | magic "HRec" | version u8 | kind u8 | pinned u8 | zero u8 | repository 16 | machine 16
//!        | key 32 | series 16 | sequence u64 | root id 32 | previous record hash 32
//!        | sealed half's hash 32 | tag count u16 | tag token 16 ...
//!        | amended record's hash 32, of an amendment only | taken i64, of a copy only | signature 64 |
//! record: | head length u32 | head | sealed half (a block of kind record) |
//! ```
//!
//! The head is in clear and is what a keeper checks; it is signed by the machine's key in use. Anybody
//! can make a key and sign with it, so the sealed half repeats what the head says: without the
//! repository's keys no head can be made that fits. The sealed half has paths, host, user, tags and
//! statistics. A forgotten record's head stays behind in
//! a tombstone. An amendment has the root of the snapshot that it amends, so that whatever follows
//! roots needs not know of amendments.
//!
//! A copy says when its original was received, since a keeper thins copies by their own dates. A head that says
//! so has version 3, and every other one version 2: what knows no ages of copies reads all else.

use crate::limits::{RECORD_MAX_BYTES, RECORD_MAX_TAGS};
use crate::signature::split_signed;
use crate::wire::{Reader, put_length};
use crate::{
    FormatError, MachineId, ObjectId, PublicKey, RecordHash, RepositoryId, SeriesId, Signature,
    Signatures, SignedContext, TagToken,
};

const WHAT: &str = "record";
const MAGIC: &[u8; 4] = b"HRec";
const VERSION: u8 = 2;
/// Of a head that has the age of a copy.
const VERSION_OF_COPY: u8 = 3;
const BINDING_CONTEXT: &str = "holdall v1 record head";
const HEAD_MAX_BYTES: usize = 512 + RECORD_MAX_TAGS * TagToken::LEN;

/// The name of the file, in a repository's folder of records, of the one at that log position.
pub fn record_file(position: u64) -> String {
    format!("{position:016x}")
}

/// What a record describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// A committed state of a series.
    Snapshot,
    /// The incomplete state of a run that goes on; never listed as a snapshot.
    Checkpoint,
    /// The whole new state of the tags and the pin of an earlier snapshot.
    Amendment,
}

impl RecordKind {
    fn code(self) -> u8 {
        match self {
            Self::Snapshot => 1,
            Self::Checkpoint => 2,
            Self::Amendment => 3,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        [Self::Snapshot, Self::Checkpoint, Self::Amendment]
            .into_iter()
            .find(|kind| kind.code() == code)
    }
}

/// The clear half of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordHead {
    /// Snapshot, checkpoint or amendment.
    pub kind: RecordKind,
    /// Whether retention must keep it.
    pub pinned: bool,
    /// The repository.
    pub repository: RepositoryId,
    /// The machine that made it.
    pub machine: MachineId,
    /// The machine's key that signed it.
    pub key: PublicKey,
    /// What it belongs to in retention and parent choice.
    pub series: SeriesId,
    /// Counts this machine's records, from 1.
    pub sequence: u64,
    /// The root node of its tree.
    pub root: ObjectId,
    /// The machine's record before this one; zero for its first.
    pub previous: RecordHash,
    /// BLAKE3 of the sealed half.
    pub sealed_hash: [u8; 32],
    /// Keyed tags.
    pub tags: Vec<TagToken>,
    /// The record that this one amends. An amendment has it and nothing else has: any other head
    /// does not read back.
    pub amends: Option<RecordHash>,
    /// Of a copy: when the original was received where it was made, in nanoseconds since 1970 UTC, as the machine
    /// says. An amendment has none: its head does not read back.
    pub taken_ns: Option<i64>,
}

impl RecordHead {
    fn version(&self) -> u8 {
        if self.taken_ns.is_some() { VERSION_OF_COPY } else { VERSION }
    }

    /// The bytes to be signed in [`SignedContext::Record`].
    pub fn signed_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256 + self.tags.len() * TagToken::LEN);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[self.version(), self.kind.code(), u8::from(self.pinned), 0]);
        out.extend_from_slice(self.repository.as_bytes());
        out.extend_from_slice(self.machine.as_bytes());
        out.extend_from_slice(self.key.as_bytes());
        out.extend_from_slice(self.series.as_bytes());
        out.extend_from_slice(&self.sequence.to_le_bytes());
        out.extend_from_slice(self.root.as_bytes());
        out.extend_from_slice(self.previous.as_bytes());
        out.extend_from_slice(&self.sealed_hash);
        let count = u16::try_from(self.tags.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&count.to_le_bytes());
        self.tags.iter().for_each(|tag| out.extend_from_slice(tag.as_bytes()));
        self.amends.iter().for_each(|record| out.extend_from_slice(record.as_bytes()));
        self.taken_ns.iter().for_each(|taken_ns| out.extend_from_slice(&taken_ns.to_le_bytes()));
        out
    }

    /// What the sealed half repeats of the head, so that only who has the repository's keys can put
    /// the two together: BLAKE3 in the mode of key derivation over the bytes to be signed, with zeros
    /// for the sealed half's hash.
    pub fn binding(&self) -> [u8; 32] {
        let unsealed = Self { sealed_hash: [0; 32], ..self.clone() };
        blake3::derive_key(BINDING_CONTEXT, &unsealed.signed_bytes())
    }

    /// Reads a signed head and checks that the key it names signed it, if that is wanted.
    ///
    /// Whether that key may speak for the machine is for the caller to know.
    ///
    /// # Errors
    /// [`FormatError`] for any refused field, or a signature that does not hold.
    pub(crate) fn decode_signed(bytes: &[u8], signatures: Signatures) -> Result<Self, FormatError> {
        let (signed, signature) = split_signed(WHAT, bytes)?;
        let head = Self::decode(signed)?;
        head.key.verify_unless_checked(SignedContext::Record, signed, &signature, signatures)?;
        Ok(head)
    }

    fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new(WHAT, bytes);
        let version = reader.magic_within(MAGIC, VERSION..=VERSION_OF_COPY)?;
        let kind = RecordKind::from_code(reader.u8("kind")?)
            .ok_or_else(|| reader.invalid("kind", "unknown"))?;
        let pinned = match reader.u8("pinned")? {
            0 => false,
            1 => true,
            _ => return Err(reader.invalid("pinned", "neither 0 nor 1")),
        };
        if reader.u8("zero")? != 0 {
            return Err(reader.invalid("zero", "not zero"));
        }
        let head = Self {
            kind,
            pinned,
            repository: RepositoryId::from_bytes(reader.array("repository")?),
            machine: MachineId::from_bytes(reader.array("machine")?),
            key: PublicKey::from_bytes(reader.array("key")?),
            series: SeriesId::from_bytes(reader.array("series")?),
            sequence: reader.u64("sequence")?,
            root: ObjectId::from_bytes(reader.array("root")?),
            previous: RecordHash::from_bytes(reader.array("previous")?),
            sealed_hash: reader.array("sealed hash")?,
            tags: decode_tags(&mut reader)?,
            amends: match kind {
                RecordKind::Amendment => {
                    Some(RecordHash::from_bytes(reader.array("amended record")?))
                }
                RecordKind::Snapshot | RecordKind::Checkpoint => None,
            },
            taken_ns: match (version, kind) {
                (VERSION_OF_COPY, RecordKind::Amendment) => {
                    return Err(reader.invalid("kind", "an amendment is no copy"));
                }
                (VERSION_OF_COPY, _) => Some(i64::from_le_bytes(reader.array("taken")?)),
                _ => None,
            },
        };
        reader.finish()?;
        Ok(head)
    }
}

fn decode_tags(reader: &mut Reader<'_>) -> Result<Vec<TagToken>, FormatError> {
    let count = usize::from(reader.u16("tag count")?);
    if count > RECORD_MAX_TAGS {
        return Err(reader.invalid("tag count", "over its limit"));
    }
    (0..count).map(|_| reader.array("tag").map(TagToken::from_bytes)).collect()
}

/// A whole record as it is sent and stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The clear half.
    pub head: RecordHead,
    /// The clear half's bytes with the signature.
    pub head_bytes: Vec<u8>,
    /// The sealed half: a block of kind record.
    pub sealed: Vec<u8>,
}

impl Record {
    /// Puts a signed head and its sealed half together.
    pub fn new(head: RecordHead, signature: &Signature, sealed: Vec<u8>) -> Self {
        let head_bytes = [&head.signed_bytes()[..], signature.as_bytes()].concat();
        Self { head, head_bytes, sealed }
    }

    /// The record's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(4 + self.head_bytes.len() + self.sealed.len());
        put_length(&mut out, self.head_bytes.len());
        out.extend_from_slice(&self.head_bytes);
        out.extend_from_slice(&self.sealed);
        out
    }

    /// Reads a record and checks its signature and the hash of its sealed half.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        Self::decode_with(bytes, Signatures::Check)
    }

    pub(crate) fn decode_with(bytes: &[u8], signatures: Signatures) -> Result<Self, FormatError> {
        if bytes.len() > RECORD_MAX_BYTES {
            return Err(FormatError::OverLimit {
                what: WHAT,
                field: "length",
                declared: bytes.len() as u64,
                limit: RECORD_MAX_BYTES as u64,
            });
        }
        let mut reader = Reader::new(WHAT, bytes);
        let head_len = reader.length("head length", HEAD_MAX_BYTES)?;
        let head_bytes = reader.bytes("head", head_len)?;
        let sealed = reader.remaining();
        let head = RecordHead::decode_signed(head_bytes, signatures)?;
        if blake3::hash(sealed).as_bytes() != &head.sealed_hash {
            return Err(FormatError::HashMismatch { what: WHAT, field: "sealed half" });
        }
        Ok(Self { head, head_bytes: head_bytes.to_vec(), sealed: sealed.to_vec() })
    }

    /// The record's hash: BLAKE3 of its bytes. Snapshots are named by it.
    pub fn hash(&self) -> RecordHash {
        RecordHash::from_bytes(*blake3::hash(&self.encode()).as_bytes())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::signature::tests::TestKey;
    use proptest::prelude::*;

    pub(crate) fn sample() -> Record {
        let key = TestKey::new();
        let sealed = vec![9; 50];
        let head = RecordHead {
            kind: RecordKind::Snapshot,
            pinned: true,
            repository: RepositoryId::from_bytes([1; 16]),
            machine: MachineId::from_bytes([2; 16]),
            key: key.public(),
            series: SeriesId::from_bytes([3; 16]),
            sequence: 4,
            root: ObjectId::from_bytes([5; 32]),
            previous: RecordHash::from_bytes([6; 32]),
            sealed_hash: *blake3::hash(&sealed).as_bytes(),
            tags: vec![TagToken::from_bytes([7; 16])],
            amends: None,
            taken_ns: None,
        };
        signed(&key, head, sealed)
    }

    fn signed(key: &TestKey, head: RecordHead, sealed: Vec<u8>) -> Record {
        let signature = key.sign(SignedContext::Record, &head.signed_bytes());
        Record::new(head, &signature, sealed)
    }

    #[test]
    fn a_record_reads_back() {
        let record = sample();
        assert_eq!(Record::decode(&record.encode()), Ok(record));
    }

    #[test]
    fn an_amendment_and_nothing_else_names_the_record_that_it_amends() {
        let Record { head, sealed, .. } = sample();
        for kind in [RecordKind::Snapshot, RecordKind::Checkpoint, RecordKind::Amendment] {
            for amends in [None, Some(RecordHash::from_bytes([8; 32]))] {
                let record = signed(
                    &TestKey::new(),
                    RecordHead { kind, amends, ..head.clone() },
                    sealed.clone(),
                );
                let may = (kind == RecordKind::Amendment) == amends.is_some();
                assert_eq!(Record::decode(&record.encode()).is_ok(), may, "{kind:?} {amends:?}");
            }
        }
    }

    #[test]
    fn a_copy_says_its_age_in_a_version_of_its_own_and_an_amendment_has_none() {
        let Record { head, sealed, .. } = sample();
        let amends = Some(RecordHash::from_bytes([8; 32]));
        for (kind, amends) in [
            (RecordKind::Snapshot, None),
            (RecordKind::Checkpoint, None),
            (RecordKind::Amendment, amends),
        ] {
            for taken_ns in [None, Some(-1), Some(i64::MAX)] {
                let head = RecordHead { kind, amends, taken_ns, ..head.clone() };
                let record = signed(&TestKey::new(), head, sealed.clone());
                assert_eq!(record.head_bytes[4], if taken_ns.is_some() { 3 } else { 2 });
                let may = taken_ns.is_none() || kind != RecordKind::Amendment;
                let read = Record::decode(&record.encode());
                assert_eq!(read.is_ok(), may, "{kind:?} {taken_ns:?}");
                assert!(!may || read == Ok(record));
            }
        }
    }

    proptest! {
        #[test]
        fn any_changed_bit_of_a_record_is_refused(at: usize, flip in 1u8..) {
            let mut bytes = sample().encode();
            let at = at % bytes.len();
            bytes[at] ^= flip;
            prop_assert!(Record::decode(&bytes).is_err());
        }

        #[test]
        fn random_bytes_are_refused(bytes: Vec<u8>) {
            prop_assert!(Record::decode(&bytes).is_err());
        }
    }
}
