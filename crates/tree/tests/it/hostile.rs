//! Hostile trees: swapped, mutated, cut and random nodes are refused and never loop.

use crate::common::*;
use holdall_format::ObjectId;
use holdall_tree::*;
use proptest::prelude::*;
use std::sync::Arc;

/// The ids of a tree's nodes, in an order that does not depend on the run.
fn sorted_ids(nodes: &Nodes) -> Vec<ObjectId> {
    let mut ids: Vec<_> = nodes.by_id.keys().copied().collect();
    ids.sort();
    ids
}

/// Reads what there is; [`read_all`] checks that paths ascend.
fn read_within_bounds(nodes: &mut Nodes, root: ObjectId) -> Result<Model, TreeError<Missing>> {
    let known = nodes.by_id.len();
    nodes.fetched = 0;
    let read = read_all(nodes, root);
    assert!(nodes.fetched <= 2 * known + 2, "nodes were fetched again and again");
    read
}

#[test]
fn a_node_in_the_place_of_another_is_refused() {
    let (root, nodes) = build(&many_files(300), 2);
    let ids = sorted_ids(&nodes);
    for &at in &ids {
        for &other in ids.iter().filter(|other| **other != at) {
            let mut swapped = nodes.clone();
            swapped.by_id.insert(at, nodes.by_id[&other].clone());
            // Any node can be the root of some tree, unless it is its own ancestor.
            let read = read_within_bounds(&mut swapped, root.id);
            assert!(at == root.id || read.is_err());
        }
    }
}

/// Who takes such a path for the end of what is wanted would never look at the nodes behind it.
#[test]
fn no_path_comes_out_of_a_leaf_that_belongs_behind_the_next_one() {
    let model = many_files(300);
    let (root, mut nodes) = build(&model, 2);
    let mut cursor = Cursor::new(nodes.clone(), root.id);
    let mut leaves: Vec<(holdall_format::ObjectId, Model)> = Vec::new();
    while let Some((path, entry)) = cursor.next().unwrap() {
        let leaf = cursor.leaf_id().unwrap();
        if leaves.last().is_none_or(|(last, _)| *last != leaf) {
            leaves.push((leaf, Model::new()));
        }
        leaves.last_mut().unwrap().1.insert(path, entry);
    }
    let (leaf, mut entries) = leaves.swap_remove(leaves.len() / 2);
    entries.insert(key("/zzz"), file(1));
    let (longer, with_it) = build(&entries, 8);
    assert_eq!(longer.level, 0, "one leaf");
    nodes.by_id.insert(leaf, with_it.by_id[&longer.id].clone());

    let mut cursor = Cursor::new(nodes, root.id);
    let (mut read, mut refused) = (Vec::new(), 0);
    loop {
        match cursor.next() {
            Ok(Some((path, _))) => read.push(path),
            Ok(None) => break,
            Err(error) => {
                assert!(matches!(error, TreeError::Misplaced { node, .. } if node == leaf));
                refused += 1;
                assert_eq!(cursor.next().err(), Some(error), "it says so again");
                cursor.skip_unreadable();
            }
        }
    }
    assert_eq!((read, refused), (model.into_keys().collect(), 1));
}

#[test]
fn a_list_is_no_tree_and_a_tree_is_no_list() {
    let keys = keys();
    let (root, mut nodes) = build(&many_files(100), 3);
    let mut builder = ContentBuilder::new(keys.ids().clone(), *keys.boundary_key());
    for number in 0..100 {
        let chunk = ChunkRef { id: id(number), len_bytes: 1 };
        builder.push(chunk, &mut nodes).unwrap();
    }
    let Content::List { id: list, .. } = builder.finish(&mut nodes).unwrap() else {
        panic!("not a list")
    };
    assert!(matches!(read_all(&mut nodes, list), Err(TreeError::Misplaced { .. })));
    let tree = Content::List { id: root.id, len_bytes: 100 };
    let read = ContentReader::new(&mut nodes, &tree).next();
    assert!(matches!(read, Err(TreeError::Misplaced { .. })));
}

