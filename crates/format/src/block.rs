//! Blocks: several objects sealed together, the unit of transport, encryption and relocation.
//!
//! ```text
//! | header 136 | table | payload (sealed) |
//!
//! header:
//!   0  magic "HBlk"            24  epoch u32              72  table hash 32 (BLAKE3 of the table)
//!   4  version u8              28  table length u32      104  key commitment 32
//!   5  suite u8                32  payload length u32
//!   6  kind u8                 36  key slots u32 (zero: reserved for backup-only keys)
//!   7  zero u8                 40  salt 32
//!   8  repository id 16
//! ```
//!
//! The first 104 bytes are the input from which key and commitment are derived; the whole header is
//! authenticated with the payload. A block's name is the BLAKE3 of all of its bytes. Nothing in a
//! block says where it is stored, so it can be moved without keys.

use crate::block_kind::BlockKind;
use crate::limits::{BLOCK_HEADER_BYTES, BLOCK_MAX_PAYLOAD_BYTES, TABLE_MAX_BYTES};
use crate::wire::Reader;
use crate::{BlockName, FormatError, RepositoryId, Table};

const WHAT: &str = "block";
const MAGIC: &[u8; 4] = b"HBlk";
const VERSION: u8 = 1;

/// Length of the authentication tag at the end of a payload, for every suite.
pub const TAG_BYTES: usize = 16;
/// How much of the header is the input of the key derivation.
const DERIVATION_BYTES: usize = 104;

/// The authenticated cipher of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Suite {
    /// AES-256-GCM, for processors with AES instructions.
    Aes256Gcm,
    /// ChaCha20-Poly1305, for all others.
    ChaCha20Poly1305,
}

impl Suite {
    /// The byte that stands for this suite.
    pub fn code(self) -> u8 {
        match self {
            Self::Aes256Gcm => 1,
            Self::ChaCha20Poly1305 => 2,
        }
    }

    /// The suite that a byte stands for.
    pub fn from_code(code: u8) -> Option<Self> {
        [Self::Aes256Gcm, Self::ChaCha20Poly1305].into_iter().find(|suite| suite.code() == code)
    }
}

/// The clear front of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockHeader {
    /// The cipher.
    pub suite: Suite,
    /// What the block holds.
    pub kind: BlockKind,
    /// The repository that it belongs to.
    pub repository: RepositoryId,
    /// The sealing key's epoch.
    pub epoch: u32,
    /// Length of the table.
    pub table_bytes: u32,
    /// Length of the sealed payload with its tag.
    pub payload_bytes: u32,
    /// Makes the block's key its own.
    pub salt: [u8; 32],
    /// BLAKE3 of the table.
    pub table_hash: [u8; 32],
    /// Commits to the key, so that no other key opens the payload.
    pub commitment: [u8; 32],
}

impl BlockHeader {
    /// The bytes from which the block's key and commitment are derived: all but the commitment.
    pub fn derivation_input(&self) -> [u8; DERIVATION_BYTES] {
        let mut out = [0; DERIVATION_BYTES];
        out.copy_from_slice(self.encode().split_at(DERIVATION_BYTES).0);
        out
    }

    /// The header's bytes.
    pub fn encode(&self) -> [u8; BLOCK_HEADER_BYTES] {
        let mut out = Vec::with_capacity(BLOCK_HEADER_BYTES);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[VERSION, self.suite.code(), self.kind.code(), 0]);
        out.extend_from_slice(self.repository.as_bytes());
        for number in [self.epoch, self.table_bytes, self.payload_bytes, 0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for field in [&self.salt, &self.table_hash, &self.commitment] {
            out.extend_from_slice(field);
        }
        let mut header = [0; BLOCK_HEADER_BYTES];
        header.copy_from_slice(&out);
        header
    }

    /// Reads a header.
    ///
    /// Untrusted: the declared lengths are within [`crate::limits`], nothing more is known of them.
    ///
    /// # Errors
    /// [`FormatError`] for another version, an unknown suite or kind, a length over its limit, or
    /// fewer than [`BLOCK_HEADER_BYTES`] bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new("block header", bytes);
        reader.magic(MAGIC, VERSION)?;
        let suite = Suite::from_code(reader.u8("suite")?)
            .ok_or_else(|| reader.invalid("suite", "unknown"))?;
        let kind = BlockKind::from_code(reader.u8("kind")?)
            .ok_or_else(|| reader.invalid("kind", "unknown"))?;
        let zero = reader.u8("zero")?;
        let repository = RepositoryId::from_bytes(reader.array("repository")?);
        let epoch = reader.u32("epoch")?;
        let table_bytes = reader.length("table length", TABLE_MAX_BYTES)? as u32;
        let payload_bytes = reader.length("payload length", BLOCK_MAX_PAYLOAD_BYTES)? as u32;
        if zero != 0 || reader.u32("key slots")? != 0 {
            return Err(reader.invalid("reserved fields", "not zero"));
        }
        if (payload_bytes as usize) < TAG_BYTES {
            return Err(reader.invalid("payload length", "shorter than its tag"));
        }
        Ok(Self {
            suite,
            kind,
            repository,
            epoch,
            table_bytes,
            payload_bytes,
            salt: reader.array("salt")?,
            table_hash: reader.array("table hash")?,
            commitment: reader.array("key commitment")?,
        })
    }

    /// Length of the whole block: header, table and payload.
    pub fn block_bytes(&self) -> usize {
        BLOCK_HEADER_BYTES + self.table_bytes as usize + self.payload_bytes as usize
    }
}

