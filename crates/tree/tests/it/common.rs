//! Nodes in memory, and trees to put there.

use holdall_crypto::{KeyRing, RepositoryKeys};
use holdall_format::ObjectId;
use holdall_format::limits::{NODE_MAX_BODY_BYTES, NODE_MAX_REFS};
use holdall_tree::{
    BuiltNode, ChunkRef, Content, Cursor, Entry, EntryKind, Node, NodeKind, NodeSink, NodeSource,
    PathKey, Root, Time, TreeBuilder, TreeError,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

pub(crate) type Model = BTreeMap<PathKey, Entry>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("missing")]
pub(crate) struct Missing;

/// Nodes by id; counts how many were fetched.
#[derive(Clone, Default)]
pub(crate) struct Nodes {
    pub(crate) by_id: HashMap<ObjectId, Arc<Node>>,
    pub(crate) fetched: usize,
}

impl NodeSource for Nodes {
    type Error = Missing;

    fn node(&mut self, id: &ObjectId) -> Result<Arc<Node>, Missing> {
        self.fetched += 1;
        self.by_id.get(id).cloned().ok_or(Missing)
    }
}

impl NodeSink for Nodes {
    type Error = Missing;

    fn put(&mut self, node: BuiltNode) -> Result<(), Missing> {
        assert!(node.body.len() <= NODE_MAX_BODY_BYTES && node.refs.len() <= NODE_MAX_REFS);
        assert!(node.refs.is_sorted_by(|a, b| a < b));
        assert_eq!(node.id, keys().ids().node_id(&node.refs, &node.body));
        if node.kind == NodeKind::Interior || (node.kind == NodeKind::List && node.level > 0) {
            assert!(node.refs.iter().all(|id| self.by_id.contains_key(id)), "a parent came first");
        }
        self.by_id.insert(node.id, Arc::new(node.into_node()));
        Ok(())
    }
}

pub(crate) fn keys() -> &'static RepositoryKeys {
    static KEYS: LazyLock<RepositoryKeys> =
        LazyLock::new(|| RepositoryKeys::derive(&KeyRing::from_master([7; 32])));
    &KEYS
}

pub(crate) fn id(number: u64) -> ObjectId {
    keys().ids().chunk_id(&number.to_le_bytes())
}

pub(crate) fn key(path: &str) -> PathKey {
    PathKey::from_absolute(path.as_bytes()).unwrap()
}

pub(crate) fn file(size: u64) -> Entry {
    Entry { size, mode: 0o644, ..Entry::empty(EntryKind::File) }
}

pub(crate) fn build(model: &Model, leaf_bits: u8) -> (Root, Nodes) {
    let keys = keys();
    let mut nodes = Nodes::default();
    let mut builder = TreeBuilder::new(keys.ids().clone(), *keys.boundary_key(), leaf_bits);
    for (path, entry) in model {
        builder.push(path, entry, &mut nodes).unwrap();
    }
    (builder.finish(&mut nodes).unwrap(), nodes)
}

pub(crate) fn read_all(nodes: &mut Nodes, root: ObjectId) -> Result<Model, TreeError<Missing>> {
    let mut cursor = Cursor::new(nodes, root);
    let mut model = Model::new();
    while let Some((path, entry)) = cursor.next()? {
        assert!(model.last_key_value().is_none_or(|(last, _)| *last < path), "paths ascend");
        model.insert(path, entry);
    }
    Ok(model)
}

/// A tree of `count` files in directories of 50.
pub(crate) fn many_files(count: u64) -> Model {
    let mut model = Model::from([(PathKey::root(), Entry::empty(EntryKind::Directory))]);
    for number in 0..count {
        let folder = format!("/folder-{}", number / 50);
        model.entry(key(&folder)).or_insert_with(|| Entry::empty(EntryKind::Directory));
        model.insert(key(&format!("{folder}/file-{number}.txt")), file(number));
    }
    model
}

/// Ids in `nodes` that `others` lacks.
pub(crate) fn new_nodes(nodes: &Nodes, others: &Nodes) -> usize {
    let of = |nodes: &Nodes| nodes.by_id.keys().copied().collect::<BTreeSet<_>>();
    of(nodes).difference(&of(others)).count()
}

fn any_kind() -> impl Strategy<Value = EntryKind> {
    prop_oneof![
        Just(EntryKind::File),
        Just(EntryKind::Directory),
        Just(EntryKind::Symlink),
        Just(EntryKind::Fifo),
        Just(EntryKind::Socket),
        any::<(u32, u32)>().prop_map(|(major, minor)| EntryKind::CharDevice { major, minor }),
        any::<(u32, u32)>().prop_map(|(major, minor)| EntryKind::BlockDevice { major, minor }),
    ]
}

fn any_time() -> impl Strategy<Value = Time> {
    let secs = prop_oneof![Just(1_700_000_000i64), any::<i64>()];
    (secs, 0u32..1_000_000_000).prop_map(|(secs, nanos)| Time { secs, nanos })
}

fn any_content(inline_max: usize) -> impl Strategy<Value = Content> {
    let chunk = (0u64..30, 1u32..2 << 20)
        .prop_map(|(number, len_bytes)| ChunkRef { id: id(number), len_bytes });
    prop_oneof![
        Just(Content::empty()),
        vec(any::<u8>(), 0..inline_max).prop_map(Content::Inline),
        vec(chunk, 1..48).prop_map(Content::Chunks),
        (0u64..30, 1u64..).prop_map(|(n, len_bytes)| Content::List { id: id(n), len_bytes }),
    ]
}

fn any_name() -> impl Strategy<Value = Arc<[u8]>> {
    prop_oneof![Just(b"root".to_vec()), vec(any::<u8>(), 0..12)].prop_map(Arc::from)
}

pub(crate) fn any_entry() -> impl Strategy<Value = Entry> {
    let inode = (
        any_kind(),
        prop_oneof![Just(0o644u32), 0u32..0o10000],
        (prop_oneof![Just(0u32), any::<u32>()], any::<u32>().prop_map(|gid| gid % 3)),
        (any_name(), any_name()),
        (any_time(), any_time(), any::<bool>()),
        (any::<u64>(), any::<u64>(), any::<bool>()),
        option::of(any::<[u8; 16]>()),
    );
    let contents = (any_content(60), any_content(600), option::of(any_content(60)));
    (inode, contents).prop_map(|(inode, (attributes, content, extents))| {
        let (kind, mode, (uid, gid), (user, group), (mtime, ctime, same), (size, number, u), link) =
            inode;
        let mut entry = Entry { mode, uid, gid, user, group, mtime, size, ..Entry::empty(kind) };
        entry.ctime = if same { mtime } else { ctime };
        (entry.inode, entry.unsettled, entry.hardlink) = (number, u, link);
        (entry.attributes, entry.content, entry.extents) = (attributes, content, extents);
        entry
    })
}

pub(crate) fn any_path() -> impl Strategy<Value = PathKey> {
    let name =
        prop_oneof![Just("a".to_owned()), Just("b".into()), "[a-d\u{1}]{1,3}", "[!-.0-~]{4}"];
    vec(name, 0..5).prop_map(|names| {
        let mut path = PathKey::root();
        names.iter().filter_map(|name| path.push(name.as_bytes()).err()).for_each(drop);
        path
    })
}

pub(crate) fn any_model(max: usize) -> impl Strategy<Value = Model> {
    btree_map(any_path(), any_entry(), 0..max)
}
