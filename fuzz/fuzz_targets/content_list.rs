//! The list of a large content with changed nodes.

#![no_main]

use std::sync::{Arc, LazyLock};

use holdall_format::ObjectId;
use holdall_fuzz::{Missing, Nodes, id, keys};
use holdall_tree::{BuiltNode, ChunkRef, Content, ContentBuilder, ContentReader};
use libfuzzer_sys::fuzz_target;

/// A list of two levels, its content and the ids of its nodes.
static LIST: LazyLock<(Nodes, Content, Vec<ObjectId>)> = LazyLock::new(build);

fn build() -> (Nodes, Content, Vec<ObjectId>) {
    let mut nodes = Nodes::default();
    let mut sink = |node: BuiltNode| {
        nodes.by_id.insert(node.id, Arc::new(node.into_node()));
        Ok::<(), Missing>(())
    };
    let mut builder = ContentBuilder::new(keys().ids().clone(), *keys().boundary_key());
    for number in 0..2500u32 {
        let chunk = ChunkRef { id: id((number % 251) as u8), len_bytes: number + 1 };
        builder.push(chunk, &mut sink).unwrap();
    }
    let content = builder.finish(&mut sink).unwrap();
    let mut ids: Vec<_> = nodes.by_id.keys().copied().collect();
    ids.sort();
    (nodes, content, ids)
}

fuzz_target!(|edits: Vec<(u8, u16, u8)>| {
    let (good, content, ids) = &*LIST;
    let mut nodes = good.clone();
    for (node, place, with) in edits {
        let id = ids[usize::from(node) % ids.len()];
        let node = Arc::make_mut(nodes.by_id.get_mut(&id).unwrap());
        let place = usize::from(place) % node.body.len();
        node.body[place] = with;
    }
    let mut reader = ContentReader::new(nodes, content);
    let mut bytes = 0;
    while let Ok(Some(chunk)) = reader.next() {
        bytes += u64::from(chunk.len_bytes);
    }
    assert!(bytes <= content.len_bytes(), "more bytes than the entry says");
});
