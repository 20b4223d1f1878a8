//! The node cache: sealed node blocks of this repository, kept in one file on this machine, so that
//! an unchanged backup downloads nothing.
//!
//! Blocks stay sealed: the cache may be read by others, lost or damaged without harm. It is a log
//! of `| length u32 | block |`; which node is where is found by reading the tables when the file is
//! opened and kept as 4 bytes a node, half a byte an entry. A torn end is cut off. Whoever cannot lock
//! the file works without a cache.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use holdall_format::{BLOCK_HEADER_BYTES, Block, BlockHeader, ObjectId, Table, limits};
use holdall_sys::lock::Held;

use self::index::NodeIndex;
use crate::cache::private_folder::{make_private, open_or_make};

mod index;

/// Above this length a cache is emptied when it is opened, so that it does not grow for ever.
const MAX_FILE_BYTES: u64 = 4 << 30;
const FRAME_BYTES: u64 = 4;

/// An open cache file.
#[derive(Debug)]
pub(crate) struct NodeCache {
    file: Held,
    end: u64,
    index: NodeIndex,
}

impl NodeCache {
    /// Opens the cache in a folder, which is made if needed.
    ///
    /// # Errors
    /// The system's, also if another process has it open.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        make_private(folder)?;
        let file = open_or_make(&folder.join("nodes"))?;
        let file = Held::exclusive(file)?.ok_or(io::ErrorKind::WouldBlock)?;
        if !file.is_locked() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut cache = Self { file, end: 0, index: NodeIndex::default() };
        if cache.file.metadata()?.len() > MAX_FILE_BYTES {
            cache.file.set_len(0)?;
        }
        cache.scan()?;
        Ok(cache)
    }

    fn scan(&mut self) -> io::Result<()> {
        let len = self.file.metadata()?.len();
        while let Some((frame_bytes, table)) = self.read_clear(self.end, len) {
            self.index.add(self.end, &table);
            self.end += frame_bytes;
        }
        if self.end < len {
            self.file.set_len(self.end)?;
        }
        Ok(())
    }

    /// Reads header and table of the frame at `offset`; `None` where the log ends or is damaged.
    fn read_clear(&self, offset: u64, file_len: u64) -> Option<(u64, Table)> {
        let mut front = [0; FRAME_BYTES as usize + BLOCK_HEADER_BYTES];
        self.file.read_exact_at(&mut front, offset).ok()?;
        let (frame, header) = front.split_at(FRAME_BYTES as usize);
        let header = BlockHeader::decode(header).ok()?;
        let block_bytes = u32::from_le_bytes(frame.try_into().ok()?);
        let frame_bytes = FRAME_BYTES + u64::from(block_bytes);
        if block_bytes as usize != header.block_bytes() || offset + frame_bytes > file_len {
            return None;
        }
        let mut table = vec![0; header.table_bytes as usize];
        self.file.read_exact_at(&mut table, offset + front.len() as u64).ok()?;
        Some((frame_bytes, Table::decode(&table, header.kind).ok()?))
    }

    /// Adds a sealed block of nodes.
    ///
    /// # Errors
    /// The system's; the cache then ends before this block.
    pub(crate) fn add<B: AsRef<[u8]>>(&mut self, block: &Block<B>) -> io::Result<()> {
        let bytes = block.bytes().as_ref();
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let frame = [&length.to_le_bytes()[..], bytes].concat();
        self.file.write_all_at(&frame, self.end)?;
        self.index.add(self.end, block.table());
        self.end += frame.len() as u64;
        Ok(())
    }

    /// The block that holds a node, if it is here and whole.
    pub(crate) fn find(&self, id: &ObjectId) -> Option<Block<Vec<u8>>> {
        self.index.find(id, |offset| {
            let block = self.read(offset)?;
            block.table().entries.iter().any(|entry| entry.id == *id).then_some(block)
        })
    }

    fn read(&self, offset: u64) -> Option<Block<Vec<u8>>> {
        let mut frame = [0; FRAME_BYTES as usize];
        self.file.read_exact_at(&mut frame, offset).ok()?;
        let block_bytes = u32::from_le_bytes(frame) as usize;
        if block_bytes > limits::BLOCK_MAX_BYTES {
            return None;
        }
        let mut bytes = vec![0; block_bytes];
        self.file.read_exact_at(&mut bytes, offset + FRAME_BYTES).ok()?;
        Block::decode(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_format::{BlockKind, RepositoryId, Suite, TableEntry};
    use proptest::prelude::*;

    fn block(seed: u8) -> Block<Vec<u8>> {
        let entry = TableEntry { id: ObjectId::from_bytes([seed; 32]), refs: vec![] };
        let table = Table { entries: vec![entry] }.encode(BlockKind::Nodes);
        let header = BlockHeader {
            suite: Suite::Aes256Gcm,
            kind: BlockKind::Nodes,
            repository: RepositoryId::from_bytes([0; 16]),
            epoch: 0,
            table_bytes: table.len() as u32,
            payload_bytes: 100,
            salt: [seed; 32],
            table_hash: *blake3::hash(&table).as_bytes(),
            commitment: [0; 32],
        };
        Block::join(&header, &table, &[seed; 100]).unwrap()
    }

    proptest! {
        #[test]
        fn a_damaged_cache_gives_blocks_with_the_wanted_node_or_nothing(
            flips in proptest::collection::vec((any::<usize>(), 1u8..), 1..8), cut in 0usize..700
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut cache = NodeCache::open(folder.path()).unwrap();
            for seed in 1..4 {
                cache.add(&block(seed)).unwrap();
            }
            drop(cache);
            let path = folder.path().join("nodes");
            let mut bytes = std::fs::read(&path).unwrap();
            for (at, flip) in flips {
                let at = at % bytes.len();
                bytes[at] ^= flip;
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            std::fs::write(&path, bytes).unwrap();
            let cache = NodeCache::open(folder.path()).unwrap();
            for seed in 1..4 {
                let id = ObjectId::from_bytes([seed; 32]);
                if let Some(found) = cache.find(&id) {
                    prop_assert!(found.table().entries.iter().any(|entry| entry.id == id));
                }
            }
        }
    }

    #[test]
    fn a_cache_with_a_torn_end_keeps_the_blocks_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut cache = NodeCache::open(folder.path()).unwrap();
        cache.add(&block(1)).unwrap();
        cache.add(&block(2)).unwrap();
        let len = cache.file.metadata().unwrap().len();
        cache.file.set_len(len - 1).unwrap();
        drop(cache);

        let mut cache = NodeCache::open(folder.path()).unwrap();
        assert!(cache.find(&ObjectId::from_bytes([1; 32])).is_some());
        assert!(cache.find(&ObjectId::from_bytes([2; 32])).is_none());
        cache.add(&block(3)).unwrap();
        assert_eq!(cache.find(&ObjectId::from_bytes([3; 32])), Some(block(3)));
    }
}
