//! Which block of the cache a node is in: 4 bytes of each node's id, in the order of the log, and where
//! each block's begin.
//!
//! A hash table takes five times as much, which with millions of files is most of a client's memory.
//! What is not sorted has to be looked through, at some nanoseconds a cache line; but a tree is read in
//! the order in which it was written, so that the next node is mostly in the block that was found last,
//! or in the one behind it.

use std::sync::atomic::{AtomicUsize, Ordering};

use holdall_format::{ObjectId, Table};

/// Nodes that are compared at once.
const STRIDE: usize = 64;

/// The nodes of all blocks in the log.
#[derive(Debug, Default)]
pub(super) struct NodeIndex {
    /// The first 4 bytes of each node's id.
    nodes: Vec<u32>,
    blocks: Vec<BlockNodes>,
    /// Where the nodes of the block begin that was found last.
    found: AtomicUsize,
}

#[derive(Debug)]
struct BlockNodes {
    /// Where the block lies in the log.
    offset: u64,
    /// The place of its first node in `nodes`.
    first: usize,
}

impl NodeIndex {
    /// Adds the nodes of the block at `offset`, which lies behind all others.
    pub(super) fn add(&mut self, offset: u64, table: &Table) {
        self.blocks.push(BlockNodes { offset, first: self.nodes.len() });
        self.nodes.extend(table.entries.iter().map(|entry| short(&entry.id)));
    }

    /// What `look` finds at the offset of a block that may hold the node: one of others may begin with
    /// the same 4 bytes.
    pub(super) fn find<T>(&self, id: &ObjectId, look: impl Fn(u64) -> Option<T>) -> Option<T> {
        let wanted = short(id);
        let (before, behind) = self.nodes.split_at_checked(self.found.load(Ordering::Relaxed))?;
        let behind = places(behind, wanted).map(|place| before.len() + place);
        let mut places = behind.chain(places(before, wanted));
        places.find_map(|place| {
            let block = self.block_of(place)?;
            let found = look(block.offset)?;
            self.found.store(block.first, Ordering::Relaxed);
            Some(found)
        })
    }

    fn block_of(&self, place: usize) -> Option<&BlockNodes> {
        let behind = self.blocks.partition_point(|block| block.first <= place);
        self.blocks.get(behind.checked_sub(1)?)
    }
}

/// The places of a value, ascending.
fn places(nodes: &[u32], wanted: u32) -> impl Iterator<Item = usize> {
    // A fold over all of a stride is faster than a loop that may end anywhere.
    let has = move |stride: &[u32]| stride.iter().fold(false, |any, node| any | (*node == wanted));
    let strides = nodes.chunks(STRIDE).enumerate().filter(move |(_, stride)| has(stride));
    strides.flat_map(move |(number, stride)| {
        let within = stride.iter().enumerate().filter(move |(_, node)| **node == wanted);
        within.map(move |(place, _)| number * STRIDE + place)
    })
}

fn short(id: &ObjectId) -> u32 {
    let mut first = [0; 4];
    first.iter_mut().zip(id.as_bytes()).for_each(|(to, from)| *to = *from);
    u32::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use holdall_format::TableEntry;
    use proptest::prelude::*;

    use super::*;

    /// An id whose first byte alone is in the index.
    fn id(first: u8, rest: u8) -> ObjectId {
        let mut bytes = [rest; 32];
        bytes[..4].copy_from_slice(&[first, 0, 0, 0]);
        ObjectId::from_bytes(bytes)
    }

    fn table(ids: &[ObjectId]) -> Table {
        let entry = |id: &ObjectId| TableEntry { id: *id, refs: vec![] };
        Table { entries: ids.iter().map(entry).collect() }
    }

    proptest! {
        #[test]
        fn every_node_is_found_in_its_block_whatever_was_found_before(
            blocks in proptest::collection::vec(proptest::collection::vec(0u8..40, 0..90), 0..9),
            asked in proptest::collection::vec((0u8..40, 0u8..10), 0..50),
        ) {
            let mut index = NodeIndex::default();
            // The same first bytes in another block are another node.
            let ids: Vec<Vec<_>> = blocks.iter().zip(0..).map(|(firsts, block)| {
                firsts.iter().map(|first| id(*first, block)).collect()
            }).collect();
            for (ids, offset) in ids.iter().zip(0..) {
                index.add(offset * 100, &table(ids));
            }
            for (first, block) in asked {
                let wanted = id(first, block);
                let holds = |offset: u64| ids[offset as usize / 100].contains(&wanted).then_some(offset);
                let there = ids.get(usize::from(block)).is_some_and(|ids| ids.contains(&wanted));
                let expected = there.then_some(u64::from(block) * 100);
                prop_assert_eq!(index.find(&wanted, holds), expected);
            }
        }
    }

    #[test]
    fn the_block_that_was_found_last_is_looked_at_first() {
        let mut index = NodeIndex::default();
        let ids: Vec<_> = (0..3).map(|block| id(7, block)).collect();
        for (id, offset) in ids.iter().zip(0..) {
            index.add(offset, &table(&[*id]));
        }
        let looked = std::cell::RefCell::new(Vec::new());
        let find = |wanted: usize| {
            looked.borrow_mut().clear();
            index.find(&ids[wanted], |offset| {
                looked.borrow_mut().push(offset);
                (offset == wanted as u64).then_some(())
            });
            looked.borrow().clone()
        };
        assert_eq!(find(1), [0, 1]);
        assert_eq!(find(1), [1]);
        assert_eq!(find(2), [1, 2]);
        assert_eq!(find(0), [2, 0]);
    }
}
