//! Tables: the clear part of a block, from which a keeper without keys knows which objects it holds
//! and what they refer to.
//!
//! ```text
//! | count u32 | entry ... |
//! entry of a chunk: | id 32 |
//! entry of a node:  | id 32 | ref count u16 | ref id 32 ... |
//! ```
//!
//! References are sorted and without duplicates. The order of entries is shuffled by whoever seals
//! the block, so it says nothing of the order inside, and no plain length appears.

use crate::limits::{BLOCK_MAX_OBJECTS, NODE_MAX_REFS};
use crate::wire::{Reader, put_length};
use crate::{BlockKind, FormatError, ObjectId};

const WHAT: &str = "table";

/// What a table says of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableEntry {
    /// The object's id.
    pub id: ObjectId,
    /// For a node, the ids that it refers to, ascending and distinct; empty for a chunk.
    pub refs: Vec<ObjectId>,
}

impl TableEntry {
    /// Bytes that this entry takes in a table of that kind.
    pub fn encoded_len(&self, kind: BlockKind) -> usize {
        match kind {
            BlockKind::Nodes => ObjectId::LEN + 2 + self.refs.len() * ObjectId::LEN,
            BlockKind::Chunks | BlockKind::Record => ObjectId::LEN,
        }
    }
}

/// The clear part of a block.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// One entry for each object, in no meaningful order.
    pub entries: Vec<TableEntry>,
}

impl Table {
    /// The bytes of the table. Entries keep their order.
    pub fn encode(&self, kind: BlockKind) -> Vec<u8> {
        let len = self.entries.iter().map(|entry| entry.encoded_len(kind)).sum::<usize>();
        let mut out = Vec::with_capacity(4 + len);
        put_length(&mut out, self.entries.len());
        for entry in &self.entries {
            out.extend_from_slice(entry.id.as_bytes());
            if kind == BlockKind::Nodes {
                let count = u16::try_from(entry.refs.len()).unwrap_or(u16::MAX);
                out.extend_from_slice(&count.to_le_bytes());
                entry.refs.iter().for_each(|id| out.extend_from_slice(id.as_bytes()));
            }
        }
        out
    }

    /// Reads a table of a block of that kind.
    ///
    /// Untrusted: allocates at most in proportion to `bytes`.
    ///
    /// # Errors
    /// [`FormatError`] if anything is cut short, over its limit, repeated, unsorted or left over.
    pub fn decode(bytes: &[u8], kind: BlockKind) -> Result<Self, FormatError> {
        let mut reader = Reader::new(WHAT, bytes);
        let count = reader.length("object count", BLOCK_MAX_OBJECTS)?;
        let mut entries = Vec::with_capacity(count.min(bytes.len() / ObjectId::LEN));
        for _ in 0..count {
            let id = ObjectId::from_bytes(reader.array("object id")?);
            let refs = match kind {
                BlockKind::Nodes => decode_refs(&mut reader)?,
                BlockKind::Chunks | BlockKind::Record => Vec::new(),
            };
            entries.push(TableEntry { id, refs });
        }
        reader.finish()?;
        Ok(Self { entries })
    }
}

fn decode_refs(reader: &mut Reader<'_>) -> Result<Vec<ObjectId>, FormatError> {
    let count = usize::from(reader.u16("reference count")?);
    if count > NODE_MAX_REFS {
        return Err(FormatError::OverLimit {
            what: WHAT,
            field: "reference count",
            declared: count as u64,
            limit: NODE_MAX_REFS as u64,
        });
    }
    let bytes = reader.bytes("references", count * ObjectId::LEN)?;
    let mut refs: Vec<ObjectId> = Vec::with_capacity(count);
    for id in bytes.as_chunks::<{ ObjectId::LEN }>().0 {
        let id = ObjectId::from_bytes(*id);
        if refs.last().is_some_and(|last| *last >= id) {
            return Err(reader.invalid("references", "not ascending"));
        }
        refs.push(id);
    }
    Ok(refs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(byte: u8) -> ObjectId {
        ObjectId::from_bytes([byte; 32])
    }

    #[test]
    fn references_that_are_unsorted_or_repeated_are_refused() {
        for refs in [vec![id(2), id(1)], vec![id(1), id(1)]] {
            let table = Table { entries: vec![TableEntry { id: id(9), refs }] };
            let bytes = table.encode(BlockKind::Nodes);
            assert!(Table::decode(&bytes, BlockKind::Nodes).is_err());
        }
    }

    proptest! {
        #[test]
        fn random_bytes_give_a_table_that_encodes_to_the_same_bytes_or_an_error(
            count in 0u8..6, mut bytes: Vec<u8>, node: bool
        ) {
            let kind = if node { BlockKind::Nodes } else { BlockKind::Chunks };
            bytes.splice(0..0, [count, 0, 0, 0]);
            if let Ok(table) = Table::decode(&bytes, kind) {
                prop_assert_eq!(table.encode(kind), bytes);
            }
        }

        #[test]
        fn a_mutated_table_is_read_as_what_it_says_or_refused(
            seeds in proptest::collection::vec((any::<u8>(), 0u8..5), 0..20), at: usize, flip: u8
        ) {
            let entries = seeds.iter().map(|&(seed, refs)| TableEntry {
                id: id(seed), refs: (0..refs).map(id).collect() }).collect();
            let table = Table { entries };
            let mut bytes = table.encode(BlockKind::Nodes);
            prop_assert_eq!(&Table::decode(&bytes, BlockKind::Nodes).unwrap(), &table);
            let at = at % bytes.len();
            bytes[at] ^= flip;
            if let Ok(table) = Table::decode(&bytes, BlockKind::Nodes) {
                prop_assert_eq!(table.encode(BlockKind::Nodes), bytes);
            }
        }
    }
}
