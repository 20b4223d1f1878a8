//! Blocks that were checked as far as anybody without keys can.

use bytes::Bytes;
use holdall_format::{Block, BlockKind, BlockName, FooterBlock, RepositoryId};
use holdall_protocol::RepositoryError;

/// A block that may be stored: whole, of this repository, and hashed.
#[derive(Debug, Clone)]
pub(crate) struct Checked {
    /// The block.
    pub(crate) block: Block<Bytes>,
    /// Its name.
    pub(crate) name: BlockName,
}

impl Checked {
    /// Checks bytes that a client sent.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`] for bytes that break the format, another repository's block,
    /// and blocks that are neither nodes nor chunks.
    pub(crate) fn new(bytes: Bytes, repository: &RepositoryId) -> Result<Self, RepositoryError> {
        let block = Block::decode(bytes)?;
        if block.header().repository != *repository {
            return Err(RepositoryError::Refused {
                reason: "the block is of another repository".into(),
            });
        }
        if block.header().kind == BlockKind::Record {
            let reason = "a record's sealed half is sent with its record".into();
            return Err(RepositoryError::Refused { reason });
        }
        let name = block.name();
        Ok(Self { block, name })
    }

    pub(crate) fn is_nodes(&self) -> bool {
        self.block.header().kind == BlockKind::Nodes
    }

    /// What a footer will say of it.
    pub(crate) fn footer_block(&self, offset: u64, arrival: u64) -> FooterBlock {
        let clear = self.block.clear_bytes();
        let table = clear.get(holdall_format::BLOCK_HEADER_BYTES..).unwrap_or_default();
        FooterBlock {
            offset,
            arrival,
            name: self.name,
            header: self.block.header().clone(),
            table_bytes: table.to_vec(),
        }
    }
}
