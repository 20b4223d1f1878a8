//! Packs: many sealed blocks in one stored file, so that a million small files do not cost a
//! million round trips.
//!
//! A pack is written once, front to back, and never changed: first the payloads, then a footer that
//! gathers everything clear. The footer comes last because it is known last; a reader starts at the
//! end. The pack's name is the footer's hash, and the footer holds a random number, so no two packs
//! share a name. All blocks of a pack are of one kind.
//!
//! ```text
//! | payload 0 | ... | payload n-1 | footer | trailer 48 |
//!
//! footer:  | magic "HPak" | version u8 | kind u8 | zero u16 | repository 16 | random 32
//!          | block count u32 | block ... |
//! block:   | offset u64 | arrival u64 | name 32 | header 136 | table |
//! trailer: | footer length u32 | footer hash 32 | zero u32 | magic "HPakEnd1" |
//! ```

use crate::limits::{FOOTER_MAX_BYTES, PACK_MAX_BLOCKS};
use crate::wire::{Reader, put_length};
use crate::{
    BLOCK_HEADER_BYTES, BlockHeader, BlockKind, BlockName, FormatError, PackName, RepositoryId,
    Table,
};

const WHAT: &str = "pack footer";
const MAGIC: &[u8; 4] = b"HPak";
const VERSION: u8 = 1;
const END_MAGIC: &[u8; 8] = b"HPakEnd1";

/// Length of a pack's trailer.
pub const PACK_TRAILER_BYTES: usize = 48;

/// What a footer says of one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FooterBlock {
    /// Where its payload starts in the pack.
    pub offset: u64,
    /// Where it stands among everything that the repository ever received; kept when it is moved.
    pub arrival: u64,
    /// Its name.
    pub name: BlockName,
    /// Its header.
    pub header: BlockHeader,
    /// Its table's bytes, whose hash is the one in the header.
    pub table_bytes: Vec<u8>,
}

impl FooterBlock {
    /// Reads the table.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn table(&self) -> Result<Table, FormatError> {
        Table::decode(&self.table_bytes, self.header.kind)
    }
}

/// A pack's footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footer {
    /// The kind of all of its blocks.
    pub kind: BlockKind,
    /// The repository.
    pub repository: RepositoryId,
    /// Makes the pack's name its own.
    pub random: [u8; 32],
    /// The blocks, in order of offset.
    pub blocks: Vec<FooterBlock>,
}

impl Footer {
    /// The footer's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let tables = self.blocks.iter().map(|block| block.table_bytes.len()).sum::<usize>();
        let mut out = Vec::with_capacity(64 + self.blocks.len() * 184 + tables);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[VERSION, self.kind.code(), 0, 0]);
        out.extend_from_slice(self.repository.as_bytes());
        out.extend_from_slice(&self.random);
        put_length(&mut out, self.blocks.len());
        for block in &self.blocks {
            out.extend_from_slice(&block.offset.to_le_bytes());
            out.extend_from_slice(&block.arrival.to_le_bytes());
            out.extend_from_slice(block.name.as_bytes());
            out.extend_from_slice(&block.header.encode());
            out.extend_from_slice(&block.table_bytes);
        }
        out
    }

    /// Reads a footer whose pack has `payload_bytes` bytes before it.
    ///
    /// Untrusted: tables are not decoded, but their hashes are compared.
    ///
    /// # Errors
    /// [`FormatError`]; among others if the payloads do not lie one behind the other from the
    /// pack's start to the footer.
    pub fn decode(bytes: &[u8], payload_bytes: u64) -> Result<Self, FormatError> {
        let mut reader = Reader::new(WHAT, bytes);
        reader.magic(MAGIC, VERSION)?;
        let kind = BlockKind::from_code(reader.u8("kind")?)
            .ok_or_else(|| reader.invalid("kind", "unknown"))?;
        if reader.u16("zero")? != 0 {
            return Err(reader.invalid("zero", "not zero"));
        }
        let repository = RepositoryId::from_bytes(reader.array("repository")?);
        let random = reader.array("random")?;
        let count = reader.length("block count", PACK_MAX_BLOCKS)?;
        let mut blocks = Vec::with_capacity(count.min(bytes.len() / BLOCK_HEADER_BYTES));
        let mut end = 0u64;
        for _ in 0..count {
            let block = decode_block(&mut reader)?;
            if block.header.kind != kind || block.header.repository != repository {
                return Err(reader.invalid("block", "of another kind or repository"));
            }
            if block.offset != end {
                return Err(reader.invalid("offset", "not where the block before ends"));
            }
            end = end.saturating_add(u64::from(block.header.payload_bytes));
            blocks.push(block);
        }
        if end != payload_bytes {
            return Err(
                reader.invalid("block count", "payloads do not end where the footer starts")
            );
        }
        reader.finish()?;
        Ok(Self { kind, repository, random, blocks })
    }
}

