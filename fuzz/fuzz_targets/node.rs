//! One node of any kind, read as a tree and as a content.

#![no_main]

use std::sync::Arc;

use holdall_fuzz::{Nodes, id};
use holdall_tree::{Content, ContentReader, Cursor, Node, PathKey};
use libfuzzer_sys::fuzz_target;

/// The node refers to these, and each of them is the node again.
const REFS: u8 = 16;

fuzz_target!(|data: &[u8]| {
    let node = Arc::new(Node { refs: (0..REFS).map(id).collect(), body: data.to_vec() });
    let by_id = (0..REFS).map(|at| (id(at), Arc::clone(&node))).collect();
    let nodes = Nodes { by_id, fetched: 0 };
    let mut cursor = Cursor::new(nodes.clone(), id(0));
    let mut last: Option<PathKey> = None;
    while let Ok(Some((path, entry))) = cursor.next() {
        assert!(last.is_none_or(|last| last < path), "paths ascend");
        assert_eq!(PathKey::from_bytes(path.as_bytes().to_vec()).as_ref(), Ok(&path));
        for content in [&entry.attributes, &entry.content] {
            read(&nodes, content);
        }
        last = Some(path);
    }
    for len_bytes in [1, data.len() as u64, 1 << 20] {
        read(&nodes, &Content::List { id: id(0), len_bytes });
    }
});

fn read(nodes: &Nodes, content: &Content) {
    let mut reader = ContentReader::new(nodes.clone(), content);
    let mut bytes = 0;
    while let Ok(Some(chunk)) = reader.next() {
        bytes += u64::from(chunk.len_bytes);
    }
    assert!(bytes <= content.len_bytes(), "more bytes than the entry says");
}
