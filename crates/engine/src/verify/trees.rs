//! Walking the trees of all snapshots.
//!
//! Nodes come from the repository and never from this machine's cache, since what is only here is lost
//! to everybody else; where it is known already what is lost, and only looked for who needs it, they may
//! come from the cache.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use holdall_crypto::Opener;
use holdall_format::{ObjectId, SessionId};
use holdall_tree::{
    Attributes, ChunkRef, Content, ContentReader, Cursor, Entry, EntryKind, PathKey, diff,
};

use super::blocks::GoodIds;
use super::{DamagedPath, VerifyProgress, VerifyReport};
use crate::blocks::{Nodes, SharedNodeCache};
use crate::error::is_damaged;
use crate::restore::{ChunkSource, Layout, SIDE_CONTENT_MAX_BYTES};
use crate::{EngineError, Run, Snapshot, UnlockedRepository};

/// Sampled chunks are fetched when they have so many bytes together.
const SAMPLE_BYTES: u64 = 4 << 20;
/// Entries after which a stop is looked for.
const CHECK_EVERY: u64 = 1024;

/// How chunks are checked.
pub(crate) enum Check<'a> {
    /// They must be among those that were opened.
    AmongThese(&'a GoodIds),
    /// Those that the key chooses are fetched.
    Sample { percent: u8, key: [u8; 32] },
    /// They must not be among those that the repository lost.
    NotAmongThese { lost: Arc<HashSet<ObjectId>>, cache: SharedNodeCache },
}

impl Check<'_> {
    /// Where the nodes of a walk come from.
    fn nodes(&self, access: &UnlockedRepository, session: SessionId) -> Nodes {
        match self {
            Self::AmongThese(_) | Self::Sample { .. } => stored_nodes(access, session),
            Self::NotAmongThese { lost, cache } => {
                Nodes::with_cache(access, session, Arc::clone(cache)).without(Arc::clone(lost))
            }
        }
    }
}

/// Walks these snapshots, oldest first, each compared with the one before of its series.
///
/// # Errors
/// What keeps it from running at all.
pub(crate) fn walk_all(
    access: &UnlockedRepository,
    session: SessionId,
    snapshots: &[Snapshot],
    check: Check<'_>,
    report: VerifyReport,
    run: &Run,
    progress: &mut dyn FnMut(VerifyProgress),
) -> Result<VerifyReport, EngineError> {
    let mut walk = Walk {
        access,
        session,
        lists: check.nodes(access, session),
        entries: 0,
        checker: Checker {
            check,
            run,
            chunks: ChunkSource::new(access, session),
            opener: ChunkSource::opener(access),
            sample: Vec::new(),
            sample_bytes: 0,
            snapshot: String::new(),
            last_damaged: None,
            report,
        },
    };
    for (at, snapshot) in snapshots.iter().enumerate() {
        let before = snapshots[..at].iter().rfind(|before| before.series == snapshot.series);
        walk.checker.snapshot = snapshot.id.to_string();
        walk.checker.last_damaged = None;
        walk.snapshot(snapshot, before)?;
        walk.checker.report.snapshots += 1;
        progress(walk.checker.report.progress());
    }
    Ok(walk.checker.report)
}

/// Nodes as the repository has them.
pub(crate) fn stored_nodes(access: &UnlockedRepository, session: SessionId) -> Nodes {
    let no_cache: SharedNodeCache = Arc::new(Mutex::new(None));
    Nodes::with_cache(access, session, no_cache)
}

struct Walk<'a> {
    access: &'a UnlockedRepository,
    session: SessionId,
    /// Nodes of lists of chunks.
    lists: Nodes,
    entries: u64,
    checker: Checker<'a>,
}

/// Checks chunks, and keeps what is found.
struct Checker<'a> {
    check: Check<'a>,
    run: &'a Run,
    chunks: ChunkSource,
    opener: Opener,
    /// Chunks to be fetched, with the paths that name them.
    sample: Vec<(ChunkRef, PathKey)>,
    sample_bytes: u64,
    /// The snapshot that is being walked.
    snapshot: String,
    /// The path of it that was found damaged last: one can lack thousands of chunks.
    last_damaged: Option<PathKey>,
    report: VerifyReport,
}

