//! Building a tree from sorted entries, in one pass and in memory for one open node a level.
//!
//! ```text
//! level 2                        [ first path, totals | ... ]
//! level 1        [ first path, totals | ... ]     [ ... ]
//! level 0   [entries] [entries] [entries]      [entries] ...      a node is handed over when closed
//! ```
//!
//! The same entries give the same tree, however they came about. A tree has one root: the first
//! level with a single node; without entries, it is an empty leaf.

use crate::boundary::Boundary;
use crate::codec::{Before, put_entry};
use crate::entry::Entry;
use crate::error::BuildError;
use crate::fingerprint::{Fingerprints, LeafRecord};
use crate::node::{
    BuiltNode, NODE_MAX_PATH_BYTES, NODE_TARGET_MAX_BYTES, NODE_TARGET_MAX_REFS, NodeKind,
    NodeSink, TREE_MAX_LEVEL, build_node,
};
use crate::path::{PathKey, shared_prefix};
use holdall_crypto::IdKeys;
use holdall_format::ObjectId;
use holdall_format::wire::put_varint;

/// A tree that was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Root {
    /// The root node's id.
    pub id: ObjectId,
    /// The root node's level; a leaf has 0.
    pub level: u8,
    /// Entries of the tree.
    pub items: u64,
    /// Bytes of its files, each name of a hard link counted.
    pub bytes: u64,
}

/// Builds a tree from entries in ascending order of their paths.
#[derive(Clone)]
pub struct TreeBuilder {
    ids: IdKeys,
    boundary: Boundary,
    leaf: OpenNode,
    before: Before,
    /// Open interior nodes, from level 1 upwards; each has at least one child.
    interiors: Vec<OpenNode>,
    fingerprints: Option<Fingerprints>,
    record: LeafRecord,
    /// The last thing that was added is a whole leaf, behind which another must begin.
    after_whole: bool,
}

/// A leaf of a tree built with the same keys, which holds what is to be added next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeLeaf {
    /// Its id.
    pub id: ObjectId,
    /// Its first path.
    pub first: PathKey,
    /// Its last path; nothing where that is not known, and what comes next is only compared with the first.
    pub last: Option<PathKey>,
    /// Its entries.
    pub items: u64,
    /// Bytes of its files.
    pub bytes: u64,
}

impl TreeBuilder {
    /// Starts a tree whose nodes have 2^`leaf_bits` items on average; `leaf_bits` is from 1 to 8.
    pub fn new(ids: IdKeys, boundary_key: [u8; 32], leaf_bits: u8) -> Self {
        Self {
            ids,
            boundary: Boundary::new(boundary_key, leaf_bits.clamp(1, 8)),
            leaf: OpenNode::default(),
            before: Before::default(),
            interiors: Vec::new(),
            fingerprints: None,
            record: LeafRecord::default(),
            after_whole: false,
        }
    }

