//! A tree of several levels with changed nodes: read, sought and compared.

#![no_main]

use std::sync::{Arc, LazyLock};

use holdall_format::ObjectId;
use holdall_fuzz::{Missing, Nodes, id, keys};
use holdall_tree::{
    BuiltNode, ChunkRef, Content, Cursor, Entry, EntryKind, PathKey, TreeBuilder, diff, lookup,
};
use libfuzzer_sys::fuzz_target;

/// A tree, its root and the ids of its nodes.
static TREE: LazyLock<(Nodes, ObjectId, Vec<ObjectId>)> = LazyLock::new(build);

fn build() -> (Nodes, ObjectId, Vec<ObjectId>) {
    let mut nodes = Nodes::default();
    let mut sink = |node: BuiltNode| {
        nodes.by_id.insert(node.id, Arc::new(node.into_node()));
        Ok::<(), Missing>(())
    };
    let mut builder = TreeBuilder::new(keys().ids().clone(), *keys().boundary_key(), 1);
    let mut entry = Entry::empty(EntryKind::Directory);
    builder.push(&PathKey::root(), &entry, &mut sink).unwrap();
    for number in 10..60u8 {
        let path = format!("/folder/file-{number}");
        entry.kind = EntryKind::File;
        entry.size = u64::from(number);
        entry.content = match number % 3 {
            0 => Content::Inline(vec![number; usize::from(number)]),
            1 => Content::Chunks(vec![ChunkRef { id: id(number), len_bytes: 9 }]),
            _ => Content::List { id: id(number), len_bytes: 7 },
        };
        builder.push(&PathKey::from_absolute(path.as_bytes()).unwrap(), &entry, &mut sink).unwrap();
    }
    let root = builder.finish(&mut sink).unwrap();
    let mut ids: Vec<_> = nodes.by_id.keys().copied().collect();
    ids.sort();
    (nodes, root.id, ids)
}

fuzz_target!(|edits: Vec<(u8, u16, u8)>| {
    let (good, root, ids) = &*TREE;
    let mut nodes = good.clone();
    for (node, place, with) in edits {
        let id = ids[usize::from(node) % ids.len()];
        let node = Arc::make_mut(nodes.by_id.get_mut(&id).unwrap());
        let place = usize::from(place) % node.body.len();
        node.body[place] = with;
    }
    let mut cursor = Cursor::new(&mut nodes, *root);
    let mut paths: Vec<PathKey> = Vec::new();
    let whole = loop {
        match cursor.next() {
            Ok(Some((path, _))) => {
                assert!(paths.last().is_none_or(|last| *last < path), "paths ascend");
                paths.push(path);
            }
            end => break end.is_ok(),
        }
    };
    assert!(nodes.fetched <= 2 * ids.len(), "nodes were fetched again and again");
    for path in &paths {
        let found = lookup(&mut nodes, *root, path);
        // A node may reach into the next one; that shows at its end, and not where it is sought.
        assert!(!whole || found.is_ok_and(|entry| entry.is_some()), "{path:?} is not found");
        let mut cursor = Cursor::new(&mut nodes, *root);
        if cursor.skip_subtree(path).is_ok()
            && let Ok(Some((after, _))) = cursor.next()
        {
            assert!(after > *path && !path.is_ancestor_of(&after));
        }
    }
    let mut last: Option<PathKey> = None;
    let _ = diff((good.clone(), *root), (nodes, *root), |change| {
        assert!(last.as_ref().is_none_or(|last| *last < change.path), "changes ascend");
        last = Some(change.path);
    });
});
