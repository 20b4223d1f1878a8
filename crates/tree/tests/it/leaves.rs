//! Leaves that are known again and taken over whole: the tree must be the same as without.

use crate::common::*;
use holdall_format::ObjectId;
use holdall_tree::*;
use proptest::prelude::*;
use std::collections::HashMap;

const LEAF_BITS: u8 = 2;

fn fingerprints() -> Fingerprints {
    Fingerprints::new(*keys().leaf_key(), *keys().boundary_key(), LEAF_BITS)
}

fn builder() -> TreeBuilder {
    TreeBuilder::new(keys().ids().clone(), *keys().boundary_key(), LEAF_BITS)
        .with_fingerprints(fingerprints())
}

/// Nodes, and how leaves are known again.
#[derive(Default)]
struct Known {
    nodes: Nodes,
    leaves: HashMap<ObjectId, Option<KnownLeaf>>,
}

impl NodeSink for Known {
    type Error = Missing;

    fn put(&mut self, node: BuiltNode) -> Result<(), Missing> {
        assert!(node.kind == NodeKind::Leaf || node.known.is_none());
        if node.kind == NodeKind::Leaf {
            self.leaves.insert(node.id, node.known);
        }
        self.nodes.put(node)
    }
}

fn built(model: &Model) -> (Root, Known) {
    let (mut known, mut builder) = (Known::default(), builder());
    for (path, entry) in model {
        builder.push(path, entry, &mut known).unwrap();
    }
    (builder.finish(&mut known).unwrap(), known)
}

/// How these entries would be known again if they were the leaf with that id.
fn fingerprint_of(leaf: &ObjectId, entries: &[(&PathKey, &Entry)]) -> Option<KnownLeaf> {
    let mut record = LeafRecord::default();
    entries.iter().for_each(|(path, entry)| record.add(path, &Facts::from(*entry)));
    record.take(&fingerprints(), leaf)
}

/// Builds a tree with whatever leaves of another can be taken over; says how many were.
fn adopting(model: &Model, root: Root, known: &mut Known) -> (Root, usize) {
    let entries: Vec<_> = model.iter().collect();
    let mut cursor = Cursor::new(known.nodes.clone(), root.id);
    let (mut builder, mut adopted, mut at) = (builder(), 0, 0);
    while let Some((path, entry)) = entries.get(at) {
        let ahead = cursor.leaf_at(path).unwrap();
        let starts = |at: usize| entries.get(at).map(|(path, _)| fingerprints().starts_leaf(path));
        let whole = ahead.filter(|_| at == 0 || starts(at) == Some(true)).and_then(|ahead| {
            let held = entries.get(at..at + ahead.items as usize)?;
            let known = known.leaves[&ahead.id];
            let same = known.is_some() && known == fingerprint_of(&ahead.id, held);
            let ends = starts(at + held.len()) != Some(false);
            (same && ends).then_some((ahead, held))
        });
        match whole {
            Some((LeafAhead { id, items, bytes }, held)) => {
                let path = |at: usize| held[at].0.clone();
                let (first, last) = (path(0), path(held.len() - 1));
                let leaf = WholeLeaf { id, first, last: Some(last), items, bytes };
                builder.push_leaf(leaf, known).unwrap();
                cursor.skip_leaf();
                (at, adopted) = (at + held.len(), adopted + 1);
            }
            None => {
                builder.push(path, entry, known).unwrap();
                cursor.peek().unwrap();
                at += 1;
            }
        }
    }
    (builder.finish(known).unwrap(), adopted)
}

#[test]
fn an_unchanged_tree_is_all_leaves_of_the_one_before_and_fetches_none() {
    let model = many_files(3000);
    let (root, mut known) = built(&model);
    let leaves = known.leaves.len();
    assert!(known.leaves.values().all(Option::is_some));
    known.nodes.fetched = 0;
    let mut cursor = Cursor::new(&mut known.nodes, root.id);
    for path in model.keys() {
        if cursor.leaf_at(path).unwrap().is_some() {
            cursor.skip_leaf();
        }
    }
    let fetched = known.nodes.fetched;
    assert!(fetched < known.nodes.by_id.len() - leaves + 1, "{fetched} of the interior nodes");
    assert_eq!(adopting(&model, root, &mut known), (root, leaves));
}

