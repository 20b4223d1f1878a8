//! Rebuilding: entries get contents that name the destination's chunks, in the order of the tree.

use crossbeam_channel::{Receiver, Sender, bounded};
use holdall_tree::{BuiltNode, ChunkRef, Content, ContentBuilder, Entry, PathKey};

use super::meters::Meters;
use super::window::{Copied, Step, Window};
use crate::storing::{Change, Piece, Results, Shared};
use crate::{EngineError, UnlockedRepository};

/// The rebuilding thread.
pub(super) struct Rebuild<'a> {
    pub(super) destination: &'a UnlockedRepository,
    pub(super) shared: &'a Shared<'a>,
    pub(super) meters: &'a Meters,
    pub(super) windows: Receiver<Window>,
    pub(super) to_assembler: Sender<Results>,
    /// The content that is being built.
    pub(super) content: Option<ContentBuilder>,
    /// Contents of the next entry that are complete.
    pub(super) contents: Vec<Content>,
    /// Why the next entry cannot be copied.
    pub(super) damage: Option<String>,
}

impl Rebuild<'_> {
    /// Turns windows into pieces until there are no more: the body of the rebuilding thread.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] names the first path whose content cannot be had.
    pub(super) fn run(&mut self) -> Result<(), EngineError> {
        while let Ok(window) = self.meters.rebuild.waiting_in(|| self.windows.recv()) {
            self.shared.check()?;
            let (results, pieces) = bounded(1);
            // The window's turn comes before its chunks: only then room for them is certain.
            let sent =
                self.meters.rebuild.waiting_out(|| self.to_assembler.send((window.number, pieces)));
            sent.map_err(|_| EngineError::Interrupted)?;
            // They do not come when the run has failed elsewhere.
            let chunks = self.meters.rebuild.waiting_in(|| window.chunks.recv());
            let chunks = chunks.map_err(|_| EngineError::Interrupted)?;
            let meter = &self.meters.rebuild;
            let rebuilt = meter.working(|| self.window(window.steps, chunks))?;
            results.send(rebuilt).map_err(|_| EngineError::Interrupted)?;
        }
        Ok(())
    }

    fn window(&mut self, steps: Vec<Step>, chunks: Vec<Copied>) -> Result<Vec<Piece>, EngineError> {
        let mut pieces = Vec::with_capacity(steps.len() + chunks.len());
        let mut chunks = chunks.into_iter();
        for step in steps {
            match step {
                Step::Fetched(count) => {
                    chunks.by_ref().take(count).try_for_each(|c| self.fetched(c, &mut pieces))?;
                }
                Step::Known(chunk) => self.push(chunk, &mut pieces)?,
                Step::EndContent => {
                    let built = self.content().finish(&mut node_sink(&mut pieces))?;
                    self.contents.push(built);
                }
                Step::Entry { path, entry, change } => {
                    pieces.push(self.entry(path, entry, change)?);
                }
                Step::Keep { path, entry } => {
                    pieces.push(Piece::Entry { path, entry, change: Change::Unmodified });
                }
            }
        }
        Ok(pieces)
    }

    fn fetched(&mut self, copied: Copied, pieces: &mut Vec<Piece>) -> Result<(), EngineError> {
        let chunk = match copied {
            Ok(chunk) => chunk,
            Err(reason) => {
                // The entry that it belongs to knows its path.
                self.damage.get_or_insert(reason);
                return Ok(());
            }
        };
        let len_bytes = u32::try_from(chunk.bytes.len()).unwrap_or(u32::MAX);
        let named = ChunkRef { id: chunk.id, len_bytes };
        pieces.push(Piece::Chunk(chunk));
        self.push(named, pieces)
    }

    fn push(&mut self, chunk: ChunkRef, pieces: &mut Vec<Piece>) -> Result<(), EngineError> {
        let mut content = self.content();
        content.push(chunk, &mut node_sink(pieces))?;
        self.content = Some(content);
        Ok(())
    }

    fn content(&mut self) -> ContentBuilder {
        let keys = &self.destination.keys;
        let begun = || ContentBuilder::new(keys.ids().clone(), *keys.boundary_key());
        self.content.take().unwrap_or_else(begun)
    }

    fn entry(
        &mut self,
        path: PathKey,
        mut entry: Box<Entry>,
        change: Change,
    ) -> Result<Piece, EngineError> {
        if let Some(reason) = self.damage.take() {
            let path = shown(&path.to_absolute());
            return Err(EngineError::damaged(path, reason));
        }
        let built = std::mem::take(&mut self.contents);
        not_inline(&mut entry).zip(built).for_each(|(content, built)| *content = built);
        Ok(Piece::Entry { path, entry, change })
    }
}

/// A path in words: bytes that are no text are escaped, so that none is lost.
fn shown(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for piece in path.utf8_chunks() {
        text.push_str(piece.valid());
        text.extend(piece.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}

/// The contents of an entry that are not in itself.
fn not_inline(entry: &mut Entry) -> impl Iterator<Item = &mut Content> {
    let Entry { attributes, extents, content, .. } = entry;
    [Some(attributes), extents.as_mut(), Some(content)]
        .into_iter()
        .flatten()
        .filter(|content| !matches!(content, Content::Inline(_)))
}

fn node_sink(pieces: &mut Vec<Piece>) -> impl FnMut(BuiltNode) -> Result<(), EngineError> + '_ {
    |node| {
        pieces.push(Piece::Node(node));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_no_text_is_shown_with_all_its_bytes() {
        assert_eq!(shown("/ä/b".as_bytes()), "/ä/b");
        assert_eq!(shown(b"/a\xff\xfe/b\xc3"), "/a\\xff\\xfe/b\\xc3");
    }
}
