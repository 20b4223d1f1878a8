//! Reading which chunks a content has, wherever they are named.

use crate::content::{ChunkRef, Content};
use crate::error::TreeError;
use crate::list::decode_list;
use crate::node::{Body, LIST_MAX_LEVEL, NodeKind, NodeSource};
use holdall_format::ObjectId;

/// Gives the chunks of a content, in order, in memory for one node a level.
///
/// Untrusted: levels fall and lengths add up at every step, so no list can loop, or give more bytes
/// than its entry says.
pub struct ContentReader<S> {
    source: S,
    /// From the highest level downwards; what is next is last.
    lists: Vec<List>,
}

struct List {
    /// The level of the items; chunks have none.
    level: Option<u8>,
    node: ObjectId,
    items: std::vec::IntoIter<(ObjectId, u64)>,
}

impl<S: NodeSource> ContentReader<S> {
    /// Starts at the first chunk. Content that lies in its entry has none.
    pub fn new(source: S, content: &Content) -> Self {
        let list = match content {
            Content::Inline(_) => None,
            Content::Chunks(chunks) => {
                let item = |chunk: &ChunkRef| (chunk.id, u64::from(chunk.len_bytes));
                Some((None, chunks.iter().map(item).collect()))
            }
            // The level of a content's first list is what that list says.
            Content::List { id, len_bytes } => Some((Some(u8::MAX), vec![(*id, *len_bytes)])),
        };
        let lists = list.into_iter().map(|(level, items): (_, Vec<_>)| List {
            level,
            node: items.first().map_or(ObjectId::from_bytes([0; 32]), |(id, _)| *id),
            items: items.into_iter(),
        });
        Self { source, lists: lists.collect() }
    }

    /// Gives the next chunk; nothing at the end.
    ///
    /// # Errors
    /// [`TreeError`]; after one of the source, calling again goes on.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend or fail like this")]
    pub fn next(&mut self) -> Result<Option<ChunkRef>, TreeError<S::Error>> {
        while let Some(list) = self.lists.last_mut() {
            let Some(&(id, len_bytes)) = list.items.as_slice().first() else {
                self.lists.pop();
                continue;
            };
            let Some(level) = list.level else {
                list.items.next();
                let misplaced =
                    TreeError::Misplaced { node: list.node, reason: "a chunk over 2 MiB" };
                let len_bytes = u32::try_from(len_bytes).ok();
                let chunk = len_bytes.map(|len_bytes| ChunkRef { id, len_bytes });
                return chunk.filter(|chunk| chunk.check().is_ok()).map(Some).ok_or(misplaced);
            };
            self.descend(id, len_bytes, level)?;
        }
        Ok(None)
    }

    /// Steps past whole chunks as long as the next `bytes` cover them, without opening a list that they cover; gives
    /// how many of these bytes are left, which lie in the next chunk.
    ///
    /// # Errors
    /// As [`ContentReader::next`].
    pub fn skip(&mut self, mut bytes: u64) -> Result<u64, TreeError<S::Error>> {
        while let Some(list) = self.lists.last_mut() {
            let Some(&(id, len_bytes)) = list.items.as_slice().first() else {
                self.lists.pop();
                continue;
            };
            if let Some(left) = bytes.checked_sub(len_bytes) {
                bytes = left;
                list.items.next();
                continue;
            }
            let Some(level) = list.level else { break };
            self.descend(id, len_bytes, level)?;
        }
        Ok(bytes)
    }

    /// Goes on in the list that is the next item.
    fn descend(
        &mut self,
        id: ObjectId,
        len_bytes: u64,
        level: u8,
    ) -> Result<(), TreeError<S::Error>> {
        let below = self.open(id, len_bytes, level)?;
        if let Some(list) = self.lists.last_mut() {
            list.items.next();
        }
        self.lists.push(below);
        Ok(())
    }

    /// Reads a list node of that level, or of any if it is [`u8::MAX`].
    fn open(
        &mut self,
        id: ObjectId,
        len_bytes: u64,
        level: u8,
    ) -> Result<List, TreeError<S::Error>> {
        let node = self.source.node(&id).map_err(TreeError::Source)?;
        let unreadable = |error| TreeError::Node { node: id, error };
        let misplaced = |reason| TreeError::Misplaced { node: id, reason };
        let body = Body::open(&node).map_err(unreadable)?;
        let level_found = body.level;
        let level_fits =
            level_found == level || (level == u8::MAX && level_found <= LIST_MAX_LEVEL);
        if body.kind != NodeKind::List || !level_fits {
            return Err(misplaced("not a list of this level"));
        }
        let items = decode_list(body).map_err(unreadable)?;
        let sum = items.iter().try_fold(0u64, |sum, (_, len)| sum.checked_add(*len));
        if sum != Some(len_bytes) {
            return Err(misplaced("its lengths do not add up"));
        }
        Ok(List { level: level_found.checked_sub(1), node: id, items: items.into_iter() })
    }
}
