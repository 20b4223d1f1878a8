//! A block that was opened.

use std::ops::Range;

use bytes::Bytes;
use holdall_format::{BlockKind, ObjectId};

use crate::{CryptoError, IdKeys};

/// One object of an opened block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedObject {
    /// Its id, as the table has it; [`OpenedBlock::check_ids`] compares it with the content.
    pub id: ObjectId,
    /// For a node, the ids that it refers to, ascending and distinct.
    pub refs: Vec<ObjectId>,
    /// Where its plain bytes lie in [`OpenedBlock::plain`]: `[start, end)`.
    pub range: Range<usize>,
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

    /// Checks that every object has the id that the table gives it.
    ///
    /// # Errors
    /// [`CryptoError::WrongId`] for the first that has not: whoever sealed the block lied or erred,
    /// and another copy of the object may be good.
    pub fn check_ids(&self, ids: &IdKeys, kind: BlockKind) -> Result<(), CryptoError> {
        self.objects.iter().try_for_each(|object| self.check_id(object, ids, kind))
    }

    /// Checks that one of this block's objects has the id that the table gives it.
    ///
    /// # Errors
    /// [`CryptoError::WrongId`].
    pub fn check_id(
        &self,
        object: &OpenedObject,
        ids: &IdKeys,
        kind: BlockKind,
    ) -> Result<(), CryptoError> {
        let found = match kind {
            BlockKind::Nodes => ids.node_id(&object.refs, self.body(object)),
            BlockKind::Chunks | BlockKind::Record => ids.chunk_id(self.body(object)),
        };
        if found == object.id { Ok(()) } else { Err(CryptoError::WrongId { id: object.id }) }
    }
}
