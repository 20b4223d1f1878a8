//! Entries by their numbers in the order of the tree.

use crate::common::*;
use holdall_tree::*;

#[test]
fn an_entry_is_found_again_by_its_number_with_one_node_a_level() {
    let model = many_files(3000);
    for leaf_bits in [1, 4, 8] {
        let (root, mut nodes) = build(&model, leaf_bits);
        for (number, (path, entry)) in (0u64..).zip(&model).step_by(97) {
            nodes.fetched = 0;
            let mut cursor = Cursor::new(&mut nodes, root.id);
            cursor.skip_items(number).unwrap();
            assert_eq!(cursor.position(), number);
            assert_eq!(cursor.peek(), Ok(Some((path, entry))));
            assert_eq!(cursor.position(), number);
            cursor.advance();
            assert_eq!(cursor.position(), number + 1);
            assert!(nodes.fetched <= usize::from(root.level) + 1, "{} nodes", nodes.fetched);
        }
        let mut cursor = Cursor::new(&mut nodes, root.id);
        cursor.skip_items(model.len() as u64 + 5).unwrap();
        assert_eq!(cursor.peek(), Ok(None));
    }
}

#[test]
fn seeking_and_skipping_keep_count_of_what_they_pass() {
    let model = many_files(3000);
    let (root, nodes) = build(&model, 3);
    for (number, path) in (0u64..).zip(model.keys()).step_by(61) {
        let mut cursor = Cursor::new(nodes.clone(), root.id);
        cursor.seek(path).unwrap();
        cursor.peek().unwrap();
        assert_eq!(cursor.position(), number);
        cursor.skip_subtree(path).unwrap();
        let below = model.keys().filter(|other| path.is_ancestor_of(other)).count() as u64;
        let next = number + 1 + below;
        if next < model.len() as u64 {
            assert_eq!(cursor.position(), next, "after what is below it");
        }
    }
}

#[test]
fn entries_after_a_lost_node_keep_their_numbers() {
    let model = many_files(3000);
    let (root, mut nodes) = build(&model, 3);
    let mut leaves = Vec::new();
    let mut cursor = Cursor::new(nodes.clone(), root.id);
    while cursor.next().unwrap().is_some() {
        leaves.extend(cursor.leaf_id());
    }
    nodes.by_id.remove(&leaves[leaves.len() / 2]);
    let mut cursor = Cursor::new(nodes, root.id);
    let (mut lost, paths): (_, Vec<_>) = (0, model.keys().collect());
    loop {
        match cursor.next() {
            Ok(Some((path, _))) => assert_eq!(paths[cursor.position() as usize - 1], &path),
            Ok(None) => break,
            Err(_) => {
                lost += 1;
                cursor.skip_unreadable();
            }
        }
    }
    assert_eq!(lost, 1);
}
