//! Looking around in snapshots for longer than one question: entries, listings, and pieces of files.
//!
//! A viewer keeps a session to read in and what it opened last, so that the next file of a folder, or the next piece of a
//! file, costs no more than what it adds. Memory is bounded by the blocks that are kept, whatever the size of files.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use holdall_crypto::Opener;
use holdall_format::SessionId;
use holdall_protocol::SessionPurpose;
use holdall_tree::{Attributes, Content, ContentReader, Cursor, Entry, EntryKind, lookup};

use super::find::{Visit, Wanted, find_in};
use super::hard_links::KnownLinks;
use super::history::{Version, history_in};
use super::listing::{ListedEntry, list_in};
use crate::blocks::{Nodes, SharedNodeCache, open_node_cache};
use crate::records::snapshot_path::key_of;
use crate::restore::{ChunkSource, Layout, Reader};
use crate::run::lock;
use crate::{EngineError, Run, Snapshot, UnlockedRepository};

/// Most bytes of a file that are read at once.
const PIECE_MAX_BYTES: u64 = 4 << 20;
/// Zeros that are given at once for a hole.
static ZEROS: [u8; 256 << 10] = [0; 256 << 10];
/// Sets of open nodes that are kept for the next questions.
const HANDS_KEPT: usize = 4;

/// Looks into snapshots of one repository; shared by threads. Dropping it ends its session.
pub struct Viewer {
    access: Arc<UnlockedRepository>,
    session: SessionId,
    cache: SharedNodeCache,
    pub(super) chunks: ChunkSource,
    idle: Mutex<Vec<Hand>>,
    pub(super) links: Mutex<KnownLinks>,
}

/// What one question at a time needs.
pub(super) struct Hand {
    pub(super) nodes: Nodes,
    opener: Opener,
}

/// A file whose pieces can be read.
pub struct FileView {
    pub(super) entry: Entry,
    pub(super) layout: Layout,
    path: Vec<u8>,
}

impl FileView {
    /// A file whose extents, if it has any, lie in its entry.
    pub(super) fn of(path: &[u8], entry: Entry) -> Result<Self, EngineError> {
        let layout = Layout::of(&entry).map_err(|error| damaged(path, error))?;
        Ok(Self { entry, layout, path: path.to_vec() })
    }

    /// Its bytes, with holes.
    pub fn len_bytes(&self) -> u64 {
        self.entry.size
    }
}

impl Viewer {
    /// Opens a session to read in.
    ///
    /// # Errors
    /// [`EngineError::Repository`] if the repository cannot be asked.
    pub fn open(access: Arc<UnlockedRepository>) -> Result<Self, EngineError> {
        let session = access.repository.open_session(&SessionPurpose::Read)?.session;
        let (cache, chunks) = (open_node_cache(&access), ChunkSource::new(&access, session));
        let (idle, links) = Default::default();
        Ok(Self { access, session, cache, chunks, idle, links })
    }

    /// What is at an absolute path, if something is. The root is there even if it was not backed up itself.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] for a tree that cannot be read; [`EngineError::Repository`].
    pub fn entry(&self, snapshot: &Snapshot, path: &[u8]) -> Result<Option<Entry>, EngineError> {
        let Some(key) = key_of(path) else { return Ok(None) };
        let found = self.with(|hand| Ok(lookup(&mut hand.nodes, snapshot.root, &key)?))?;
        let root = || key.is_root().then(|| Entry::empty(EntryKind::Directory));
        Ok(found.or_else(root))
    }

    /// Shows what is at an absolute path, as [`crate::list`] does.
    ///
    /// # Errors
    /// As for [`crate::list`].
    pub fn list(
        &self,
        snapshot: &Snapshot,
        path: &[u8],
        recursive: bool,
        run: &Run,
        visit: &mut dyn FnMut(ListedEntry<'_>) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let visit = &mut |listed: ListedEntry<'_>| run.check().and_then(|()| visit(listed));
        self.with(|hand| {
            let cursor = Cursor::new(&mut hand.nodes, snapshot.root);
            list_in(cursor, snapshot, path, recursive, visit)
        })
    }

    /// The versions of what is at an absolute path, as [`crate::history`] gives them.
    ///
    /// # Errors
    /// As for [`crate::history`].
    pub fn history<'a>(
        &self,
        snapshots: &[&'a Snapshot],
        path: &[u8],
        run: &Run,
    ) -> Result<Vec<Version<'a>>, EngineError> {
        let Some(key) = key_of(path) else { return Ok(Vec::new()) };
        self.with(|hand| history_in(&mut hand.nodes, snapshots, &key, run))
    }

