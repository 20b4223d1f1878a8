//! Windows: runs of files in the order of the tree, with their content.

use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use holdall_format::ObjectId;

use crate::EngineError;
use crate::browse::viewer::FileView;
use crate::restore::Chunk;
use crate::run::lock;

/// A place in the order of all content of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    /// The file.
    pub(super) number: u64,
    /// The byte of its content, without holes.
    pub(super) at: u64,
}

/// What lies from one position up to another. Its content may be on its way.
pub(super) struct Window {
    pub(super) root: ObjectId,
    pub(super) start: Position,
    /// What comes next.
    pub(super) end: Position,
    /// By ascending number.
    pub(super) files: Vec<(u64, Arc<FileView>)>,
    /// Where each chunk begins, ascending.
    pub(super) pieces: Vec<Position>,
    /// The chunks, or why they could not be asked for.
    content: OnceLock<Result<Vec<Chunk>, Lost>>,
}

/// Why something could not be asked for. One reader is told; who asks again may have more luck.
type Lost = Mutex<Option<EngineError>>;

/// Gives a window its content, or none when it is dropped, so that nobody waits for ever.
pub(super) struct Filling<'a>(&'a Window);

impl Window {
    /// An empty one.
    pub(super) fn new(root: ObjectId, start: Position) -> Self {
        let (files, pieces, content) = Default::default();
        Self { root, start, end: start, files, pieces, content }
    }

    pub(super) fn covers(&self, root: ObjectId, position: Position) -> bool {
        self.root == root && self.start <= position && position < self.end
    }

    /// The file with that number, if it is in here.
    pub(super) fn file(&self, number: u64) -> Option<Arc<FileView>> {
        let at = self.files.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.files.get(at).map(|(_, file)| Arc::clone(file))
    }

    /// At most `most` bytes from there on, once they came; `None` if they are not here, or are damaged.
    ///
    /// # Errors
    /// [`EngineError::Repository`] if they could not be asked for, for one of those who read.
    pub(super) fn read(
        &self,
        position: Position,
        most: usize,
    ) -> Result<Option<Bytes>, EngineError> {
        match self.content.wait() {
            Ok(chunks) => Ok(self.piece(chunks, position, most)),
            Err(lost) => lock(lost).take().map_or(Ok(None), Err),
        }
    }

    fn piece(&self, chunks: &[Chunk], position: Position, most: usize) -> Option<Bytes> {
        let at = self.pieces.partition_point(|piece| *piece <= position).checked_sub(1)?;
        let piece = self.pieces.get(at).filter(|piece| piece.number == position.number)?;
        let chunk = chunks.get(at)?.as_ref().ok()?;
        let start = usize::try_from(position.at - piece.at).ok()?;
        let end = start.saturating_add(most).min(chunk.len());
        (start < end).then(|| chunk.slice(start..end))
    }

    pub(super) fn filling(&self) -> Filling<'_> {
        Filling(self)
    }
}

impl Filling<'_> {
    pub(super) fn fill(self, chunks: Result<Vec<Chunk>, EngineError>) {
        // Only one fills it.
        let _ = self.0.content.set(chunks.map_err(|error| Mutex::new(Some(error))));
    }
}

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        let _ = self.0.content.set(Ok(Vec::new()));
    }
}
