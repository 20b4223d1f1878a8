//! Reading blocks and their tables, wherever they lie.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use holdall_format::{BlockName, Table};
use holdall_protocol::RepositoryError;

use crate::index::{Holder, Index, State};
use crate::pack_file::OpenPacks;
use crate::storage::layout::Layout;
use crate::storage::publish::{damaged, failed};

/// The blocks of a repository, with the index that says where each is.
pub(crate) struct StoredBlocks {
    layout: Layout,
    pub(crate) index: Arc<Index>,
    pub(crate) packs: OpenPacks,
}

impl StoredBlocks {
    pub(crate) fn new(layout: &Layout, index: Arc<Index>) -> Self {
        Self { layout: layout.clone(), index, packs: OpenPacks::new(layout) }
    }

    /// Reads the table of a block.
    pub(crate) fn table(
        &self,
        state: &State,
        holder: Holder,
        block: u32,
    ) -> Result<Table, RepositoryError> {
        let gone = || damaged(self.layout.root(), "the index names a block that is not there");
        match holder {
            Holder::Tail(tail) => {
                let tail = state.tails.get(tail as usize).ok_or_else(gone)?;
                Ok(tail.clear(block).ok_or_else(gone)?.table()?)
            }
            Holder::Pack(pack) => {
                let pack =
                    self.packs.get(&state.packs.get(pack as usize).ok_or_else(gone)?.name)?;
                pack.read_table(pack.blocks().get(block as usize).ok_or_else(gone)?)
            }
        }
    }

    /// Reads a whole block and checks its name.
    pub(crate) fn read_block(
        &self,
        state: &State,
        holder: Holder,
        block: u32,
    ) -> Result<Bytes, RepositoryError> {
        self.read_unchecked(state, holder, block)?.checked()
    }

    /// Reads a whole block, and no more than that: what the disk does.
    pub(crate) fn read_unchecked(
        &self,
        state: &State,
        holder: Holder,
        block: u32,
    ) -> Result<ReadBlock, RepositoryError> {
        let gone = || damaged(self.layout.root(), "the index names a block that is not there");
        let (bytes, name, path) = match holder {
            Holder::Tail(tail) => {
                let tail = state.tails.get(tail as usize).ok_or_else(gone)?;
                let clear = tail.clear(block).ok_or_else(gone)?;
                (
                    tail.read_block(&clear),
                    clear.name,
                    self.layout.payload(tail.name()).path().to_owned(),
                )
            }
            Holder::Pack(pack) => {
                let name = state.packs.get(pack as usize).ok_or_else(gone)?.name;
                let pack = self.packs.get(&name)?;
                let place = pack.blocks().get(block as usize).ok_or_else(gone)?;
                (pack.read_block(place), place.name, self.layout.pack(&name).path().to_owned())
            }
        };
        Ok(ReadBlock { bytes: bytes.map_err(failed("reading", &*path))?, name, path })
    }
}

/// A block as it was read.
pub(crate) struct ReadBlock {
    bytes: Bytes,
    /// What the index calls it.
    name: BlockName,
    path: PathBuf,
}

impl ReadBlock {
    /// The bytes that the disk gave.
    pub(crate) fn unchecked(self) -> Bytes {
        self.bytes
    }

    /// The block, if it has its name.
    pub(crate) fn checked(self) -> Result<Bytes, RepositoryError> {
        let Self { bytes, name, path } = self;
        if blake3::hash(&bytes).as_bytes() != name.as_bytes() {
            return Err(damaged(&*path, format!("block {name} differs from what was stored")));
        }
        Ok(bytes)
    }
}
