//! A block that was opened.

use std::ops::Range;

use bytes::Bytes;
use holdall_format::{BlockKind, ObjectId};

use crate::{CryptoError, IdKeys};

/// One object of an opened block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedObject {
    /// Its id, as the table has it; [`OpenedBlock::check_id`] compares it with the content.
    pub id: ObjectId,
    /// For a node, the ids that it refers to, ascending and distinct.
    pub refs: Vec<ObjectId>,
    /// Where its plain bytes lie in [`OpenedBlock::plain`]: `[start, end)`.
    pub range: Range<usize>,
}

impl OpenedObject {
    /// Checks that its bytes, in `plain`, have its id.
    ///
    /// # Errors
    /// [`CryptoError::WrongId`].
    pub(crate) fn check_id(
        &self,
        plain: &[u8],
        ids: &IdKeys,
        kind: BlockKind,
    ) -> Result<(), CryptoError> {
        let body = plain.get(self.range.clone()).unwrap_or_default();
        let found = match kind {
            BlockKind::Nodes => ids.node_id(&self.refs, body),
            BlockKind::Chunks | BlockKind::Record => ids.chunk_id(body),
        };
        if found == self.id { Ok(()) } else { Err(CryptoError::WrongId { id: self.id }) }
    }
}

/// The plain content of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedBlock {
    /// The objects' bytes, one behind the other in their true order; for a record's sealed half,
    /// its free bytes.
    pub plain: Bytes,
    /// The objects in their true order.
    pub objects: Vec<OpenedObject>,
    /// Positions in `objects`, sorted by id.
    by_id: Vec<u32>,
}

impl OpenedBlock {
    /// Every object's range lies inside `plain`.
    pub(crate) fn new(plain: Bytes, objects: Vec<OpenedObject>) -> Self {
        let mut by_id: Vec<u32> = (0u32..).take(objects.len()).collect();
        by_id.sort_unstable_by_key(|at| objects[*at as usize].id);
        Self { plain, objects, by_id }
    }

    /// The plain bytes of the object with that id, if the block has it.
    pub fn find(&self, id: &ObjectId) -> Option<&[u8]> {
        self.find_object(id).map(|object| self.body(object))
    }

    /// The object with that id, if the block has it.
    pub fn find_object(&self, id: &ObjectId) -> Option<&OpenedObject> {
        let at = self.by_id.binary_search_by_key(id, |at| self.objects[*at as usize].id).ok()?;
        self.objects.get(self.by_id[at] as usize)
    }

    /// The plain bytes of one of this block's objects.
    pub fn body(&self, object: &OpenedObject) -> &[u8] {
        self.plain.get(object.range.clone()).unwrap_or_default()
    }

    /// Checks that one of this block's objects has the id that the table gives it.
    ///
    /// # Errors
    /// [`CryptoError::WrongId`] if it has not: whoever sealed the block lied or erred, and another copy
    /// of the object may be good.
    pub fn check_id(
        &self,
        object: &OpenedObject,
        ids: &IdKeys,
        kind: BlockKind,
    ) -> Result<(), CryptoError> {
        object.check_id(&self.plain, ids, kind)
    }
}
