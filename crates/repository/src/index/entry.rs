//! One line of the index: an object's copy and where it lies.
//!
//! ```text
//! | id 32 | arrival u64 | pack u32 | block u32 |        sorted by id, then arrival
//! ```
//!
//! Pack and block are numbers: of the pack in the index's catalogue, of the block in the pack.

use holdall_format::ObjectId;

/// Length of an entry.
pub(crate) const ENTRY_BYTES: usize = 48;

/// One copy of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// The object.
    pub(crate) id: ObjectId,
    /// When the copy came; the first one is authoritative.
    pub(crate) arrival: u64,
    /// The pack's number in the catalogue.
    pub(crate) pack: u32,
    /// The block's number in the pack.
    pub(crate) block: u32,
}

impl Entry {
    pub(crate) fn encode(&self) -> [u8; ENTRY_BYTES] {
        let mut out = [0; ENTRY_BYTES];
        let (id, rest) = out.split_at_mut(ObjectId::LEN);
        id.copy_from_slice(self.id.as_bytes());
        let (arrival, rest) = rest.split_at_mut(8);
        arrival.copy_from_slice(&self.arrival.to_le_bytes());
        let (pack, block) = rest.split_at_mut(4);
        pack.copy_from_slice(&self.pack.to_le_bytes());
        block.copy_from_slice(&self.block.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8; ENTRY_BYTES]) -> Self {
        Self {
            id: ObjectId::from_bytes(part(bytes, 0)),
            arrival: u64::from_le_bytes(part(bytes, 32)),
            pack: u32::from_le_bytes(part(bytes, 40)),
            block: u32::from_le_bytes(part(bytes, 44)),
        }
    }
}

/// `N` bytes at `at`, which the layout above keeps inside.
fn part<const N: usize>(bytes: &[u8; ENTRY_BYTES], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(bytes.split_at(at).1.split_at(N).0);
    out
}

/// The first 8 bytes of an id as a number that sorts as ids do.
pub(crate) fn prefix(id: &ObjectId) -> u64 {
    id.as_bytes().first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}
