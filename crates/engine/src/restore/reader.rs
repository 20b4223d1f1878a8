//! Reading a content chunk by chunk, without a window: for what is rare.

use holdall_crypto::Opener;
use holdall_format::SessionId;
use holdall_tree::{Content, ContentReader, Entry};

use super::chunks::Chunks;
use crate::blocks::Nodes;
use crate::{EngineError, UnlockedRepository};

/// Most bytes of attributes or of extents of one entry that are taken into memory.
pub(crate) const SIDE_CONTENT_MAX_BYTES: u64 = 16 << 20;

/// Reads contents, one chunk after the other. Each thread has its own.
pub(crate) struct Reader<'a> {
    chunks: &'a Chunks,
    opener: Opener,
    nodes: Nodes,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(
        access: &UnlockedRepository,
        session: SessionId,
        chunks: &'a Chunks,
    ) -> Result<Self, EngineError> {
        let nodes = Nodes::open(access, session);
        Ok(Self { chunks, opener: Chunks::opener(access), nodes })
    }

    /// The nodes that lists of chunks are read from.
    pub(crate) fn nodes(&mut self) -> &mut Nodes {
        &mut self.nodes
    }

    /// Gives each piece of a content with its position.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] for a content that cannot be had; the first error of `take`.
    pub(super) fn each<E: From<EngineError>>(
        &mut self,
        content: &Content,
        mut take: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Content::Inline(bytes) = content {
            return if bytes.is_empty() { Ok(()) } else { take(0, bytes) };
        }
        let mut position = 0;
        let mut list = ContentReader::new(&mut self.nodes, content);
        while let Some(chunk) = list.next().map_err(EngineError::from)? {
            let got = self.chunks.get(&mut self.opener, &[chunk], None)?;
            match got.into_iter().next() {
                Some(Ok(bytes)) => take(position, &bytes)?,
                Some(Err(reason)) => return Err(EngineError::damaged("content", reason).into()),
                None => return Err(EngineError::damaged("content", "a chunk is missing").into()),
            }
            position += u64::from(chunk.len_bytes);
        }
        Ok(())
    }

    /// Reads attributes that do not lie in the entry into it; those that cannot be read stay where they are.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub(crate) fn bring_in_attributes(&mut self, entry: &mut Entry) -> Result<(), EngineError> {
        self.bring_in(&mut entry.attributes)
    }

    /// The same of extents, without which nobody knows where a file's content belongs.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub(crate) fn bring_in_extents(&mut self, entry: &mut Entry) -> Result<(), EngineError> {
        entry.extents.as_mut().map_or(Ok(()), |extents| self.bring_in(extents))
    }

    fn bring_in(&mut self, content: &mut Content) -> Result<(), EngineError> {
        if !matches!(content, Content::Inline(_)) {
            *content = Content::Inline(self.read(content, SIDE_CONTENT_MAX_BYTES)?);
        }
        Ok(())
    }

    /// Reads a whole content of at most `limit_bytes`.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] if it cannot be had or is longer.
    pub(super) fn read(
        &mut self,
        content: &Content,
        limit_bytes: u64,
    ) -> Result<Vec<u8>, EngineError> {
        if content.len_bytes() > limit_bytes {
            return Err(EngineError::damaged("content", "it is too long"));
        }
        let mut whole = Vec::new();
        self.each(content, |_, bytes| {
            whole.extend_from_slice(bytes);
            Ok::<(), EngineError>(())
        })?;
        Ok(whole)
    }
}
