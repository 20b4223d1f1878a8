//! Opening blocks.

use std::sync::Arc;

use holdall_format::{Block, BlockKind, ObjectId, RepositoryId, TAG_BYTES};

use crate::payload::{Unpacked, Unpacker};
use crate::{CryptoError, IdKeys, OpenedBlock, SealingKeys};

/// Opens blocks of one repository. Each thread has one, for it keeps its buffers (at most 10 MiB)
/// and its zstd context.
pub struct Opener {
    keys: Arc<SealingKeys>,
    repository: RepositoryId,
    decrypted: Vec<u8>,
    unpacker: Unpacker,
}

impl Opener {
    /// An opener for that repository.
    pub fn new(keys: Arc<SealingKeys>, repository: RepositoryId) -> Self {
        Self { keys, repository, decrypted: Vec::new(), unpacker: Unpacker::default() }
    }

    /// Opens a block of the expected kind.
    ///
    /// Untrusted: nothing of the payload is read before all of it was authenticated. That the
    /// objects have the ids of the table is for [`OpenedBlock::check_id`].
    ///
    /// # Errors
    /// [`CryptoError::WrongRepository`] and [`CryptoError::WrongKind`] for a block that is not what
    /// was asked for; [`CryptoError::UnknownEpoch`] for one of an epoch that the key ring lacks;
    /// [`CryptoError::NotAuthentic`] for one that was changed or sealed with another
    /// key; [`CryptoError::Format`] and [`CryptoError::Compression`] for one that was sealed wrongly.
    pub fn open<B: AsRef<[u8]>>(
        &mut self,
        block: &Block<B>,
        expected: BlockKind,
    ) -> Result<OpenedBlock, CryptoError> {
        self.decrypt(block, expected)?;
        self.unpacker.unpack(&self.decrypted, expected, &block.table().entries)
    }

    /// Opens a block as [`Opener::open`] does, checks that its objects have the ids of the table, and
    /// gives these in the objects' true order. Nothing else is kept of it.
    ///
    /// # Errors
    /// As [`Opener::open`], and [`CryptoError::WrongId`].
    pub fn check<B: AsRef<[u8]>>(
        &mut self,
        block: &Block<B>,
        expected: BlockKind,
        ids: &IdKeys,
    ) -> Result<Vec<ObjectId>, CryptoError> {
        self.decrypt(block, expected)?;
        let entries = &block.table().entries;
        let Unpacked { plain, objects } = self.unpacker.look(&self.decrypted, expected, entries)?;
        let checked = objects.into_iter().map(|object| {
            object.check_id(plain, ids, expected)?;
            Ok(object.id)
        });
        checked.collect()
    }

    /// Decrypts a block's payload into the buffer.
    fn decrypt<B: AsRef<[u8]>>(
        &mut self,
        block: &Block<B>,
        expected: BlockKind,
    ) -> Result<(), CryptoError> {
        let header = block.header();
        if header.repository != self.repository {
            let (found, expected) = (header.repository, self.repository);
            return Err(CryptoError::WrongRepository { found, expected });
        }
        if header.kind != expected {
            return Err(CryptoError::WrongKind { found: header.kind, expected });
        }
        let epoch = header.epoch;
        let epoch = self.keys.epoch(epoch).ok_or(CryptoError::UnknownEpoch { epoch })?;
        let key = epoch.block(header)?;
        let (sealed, tag) =
            block.payload().split_last_chunk::<TAG_BYTES>().ok_or(CryptoError::NotAuthentic)?;
        self.decrypted.resize(sealed.len(), 0);
        key.open(header, sealed, tag, &mut self.decrypted)
    }
}
