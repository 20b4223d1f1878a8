//! The planner: turns entries into parts of the stream, and windows of them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use holdall_tree::{Content, ContentReader, Entry, PathKey, TreeError};

use super::part::Part;
use crate::restore::{Ended, Groups, Layout, Links, Output, Reader};
use crate::{EngineError, Run};

/// Why planning ended before its end.
pub(super) enum Stop {
    /// Nobody takes the parts any more; why is known elsewhere.
    Ended,
    /// Something cannot be read.
    Failed(EngineError),
}

impl From<Ended> for Stop {
    fn from(_: Ended) -> Self {
        Self::Ended
    }
}

impl From<EngineError> for Stop {
    fn from(error: EngineError) -> Self {
        Self::Failed(error)
    }
}

impl From<TreeError<EngineError>> for Stop {
    fn from(error: TreeError<EngineError>) -> Self {
        Self::Failed(error.into())
    }
}

/// Plans one dump.
pub(super) struct Planner<'a> {
    pub(super) reader: Reader<'a>,
    pub(super) parts: Parts<'a>,
    pub(super) links: &'a Links,
    pub(super) groups: Groups,
    /// How many were left out.
    pub(super) sockets: &'a AtomicU64,
    pub(super) run: &'a Run,
}

/// The parts of the stream so far.
pub(super) struct Parts<'a>(pub(super) Output<'a, Part>);

impl Planner<'_> {
    /// Plans a file as it is: holes become zeros.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] and other reasons why it cannot be read.
    pub(super) fn file(mut self, path: &PathKey, entry: Entry) -> Result<(), EngineError> {
        let planned = self.whole_file(path, entry);
        self.parts.ended(planned)
    }

    fn whole_file(&mut self, path: &PathKey, mut entry: Entry) -> Result<(), Stop> {
        self.run.advance(1, 0);
        self.reader.bring_in_extents(&mut entry)?;
        let layout = layout_of(path, &entry)?;
        let end = self.content(path, &entry.content, &layout)?;
        self.parts.zeros(entry.size.saturating_sub(end))?;
        self.parts.finish()
    }

    /// Adds a content, each piece at its place, with zeros between them; gives where it ends.
    pub(super) fn content(
        &mut self,
        path: &PathKey,
        content: &Content,
        layout: &Layout,
    ) -> Result<u64, Stop> {
        let parts = &mut self.parts;
        let mut end = 0;
        if let Content::Inline(bytes) = content {
            self.run.advance(0, bytes.len() as u64);
            for (range, offset) in layout.places(0, bytes.len()) {
                parts.zeros(offset.saturating_sub(end))?;
                end = offset.saturating_add(range.len() as u64);
                parts.bytes(bytes[range].to_vec())?;
            }
            return Ok(end);
        }
        let path: Arc<[u8]> = path.to_absolute().into();
        let mut position = 0;
        let mut list = ContentReader::new(self.reader.nodes(), content);
        while let Some(chunk) = list.next()? {
            let places = layout.places(position, chunk.len_bytes as usize);
            let at = parts.0.window.push_chunk(chunk);
            for (range, offset) in places {
                // Not passed on in between: the chunk is of this window.
                parts.add_zeros(offset.saturating_sub(end));
                end = offset.saturating_add(range.len() as u64);
                parts.0.window.push(Part::Chunk { at, range, path: Arc::clone(&path) });
            }
            parts.0.pass_on_full()?;
            position = position.saturating_add(u64::from(chunk.len_bytes));
        }
        Ok(end)
    }
}

impl Parts<'_> {
    /// Adds bytes.
    pub(super) fn bytes(&mut self, bytes: Vec<u8>) -> Result<(), Stop> {
        self.0.window.weigh(bytes.len() as u64);
        self.0.window.push(Part::Bytes(bytes));
        Ok(self.0.pass_on_full()?)
    }

    /// Adds zeros.
    pub(super) fn zeros(&mut self, bytes: u64) -> Result<(), Stop> {
        self.add_zeros(bytes);
        Ok(self.0.pass_on_full()?)
    }

    fn add_zeros(&mut self, bytes: u64) {
        if bytes > 0 {
            self.0.window.push(Part::Zeros(bytes));
        }
    }

    /// Passes on what is left.
    pub(super) fn finish(&mut self) -> Result<(), Stop> {
        if self.0.window.is_empty() { Ok(()) } else { Ok(self.0.pass_on()?) }
    }

    /// Ends the stream as the planning ended: what lies before something that cannot be read is
    /// passed on. An end that is known elsewhere is taken for none.
    pub(super) fn ended(&mut self, planned: Result<(), Stop>) -> Result<(), EngineError> {
        match planned {
            Ok(()) | Err(Stop::Ended) => Ok(()),
            Err(Stop::Failed(error)) => {
                // Nobody takes it any more if something that lies before failed, too.
                let _ = self.finish();
                Err(error)
            }
        }
    }
}

/// Where the bytes of a file's content belong.
pub(super) fn layout_of(path: &PathKey, entry: &Entry) -> Result<Layout, EngineError> {
    Layout::of(entry).map_err(|error| damaged(path, error))
}

/// Says that a path cannot be dumped.
pub(super) fn damaged(path: &PathKey, reason: impl ToString) -> EngineError {
    EngineError::damaged(String::from_utf8_lossy(&path.to_absolute()), reason)
}