#[test]
fn a_few_bytes_can_not_stand_for_very_many_paths() {
    // A path of 60 KiB, and then children that share all of it and add two bytes each.
    let mut body = vec![1, 1, 0, 0];
    let long = [&[b'x'; 4000][..]; 15].join(&0);
    let put = |body: &mut Vec<u8>, shared: usize, suffix: &[u8]| {
        holdall_format::wire::put_varint(body, shared as u64);
        holdall_format::wire::put_varint(body, suffix.len() as u64);
        body.extend_from_slice(suffix);
        // A file without anything: owner and mode as before, one time, size, inode.
        body.extend_from_slice(&[0b1001_1000, 0, 0, 0, 0, 0, 0, 0, 0]);
    };
    put(&mut body, 0, &long);
    for number in 0..100 {
        let shared = if number == 0 { long.len() } else { long.len() + 1 };
        let suffix = [b'\0', number + b'0'];
        put(&mut body, shared, &suffix[usize::from(number > 0)..]);
    }
    let node = Node { refs: Vec::new(), body };
    let mut nodes = Nodes::default();
    nodes.by_id.insert(id(1), Arc::new(node));
    let mut cursor = Cursor::new(nodes, id(1));
    let mut read = 0;
    while let Ok(next) = cursor.next() {
        assert!(next.is_some(), "was read to the end");
        read += 1;
    }
    assert_eq!(read, 17);
}

proptest! {
    #[test]
    fn a_tree_with_mutated_nodes_is_read_as_an_ascending_tree_or_refused(
        model in any_model(40), leaf_bits in 1u8..=3,
        which: usize, edits in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..4)
    ) {
        let (root, mut nodes) = build(&model, leaf_bits);
        let ids = sorted_ids(&nodes);
        let at = ids[which % ids.len()];
        let mut node = Node::clone(&nodes.by_id[&at]);
        for (place, value) in edits {
            let place = place % node.body.len();
            node.body[place] ^= value;
        }
        nodes.by_id.insert(at, Arc::new(node));
        let _ = read_within_bounds(&mut nodes, root.id);
        let (empty, empty_nodes) = build(&Model::new(), leaf_bits);
        let mut paths = Vec::new();
        let _ = diff((empty_nodes, empty.id), (nodes, root.id), |change| paths.push(change.path));
        prop_assert!(paths.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn a_node_cut_short_or_with_fewer_references_is_refused(
        model in any_model(40), leaf_bits in 1u8..=3, which: usize, cut in 1usize..40
    ) {
        let (root, nodes) = build(&model, leaf_bits);
        let ids = sorted_ids(&nodes);
        let at = ids[which % ids.len()];
        let whole = &nodes.by_id[&at];
        let mut short = Node::clone(whole);
        short.body.truncate(whole.body.len().saturating_sub(cut));
        let mut fewer = Node::clone(whole);
        if fewer.refs.pop().is_some() {
            let mut nodes = nodes.clone();
            nodes.by_id.insert(at, Arc::new(fewer));
            prop_assert!(read_within_bounds(&mut nodes, root.id).is_err());
        }
        let mut nodes = nodes.clone();
        nodes.by_id.insert(at, Arc::new(short));
        if let Ok(read) = read_within_bounds(&mut nodes, root.id) {
            prop_assert!(at == root.id && read.len() < model.len());
        }
    }

    #[test]
    fn random_bytes_are_a_node_or_an_error(
        kind in 0u8..4, level in 0u8..3, mut body: Vec<u8>, refs in 0u64..4
    ) {
        body.splice(0..0, [1, kind, level]);
        let mut refs: Vec<_> = (0..refs).map(id).collect();
        refs.sort();
        let mut nodes = Nodes::default();
        for at in refs.iter().copied().chain([id(9)]) {
            let node = Node { refs: refs.clone(), body: body.clone() };
            nodes.by_id.insert(at, Arc::new(node));
        }
        if let Ok(model) = read_within_bounds(&mut nodes, id(9)) {
            prop_assert!(model.len() <= body.len());
        }
        let content = Content::List { id: id(9), len_bytes: body.len() as u64 };
        let mut reader = ContentReader::new(nodes, &content);
        let mut bytes = 0;
        while let Ok(Some(chunk)) = reader.next() {
            bytes += u64::from(chunk.len_bytes);
        }
        prop_assert!(bytes <= content.len_bytes());
    }
}