    /// Gives leaves their fingerprints, where they allow it. They must have been made for the same
    /// boundaries.
    pub fn with_fingerprints(mut self, fingerprints: Fingerprints) -> Self {
        self.fingerprints = Some(fingerprints);
        self
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// [`BuildError::OutOfOrder`] or [`BuildError::InvalidEntry`], after which others can be added;
    /// [`BuildError::Sink`] or [`BuildError::TooDeep`], after which the
    /// tree is lost.
    pub fn push<S: NodeSink + ?Sized>(
        &mut self,
        path: &PathKey,
        entry: &Entry,
        sink: &mut S,
    ) -> Result<(), BuildError<S::Error>> {
        self.check_order(path)?;
        entry.check().map_err(|reason| BuildError::InvalidEntry { reason })?;
        let levels = self.boundary.levels_of_path(path.as_bytes());
        // Behind a whole leaf another begins, even where the path that should begin it did not come.
        self.after_whole = false;
        if self.leaf.children > 0 && (levels > 0 || !self.try_append(path, entry)) {
            let leaf = self.close_leaf();
            self.add_child(1, leaf, sink)?;
        }
        if self.leaf.children == 0 {
            self.leaf.levels = levels;
            self.append(path, entry);
        }
        if self.fingerprints.is_some() {
            self.record.add_entry(path, entry);
        }
        Ok(())
    }

    /// Adds all entries of a leaf that another tree of the same keys has, without looking at them:
    /// the tree is the same as if each had been added. The leaf itself is not handed over.
    ///
    /// Whoever calls this vouches for the leaf's content. It must have ended where it did for what
    /// comes next, and not because it was full. If that does not come after all, the next leaf begins
    /// with what does, as behind a full one: the tree is as good, and another one.
    ///
    /// # Errors
    /// As [`TreeBuilder::push`], and [`BuildError::NoBoundary`], after which others can be added.
    pub fn push_leaf<S: NodeSink + ?Sized>(
        &mut self,
        leaf: WholeLeaf,
        sink: &mut S,
    ) -> Result<(), BuildError<S::Error>> {
        self.check_order(&leaf.first)?;
        let levels = self.boundary.levels_of_path(leaf.first.as_bytes());
        let is_first = self.leaf.children == 0 && self.interiors.is_empty();
        if levels == 0 && !is_first {
            return Err(BuildError::NoBoundary);
        }
        if self.leaf.children > 0 {
            let open = self.close_leaf();
            self.add_child(1, open, sink)?;
        }
        self.leaf.last.copy_from(leaf.last.as_ref().unwrap_or(&leaf.first));
        self.after_whole = true;
        let WholeLeaf { id, first, items, bytes, .. } = leaf;
        self.add_child(1, Closed { id, node: None, first, levels, items, bytes }, sink)
    }

    fn check_order<E>(&self, path: &PathKey) -> Result<(), BuildError<E>> {
        let has_last = self.leaf.children > 0 || self.after_whole;
        if has_last && *path <= self.leaf.last { Err(BuildError::OutOfOrder) } else { Ok(()) }
    }

    /// Ends the tree and hands over what is still open, the root last.
    ///
    /// # Errors
    /// [`BuildError::Sink`] or [`BuildError::TooDeep`].
    pub fn finish<S: NodeSink + ?Sized>(
        mut self,
        sink: &mut S,
    ) -> Result<Root, BuildError<S::Error>> {
        if let [only] = &self.interiors[..]
            && let (true, 1, [id]) = (self.after_whole, only.children, &only.uses[..])
        {
            return Ok(Root {
                id: *id,
                level: 0,
                items: only.total_items,
                bytes: only.total_bytes,
            });
        }
        // Behind a whole leaf no other is open.
        let mut level = u8::from(self.after_whole);
        let mut top = match self.interiors.first_mut().filter(|_| self.after_whole) {
            Some(open) => open.close(&self.ids, NodeKind::Interior, level),
            None => self.close_leaf(),
        };
        while self.interiors.len() > usize::from(level) {
            level = level.saturating_add(1);
            self.add_child(level, top, sink)?;
            top = match self.interiors.get_mut(usize::from(level).saturating_sub(1)) {
                Some(open) => open.close(&self.ids, NodeKind::Interior, level),
                None => return Err(BuildError::TooDeep),
            };
        }
        let Closed { id, node, items, bytes, .. } = top;
        node.map_or(Ok(()), |node| sink.put(node)).map_err(BuildError::Sink)?;
        Ok(Root { id, level, items, bytes })
    }

    /// Appends to a leaf that has entries, unless that would make it too large.
    fn try_append(&mut self, path: &PathKey, entry: &Entry) -> bool {
        let mark = self.leaf.mark();
        self.append_bytes(path, entry);
        let fits = self.leaf.fits(path);
        if fits {
            self.leaf.note(path, 1, entry.counted_bytes());
        } else {
            // What it was compared with does not matter any more: the leaf is closed.
            self.leaf.roll_back(mark);
        }
        fits
    }

    /// Appends to an empty leaf.
    fn append(&mut self, path: &PathKey, entry: &Entry) {
        self.append_bytes(path, entry);
        self.leaf.note(path, 1, entry.counted_bytes());
    }

    fn append_bytes(&mut self, path: &PathKey, entry: &Entry) {
        self.leaf.put_path(path);
        put_entry(entry, &mut self.before, &mut self.leaf.items, &mut self.leaf.uses);
    }

    fn close_leaf(&mut self) -> Closed {
        self.before = Before::default();
        let mut closed = self.leaf.close(&self.ids, NodeKind::Leaf, 0);
        let fingerprints = self.fingerprints.as_ref();
        let known = fingerprints.and_then(|key| self.record.take(key, &closed.id));
        closed.node.iter_mut().for_each(|node| node.known = known);
        closed
    }

    /// Hands over a closed node and names it in its parent; goes on upwards while parents close.
    fn add_child<S: NodeSink + ?Sized>(
        &mut self,
        mut level: u8,
        mut child: Closed,
        sink: &mut S,
    ) -> Result<(), BuildError<S::Error>> {
        loop {
            if level > TREE_MAX_LEVEL {
                return Err(BuildError::TooDeep);
            }
            let at = usize::from(level).saturating_sub(1);
            if self.interiors.len() == at {
                self.interiors.push(OpenNode::default());
            }
            let Some(open) = self.interiors.get_mut(at) else { return Err(BuildError::TooDeep) };
            let cut = open.children > 0 && child.levels > u32::from(level);
            let cut = cut || !open.append_child(&child);
            let full = cut.then(|| open.close(&self.ids, NodeKind::Interior, level));
            if cut {
                open.append_child(&child);
            }
            child.node.map_or(Ok(()), |node| sink.put(node)).map_err(BuildError::Sink)?;
            match full {
                Some(full) => child = full,
                None => return Ok(()),
            }
            level = level.saturating_add(1);
        }
    }
}

/// A node that still grows.
#[derive(Clone, Default)]
struct OpenNode {
    items: Vec<u8>,
    uses: Vec<ObjectId>,
    first: PathKey,
    last: PathKey,
    /// At how many levels the first path starts a node.
    levels: u32,
    children: usize,
    path_bytes: usize,
    total_items: u64,
    total_bytes: u64,
}

/// A node that was closed, and what its parent says of it.
struct Closed {
    id: ObjectId,
    /// Nothing for a leaf that another tree has.
    node: Option<BuiltNode>,
    first: PathKey,
    levels: u32,
    items: u64,
    bytes: u64,
}

impl OpenNode {
    fn mark(&self) -> (usize, usize) {
        (self.items.len(), self.uses.len())
    }