#[test]
fn what_can_change_unseen_or_is_computed_anew_has_no_fingerprint() {
    for spoil in [
        |entry: &mut Entry| entry.unsettled = true,
        |entry: &mut Entry| entry.hardlink = Some([1; 16]),
    ] {
        let mut model = many_files(300);
        let (_, before) = built(&model);
        spoil(model.get_mut(&key("/folder-2/file-120.txt")).unwrap());
        let (root, mut known) = built(&model);
        let without = known.leaves.values().filter(|known| known.is_none()).count();
        assert_eq!((without, known.leaves.len()), (1, before.leaves.len()));
        let adopted = adopting(&model, root, &mut known);
        assert_eq!(adopted, (root, before.leaves.len() - 1));
    }
}

#[test]
fn every_fact_is_in_the_fingerprint_and_the_leaf_too() {
    let path = key("/a");
    let entry = file(7);
    let of = |entry: &Entry| fingerprint_of(&id(1), &[(&path, entry)]);
    let device = EntryKind::CharDevice { major: 1, minor: 2 };
    let time = Time { secs: 1, nanos: 0 };
    let nanos = Time { secs: 0, nanos: 1 };
    let others = [
        Entry { kind: EntryKind::Symlink, size: 0, ..entry.clone() },
        Entry { kind: device, ..entry.clone() },
        Entry { kind: EntryKind::CharDevice { major: 2, minor: 1 }, ..entry.clone() },
        Entry { kind: EntryKind::BlockDevice { major: 1, minor: 2 }, ..entry.clone() },
        Entry { mode: 0o600, ..entry.clone() },
        Entry { uid: 1, ..entry.clone() },
        Entry { gid: 1, ..entry.clone() },
        Entry { mtime: time, ..entry.clone() },
        Entry { mtime: nanos, ..entry.clone() },
        Entry { ctime: time, ..entry.clone() },
        Entry { ctime: nanos, ..entry.clone() },
        Entry { size: 8, ..entry.clone() },
        Entry { inode: 8, ..entry.clone() },
    ];
    let mut all: Vec<_> = others.iter().map(of).collect();
    all.push(of(&entry));
    all.push(fingerprint_of(&id(2), &[(&path, &entry)]));
    all.push(fingerprint_of(&id(1), &[(&key("/b"), &entry)]));
    all.push(fingerprint_of(&id(1), &[(&path, &entry), (&key("/b"), &entry)]));
    for (at, one) in all.iter().enumerate() {
        assert!(one.is_some() && !all[..at].contains(one), "number {at}");
    }
}

#[test]
fn a_whole_leaf_is_taken_only_where_one_begins() {
    let paths = || (0..).map(|n| key(&format!("/{n:04}")));
    let starts = |path: &PathKey| fingerprints().starts_leaf(path);
    let plain = paths().filter(|path| !starts(path)).take(4).collect::<Vec<_>>();
    let start = paths().find(|path| starts(path) && *path > plain[1] && *path < plain[3]);
    let whole = |first: &PathKey| WholeLeaf {
        id: id(1),
        first: first.clone(),
        last: None,
        items: 1,
        bytes: 1,
    };
    let (mut sink, mut builder) = (|_| Ok::<(), Missing>(()), builder());
    builder.push(&plain[0], &file(1), &mut sink).unwrap();
    assert_eq!(builder.push_leaf(whole(&plain[1]), &mut sink), Err(BuildError::NoBoundary));
    let start = start.unwrap();
    builder.push_leaf(whole(&start), &mut sink).unwrap();
    assert_eq!(builder.push(&start, &file(1), &mut sink), Err(BuildError::OutOfOrder));
    let next = paths().find(|path| starts(path) && *path > start).unwrap();
    builder.push(&next, &file(1), &mut sink).unwrap();
    assert_eq!(builder.finish(&mut sink).map(|root| root.items), Ok(3));
}

/// A backup takes a leaf over when it sees the path behind it, which may vanish before it is read.
#[test]
fn what_comes_behind_a_whole_leaf_begins_another_if_what_should_does_not_come() {
    let model = many_files(300);
    let (root, mut known) = built(&model);
    let entries: Vec<_> = model.iter().collect();
    let starts = |at: &usize| fingerprints().starts_leaf(entries[*at].0);
    let starts: Vec<_> = (100..entries.len()).filter(starts).collect();
    let [whole_at, gone_at, _] =
        *starts.array_windows().find(|[_, gone, next]| gone + 1 < *next).unwrap();
    let mut cursor = Cursor::new(known.nodes.clone(), root.id);
    let ahead = cursor.leaf_at(entries[whole_at].0).unwrap().unwrap();
    let mut builder = builder();
    for (path, entry) in &entries[..whole_at] {
        builder.push(path, entry, &mut known).unwrap();
    }
    let path = |at: usize| entries[at].0.clone();
    let (first, last) = (path(whole_at), path(gone_at - 1));
    let LeafAhead { id, items, bytes } = ahead;
    builder.push_leaf(WholeLeaf { id, first, last: Some(last), items, bytes }, &mut known).unwrap();
    for (path, entry) in &entries[gone_at + 1..] {
        builder.push(path, entry, &mut known).unwrap();
    }
    let built = builder.finish(&mut known).unwrap();
    let mut expected = model.clone();
    expected.remove(entries[gone_at].0);
    assert_eq!(read_all(&mut known.nodes, built.id), Ok(expected));
}