fn decode_block(reader: &mut Reader<'_>) -> Result<FooterBlock, FormatError> {
    let offset = reader.u64("offset")?;
    let arrival = reader.u64("arrival")?;
    let name = BlockName::from_bytes(reader.array("name")?);
    let header = BlockHeader::decode(reader.bytes("header", BLOCK_HEADER_BYTES)?)?;
    let table_bytes = reader.bytes("table", header.table_bytes as usize)?.to_vec();
    if blake3::hash(&table_bytes).as_bytes() != &header.table_hash {
        return Err(FormatError::HashMismatch { what: WHAT, field: "table hash" });
    }
    Ok(FooterBlock { offset, arrival, name, header, table_bytes })
}

/// The last bytes of a pack, from which its footer is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trailer {
    /// Length of the footer before the trailer.
    pub footer_bytes: u32,
    /// The pack's name: BLAKE3 of the footer.
    pub name: PackName,
}

impl Trailer {
    /// The trailer of a footer's bytes.
    pub fn of(footer: &[u8]) -> Self {
        Self {
            footer_bytes: u32::try_from(footer.len()).unwrap_or(u32::MAX),
            name: PackName::from_bytes(*blake3::hash(footer).as_bytes()),
        }
    }

    /// The trailer's bytes.
    pub fn encode(&self) -> [u8; PACK_TRAILER_BYTES] {
        let mut out = Vec::with_capacity(PACK_TRAILER_BYTES);
        out.extend_from_slice(&self.footer_bytes.to_le_bytes());
        out.extend_from_slice(self.name.as_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(END_MAGIC);
        let mut trailer = [0; PACK_TRAILER_BYTES];
        trailer.copy_from_slice(&out);
        trailer
    }

    /// Reads a trailer from the last [`PACK_TRAILER_BYTES`] bytes of a pack.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new("pack trailer", bytes);
        let footer_bytes = reader.length("footer length", FOOTER_MAX_BYTES)? as u32;
        let name = PackName::from_bytes(reader.array("footer hash")?);
        if reader.u32("zero")? != 0 || &reader.array::<8>("magic")? != END_MAGIC {
            return Err(FormatError::WrongMagic { what: "pack trailer" });
        }
        reader.finish()?;
        Ok(Self { footer_bytes, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ObjectId, Suite, TableEntry};
    use proptest::prelude::*;

    fn sample() -> Footer {
        let repository = RepositoryId::from_bytes([1; 16]);
        let block = |offset, seed| {
            let entry = TableEntry { id: ObjectId::from_bytes([seed; 32]), refs: vec![] };
            let table_bytes = Table { entries: vec![entry] }.encode(BlockKind::Chunks);
            let header = BlockHeader {
                suite: Suite::Aes256Gcm,
                kind: BlockKind::Chunks,
                repository,
                epoch: 0,
                table_bytes: table_bytes.len() as u32,
                payload_bytes: 100,
                salt: [seed; 32],
                table_hash: *blake3::hash(&table_bytes).as_bytes(),
                commitment: [0; 32],
            };
            let name = BlockName::from_bytes([seed; 32]);
            FooterBlock { offset, arrival: u64::from(seed), name, header, table_bytes }
        };
        let blocks = vec![block(0, 3), block(100, 4)];
        Footer { kind: BlockKind::Chunks, repository, random: [2; 32], blocks }
    }

    #[test]
    fn a_footer_and_its_trailer_read_back() {
        let footer = sample();
        let bytes = footer.encode();
        assert_eq!(Footer::decode(&bytes, 200), Ok(footer));
        let trailer = Trailer::of(&bytes);
        assert_eq!(Trailer::decode(&trailer.encode()), Ok(trailer));
    }

    #[test]
    fn payloads_that_leave_a_gap_are_refused() {
        assert!(Footer::decode(&sample().encode(), 201).is_err());
    }

    proptest! {
        #[test]
        fn a_mutated_footer_has_another_name_or_is_refused(at: usize, flip in 1u8..) {
            let good = sample().encode();
            let mut bytes = good.clone();
            let at = at % bytes.len();
            bytes[at] ^= flip;
            if Footer::decode(&bytes, 200).is_ok() {
                prop_assert_ne!(Trailer::of(&bytes).name, Trailer::of(&good).name);
            }
        }

        #[test]
        fn random_bytes_are_no_trailer(bytes: [u8; PACK_TRAILER_BYTES]) {
            prop_assert!(Trailer::decode(&bytes).is_err());
        }
    }
}