/// A whole block whose clear parts were checked: lengths, table hash, table.
///
/// `bytes` is whatever holds them: a slice, a `Vec` or a shared buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block<B> {
    header: BlockHeader,
    table: Table,
    bytes: B,
}

impl<B: AsRef<[u8]>> Block<B> {
    /// Reads a whole block.
    ///
    /// Untrusted: checks everything that can be checked without keys.
    ///
    /// # Errors
    /// [`FormatError`] if a part is refused, the table's hash differs or the length is another.
    pub fn decode(bytes: B) -> Result<Self, FormatError> {
        let all = bytes.as_ref();
        let header = BlockHeader::decode(all)?;
        let mut reader = Reader::new(WHAT, all);
        reader.bytes("header", BLOCK_HEADER_BYTES)?;
        let table = reader.bytes("table", header.table_bytes as usize)?;
        reader.bytes("payload", header.payload_bytes as usize)?;
        reader.finish()?;
        if blake3::hash(table).as_bytes() != &header.table_hash {
            return Err(FormatError::HashMismatch { what: WHAT, field: "table hash" });
        }
        let table = Table::decode(table, header.kind)?;
        Ok(Self { header, table, bytes })
    }

    /// The header.
    pub fn header(&self) -> &BlockHeader {
        &self.header
    }

    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The header's and the table's bytes: what a footer gathers.
    pub fn clear_bytes(&self) -> &[u8] {
        self.split().0
    }

    /// The sealed payload.
    pub fn payload(&self) -> &[u8] {
        self.split().1
    }

    /// All bytes.
    pub fn bytes(&self) -> &B {
        &self.bytes
    }

    /// Gives the bytes back.
    pub fn into_bytes(self) -> B {
        self.bytes
    }

    /// The block's name, computed anew from all of its bytes.
    pub fn name(&self) -> BlockName {
        BlockName::from_bytes(*blake3::hash(self.bytes.as_ref()).as_bytes())
    }

    fn split(&self) -> (&[u8], &[u8]) {
        let all = self.bytes.as_ref();
        all.split_at(all.len().saturating_sub(self.header.payload_bytes as usize))
    }
}

impl Block<Vec<u8>> {
    /// Joins the parts of a block that was just sealed.
    ///
    /// # Errors
    /// [`FormatError`] if the header does not describe these parts.
    pub fn join(header: &BlockHeader, table: &[u8], payload: &[u8]) -> Result<Self, FormatError> {
        let mut bytes = Vec::with_capacity(header.block_bytes());
        bytes.extend_from_slice(&header.encode());
        bytes.extend_from_slice(table);
        bytes.extend_from_slice(payload);
        Self::decode(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ObjectId, TableEntry};
    use proptest::prelude::*;

    fn sample() -> Vec<u8> {
        let refs = vec![ObjectId::from_bytes([3; 32]), ObjectId::from_bytes([4; 32])];
        let entry = TableEntry { id: ObjectId::from_bytes([2; 32]), refs };
        let table = Table { entries: vec![entry] }.encode(BlockKind::Nodes);
        let payload = [7; 40];
        let header = BlockHeader {
            suite: Suite::Aes256Gcm,
            kind: BlockKind::Nodes,
            repository: RepositoryId::from_bytes([1; 16]),
            epoch: 0,
            table_bytes: table.len() as u32,
            payload_bytes: payload.len() as u32,
            salt: [5; 32],
            table_hash: *blake3::hash(&table).as_bytes(),
            commitment: [6; 32],
        };
        Block::join(&header, &table, &payload).unwrap().into_bytes()
    }

    #[test]
    fn a_block_reads_back_with_its_parts() {
        let bytes = sample();
        let block = Block::decode(&bytes[..]).unwrap();
        assert_eq!(block.header().encode()[..], bytes[..BLOCK_HEADER_BYTES]);
        assert_eq!(block.payload(), [7; 40]);
        assert_eq!(block.clear_bytes().len() + 40, bytes.len());
        assert_eq!(block.name().as_bytes(), blake3::hash(&bytes).as_bytes());
    }

    #[test]
    fn every_truncation_and_every_addition_is_refused() {
        let bytes = sample();
        for end in 0..bytes.len() {
            assert!(Block::decode(&bytes[..end]).is_err(), "cut at {end}");
        }
        assert!(Block::decode([&bytes[..], &[0]].concat()).is_err());
    }

    proptest! {
        #[test]
        fn a_mutated_block_has_another_name_or_is_refused(at: usize, flip in 1u8..) {
            let good = sample();
            let mut bytes = good.clone();
            let at = at % bytes.len();
            bytes[at] ^= flip;
            if let Ok(block) = Block::decode(bytes) {
                prop_assert_ne!(block.name(), Block::decode(good).unwrap().name());
            }
        }
    }
}