impl Walk<'_> {
    fn snapshot(
        &mut self,
        snapshot: &Snapshot,
        before: Option<&Snapshot>,
    ) -> Result<(), EngineError> {
        let compared = match before {
            Some(before) => self.changes(snapshot, before)?,
            None => false,
        };
        if !compared {
            self.whole(snapshot)?;
        }
        self.checker.fetch_sample()
    }

    fn nodes(&self) -> Nodes {
        self.checker.check.nodes(self.access, self.session)
    }

    /// Checks what differs from a snapshot that was checked before; false if one of them is
    /// damaged.
    fn changes(&mut self, snapshot: &Snapshot, before: &Snapshot) -> Result<bool, EngineError> {
        let (first, second) = (self.nodes(), self.nodes());
        let mut outcome = Ok(());
        let compared = diff((first, before.root), (second, snapshot.root), |change| {
            if let (Ok(()), Some(entry)) = (&outcome, &change.after) {
                outcome = self.entry(&change.path, entry);
            }
        });
        outcome?;
        match compared.map_err(EngineError::from) {
            Ok(()) => Ok(true),
            Err(error) if is_damaged(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn whole(&mut self, snapshot: &Snapshot) -> Result<(), EngineError> {
        let mut cursor = Cursor::new(self.nodes(), snapshot.root);
        let mut last = PathKey::root();
        loop {
            match cursor.next().map_err(EngineError::from) {
                Ok(Some((path, entry))) => {
                    self.entry(&path, &entry)?;
                    last = path;
                }
                Ok(None) => return Ok(()),
                Err(error) if is_damaged(&error) => {
                    let reason = format!("part of the tree after it is damaged: {error}");
                    self.checker.damaged(&last, reason);
                    cursor.skip_unreadable();
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn entry(&mut self, path: &PathKey, entry: &Entry) -> Result<(), EngineError> {
        self.entries += 1;
        if self.entries.is_multiple_of(CHECK_EVERY) {
            self.checker.run.check()?;
        }
        if let Err(reason) = fits(entry) {
            self.checker.damaged(path, reason);
        }
        for content in [Some(&entry.content), Some(&entry.attributes), entry.extents.as_ref()] {
            match content {
                None | Some(Content::Inline(_)) => {}
                Some(Content::Chunks(chunks)) => {
                    chunks.iter().try_for_each(|chunk| self.checker.chunk(path, *chunk))?;
                }
                Some(content) => self.list(path, content)?,
            }
        }
        Ok(())
    }

    fn list(&mut self, path: &PathKey, content: &Content) -> Result<(), EngineError> {
        let mut reader = ContentReader::new(&mut self.lists, content);
        loop {
            match reader.next().map_err(EngineError::from) {
                Ok(Some(chunk)) => self.checker.chunk(path, chunk)?,
                Ok(None) => return Ok(()),
                Err(error) if is_damaged(&error) => {
                    self.checker.damaged(path, format!("its list of chunks: {error}"));
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Checker<'_> {
    fn chunk(&mut self, path: &PathKey, chunk: ChunkRef) -> Result<(), EngineError> {
        match &self.check {
            Check::AmongThese(good) => {
                if !good.has_chunk(&chunk.id) {
                    let reason = format!("no good copy of chunk {} is stored", chunk.id);
                    self.damaged(path, reason);
                }
            }
            Check::NotAmongThese { lost, .. } => {
                if lost.contains(&chunk.id) {
                    self.damaged(path, format!("chunk {} is not stored any more", chunk.id));
                }
            }
            Check::Sample { percent, key } => {
                if chosen(key, *percent, &chunk.id) {
                    self.sample_bytes += u64::from(chunk.len_bytes);
                    self.sample.push((chunk, path.clone()));
                }
            }
        }
        if self.sample_bytes >= SAMPLE_BYTES { self.fetch_sample() } else { Ok(()) }
    }

    fn fetch_sample(&mut self) -> Result<(), EngineError> {
        self.run.check()?;
        let (wanted, paths): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.sample).into_iter().unzip();
        self.sample_bytes = 0;
        let got = self.chunks.get(&mut self.opener, &wanted, None)?;
        for (chunk, path) in got.into_iter().zip(paths) {
            self.report.objects += 1;
            match chunk {
                Ok(bytes) => {
                    self.report.bytes += bytes.len() as u64;
                    self.run.advance(1, bytes.len() as u64);
                }
                Err(reason) => self.damaged(&path, reason),
            }
        }
        Ok(())
    }

    fn damaged(&mut self, path: &PathKey, reason: String) {
        if self.last_damaged.as_ref() == Some(path) {
            return;
        }
        self.last_damaged = Some(path.clone());
        let snapshot = self.snapshot.clone();
        self.report.damaged_path(DamagedPath { snapshot, path: path.to_absolute(), reason });
    }
}

/// Whether an entry is one that a restore takes, as far as it alone tells: an error before its id was
/// computed is in what the id stands for.
fn fits(entry: &Entry) -> Result<(), String> {
    let sides = [Some(&entry.attributes), entry.extents.as_ref()];
    if sides.into_iter().flatten().any(|side| side.len_bytes() > SIDE_CONTENT_MAX_BYTES) {
        return Err("its attributes or extents are too long".to_owned());
    }
    if let Content::Inline(bytes) = &entry.attributes {
        Attributes::decode(bytes).map_err(|error| format!("its attributes: {error}"))?;
    }
    let has_layout = matches!(entry.extents, None | Some(Content::Inline(_)));
    if entry.kind == EntryKind::File && has_layout {
        Layout::of(entry).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Whether a chunk is in the sample: by its id, so that all snapshots agree.
fn chosen(key: &[u8; 32], percent: u8, id: &ObjectId) -> bool {
    let hash = blake3::keyed_hash(key, id.as_bytes());
    let number = hash.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    number % 100 < u64::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_about_as_many_of_a_hundred_as_asked() {
        let key = [7; 32];
        let ids = (0..10_000u32)
            .map(|at| ObjectId::from_bytes(*blake3::hash(&at.to_le_bytes()).as_bytes()));
        let ids: Vec<_> = ids.collect();
        let count = |percent| ids.iter().filter(|id| chosen(&key, percent, id)).count();
        assert_eq!((count(0), count(100)), (0, ids.len()));
        assert!((800..1200).contains(&count(10)), "{}", count(10));
    }
}
