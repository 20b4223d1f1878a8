//! Nodes: what trees and chunk lists are stored as.
//!
//! ```text
//! references (clear): ids, ascending and distinct
//! body (sealed):
//! | version u8 | kind u8 | level u8 | positions length varint | positions | items |
//! ```
//!
//! Items never hold ids: whoever reads them takes the next id from the positions, each the varint
//! of a place in the references. So the body can be sealed while the references stay clear, and an
//! id covers both. A leaf and a lowest list have level 0; the level of all else is one above that
//! of its children.

use crate::fingerprint::KnownLeaf;
use holdall_crypto::IdKeys;
use holdall_format::limits::{NODE_MAX_BODY_BYTES, NODE_MAX_REFS};
use holdall_format::wire::{Reader, put_varint};
use holdall_format::{FormatError, ObjectId};
use std::sync::Arc;

const WHAT: &str = "node";
const VERSION: u8 = 1;
/// Most bytes of what stands before the items, without the positions.
const HEAD_MAX_BYTES: usize = 16;

/// Body bytes before which a node is cut.
pub(crate) const NODE_TARGET_MAX_BYTES: usize = 64 << 10;
/// References before which a node is cut.
pub(crate) const NODE_TARGET_MAX_REFS: usize = NODE_MAX_REFS / 2;
/// Most bytes of all paths of one node, written in full: without this bound, a few bytes could
/// stand for very many.
pub(crate) const NODE_MAX_PATH_BYTES: usize = 1 << 20;
/// Highest level of a tree's node.
pub const TREE_MAX_LEVEL: u8 = 40;
/// Highest level of a list node.
pub const LIST_MAX_LEVEL: u8 = 8;

/// What a node holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// Entries.
    Leaf,
    /// Children of a tree.
    Interior,
    /// Chunks of a content, or lists of them.
    List,
}

impl NodeKind {
    fn code(self) -> u8 {
        match self {
            Self::Leaf => 1,
            Self::Interior => 2,
            Self::List => 3,
        }
    }

    fn max_level(self) -> u8 {
        match self {
            Self::Leaf => 0,
            Self::Interior => TREE_MAX_LEVEL,
            Self::List => LIST_MAX_LEVEL,
        }
    }
}

/// A node as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// The ids that it refers to, ascending and distinct.
    pub refs: Vec<ObjectId>,
    /// What is sealed.
    pub body: Vec<u8>,
}

/// A node that was just built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltNode {
    /// Its id.
    pub id: ObjectId,
    /// What it holds.
    pub kind: NodeKind,
    /// Its level; nodes are handed over after all nodes that they refer to.
    pub level: u8,
    /// The ids that it refers to, ascending and distinct.
    pub refs: Vec<ObjectId>,
    /// What is to be sealed.
    pub body: Vec<u8>,
    /// How a leaf is known again, if the builder was asked for that and the leaf allows it.
    pub known: Option<KnownLeaf>,
}

impl BuiltNode {
    /// The node without what was known while building it.
    pub fn into_node(self) -> Node {
        Node { refs: self.refs, body: self.body }
    }
}

/// Where nodes come from.
pub trait NodeSource {
    /// Why a node could not be had.
    type Error;

    /// Gives the node with that id. Its id must have been checked.
    ///
    /// # Errors
    /// Whatever keeps the source from giving it, its being missing included.
    fn node(&mut self, id: &ObjectId) -> Result<Arc<Node>, Self::Error>;
}

impl<S: NodeSource + ?Sized> NodeSource for &mut S {
    type Error = S::Error;

    fn node(&mut self, id: &ObjectId) -> Result<Arc<Node>, Self::Error> {
        (**self).node(id)
    }
}

/// Where nodes go to; any closure that takes a [`BuiltNode`] is one.
pub trait NodeSink {
    /// Why a node could not be taken.
    type Error;

    /// Takes a node; all nodes that it refers to were taken before.
    ///
    /// # Errors
    /// Whatever keeps the sink from taking it.
    fn put(&mut self, node: BuiltNode) -> Result<(), Self::Error>;
}

impl<F, E> NodeSink for F
where
    F: FnMut(BuiltNode) -> Result<(), E>,
{
    type Error = E;

    fn put(&mut self, node: BuiltNode) -> Result<(), E> {
        self(node)
    }
}

