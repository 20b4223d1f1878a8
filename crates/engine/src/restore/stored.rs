//! What the snapshot says of what is at the target already: asked only where that is in doubt.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use holdall_format::{ObjectId, SessionId};
use holdall_sys::{Dir, Name};
use holdall_tree::{Content, ContentReader, Entry, lookup};

use super::layout::Layout;
use crate::blocks::Nodes;
use crate::records::snapshot_path::key_of;
use crate::{EngineError, UnlockedRepository};

/// The snapshot that is restored.
#[derive(Clone, Copy)]
pub(super) struct Stored<'a> {
    pub(super) access: &'a UnlockedRepository,
    pub(super) session: SessionId,
    pub(super) root: ObjectId,
}

impl Stored<'_> {
    /// Whether there is anything at an absolute path.
    pub(super) fn has(&self, path: &[u8]) -> bool {
        let nodes = Nodes::open(self.access, self.session);
        let found = key_of(path).and_then(|key| lookup(nodes, self.root, &key).ok());
        found.flatten().is_some()
    }

    /// Whether a file holds the entry's content. It is not fetched: what is there is read, and named as it would
    /// be. One that cannot be read is not the same.
    pub(super) fn is_content_of(&self, dir: &Dir, name: Name<'_>, entry: &Entry) -> bool {
        dir.open_file(name).is_ok_and(|(file, _)| self.fits(&file, entry).unwrap_or(false))
    }

    fn fits(&self, file: &File, entry: &Entry) -> Result<bool, EngineError> {
        let Ok(layout) = Layout::of(entry) else { return Ok(false) };
        let read = |position, len| {
            read_at(file, &layout, position, len)
                .map_err(|error| EngineError::io("reading what is at the target", error))
        };
        if let Content::Inline(bytes) = &entry.content {
            return Ok(read(0, bytes.len())? == *bytes);
        }
        let mut nodes = Nodes::open(self.access, self.session);
        let mut list = ContentReader::new(&mut nodes, &entry.content);
        let mut position = 0;
        while let Some(chunk) = list.next()? {
            let bytes = read(position, chunk.len_bytes as usize)?;
            if self.access.keys.ids().chunk_id(&bytes) != chunk.id {
                return Ok(false);
            }
            position += u64::from(chunk.len_bytes);
        }
        Ok(true)
    }
}

/// Reads bytes of a content from where they belong in its file.
fn read_at(file: &File, layout: &Layout, position: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    for (range, offset) in layout.places(position, len) {
        file.read_exact_at(&mut bytes[range], offset)?;
    }
    Ok(bytes)
}