    fn roll_back(&mut self, (items, uses): (usize, usize)) {
        self.items.truncate(items);
        self.uses.truncate(uses);
    }

    /// Says whether the node keeps its limits with what was just put, at `path`.
    fn fits(&self, path: &PathKey) -> bool {
        // Two bytes for a position: there are fewer than 2^14.
        let positions = self.uses.len().saturating_mul(2);
        self.items.len().saturating_add(positions) <= NODE_TARGET_MAX_BYTES
            && self.uses.len() <= NODE_TARGET_MAX_REFS
            && self.path_bytes.saturating_add(path.as_bytes().len()) <= NODE_MAX_PATH_BYTES
    }

    fn put_path(&mut self, path: &PathKey) {
        let path = path.as_bytes();
        let shared = match self.children {
            0 => 0,
            _ => shared_prefix(self.last.as_bytes(), path),
        };
        let suffix = path.get(shared..).unwrap_or_default();
        put_varint(&mut self.items, shared as u64);
        put_varint(&mut self.items, suffix.len() as u64);
        self.items.extend_from_slice(suffix);
    }

    /// Counts what was just put.
    fn note(&mut self, path: &PathKey, items: u64, bytes: u64) {
        if self.children == 0 {
            self.first.copy_from(path);
        }
        self.last.copy_from(path);
        self.children = self.children.saturating_add(1);
        self.path_bytes = self.path_bytes.saturating_add(path.as_bytes().len());
        self.total_items = self.total_items.saturating_add(items);
        self.total_bytes = self.total_bytes.saturating_add(bytes);
    }

    /// Names a child, unless that would make this node too large. Two children always fit, however
    /// long their paths, so that there are fewer nodes on every next level.
    fn append_child(&mut self, child: &Closed) -> bool {
        let mark = self.mark();
        self.put_path(&child.first);
        put_varint(&mut self.items, child.items);
        put_varint(&mut self.items, child.bytes);
        self.uses.push(child.id);
        if self.children >= 2 && !self.fits(&child.first) {
            self.roll_back(mark);
            return false;
        }
        if self.children == 0 {
            self.levels = child.levels;
        }
        self.note(&child.first, child.items, child.bytes);
        true
    }

    /// Makes a node of what was put and starts anew, keeping buffers and the last path.
    fn close(&mut self, ids: &IdKeys, kind: NodeKind, level: u8) -> Closed {
        let node = build_node(ids, kind, level, &self.uses, &self.items);
        let closed = Closed {
            id: node.id,
            node: Some(node),
            first: std::mem::take(&mut self.first),
            levels: self.levels,
            items: self.total_items,
            bytes: self.total_bytes,
        };
        self.items.clear();
        self.uses.clear();
        (self.children, self.path_bytes) = (0, 0);
        (self.total_items, self.total_bytes) = (0, 0);
        closed
    }
}