/// Makes a node of items and the ids that they take, in order.
pub(crate) fn build_node(
    ids: &IdKeys,
    kind: NodeKind,
    level: u8,
    uses: &[ObjectId],
    items: &[u8],
) -> BuiltNode {
    let mut refs = uses.to_vec();
    refs.sort_unstable();
    refs.dedup();
    let mut positions = Vec::with_capacity(uses.len().saturating_mul(2));
    for id in uses {
        let position = refs.partition_point(|other| other < id);
        put_varint(&mut positions, position as u64);
    }
    let len = HEAD_MAX_BYTES.saturating_add(positions.len()).saturating_add(items.len());
    let mut body = Vec::with_capacity(len);
    body.extend_from_slice(&[VERSION, kind.code(), level]);
    put_varint(&mut body, positions.len() as u64);
    body.extend_from_slice(&positions);
    body.extend_from_slice(items);
    BuiltNode { id: ids.node_id(&refs, &body), kind, level, refs, body, known: None }
}

/// Takes ids in the order in which items name them.
#[derive(Debug, Clone)]
pub(crate) struct RefReader<'a> {
    pub(crate) positions: Reader<'a>,
    refs: &'a [ObjectId],
}

impl RefReader<'_> {
    /// Takes the next id.
    pub(crate) fn next(&mut self) -> Result<ObjectId, FormatError> {
        let position = self.positions.varlen("position", NODE_MAX_REFS)?;
        let id = self.refs.get(position).copied();
        id.ok_or_else(|| self.positions.invalid("position", "after the references"))
    }
}

/// A node's body, its head read.
#[derive(Debug, Clone)]
pub(crate) struct Body<'a> {
    pub(crate) kind: NodeKind,
    pub(crate) level: u8,
    pub(crate) ids: RefReader<'a>,
    pub(crate) items: Reader<'a>,
}

impl<'a> Body<'a> {
    /// Reads the head of a body.
    ///
    /// Untrusted: allocates nothing.
    pub(crate) fn open(node: &'a Node) -> Result<Self, FormatError> {
        let mut items = Reader::new(WHAT, &node.body);
        if node.body.len() > NODE_MAX_BODY_BYTES || node.refs.len() > NODE_MAX_REFS {
            return Err(items.invalid("length", "over its limit"));
        }
        let found = items.u8("version")?;
        if found != VERSION {
            return Err(FormatError::UnsupportedVersion {
                what: WHAT,
                found: u32::from(found),
                supported: u32::from(VERSION),
            });
        }
        let code = items.u8("kind")?;
        let kind = [NodeKind::Leaf, NodeKind::Interior, NodeKind::List]
            .into_iter()
            .find(|kind| kind.code() == code)
            .ok_or_else(|| items.invalid("kind", "unknown"))?;
        let level = items.u8("level")?;
        if level > kind.max_level() || (kind == NodeKind::Interior && level == 0) {
            return Err(items.invalid("level", "not one of this kind"));
        }
        let positions_len = items.varlen("positions length", NODE_MAX_BODY_BYTES)?;
        let positions = Reader::new(WHAT, items.bytes("positions", positions_len)?);
        Ok(Self { kind, level, ids: RefReader { positions, refs: &node.refs }, items })
    }

    /// Goes on reading a leaf whose head was read: the items start at `items_start`, and of items
    /// and positions that many bytes are left.
    pub(crate) fn resume(
        node: &'a Node,
        items_start: usize,
        items_left: usize,
        positions_left: usize,
    ) -> Self {
        let (head, items) = node.body.split_at_checked(items_start).unwrap_or_default();
        let tail = |bytes: &'a [u8], len: usize| {
            bytes.get(bytes.len().saturating_sub(len)..).unwrap_or_default()
        };
        let positions = Reader::new(WHAT, tail(head, positions_left));
        Self {
            kind: NodeKind::Leaf,
            level: 0,
            ids: RefReader { positions, refs: &node.refs },
            items: Reader::new(WHAT, tail(items, items_left)),
        }
    }

    /// Checks that every position was taken.
    pub(crate) fn finish(self) -> Result<(), FormatError> {
        self.items.finish()?;
        self.ids.positions.finish()
    }
}
