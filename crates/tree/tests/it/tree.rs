//! Trees against a model: building, reading, seeking, comparing.

use crate::common::*;
use holdall_format::limits::CHUNK_MAX_BYTES;
use holdall_tree::*;
use proptest::prelude::*;

#[test]
fn a_tree_without_entries_is_one_empty_leaf() {
    let (root, mut nodes) = build(&Model::new(), 5);
    assert_eq!((root.level, root.items, root.bytes, nodes.by_id.len()), (0, 0, 0, 1));
    assert_eq!(read_all(&mut nodes, root.id), Ok(Model::new()));
    assert_eq!(lookup(nodes, root.id, &key("/a")), Ok(None));
}

#[test]
fn a_root_has_the_totals_of_its_tree() {
    let model = many_files(3000);
    for leaf_bits in 1..=8 {
        let (root, mut nodes) = build(&model, leaf_bits);
        assert_eq!(root.items, model.len() as u64);
        assert_eq!(root.bytes, (0..3000).sum::<u64>());
        assert!(root.level >= 1);
        assert_eq!(read_all(&mut nodes, root.id).as_ref(), Ok(&model));
    }
}

#[test]
fn entries_out_of_order_are_refused_and_others_go_on() {
    let keys = keys();
    let mut nodes = Nodes::default();
    let mut builder = TreeBuilder::new(keys.ids().clone(), *keys.boundary_key(), 1);
    builder.push(&key("/b"), &file(1), &mut nodes).unwrap();
    for path in ["/b", "/a", "/"] {
        let refused = builder.push(&key(path), &file(1), &mut nodes);
        assert_eq!(refused, Err(BuildError::OutOfOrder));
    }
    builder.push(&key("/c"), &file(1), &mut nodes).unwrap();
    let root = builder.finish(&mut nodes).unwrap();
    assert_eq!(read_all(&mut nodes, root.id).unwrap().len(), 2);
}

#[test]
fn an_entry_that_the_format_has_no_place_for_is_refused() {
    let chunk = |len_bytes| ChunkRef { id: id(1), len_bytes };
    let with = |content| Entry { content, ..file(1) };
    let too_late = Time { secs: 0, nanos: 1_000_000_000 };
    let keys = keys();
    for entry in [
        Entry { mode: 0o10000, ..file(1) },
        Entry { mtime: too_late, ..file(1) },
        Entry { user: vec![b'x'; OWNER_NAME_MAX_BYTES + 1].into(), ..file(1) },
        Entry { attributes: Content::Inline(vec![0; ATTRIBUTES_INLINE_MAX_BYTES + 1]), ..file(1) },
        with(Content::Inline(vec![0; CONTENT_INLINE_MAX_BYTES + 1])),
        with(Content::Chunks(Vec::new())),
        with(Content::Chunks(vec![chunk(1); CONTENT_MAX_CHUNKS + 1])),
        with(Content::Chunks(vec![chunk(0)])),
        with(Content::Chunks(vec![chunk(CHUNK_MAX_BYTES as u32 + 1)])),
        with(Content::List { id: id(1), len_bytes: 0 }),
    ] {
        let mut nodes = Nodes::default();
        let mut builder = TreeBuilder::new(keys.ids().clone(), *keys.boundary_key(), 5);
        let refused = builder.push(&key("/a"), &entry, &mut nodes);
        assert!(matches!(refused, Err(BuildError::InvalidEntry { .. })), "{entry:?}");
    }
}

#[test]
fn one_edit_changes_little_more_than_the_nodes_above_it() {
    let model = many_files(5000);
    let (root, nodes) = build(&model, 4);
    for number in [0u64, 777, 4999] {
        let path = key(&format!("/folder-{}/file-{number}.txt", number / 50));
        let mut changed = model.clone();
        changed.insert(path.clone(), file(1 << 40));
        let mut removed = model.clone();
        removed.remove(&path);
        let mut added = model.clone();
        added.insert(path.child(b"x").unwrap(), file(1));
        for edited in [changed, removed, added] {
            let (_, after) = build(&edited, 4);
            let new = new_nodes(&after, &nodes);
            assert!(new <= 2 * (usize::from(root.level) + 1), "{new} new nodes");
        }
    }
}

#[test]
fn comparing_two_trees_fetches_only_what_differs() {
    let model = many_files(5000);
    let (root, mut nodes) = build(&model, 4);
    let mut edited = model.clone();
    edited.insert(key("/folder-7/new"), file(5));
    let (after, mut after_nodes) = build(&edited, 4);
    let mut changes = Vec::new();
    diff((&mut nodes, root.id), (&mut after_nodes, after.id), |change| changes.push(change))
        .unwrap();
    let new = Change { path: key("/folder-7/new"), before: None, after: Some(file(5)) };
    assert_eq!(changes, [new]);
    let fetched = nodes.fetched + after_nodes.fetched;
    assert!(fetched <= 4 * (usize::from(root.level) + 1), "{fetched} nodes fetched");
    nodes.fetched = 0;
    diff((&mut nodes, root.id), (after_nodes, root.id), |_| panic!("equal trees differ")).unwrap();
    assert_eq!(nodes.fetched, 0);
}

