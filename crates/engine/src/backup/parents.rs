//! The parents: the newest snapshot of the series, and a checkpoint if one is newer, gone through
//! in step with the source.
//!
//! A series that has none yet begins with this machine's newest of the same paths under another
//! host's name: a computer that was renamed, or that replaces a lost one, goes on from what is there
//! and does not compare its files with nothing. Which parent is chosen never decides what a snapshot
//! holds, only what must be read anew.

use std::cmp::Ordering;

use holdall_format::{RecordHash, SeriesId, SessionId};
use holdall_tree::{Cursor, Entry, PathKey};

use super::options::Source;
use crate::blocks::{Nodes, SharedNodeCache};
use crate::snapshots::{Snapshot, newest, records};
use crate::storing::Shared;
use crate::{Access, EngineError};

/// The records that a run of this series and of these paths builds on, newest first: a checkpoint,
/// if that is newer than the last snapshot that was made here, and the newest snapshot, which may be
/// a copy.
pub(super) fn choose(
    access: &Access,
    series: &SeriesId,
    sources: &[Source],
) -> Result<Vec<Snapshot>, EngineError> {
    let mut own = records(access)?;
    own.retain(|record| record.machine == access.machine);
    let of_series = among(&own, |record| record.series == *series);
    if !of_series.is_empty() {
        return Ok(of_series);
    }
    let paths = || sources.iter().map(|source| &source.path);
    Ok(among(&own, |record| record.secret.paths.iter().eq(paths())))
}

/// The newest snapshot of those that fit, behind the last checkpoint if that is newer.
fn among(records: &[Snapshot], fits: impl Fn(&Snapshot) -> bool) -> Vec<Snapshot> {
    let fitting = || records.iter().filter(|record| fits(record));
    let is_copy = |record: &Snapshot| record.secret.copied_from.is_some();
    let last_made = fitting().rfind(|record| !is_copy(record));
    let checkpoint = last_made.filter(|record| record.checkpoint);
    let snapshot = newest(fitting().filter(|record| !record.checkpoint));
    checkpoint.into_iter().chain(snapshot).cloned().collect()
}

/// The names of the parents, for the session.
pub(super) fn names(parents: &[Snapshot]) -> Vec<RecordHash> {
    parents.iter().map(|parent| parent.id).collect()
}

/// The parents' entries, in step with the source.
pub(super) struct Parents<'a> {
    cursors: Vec<Cursor<Nodes>>,
    shared: &'a Shared<'a>,
}

impl<'a> Parents<'a> {
    pub(super) fn open(
        access: &Access,
        session: SessionId,
        cache: &SharedNodeCache,
        parents: &[Snapshot],
        shared: &'a Shared<'a>,
    ) -> Self {
        let cursors = parents
            .iter()
            .map(|parent| {
                let nodes = Nodes::with_cache(access, session, SharedNodeCache::clone(cache));
                Cursor::new(nodes, parent.root).noting_visited()
            })
            .collect();
        Self { cursors, shared }
    }

    /// The newest parent's entry at `path`. Paths must be asked for in ascending order.
    pub(super) fn find(&mut self, path: &PathKey) -> Result<Option<&Entry>, EngineError> {
        for cursor in &mut self.cursors {
            while cursor.peek()?.is_some_and(|(at, _)| at < path) {
                cursor.advance();
            }
        }
        self.note_nodes();
        let found = self.cursors.iter().find_map(|cursor| {
            cursor.current().filter(|(at, _)| (*at).cmp(path) == Ordering::Equal)
        });
        Ok(found.map(|(_, entry)| entry))
    }

    /// How many entries the parents have below `path`, whichever has more. Steps past them.
    pub(super) fn count_below(&mut self, path: &PathKey) -> Result<u64, EngineError> {
        let mut most = 0;
        for cursor in &mut self.cursors {
            let mut count = 0;
            while let Some((at, _)) =
                cursor.peek()?.filter(|(at, _)| *at <= path || path.is_ancestor_of(at))
            {
                count += u64::from(path.is_ancestor_of(at));
                cursor.advance();
            }
            most = most.max(count);
        }
        self.note_nodes();
        Ok(most)
    }

    fn note_nodes(&mut self) {
        for cursor in &mut self.cursors {
            self.shared.note_parents(&cursor.take_visited());
        }
    }
}
