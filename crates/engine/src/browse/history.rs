//! What became of one path from snapshot to snapshot.

use std::collections::HashMap;

use holdall_format::{MachineId, ObjectId};
use holdall_tree::{Entry, NodeSource, PathKey, lookup};

use crate::blocks::Nodes;
use crate::error::is_damaged;
use crate::records::snapshot_path::key_of;
use crate::{EngineError, EntryChange, Run, Snapshot, UnlockedRepository};

/// A snapshot in which a path is not what it was in the one before of that machine.
#[derive(Debug, Clone)]
pub struct Version<'a> {
    /// The snapshot.
    pub snapshot: &'a Snapshot,
    /// How it differs from the one before.
    pub change: EntryChange,
    /// What is there; nothing if it was removed.
    pub entry: Option<Entry>,
}

/// The versions of what is at an absolute path, newest first; none if it was never there.
///
/// The snapshots come oldest first, as [`crate::snapshots`] lists them. Each is compared with the one
/// before it of the same machine, and a copy with the copy before it of the same host, so they should
/// all be of that path. A copy stands where its original would.
///
/// A snapshot whose tree cannot be read there is noted as a problem, and compared with no other.
///
/// # Errors
/// [`EngineError::Interrupted`]; [`EngineError::Repository`] if the repository cannot be asked.
pub fn history<'a>(
    access: &UnlockedRepository,
    snapshots: &[&'a Snapshot],
    path: &[u8],
    run: &Run,
) -> Result<Vec<Version<'a>>, EngineError> {
    let Some(key) = key_of(path) else { return Ok(Vec::new()) };
    access.reading(|session| history_in(Nodes::open(access, session), snapshots, &key, run))
}

pub(super) fn history_in<'a>(
    mut nodes: impl NodeSource<Error = EngineError>,
    snapshots: &[&'a Snapshot],
    key: &PathKey,
    run: &Run,
) -> Result<Vec<Version<'a>>, EngineError> {
    let mut versions = Vec::new();
    let mut last: HashMap<_, (ObjectId, Option<Entry>)> = HashMap::new();
    for snapshot in by_age(snapshots) {
        run.check()?;
        let line = line_of(snapshot);
        let before = last.get(&line);
        if before.is_some_and(|(root, _)| *root == snapshot.root) {
            continue;
        }
        let entry = match lookup(&mut nodes, snapshot.root, key).map_err(EngineError::from) {
            Err(error) if is_damaged(&error) => {
                let reason = format!(
                    "snapshot {:.10} cannot be read there: {error}",
                    snapshot.id.to_string()
                );
                run.damage(&key.to_absolute(), reason);
                continue;
            }
            found => found?,
        };
        let before = before.and_then(|(_, entry)| entry.as_ref());
        if let Some(change) = EntryChange::between(before, entry.as_ref()) {
            versions.push(Version { snapshot, change, entry: entry.clone() });
        }
        last.insert(line, (snapshot.root, entry));
    }
    versions.reverse();
    Ok(versions)
}

/// Which snapshots are compared with each other: those of a machine, and its copies of those of a host.
fn line_of(snapshot: &Snapshot) -> (MachineId, Option<&str>) {
    (snapshot.machine, snapshot.is_copy().then_some(snapshot.secret.host.as_str()))
}

/// Copies by the age of their originals, between all others in order of the log: clocks may be wrong.
fn by_age<'a>(snapshots: &[&'a Snapshot]) -> Vec<&'a Snapshot> {
    let (mut copies, made): (Vec<_>, Vec<_>) =
        snapshots.iter().copied().partition(|snapshot| snapshot.is_copy());
    copies.sort_by_key(|copy| copy.taken_ns());
    let (mut copies, mut all) = (copies.into_iter().peekable(), Vec::new());
    for one in made {
        while let Some(copy) = copies.next_if(|copy| copy.taken_ns() < one.taken_ns()) {
            all.push(copy);
        }
        all.push(one);
    }
    all.extend(copies);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChangeKind;
    use crate::test_world::{World, directory, small_file};
    use holdall_crypto::CopiedFrom;
    use holdall_format::RecordHash;

    #[test]
    fn every_snapshot_in_which_the_path_is_another_is_told_newest_first() {
        let world = World::new();
        let with = |entry: Option<Entry>| {
            let mut entries = vec![("/", directory())];
            entries.extend(entry.map(|entry| ("/file", entry)));
            world.snapshot(&entries)
        };
        let one = small_file(b"one");
        let listed = [
            with(None),
            with(Some(one.clone())),
            with(Some(one.clone())),
            with(Some(Entry { inode: 3, ..one.clone() })),
            with(Some(Entry { mode: 0o600, ..one.clone() })),
            with(Some(small_file(b"two"))),
            with(None),
            with(Some(one)),
        ];
        let listed: Vec<_> = listed.iter().collect();
        let run = Run::new();
        let versions = history(&world.access, &listed, b"/file", &run).unwrap();
        let kinds: Vec<_> = versions.iter().map(|version| version.change.kind).collect();
        let expected = [
            ChangeKind::Added,
            ChangeKind::Removed,
            ChangeKind::Content,
            ChangeKind::Metadata,
            ChangeKind::Added,
        ];
        assert_eq!(kinds, expected);
        assert!(versions[1].entry.is_none() && versions[4].snapshot.root == listed[1].root);
        assert!(history(&world.access, &listed, b"/other", &run).unwrap().is_empty());
        assert!(history(&world.access, &listed, b"relative", &run).unwrap().is_empty());
        run.stop();
        let ended = history(&world.access, &listed, b"/file", &run);
        assert!(matches!(ended, Err(EngineError::Interrupted)));
    }

    #[test]
    fn machines_are_not_compared_with_each_other() {
        let world = World::new();
        let one = world.snapshot(&[("/file", small_file(b"one"))]);
        let two = world.snapshot(&[("/file", small_file(b"two"))]);
        let two = Snapshot { machine: MachineId::from_bytes([8; 16]), ..two };
        let listed = [&one, &two, &one, &two];
        let versions = history(&world.access, &listed, b"/file", &Run::new()).unwrap();
        let kinds: Vec<_> = versions.iter().map(|version| version.change.kind).collect();
        assert_eq!(kinds, [ChangeKind::Added; 2]);
    }

    #[test]
    fn copies_of_each_host_are_compared_with_each_other_by_the_age_of_their_originals() {
        let world = World::new();
        let of = |host: &str, content: &[u8], received_ns: i64| {
            let record = RecordHash::from_bytes([received_ns as u8; 32]);
            let from = CopiedFrom { record, received_ns, through: None };
            let mut copy = world.snapshot(&[("/file", small_file(content))]);
            (copy.secret.host, copy.secret.copied_from) = (host.to_owned(), Some(from));
            copy
        };
        let (old, new) = (of("a", b"old", 1), of("a", b"new", 3));
        let (other, again) = (of("b", b"b", 2), of("b", b"b", 4));
        let versions =
            history(&world.access, &[&new, &other, &old, &again], b"/file", &Run::new()).unwrap();
        let told = versions.iter().map(|version| (version.snapshot.root, version.change.kind));
        let expected = [
            (new.root, ChangeKind::Content),
            (other.root, ChangeKind::Added),
            (old.root, ChangeKind::Added),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        let made = |received_ns| Snapshot { received_ns, ..world.snapshot(&[]) };
        let (first, second) = (made(9), made(2));
        let ages: Vec<_> = by_age(&[&first, &second, &of("a", b"", 3)])
            .into_iter()
            .map(Snapshot::taken_ns)
            .collect();
        assert_eq!(ages, [3, 9, 2]);
    }
}