#[test]
fn comparing_below_a_path_sees_nothing_beside_it_and_ends_at_the_first_error() {
    let model = many_files(5000);
    let (root, mut nodes) = build(&model, 4);
    let mut edited = model.clone();
    for path in ["/folder-6/new", "/folder-7/new", "/folder-7/new/deep", "/folder-70"] {
        edited.insert(key(path), file(5));
    }
    let (after, mut after_nodes) = build(&edited, 4);
    let mut changed = Vec::new();
    diff_below((&mut nodes, root.id), (&mut after_nodes, after.id), &key("/folder-7"), |change| {
        changed.push(change.path);
        Ok(())
    })
    .unwrap();
    assert_eq!(changed, [key("/folder-7/new"), key("/folder-7/new/deep")]);
    let fetched = nodes.fetched + after_nodes.fetched;
    assert!(fetched <= 8 * (usize::from(root.level) + 1), "{fetched} nodes fetched");

    let mut seen = 0;
    let stopped = diff_below((nodes, root.id), (after_nodes, after.id), &PathKey::root(), |_| {
        seen += 1;
        Err(Missing)
    });
    assert_eq!((stopped, seen), (Err(TreeError::Source(Missing)), 1));
}

#[test]
fn finding_one_entry_fetches_one_node_a_level() {
    let model = many_files(5000);
    let (root, mut nodes) = build(&model, 4);
    for (path, entry) in model.iter().step_by(331) {
        nodes.fetched = 0;
        assert_eq!(lookup(&mut nodes, root.id, path).as_ref(), Ok(&Some(entry.clone())));
        assert!(nodes.fetched <= usize::from(root.level) + 1);
        let beside = path.child(b"not there").unwrap();
        assert_eq!(lookup(&mut nodes, root.id, &beside), Ok(None));
    }
}

#[test]
fn a_cursor_tells_which_nodes_it_entered_and_where_it_is() {
    let (root, nodes) = build(&many_files(2000), 3);
    let all = nodes.by_id.len();
    let mut cursor = Cursor::new(nodes, root.id).noting_visited();
    assert_eq!((cursor.take_visited(), cursor.leaf_id(), cursor.current()), (vec![], None, None));
    cursor.peek().unwrap();
    let first = cursor.take_visited();
    assert_eq!(first.len(), usize::from(root.level) + 1);
    assert_eq!(first.first(), Some(&root.id));
    assert_eq!(first.last().copied(), cursor.leaf_id());
    while cursor.next().unwrap().is_some() {}
    assert_eq!(first.len() + cursor.take_visited().len(), all);
}

#[test]
fn paths_of_the_greatest_length_and_their_neighbours_read_back() {
    let mut model = Model::new();
    for number in 0..60u32 {
        let mut path = PathKey::root();
        path.push(format!("{number:02}").as_bytes()).unwrap();
        while path.child(&[b'x'; 255]).map(|child| path = child).is_ok() {}
        while path.child(b"y").map(|child| path = child).is_ok() {}
        assert!(path.as_bytes().len() >= PATH_MAX_BYTES - 1);
        model.insert(path.parent().unwrap(), Entry::empty(EntryKind::Directory));
        model.insert(path, file(1));
    }
    for leaf_bits in [1, 5, 8] {
        let (root, mut nodes) = build(&model, leaf_bits);
        assert_eq!(read_all(&mut nodes, root.id).as_ref(), Ok(&model));
    }
}

#[test]
fn a_deep_directory_of_many_files_keeps_the_limits_of_nodes() {
    let mut folder = PathKey::root();
    while folder.as_bytes().len() < 6000 {
        folder.push(&[b'd'; 200]).unwrap();
    }
    let name = |n: u32| folder.child(format!("file-{n}").as_bytes()).unwrap();
    let model: Model = (0..3000).map(|n| (name(n), file(1))).collect();
    let (root, mut nodes) = build(&model, 8);
    assert_eq!(read_all(&mut nodes, root.id).as_ref(), Ok(&model));
}

