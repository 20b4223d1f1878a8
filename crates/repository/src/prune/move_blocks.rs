//! Storing blocks of a pack again elsewhere, under the arrival positions that they have: a prune that
//! needs them, and a repair that saves them.

use holdall_format::{BlockKind, ObjectId};
use holdall_protocol::RepositoryError;

use crate::pack_file::{BlockPlace, PackFile};
use crate::storage::publish::damaged;
use crate::storage::publish::failed;
use crate::storage::retry::retry_read;
use crate::store::Store;
use crate::tails::checked_block::Checked;

/// Blocks are stored again in portions of about so many bytes, which are in memory at once.
const PORTION_BYTES: u64 = 8 << 20;

/// What becomes of a block that differs from what was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfDamaged {
    /// Nothing more is moved.
    Fail,
    /// It stays behind.
    LeaveOut,
}

/// What was stored again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Moved {
    /// So many blocks.
    pub(crate) blocks: u64,
    /// Their length.
    pub(crate) bytes: u64,
}

impl Store {
    /// Stores blocks of a pack again, elsewhere. They are durable, and found, when it returns.
    ///
    /// # Errors
    /// [`RepositoryError::Damaged`] if one of them differs from what was stored and that is to fail.
    pub(crate) fn move_blocks<'a>(
        &self,
        kind: BlockKind,
        file: &PackFile,
        places: impl Iterator<Item = &'a BlockPlace>,
        if_damaged: IfDamaged,
    ) -> Result<Moved, RepositoryError> {
        let (mut moved, mut portion, mut portion_bytes) = (Moved::default(), Vec::new(), 0);
        for place in places {
            let checked = match if_damaged {
                IfDamaged::Fail => self.read_sound(file, place)?,
                IfDamaged::LeaveOut => match retry_read(|| self.read_sound(file, place))? {
                    Some(checked) => checked,
                    None => continue,
                },
            };
            moved.blocks += 1;
            moved.bytes += checked.block.bytes().len() as u64;
            portion_bytes += checked.block.bytes().len() as u64;
            portion.push((checked, place.arrival));
            if portion_bytes >= PORTION_BYTES {
                self.store_moved(kind, &std::mem::take(&mut portion))?;
                portion_bytes = 0;
            }
        }
        self.store_moved(kind, &portion)?;
        Ok(moved)
    }

    /// Reads a block of a pack that must be what was stored.
    ///
    /// # Errors
    /// [`RepositoryError::Damaged`] if it is not; [`RepositoryError::Io`].
    pub(crate) fn read_sound(
        &self,
        file: &PackFile,
        place: &BlockPlace,
    ) -> Result<Checked, RepositoryError> {
        let bytes = file.read_block(place).map_err(failed("reading", file.path()))?;
        let checked = Checked::new(bytes, &self.repository());
        let checked = checked.map_err(|error| damaged(file.path(), error))?;
        if checked.name == place.name {
            return Ok(checked);
        }
        Err(damaged(file.path(), format!("block {} differs from what was stored", place.name)))
    }

    fn store_moved(
        &self,
        kind: BlockKind,
        blocks: &[(Checked, u64)],
    ) -> Result<(), RepositoryError> {
        self.appender()?.append_moved(kind == BlockKind::Nodes, blocks)?;
        let tables = blocks.iter().flat_map(|(checked, _)| &checked.block.table().entries);
        let ids: Vec<ObjectId> = tables.map(|entry| entry.id).collect();
        Ok(self.index().close_moved(ids)?)
    }
}
