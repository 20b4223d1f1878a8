//! Contents: where the bytes of a file, of attributes or of an extent list are.
//!
//! The smallest lie in the entry, most are a few chunks named by the entry, and the list of a large
//! file's chunks is a tree of nodes of its own, so that an entry stays small whatever it describes.

use holdall_format::ObjectId;
use holdall_format::limits::CHUNK_MAX_BYTES;

/// Most chunks that an entry names itself; more are a list.
pub const CONTENT_MAX_CHUNKS: usize = 48;

/// A chunk in a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkRef {
    /// The chunk's id.
    pub id: ObjectId,
    /// Its plain bytes, from 1 to 2 MiB.
    pub len_bytes: u32,
}

impl ChunkRef {
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        match usize::try_from(self.len_bytes) {
            Ok(1..=CHUNK_MAX_BYTES) => Ok(()),
            _ => Err("a chunk's length is not from 1 byte to 2 MiB"),
        }
    }
}

/// Bytes, or where they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Content {
    /// The bytes themselves; without any, there is no content.
    Inline(Vec<u8>),
    /// From 1 to [`CONTENT_MAX_CHUNKS`] chunks, in order.
    Chunks(Vec<ChunkRef>),
    /// A list node, from which [`crate::ContentReader`] reads the chunks.
    List {
        /// The list node's id.
        id: ObjectId,
        /// Plain bytes of all its chunks.
        len_bytes: u64,
    },
}

impl Content {
    /// No bytes.
    pub const fn empty() -> Self {
        Self::Inline(Vec::new())
    }

    /// Says whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len_bytes() == 0
    }

    /// The plain bytes.
    pub fn len_bytes(&self) -> u64 {
        match self {
            Self::Inline(bytes) => bytes.len() as u64,
            Self::Chunks(chunks) => chunks.iter().map(|chunk| u64::from(chunk.len_bytes)).sum(),
            Self::List { len_bytes, .. } => *len_bytes,
        }
    }

    pub(crate) fn check(&self, inline_max_bytes: usize) -> Result<(), &'static str> {
        match self {
            Self::Inline(bytes) if bytes.len() > inline_max_bytes => {
                Err("too many bytes for an entry")
            }
            Self::Inline(_) => Ok(()),
            Self::Chunks(chunks) if chunks.is_empty() || chunks.len() > CONTENT_MAX_CHUNKS => {
                Err("not from 1 to 48 chunks")
            }
            Self::Chunks(chunks) => chunks.iter().try_for_each(ChunkRef::check),
            Self::List { len_bytes: 0, .. } => Err("a list without bytes"),
            Self::List { .. } => Ok(()),
        }
    }
}

impl Default for Content {
    fn default() -> Self {
        Self::empty()
    }
}
