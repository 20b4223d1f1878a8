//! Chunk lists: the content of a large file as a tree of nodes of its own.
//!
//! ```text
//! | per chunk, or per list of the level below: length in bytes varint |      and as many ids
//! ```
//!
//! Lists are cut by a keyed hash of ids, so that a change in the middle of a file leaves most list
//! nodes as they were: on average after about 600 references, at most after 2048, and never before
//! 128, so that a file that is one chunk over and over still gets fewer nodes on every level.

use crate::boundary::Boundary;
use crate::content::{CONTENT_MAX_CHUNKS, ChunkRef, Content};
use crate::error::BuildError;
use crate::node::{Body, LIST_MAX_LEVEL, NodeKind, NodeSink, build_node};
use holdall_crypto::IdKeys;
use holdall_format::wire::put_varint;
use holdall_format::{FormatError, ObjectId};

const LIST_MIN_REFS: usize = 128;
const LIST_MAX_REFS: usize = 2048;

/// Makes a content of chunks, in memory for one open node a level, however many they are.
pub struct ContentBuilder {
    ids: IdKeys,
    boundary: Boundary,
    /// The chunks, until they are too many for an entry.
    chunks: Vec<ChunkRef>,
    /// Open list nodes, from level 0 upwards.
    levels: Vec<OpenList>,
}

#[derive(Default)]
struct OpenList {
    uses: Vec<ObjectId>,
    items: Vec<u8>,
    len_bytes: u64,
}

impl ContentBuilder {
    /// Starts a content. The key is that of the tree's boundaries.
    pub fn new(ids: IdKeys, boundary_key: [u8; 32]) -> Self {
        let boundary = Boundary::new(boundary_key, 1);
        Self { ids, boundary, chunks: Vec::new(), levels: Vec::new() }
    }

    /// Adds the next chunk.
    ///
    /// # Errors
    /// [`BuildError::InvalidEntry`] for a chunk that is empty or over 2 MiB;
    /// [`BuildError::Sink`] or [`BuildError::TooDeep`], after which the content is lost.
    pub fn push<S: NodeSink + ?Sized>(
        &mut self,
        chunk: ChunkRef,
        sink: &mut S,
    ) -> Result<(), BuildError<S::Error>> {
        chunk.check().map_err(|reason| BuildError::InvalidEntry { reason })?;
        if self.levels.is_empty() {
            if self.chunks.len() < CONTENT_MAX_CHUNKS {
                self.chunks.push(chunk);
                return Ok(());
            }
            for chunk in std::mem::take(&mut self.chunks) {
                self.add(0, chunk.id, u64::from(chunk.len_bytes), sink)?;
            }
        }
        self.add(0, chunk.id, u64::from(chunk.len_bytes), sink)
    }

    /// Ends the content and hands over what is still open; without chunks, it is empty.
    ///
    /// # Errors
    /// [`BuildError::Sink`] or [`BuildError::TooDeep`].
    pub fn finish<S: NodeSink + ?Sized>(
        mut self,
        sink: &mut S,
    ) -> Result<Content, BuildError<S::Error>> {
        if self.levels.is_empty() {
            return Ok(match self.chunks.is_empty() {
                true => Content::empty(),
                false => Content::Chunks(self.chunks),
            });
        }
        let mut level = 0u8;
        loop {
            let (id, len_bytes) = self.close(level, sink)?;
            level = level.saturating_add(1);
            if self.levels.len() <= usize::from(level) {
                return Ok(Content::List { id, len_bytes });
            }
            self.add(level, id, len_bytes, sink)?;
        }
    }

    fn add<S: NodeSink + ?Sized>(
        &mut self,
        mut level: u8,
        mut id: ObjectId,
        mut len_bytes: u64,
        sink: &mut S,
    ) -> Result<(), BuildError<S::Error>> {
        loop {
            if level > LIST_MAX_LEVEL {
                return Err(BuildError::TooDeep);
            }
            let at = usize::from(level);
            if self.levels.len() == at {
                self.levels.push(OpenList::default());
            }
            let open = self.levels.get(at).map_or(0, |open| open.uses.len());
            let ends =
                open >= LIST_MAX_REFS || (open >= LIST_MIN_REFS && self.boundary.ends_list_at(&id));
            let full = if ends { Some(self.close(level, sink)?) } else { None };
            if let Some(open) = self.levels.get_mut(at) {
                open.uses.push(id);
                put_varint(&mut open.items, len_bytes);
                open.len_bytes = open.len_bytes.saturating_add(len_bytes);
            }
            let Some(full) = full else { return Ok(()) };
            (id, len_bytes) = full;
            level = level.saturating_add(1);
        }
    }

    fn close<S: NodeSink + ?Sized>(
        &mut self,
        level: u8,
        sink: &mut S,
    ) -> Result<(ObjectId, u64), BuildError<S::Error>> {
        let open = self.levels.get_mut(usize::from(level)).ok_or(BuildError::TooDeep)?;
        let node = build_node(&self.ids, NodeKind::List, level, &open.uses, &open.items);
        let (id, len_bytes) = (node.id, open.len_bytes);
        open.uses.clear();
        open.items.clear();
        open.len_bytes = 0;
        sink.put(node).map_err(BuildError::Sink)?;
        Ok((id, len_bytes))
    }
}

/// Reads the ids and lengths of a list node.
///
/// Untrusted: allocates at most 40 bytes for each of the body's.
pub(crate) fn decode_list(mut body: Body<'_>) -> Result<Vec<(ObjectId, u64)>, FormatError> {
    let mut items = Vec::new();
    while !body.items.remaining().is_empty() {
        let len_bytes = body.items.varint("length")?;
        if len_bytes == 0 {
            return Err(body.items.invalid("length", "zero"));
        }
        items.push((body.ids.next()?, len_bytes));
    }
    body.finish()?;
    Ok(items)
}