    /// Looks in each of the snapshots for entries that are `wanted`, as [`crate::find`] does.
    ///
    /// # Errors
    /// As for [`crate::find`].
    pub fn find(
        &self,
        snapshots: &[&Snapshot],
        wanted: &Wanted<'_>,
        run: &Run,
        visit: &mut Visit<'_>,
    ) -> Result<(), EngineError> {
        let from = (&*self.access, self.session, Arc::clone(&self.cache));
        find_in(from, snapshots, wanted, run, visit)
    }

    /// Makes a file ready to be read; `path` is what errors call it.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] if nobody can know where its content belongs.
    pub fn file(&self, path: &[u8], mut entry: Entry) -> Result<FileView, EngineError> {
        if entry.extents.is_some() {
            Reader::new(&self.access, self.session, &self.chunks)?.bring_in_extents(&mut entry)?;
        }
        FileView::of(path, entry)
    }

    /// The extended attributes of an entry, with access control lists; `path` is what errors call it.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] if they cannot be had; [`EngineError::Repository`].
    pub fn attributes(&self, path: &[u8], mut entry: Entry) -> Result<Attributes, EngineError> {
        if !matches!(entry.attributes, Content::Inline(_)) {
            Reader::new(&self.access, self.session, &self.chunks)?
                .bring_in_attributes(&mut entry)?;
        }
        let Content::Inline(bytes) = &entry.attributes else { return Ok(Attributes::default()) };
        Attributes::decode(bytes).map_err(|error| damaged(path, error))
    }

    /// Reads a piece of a file that starts at `offset`: at most `most` bytes, and at most 4 MiB; nothing at its end, else
    /// one byte or more. Fetches only what the piece lies in.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] if it cannot be had; [`EngineError::Repository`].
    pub fn read(&self, file: &FileView, offset: u64, most: u64) -> Result<Bytes, EngineError> {
        let most = most.min(PIECE_MAX_BYTES);
        match file.layout.at(offset, file.entry.size) {
            (_, 0) => Ok(Bytes::new()),
            (None, len_bytes) => {
                let len = len_bytes.min(most).min(ZEROS.len() as u64) as usize;
                Ok(Bytes::from_static(&ZEROS[..len]))
            }
            (Some(at), len_bytes) => self.read_data(file, at, len_bytes.min(most) as usize),
        }
    }

    /// Reads `len` bytes of the content from `at` on.
    pub(super) fn read_data(
        &self,
        file: &FileView,
        at: u64,
        len: usize,
    ) -> Result<Bytes, EngineError> {
        let content = &file.entry.content;
        if let Content::Inline(bytes) = content {
            let start = usize::try_from(at).unwrap_or(usize::MAX);
            let piece = bytes.get(start..).and_then(|rest| rest.get(..len));
            let piece = piece.ok_or_else(|| damaged(&file.path, "its content is too short"))?;
            return Ok(Bytes::copy_from_slice(piece));
        }
        self.with(|hand| {
            let mut list = ContentReader::new(&mut hand.nodes, content);
            let start = list.skip(at)? as usize;
            let (mut wanted, mut covered) = (Vec::new(), 0);
            while covered < start.saturating_add(len) {
                let Some(chunk) = list.next()? else { break };
                covered += chunk.len_bytes as usize;
                wanted.push(chunk);
            }
            let mut piece = Vec::with_capacity(covered);
            for chunk in self.chunks.get(&mut hand.opener, &wanted, None)? {
                piece.extend_from_slice(&chunk.map_err(|reason| damaged(&file.path, reason))?);
            }
            let piece = Bytes::from(piece);
            match start.checked_add(len).filter(|end| *end <= piece.len()) {
                Some(end) => Ok(piece.slice(start..end)),
                None => Err(damaged(&file.path, "its content is too short")),
            }
        })
    }

    /// Works with nodes that may be open already.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&mut Hand) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let kept = lock(&self.idle).pop();
        let mut hand = kept.unwrap_or_else(|| self.new_hand());
        let done = work(&mut hand);
        let mut idle = lock(&self.idle);
        if idle.len() < HANDS_KEPT {
            idle.push(hand);
        }
        done
    }

    fn new_hand(&self) -> Hand {
        Hand { nodes: self.nodes(), opener: self.opener() }
    }

    /// Nodes for who keeps them.
    pub(super) fn nodes(&self) -> Nodes {
        Nodes::with_cache(&self.access, self.session, Arc::clone(&self.cache))
    }

    /// An opener for a thread.
    pub(super) fn opener(&self) -> Opener {
        ChunkSource::opener(&self.access)
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        // What was read is read: a session that is not closed lapses.
        let _ = self.access.repository.close_session(&self.session);
    }
}

fn damaged(path: &[u8], reason: impl ToString) -> EngineError {
    EngineError::damaged(String::from_utf8_lossy(path), reason)
}

#[cfg(test)]
mod tests;