#[test]
fn large_entries_cut_nodes_at_64_kib_and_such_cuts_do_not_reach_far() {
    let chunks = |n: u64| (0..48).map(move |at| ChunkRef { id: id(n * 48 + at), len_bytes: 9 });
    let mut model = Model::new();
    for n in 0..2000 {
        let content = match n % 2 {
            0 => Content::Inline(vec![n as u8; CONTENT_INLINE_MAX_BYTES]),
            _ => Content::Chunks(chunks(n).collect()),
        };
        model.insert(key(&format!("/{n:05}")), Entry { content, ..file(1) });
    }
    let (root, mut nodes) = build(&model, 6);
    assert!(nodes.by_id.values().all(|node| node.body.len() <= (64 << 10) + 16));
    assert_eq!(read_all(&mut nodes, root.id).as_ref(), Ok(&model));
    model.remove(&key("/01000"));
    let (_, after) = build(&model, 6);
    let new = new_nodes(&after, &nodes);
    assert!(new < 40, "{new} of {} nodes are new", after.by_id.len());
}

#[test]
fn a_source_that_fails_now_and_then_can_be_asked_again() {
    struct Shaky(Nodes, bool);
    impl NodeSource for Shaky {
        type Error = Missing;
        fn node(&mut self, id: &holdall_format::ObjectId) -> Result<std::sync::Arc<Node>, Missing> {
            self.1 = !self.1;
            if self.1 { Err(Missing) } else { self.0.node(id) }
        }
    }
    let model = many_files(500);
    let (root, nodes) = build(&model, 2);
    let mut cursor = Cursor::new(Shaky(nodes, false), root.id);
    let mut read = Model::new();
    loop {
        match cursor.next() {
            Ok(Some((path, entry))) => assert_eq!(read.insert(path, entry), None),
            Ok(None) => break,
            Err(error) => assert_eq!(error, TreeError::Source(Missing)),
        }
    }
    assert_eq!(read, model);
}

proptest! {
    #[test]
    fn any_tree_reads_back(model in any_model(60), leaf_bits in 1u8..=4) {
        let (root, mut nodes) = build(&model, leaf_bits);
        prop_assert_eq!(root.items, model.len() as u64);
        prop_assert_eq!(read_all(&mut nodes, root.id), Ok(model));
    }

    #[test]
    fn seeking_and_skipping_give_what_a_sorted_map_gives(
        model in any_model(60), leaf_bits in 1u8..=3,
        steps in proptest::collection::vec((any_path(), 0u8..4), 1..12)
    ) {
        let (root, nodes) = build(&model, leaf_bits);
        let mut cursor = Cursor::new(nodes, root.id);
        let mut left = model.clone();
        for (path, step) in steps {
            match step {
                0 => {
                    cursor.seek(&path).unwrap();
                    left.retain(|other, _| *other >= path);
                }
                1 => {
                    cursor.skip_subtree(&path).unwrap();
                    left.retain(|other, _| *other > path && !path.is_ancestor_of(other));
                }
                2 => prop_assert_eq!(cursor.next().unwrap(), left.pop_first()),
                _ => {
                    let expected = left.first_key_value();
                    prop_assert_eq!(cursor.peek().unwrap(), expected);
                    prop_assert_eq!(cursor.current(), expected);
                }
            }
        }
        while let Some(next) = cursor.next().unwrap() {
            prop_assert_eq!(Some(next), left.pop_first());
        }
        prop_assert_eq!(left.len(), 0);
    }

    #[test]
    fn a_comparison_gives_what_comparing_maps_gives(
        model in any_model(60), removed in proptest::collection::vec(any::<usize>(), 0..4),
        added in any_model(6), leaf_bits in 1u8..=3
    ) {
        let mut after = model.clone();
        for at in removed {
            if let Some(path) = after.keys().nth(at % after.len().max(1)).cloned() {
                after.remove(&path);
            }
        }
        after.extend(added);
        let (root, nodes) = build(&model, leaf_bits);
        let (after_root, after_nodes) = build(&after, leaf_bits);
        prop_assert_eq!(root.id == after_root.id, model == after);

        let paths: std::collections::BTreeSet<_> = model.keys().chain(after.keys()).collect();
        let expected: Vec<_> = paths.into_iter().filter(|path| model.get(path) != after.get(path))
            .map(|path| Change {
                path: path.clone(),
                before: model.get(path).cloned(),
                after: after.get(path).cloned(),
            }).collect();
        let mut changes = Vec::new();
        diff((nodes.clone(), root.id), (after_nodes.clone(), after_root.id), |change| {
            changes.push(change);
        }).unwrap();
        prop_assert_eq!(&changes, &expected);
        for top in model.keys().chain(after.keys()) {
            let mut below = Vec::new();
            diff_below((nodes.clone(), root.id), (after_nodes.clone(), after_root.id), top, |change| {
                below.push(change);
                Ok(())
            }).unwrap();
            let mut expected = expected.clone();
            expected.retain(|change| change.path == *top || top.is_ancestor_of(&change.path));
            prop_assert_eq!(below, expected);
        }
    }
}
