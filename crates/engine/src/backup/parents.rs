//! The parents: the newest snapshot of the series, and a checkpoint if one is newer, gone through
//! in step with the source.

use std::cmp::Ordering;

use holdall_format::{RecordHash, SeriesId, SessionId};
use holdall_tree::{Cursor, Entry, PathKey};

use crate::blocks::{Nodes, SharedNodeCache};
use crate::snapshots::{Snapshot, records};
use crate::storing::Shared;
use crate::{Access, EngineError};

/// The records that a run of this series builds on, newest first: a checkpoint, if that is newer
/// than the last snapshot, and the last snapshot.
pub(super) fn choose(access: &Access, series: &SeriesId) -> Result<Vec<Snapshot>, EngineError> {
    let all = records(access)?;
    let mut parents = Vec::new();
    for record in all
        .into_iter()
        .rev()
        .filter(|record| record.series == *series && record.machine == access.machine)
    {
        let is_checkpoint = record.checkpoint;
        if parents.is_empty() || !is_checkpoint {
            parents.push(record);
        }
        if !is_checkpoint {
            break;
        }
    }
    Ok(parents)
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

    fn note_nodes(&mut self) {
        for cursor in &mut self.cursors {
            self.shared.note_parents(&cursor.take_visited());
        }
    }
}
