//! Pins the bytes of trees, lists and cuts: what is written here must be read for ever.

use crate::chunker::{cuts, random};
use crate::common::*;
use holdall_tree::*;
use std::fmt::Write;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/tree.txt");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sample() -> Model {
    let time = |secs, nanos| Time { secs, nanos };
    let chunk = |number, len_bytes| ChunkRef { id: id(number), len_bytes };
    let owned = |entry: Entry| Entry {
        uid: 1000,
        gid: 100,
        user: b"ada".as_slice().into(),
        group: b"users".as_slice().into(),
        mtime: time(1_700_000_000, 5),
        ctime: time(1_700_000_001, 6),
        ..entry
    };
    let acl = Attributes::new(vec![(b"user.note".to_vec(), b"x".to_vec())]).unwrap();
    let extents = Extents::new(vec![(4096, 10), (1 << 40, 20)], 3 << 40).unwrap();
    let directory = Entry { mode: 0o755, ..Entry::empty(EntryKind::Directory) };
    let device = EntryKind::CharDevice { major: 1, minor: 3 };
    let mut small = owned(file(3));
    small.content = Content::Inline(b"abc".to_vec());
    small.attributes = Content::Inline(acl.encode());
    let mut linked = owned(file(700_000));
    linked.content = Content::Chunks(vec![chunk(2, 600_000), chunk(1, 100_000)]);
    (linked.hardlink, linked.unsettled, linked.inode) = (Some([9; 16]), true, 77);
    let mut sparse = owned(file(3 << 40));
    sparse.content = Content::List { id: id(3), len_bytes: 30 };
    sparse.extents = Some(Content::Inline(extents.encode()));
    let mut link = owned(Entry { mode: 0o777, ..Entry::empty(EntryKind::Symlink) });
    (link.content, link.size) = (Content::Inline(b"small".to_vec()), 5);
    let old = Entry { mtime: time(-1, 999_999_999), ..Entry::empty(EntryKind::Fifo) };
    Model::from([
        (PathKey::root(), directory.clone()),
        (key("/data"), directory),
        (key("/data/large.bin"), linked),
        (key("/data/link"), link),
        (key("/data/pipe"), old),
        (key("/data/small"), small),
        (key("/data/socket"), Entry::empty(EntryKind::Socket)),
        (key("/data/sparse"), sparse),
        (key("/null"), Entry { mode: 0o666, ..Entry::empty(device) }),
    ])
}

fn put_tree(text: &mut String, name: &str, model: &Model, leaf_bits: u8) {
    let (root, nodes) = build(model, leaf_bits);
    let Root { id, level, items, bytes } = root;
    writeln!(text, "{name} root {id} level {level} items {items} bytes {bytes}").unwrap();
    put_nodes(text, name, &nodes);
}

fn put_nodes(text: &mut String, name: &str, nodes: &Nodes) {
    let mut ids: Vec<_> = nodes.by_id.keys().collect();
    ids.sort();
    for id in ids {
        let node = &nodes.by_id[id];
        writeln!(text, "{name} node {id}").unwrap();
        node.refs.iter().for_each(|id| writeln!(text, "  ref {id}").unwrap());
        writeln!(text, "  body {}", hex(&node.body)).unwrap();
    }
}

fn put_list(text: &mut String) {
    let keys = keys();
    let mut nodes = Nodes::default();
    let mut builder = ContentBuilder::new(keys.ids().clone(), *keys.boundary_key());
    for number in 0..60u32 {
        let chunk = ChunkRef { id: id(u64::from(number % 5)), len_bytes: number * 300 + 1 };
        builder.push(chunk, &mut nodes).unwrap();
    }
    let Content::List { id, len_bytes } = builder.finish(&mut nodes).unwrap() else {
        panic!("not a list")
    };
    writeln!(text, "list root {id} bytes {len_bytes}").unwrap();
    put_nodes(text, "list", &nodes);
}

#[test]
fn trees_lists_and_cuts_are_the_bytes_that_they_were() {
    let mut text = String::from(
        "# Trees, lists and cuts of the master secret 07 * 32. The test of crates/tree that reads\n\
         # this file says how they are made.\n",
    );
    put_tree(&mut text, "empty", &Model::new(), 5);
    put_tree(&mut text, "leaf", &sample(), 5);
    put_tree(&mut text, "interior", &sample(), 1);
    let (root, _) = build(&many_files(2000), 4);
    writeln!(text, "2000 files root {} level {}", root.id, root.level).unwrap();
    put_list(&mut text);
    let lens = cuts(&Chunker::new(&[7; 32]), &random(4 << 20, 7), usize::MAX >> 1);
    writeln!(text, "cuts {lens:?}").unwrap();
    let golden = std::fs::read_to_string(PATH).unwrap_or_default();
    assert!(golden == text, "golden/tree.txt is another; now it would be:\n{text}");
}