/// Goes from leaf to leaf as a backup does that is told what changed.
#[test]
fn leaves_between_two_keys_are_given_without_being_fetched() {
    let model = many_files(3000);
    let (root, mut known) = built(&model);
    let [from, until] = ["/folder-2", "/folder-3"].map(key);
    known.nodes.fetched = 0;
    let mut cursor = Cursor::new(&mut known.nodes, root.id);
    cursor.seek_bytes(from.as_bytes()).unwrap();
    let (mut items, mut leaves) = (0, 0);
    loop {
        if let Some(leaf) = cursor.leaf_before(Some(until.as_bytes())).unwrap() {
            assert!(*leaf.first >= from && leaf.first < leaf.next && *leaf.next < until);
            (items, leaves) = (items + leaf.ahead.items, leaves + 1);
            cursor.skip_leaf();
            continue;
        }
        let Some(_) = cursor.peek().unwrap().filter(|(path, _)| **path < until) else { break };
        cursor.advance();
        items += 1;
    }
    assert_eq!(cursor.peek().unwrap().map(|(path, _)| path.clone()), Some(until.clone()));
    assert_eq!(items, model.range(from..until).count() as u64);
    let fetched = known.nodes.fetched;
    assert!(leaves > 100 && fetched < leaves, "{leaves} leaves, {fetched} nodes fetched");
}

#[test]
fn the_only_leaf_of_a_tree_is_its_root_wherever_it_comes_from() {
    let model = many_files(200);
    let (root, mut known) = built(&model);
    let mut cursor = Cursor::new(known.nodes.clone(), root.id);
    let first = cursor.leaf_at(&PathKey::root()).unwrap().unwrap();
    let rest: Model = model.into_iter().take(first.items as usize).collect();
    let (expected, _) = built(&rest);
    assert_eq!(expected, Root { id: first.id, level: 0, items: first.items, bytes: first.bytes });
    assert_eq!(adopting(&rest, root, &mut known), (expected, 1));
}

proptest! {
    #[test]
    fn a_tree_with_leaves_taken_over_is_the_one_built_of_its_entries(
        model in any_model(120),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0u8..6, any_path()), 0..8)
    ) {
        // An edit never leaves all facts as they were.
        let new = |size| Entry { ctime: Time { secs: 99, nanos: 9 }, ..file(size) };
        let mut edited = model.clone();
        for (at, edit, path) in edits {
            let Some(at) = edited.keys().nth(at.index(edited.len().max(1))).cloned() else { break };
            let Some(entry) = edited.get_mut(&at) else { break };
            match edit {
                0 => entry.mode ^= 1,
                1 => entry.ctime.secs ^= 1,
                2 => entry.inode ^= 1,
                3 => drop(edited.remove(&at)),
                4 => drop(edited.insert(at.child(b"\x01").unwrap_or(path), new(3))),
                _ => drop(edited.insert(path, new(4))),
            }
        }
        let (root, mut known) = built(&model);
        let (expected, _) = built(&edited);
        let (found, _) = adopting(&edited, root, &mut known);
        prop_assert_eq!(found, expected);
        prop_assert_eq!(read_all(&mut known.nodes, found.id), Ok(edited));
    }
}

#[test]
fn every_leaf_is_passed_by_its_first_path() {
    for count in [1, 3, 500] {
        let model: Model = (0..count)
            .map(|at| {
                let path = PathKey::from_absolute(format!("/file-{at:04}").as_bytes()).unwrap();
                (path, Entry::empty(EntryKind::File))
            })
            .collect();
        let (root, known) = built(&model);
        let mut firsts = Vec::new();
        let (mut cursor, mut leaf) = (Cursor::new(known.nodes.clone(), root.id), None);
        while let Some((path, _)) = cursor.next().unwrap() {
            if cursor.leaf_id() != leaf {
                leaf = cursor.leaf_id();
                firsts.push(path);
            }
        }
        let mut cursor = Cursor::new(known.nodes.clone(), root.id);
        let mut passed = Vec::new();
        while let Some(first) = cursor.next_leaf().unwrap() {
            passed.push(first);
        }
        assert_eq!(passed, firsts);
        assert_eq!(passed.len() > 1, count == 500);
    }
}
