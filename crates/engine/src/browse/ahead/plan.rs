//! What belongs into a window: the files that come next in the order of the tree, and their chunks.

use std::sync::Arc;

use holdall_format::ObjectId;
use holdall_tree::{ChunkRef, Content, ContentReader, Cursor, Entry, EntryKind, PathKey};

use super::window::{Position, Window};
use crate::EngineError;
use crate::blocks::Nodes;
use crate::browse::viewer::{FileView, Viewer};
use crate::error::is_damaged;
use crate::restore::WINDOW_BYTES;

/// Files at which a window is closed.
const WINDOW_FILES: usize = 4096;
/// Chunks at which a window is closed.
const WINDOW_CHUNKS: usize = 8192;

/// Goes through a tree once.
pub(super) struct Planner {
    root: ObjectId,
    cursor: Cursor<Nodes>,
    /// For lists of chunks.
    lists: Nodes,
    next: Position,
    is_there: bool,
}

/// A window, and what has to be fetched for it.
pub(super) struct Planned {
    pub(super) window: Window,
    pub(super) chunks: Vec<ChunkRef>,
    /// Who goes on behind it; `None` where nothing is read ahead any more: at the end, and before a large file, of which
    /// nobody knows yet whether it is read.
    pub(super) planner: Option<Box<Planner>>,
}

/// A window that is being filled.
struct Draft {
    window: Window,
    chunks: Vec<ChunkRef>,
    bytes: u64,
    limit_bytes: u64,
}

/// Whether something comes behind what was planned.
enum Next {
    File(PathKey, Box<Entry>),
    /// More of the large file that the cursor stands at.
    Large(Content),
    Nothing,
}

impl Planner {
    pub(super) fn new(viewer: &Viewer, root: ObjectId, start: Position) -> Self {
        let cursor = Cursor::new(viewer.nodes(), root);
        Self { root, cursor, lists: viewer.nodes(), next: start, is_there: false }
    }

    /// Plans a window of about that many bytes.
    ///
    /// # Errors
    /// [`EngineError::Repository`] if nodes cannot be asked for. Those that are damaged are passed.
    pub(super) fn plan(mut self: Box<Self>, limit_bytes: u64) -> Result<Planned, EngineError> {
        let (window, chunks) = (Window::new(self.root, self.next), Vec::new());
        let mut draft = Draft { window, chunks, bytes: 0, limit_bytes };
        let mut goes_on = true;
        while goes_on && !draft.is_full() {
            match self.next_file()? {
                Next::File(path, entry) => self.add_file(&mut draft, &path, *entry)?,
                Next::Large(content) => self.add_part(&mut draft, &content)?,
                Next::Nothing => goes_on = false,
            }
        }
        draft.window.end = self.next;
        let Draft { window, chunks, .. } = draft;
        Ok(Planned { window, chunks, planner: goes_on.then_some(self) })
    }

    fn next_file(&mut self) -> Result<Next, EngineError> {
        loop {
            let stepped = match self.is_there {
                true => Ok(()),
                false => self.cursor.skip_items(self.next.number.saturating_sub(1)),
            };
            let found = stepped.and_then(|()| self.cursor.peek());
            self.is_there = true;
            match found.map_err(EngineError::from) {
                Ok(None) => return Ok(Next::Nothing),
                Ok(Some((_, entry))) if entry.kind == EntryKind::File => {
                    let len_bytes = entry.content.len_bytes();
                    if len_bytes > WINDOW_BYTES {
                        let content = (self.next.at > 0).then(|| entry.content.clone());
                        return Ok(content.map_or(Next::Nothing, Next::Large));
                    }
                    break;
                }
                Ok(Some(_)) => {
                    self.cursor.advance();
                    self.next = Position { number: self.next.number + 1, at: 0 };
                }
                Err(error) if is_damaged(&error) => {
                    self.cursor.skip_unreadable();
                    self.next = Position { number: self.cursor.position() + 1, at: 0 };
                }
                Err(error) => return Err(error),
            }
        }
        let taken = self.cursor.next().map_err(EngineError::from)?;
        Ok(taken.map_or(Next::Nothing, |(path, entry)| Next::File(path, Box::new(entry))))
    }

    /// Adds a file. One whose place or chunks are not all known here is read without a window.
    fn add_file(
        &mut self,
        draft: &mut Draft,
        path: &PathKey,
        entry: Entry,
    ) -> Result<(), EngineError> {
        let number = self.next.number;
        self.next = Position { number: number + 1, at: 0 };
        if !matches!(entry.extents, None | Some(Content::Inline(_))) {
            return Ok(());
        }
        let Ok(file) = FileView::of(&path.to_absolute(), entry) else { return Ok(()) };
        let added =
            draft.add_chunks(&mut self.lists, &file.entry.content, Position { number, at: 0 });
        match added {
            Err(error) if !is_damaged(&error) => return Err(error),
            _ => {}
        }
        draft.bytes = draft.bytes.saturating_add(file.entry.content.len_bytes());
        draft.window.files.push((number, Arc::new(file)));
        Ok(())
    }

    /// Adds what comes next of a large file.
    fn add_part(&mut self, draft: &mut Draft, content: &Content) -> Result<(), EngineError> {
        let before = draft.bytes;
        match draft.add_some(&mut self.lists, content, self.next) {
            Ok(next) if next.at < content.len_bytes() && draft.bytes > before => self.next = next,
            Err(error) if !is_damaged(&error) => return Err(error),
            // Its end, or what cannot be read of it.
            Ok(_) | Err(_) => {
                self.cursor.advance();
                self.next = Position { number: self.next.number + 1, at: 0 };
            }
        }
        Ok(())
    }
}

impl Draft {
    fn is_full(&self) -> bool {
        self.bytes >= self.limit_bytes
            || self.window.files.len() >= WINDOW_FILES
            || self.chunks.len() >= WINDOW_CHUNKS
    }

    fn add(&mut self, position: Position, chunk: ChunkRef) {
        self.window.pieces.push(position);
        self.chunks.push(chunk);
    }

    /// Adds all chunks of a file.
    fn add_chunks(
        &mut self,
        lists: &mut Nodes,
        content: &Content,
        mut position: Position,
    ) -> Result<(), EngineError> {
        let mut list = ContentReader::new(lists, content);
        while let Some(chunk) = list.next()? {
            self.add(position, chunk);
            position.at += u64::from(chunk.len_bytes);
        }
        Ok(())
    }

    /// Adds chunks from a position on until it is full; says what comes next.
    fn add_some(
        &mut self,
        lists: &mut Nodes,
        content: &Content,
        mut position: Position,
    ) -> Result<Position, EngineError> {
        let mut list = ContentReader::new(lists, content);
        position.at = position.at.saturating_sub(list.skip(position.at)?);
        while !self.is_full() {
            let Some(chunk) = list.next()? else { break };
            self.add(position, chunk);
            position.at += u64::from(chunk.len_bytes);
            self.bytes = self.bytes.saturating_add(u64::from(chunk.len_bytes));
        }
        Ok(position)
    }
}
