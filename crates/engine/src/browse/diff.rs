//! What two snapshots have not in common.

use std::sync::Arc;

use holdall_format::SessionId;
use holdall_tree::{Change, Entry, PathKey, TreeError, diff_below, lookup};

use crate::blocks::{Nodes, open_node_cache};
use crate::records::snapshot_path::{key_of, no_path};
use crate::{ChangeKind, EngineError, EntryChange, Run, Snapshot, UnlockedRepository};

/// A path whose entry changed.
#[derive(Debug, Clone)]
pub struct ChangedEntry<'a> {
    /// The absolute path, any bytes.
    pub path: &'a [u8],
    /// Its entry in the first snapshot.
    pub before: Option<&'a Entry>,
    /// Its entry in the second snapshot.
    pub after: Option<&'a Entry>,
    /// How they differ.
    pub change: EntryChange,
}

/// How much changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffSummary {
    /// Entries that only the second snapshot has.
    pub added: u64,
    /// Entries that only the first snapshot has.
    pub removed: u64,
    /// Entries with other content.
    pub changed: u64,
    /// Entries that are of another type.
    pub type_changed: u64,
    /// Entries of which only metadata changed.
    pub metadata: u64,
    /// Sizes of the files that were added, and of those with other content as they are after it.
    pub bytes_added: u64,
    /// Sizes of the files that were removed, and of those with other content as they were before.
    pub bytes_removed: u64,
}

impl DiffSummary {
    fn count(&mut self, entry: &ChangedEntry<'_>) {
        let counter = match entry.change.kind {
            ChangeKind::Added => &mut self.added,
            ChangeKind::Removed => &mut self.removed,
            ChangeKind::Type => &mut self.type_changed,
            ChangeKind::Content => &mut self.changed,
            ChangeKind::Metadata => &mut self.metadata,
        };
        *counter += 1;
        if entry.change.kind != ChangeKind::Metadata {
            let bytes = |entry: Option<&Entry>| entry.map_or(0, Entry::counted_bytes);
            self.bytes_added = self.bytes_added.saturating_add(bytes(entry.after));
            self.bytes_removed = self.bytes_removed.saturating_add(bytes(entry.before));
        }
    }
}

/// Shows how what is at an absolute path, and below it, differs between two snapshots: in the order
/// of the tree, without fetching content, nor nodes that both have.
///
/// # Errors
/// [`EngineError::NoPath`] if neither has the path; [`EngineError::Damaged`] for a tree that cannot
/// be read on; [`EngineError::Interrupted`]; the first error of `visit`.
pub fn diff(
    access: &UnlockedRepository,
    before: &Snapshot,
    after: &Snapshot,
    path: &[u8],
    run: &Run,
    visit: &mut dyn FnMut(ChangedEntry<'_>) -> Result<(), EngineError>,
) -> Result<DiffSummary, EngineError> {
    let mut summary = DiffSummary::default();
    let mut on_change = |change: Change| {
        run.check()?;
        let (before, after) = (change.before.as_ref(), change.after.as_ref());
        let Some(how) = EntryChange::between(before, after) else { return Ok(()) };
        let path = &change.path.to_absolute();
        let entry = ChangedEntry { path, before, after, change: how };
        summary.count(&entry);
        visit(entry)
    };
    access.reading(|session| diff_in(access, session, before, after, path, &mut on_change))?;
    Ok(summary)
}

fn diff_in(
    access: &UnlockedRepository,
    session: SessionId,
    before: &Snapshot,
    after: &Snapshot,
    path: &[u8],
    on_change: &mut dyn FnMut(Change) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let top = key_of(path).ok_or_else(|| no_path(after, path))?;
    let cache = open_node_cache(access);
    let nodes = || Nodes::with_cache(access, session, Arc::clone(&cache));
    let (mut first, mut second) = (nodes(), nodes());
    if !is_in(&mut first, before, &top)? && !is_in(&mut second, after, &top)? {
        return Err(no_path(after, path));
    }
    let compared = diff_below((first, before.root), (second, after.root), &top, on_change);
    compared.map_err(EngineError::from)
}

fn is_in(
    nodes: &mut Nodes,
    snapshot: &Snapshot,
    path: &PathKey,
) -> Result<bool, TreeError<EngineError>> {
    Ok(path.is_root() || lookup(nodes, snapshot.root, path)?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_world::{World, directory, small_file};

    type Lines = Vec<(String, ChangeKind)>;

    fn differences(path: &str) -> Result<(Lines, DiffSummary), EngineError> {
        let world = World::new();
        let before = world.snapshot(&[
            ("/", directory()),
            ("/a", directory()),
            ("/a/gone", small_file(b"12345")),
            ("/a/same", small_file(b"same")),
            ("/b", directory()),
            ("/b/edited", small_file(b"one")),
            ("/b/mode", small_file(b"x")),
            ("/b/type", small_file(b"x")),
        ]);
        let after = world.snapshot(&[
            ("/", directory()),
            ("/a", directory()),
            ("/a/same", Entry { inode: 9, ..small_file(b"same") }),
            ("/b", directory()),
            ("/b/edited", small_file(b"three")),
            ("/b/mode", Entry { mode: 0o600, ..small_file(b"x") }),
            ("/b/new", small_file(b"1234567")),
            ("/b/type", directory()),
        ]);
        let mut lines = Vec::new();
        let visit = &mut |entry: ChangedEntry<'_>| {
            let path = String::from_utf8_lossy(entry.path).into_owned();
            lines.push((path, entry.change.kind));
            Ok(())
        };
        let (access, path) = (&world.access, path.as_bytes());
        let summary = diff(access, &before, &after, path, &Run::new(), visit)?;
        Ok((lines, summary))
    }

    #[test]
    fn changes_are_told_in_the_order_of_the_tree_and_counted() {
        let (lines, summary) = differences("/").unwrap();
        let expected = [
            ("/a/gone", ChangeKind::Removed),
            ("/b/edited", ChangeKind::Content),
            ("/b/mode", ChangeKind::Metadata),
            ("/b/new", ChangeKind::Added),
            ("/b/type", ChangeKind::Type),
        ];
        assert_eq!(lines, expected.map(|(path, kind)| (path.to_owned(), kind)));
        let counts = DiffSummary {
            added: 1,
            removed: 1,
            changed: 1,
            type_changed: 1,
            metadata: 1,
            bytes_added: 7 + 5,
            bytes_removed: 5 + 3 + 1,
        };
        assert_eq!(summary, counts);
    }

    #[test]
    fn below_a_path_only_what_is_there_counts() {
        assert_eq!(differences("/a").unwrap().0, [("/a/gone".to_owned(), ChangeKind::Removed)]);
        assert_eq!(differences("/b/new").unwrap().1.added, 1);
        for path in ["/c", "/a/same/x", "a"] {
            assert!(matches!(differences(path), Err(EngineError::NoPath { .. })), "{path}");
        }
    }
}
