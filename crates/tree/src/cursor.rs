//! Reading a tree in order, fetching only the nodes on the way.
//!
//! A cursor stands at an entry, or before a node that it has not fetched. Keeping that second state
//! is what lets a comparison skip whole subtrees, and a seek fetch nothing that it passes.
//!
//! Invariants, kept against a hostile tree: levels fall by one at every step down, so nothing loops;
//! every path of a node lies from the first path that its parent names up to the next one there, so
//! paths ascend over the whole tree and no node is entered twice; totals add up.

use crate::codec::{Before, take_entry};
use crate::entry::Entry;
use crate::error::TreeError;
use crate::interior::{Child, decode_children, take_path};
use crate::node::{Body, Node, NodeKind, NodeSource};
use crate::path::PathKey;
use holdall_format::{FormatError, ObjectId};
use std::sync::Arc;

/// Goes through a tree's entries in ascending order of their paths, never back, in memory for one
/// node a level.
pub struct Cursor<S> {
    source: S,
    /// Interior nodes from the root downwards; the lowest frame, without a level, holds the root.
    frames: Vec<Frame>,
    leaf: Option<OpenLeaf>,
    path: PathKey,
    entry: Option<Entry>,
    visited: Option<Vec<ObjectId>>,
}

struct Frame {
    /// The level of the children; any for the root.
    level: Option<u8>,
    children: Vec<Child>,
    /// The first child that was not entered.
    next: usize,
}

/// A leaf that is read entry by entry.
struct OpenLeaf {
    id: ObjectId,
    node: Arc<Node>,
    /// What the parent says of this leaf; nothing for a root.
    expected: Option<Child>,
    before: Before,
    path_bytes: usize,
    items: u64,
    bytes: u64,
    /// Where the positions end and the items start.
    items_start: usize,
    items_left: usize,
    positions_left: usize,
    /// Why nothing more of it is read.
    refused: Option<&'static str>,
}

/// A leaf that a cursor stands before and has not fetched, and what its parent says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeafAhead {
    /// Its id.
    pub id: ObjectId,
    /// Its entries.
    pub items: u64,
    /// Bytes of its files.
    pub bytes: u64,
}

/// A leaf that a cursor stands before, and where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeafBetween<'a> {
    /// Its first path.
    pub first: &'a PathKey,
    /// The leaf.
    pub ahead: LeafAhead,
    /// The first path of the leaf behind it.
    pub next: &'a PathKey,
}

/// Where a cursor stands.
pub(crate) enum Place<'a> {
    /// At an entry.
    Entry(&'a PathKey),
    /// Before a node that was not fetched; a root has the highest level.
    Node { first: &'a PathKey, id: ObjectId, level: u8 },
    /// After the last entry.
    End,
}

impl<S: NodeSource> Cursor<S> {
    /// Stands before the first entry of the tree with that root. Fetches nothing yet.
    pub fn new(source: S, root: ObjectId) -> Self {
        let root = Child { first: PathKey::root(), id: root, items: 0, bytes: 0 };
        Self {
            source,
            frames: vec![Frame { level: None, children: vec![root], next: 0 }],
            leaf: None,
            path: PathKey::root(),
            entry: None,
            visited: None,
        }
    }

    /// Notes from now on which nodes are entered, for [`Cursor::take_visited`].
    pub fn noting_visited(mut self) -> Self {
        self.visited = Some(Vec::new());
        self
    }

    /// Takes the ids of the nodes that were entered since the last call, in order.
    pub fn take_visited(&mut self) -> Vec<ObjectId> {
        self.visited.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The entry that the cursor stands at, if it is fetched: after [`Cursor::peek`], until
    /// [`Cursor::advance`].
    pub fn current(&self) -> Option<(&PathKey, &Entry)> {
        self.entry.as_ref().map(|entry| (&self.path, entry))
    }

    /// The leaf that the current entry is in.
    pub fn leaf_id(&self) -> Option<ObjectId> {
        self.leaf.as_ref().map(|leaf| leaf.id)
    }

    /// Gives the entry that the cursor stands at, fetching nodes as needed; nothing at the end.
    ///
    /// # Errors
    /// [`TreeError`]; after one of the source, calling again goes on.
    pub fn peek(&mut self) -> Result<Option<(&PathKey, &Entry)>, TreeError<S::Error>> {
        loop {
            match self.settle()? {
                Place::Node { .. } => self.enter()?,
                Place::Entry(_) | Place::End => return Ok(self.current()),
            }
        }
    }

    /// Steps past the current entry. Fetches nothing; does nothing before the first
    /// [`Cursor::peek`].
    pub fn advance(&mut self) {
        self.entry = None;
    }

    /// Gives the next entry and steps past it; nothing at the end.
    ///
    /// # Errors
    /// As [`Cursor::peek`].
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot fail like this")]
    pub fn next(&mut self) -> Result<Option<(PathKey, Entry)>, TreeError<S::Error>> {
        self.peek()?;
        Ok(self.entry.take().map(|entry| (self.path.clone(), entry)))
    }

    /// Steps past all entries with a path below `path`, fetching only nodes in which that may be.
    /// Never goes back.
    ///
    /// # Errors
    /// As [`Cursor::peek`].
    pub fn seek(&mut self, path: &PathKey) -> Result<(), TreeError<S::Error>> {
        self.seek_bytes(path.as_bytes())
    }

    /// Steps past all entries below `path`, and gives the leaf that begins with `path` if the cursor
    /// then stands before one that it has not fetched. Fetches interior nodes alone, and none that
    /// can be passed; whatever the answer, [`Cursor::peek`] goes on from there.
    ///
    /// # Errors
    /// As [`Cursor::peek`].
    pub fn leaf_at(&mut self, path: &PathKey) -> Result<Option<LeafAhead>, TreeError<S::Error>> {
        loop {
            self.entry.take_if(|_| self.path < *path);
            let level = match self.settle()? {
                Place::Entry(at) if at < path => continue,
                Place::Entry(_) | Place::End => return Ok(None),
                Place::Node { first, .. } if first > path => return Ok(None),
                Place::Node { level, .. } => level,
            };
            let Some((frame, above)) = self.frames.split_last() else { return Ok(None) };
            let Some(child) = frame.next_child() else { return Ok(None) };
            let after = frame.children.get(frame.next.saturating_add(1)).map(|next| &next.first);
            if after.or_else(|| upper_of(above)).is_some_and(|after| after <= path) {
                self.skip_node();
            } else if level > 0 {
                self.enter()?;
            } else {
                let Child { id, items, bytes, .. } = *child;
                return Ok((child.first == *path).then_some(LeafAhead { id, items, bytes }));
            }
        }
    }

    /// Gives the leaf that the cursor stands before, and has not fetched, if another one begins behind it and
    /// before the key `end`, which may be none. Fetches interior nodes alone, and a root.
    ///
    /// # Errors
    /// As [`Cursor::peek`].
    pub fn leaf_before(
        &mut self,
        end: Option<&[u8]>,
    ) -> Result<Option<LeafBetween<'_>>, TreeError<S::Error>> {
        let is_before = |path: &PathKey| end.is_none_or(|end| path.as_bytes() < end);
        loop {
            match self.settle()? {
                Place::Node { first, level, .. } if is_before(first) && level > 0 => {}
                Place::Node { first, .. } if is_before(first) => break,
                _ => return Ok(None),
            }
            self.enter()?;
        }
        let Some((frame, above)) = self.frames.split_last() else { return Ok(None) };
        let Some(Child { first, id, items, bytes }) = frame.next_child() else { return Ok(None) };
        let next = frame.children.get(frame.next.saturating_add(1)).map(|next| &next.first);
        let next = next.or_else(|| upper_of(above)).filter(|next| is_before(next));
        let ahead = LeafAhead { id: *id, items: *items, bytes: *bytes };
        Ok(next.map(|next| LeafBetween { first, ahead, next }))
    }

    /// Steps past the leaf that [`Cursor::leaf_at`] or [`Cursor::leaf_before`] gave, without fetching it.
    pub fn skip_leaf(&mut self) {
        if self.leaf.is_none() && self.entry.is_none() {
            self.skip_node();
        }
    }

    /// Gives the first path of the next leaf and steps past that leaf. Fetches interior nodes alone, and a root.
    ///
    /// # Errors
    /// As [`Cursor::peek`].
    pub fn next_leaf(&mut self) -> Result<Option<PathKey>, TreeError<S::Error>> {
        loop {
            let first = match self.settle()? {
                Place::End => return Ok(None),
                Place::Node { level: 1.., .. } => None,
                Place::Node { first, .. } | Place::Entry(first) => Some(first.clone()),
            };
            if first.is_none() {
                self.enter()?;
                continue;
            }
            if self.leaf.take().is_none() {
                self.skip_node();
            }
            self.entry = None;
            return Ok(first);
        }
    }

    /// Steps past `path` and all that lies below it. Never goes back.
    ///
    /// # Errors
    /// As [`Cursor::peek`].
    pub fn skip_subtree(&mut self, path: &PathKey) -> Result<(), TreeError<S::Error>> {
        match path.after_subtree() {
            Some(after) => self.seek_bytes(&after),
            None => {
                self.frames.clear();
                (self.leaf, self.entry) = (None, None);
                Ok(())
            }
        }
    }

    /// As [`Cursor::seek`], to a key that need not be a valid one.
    ///
    /// # Errors
    /// As [`Cursor::peek`].
    pub fn seek_bytes(&mut self, target: &[u8]) -> Result<(), TreeError<S::Error>> {
        loop {
            if self.entry.take_if(|_| self.path.as_bytes() < target).is_none()
                && self.entry.is_some()
            {
                return Ok(());
            }
            if self.leaf.is_some() {
                match self.upper_bound().is_some_and(|upper| upper.as_bytes() <= target) {
                    true => self.leaf = None,
                    false => self.read_entry()?,
                }
                continue;
            }
            self.leave_finished();
            let Some((frame, above)) = self.frames.split_last_mut() else { return Ok(()) };
            let ahead = frame.children.get(frame.next..).unwrap_or_default();
            let not_after = ahead.partition_point(|child| child.first.as_bytes() <= target);
            if not_after == 0 {
                return Ok(());
            }
            frame.next = frame.next.saturating_add(not_after).saturating_sub(1);
            if not_after == ahead.len() && upper_of(above).is_some_and(|u| u.as_bytes() <= target) {
                self.frames.pop();
                continue;
            }
            if frame.children.get(frame.next).is_some_and(|child| child.first.as_bytes() == target)
            {
                return Ok(());
            }
            self.enter()?;
        }
    }

    /// How many entries of the tree come before the one that the cursor stands at, or before the node that it has not
    /// fetched: the number of that entry in the order of the tree, from zero. Means nothing at the end.
    pub fn position(&self) -> u64 {
        let sum = |children: &[Child]| {
            children.iter().fold(0u64, |sum, child| sum.saturating_add(child.items))
        };
        let passed = |(depth, frame): (usize, &Frame)| {
            let entered = depth.saturating_add(1) < self.frames.len() || self.leaf.is_some();
            let passed = frame.next.saturating_sub(usize::from(entered));
            sum(frame.children.get(..passed).unwrap_or_default())
        };
        let before = self.frames.iter().enumerate().map(passed).fold(0, u64::saturating_add);
        let read = self.leaf.as_ref().map_or(0, |leaf| leaf.items);
        before.saturating_add(read).saturating_sub(u64::from(self.entry.is_some()))
    }

    /// Steps past that many entries. Fetches only nodes that hold an entry beyond them, and a root.
    ///
    /// # Errors
    /// As [`Cursor::peek`].
    pub fn skip_items(&mut self, mut items: u64) -> Result<(), TreeError<S::Error>> {
        while items > 0 {
            match self.settle()? {
                Place::End => return Ok(()),
                Place::Entry(_) => {
                    self.entry = None;
                    items = items.saturating_sub(1);
                    continue;
                }
                Place::Node { .. } => {}
            }
            // A root is named by nobody who says how many entries it has.
            let named = self.frames.last().filter(|frame| frame.level.is_some());
            let held = named.and_then(Frame::next_child).map(|child| child.items);
            match held.and_then(|held| items.checked_sub(held)) {
                Some(left) => {
                    items = left;
                    self.skip_node();
                }
                None => self.enter()?,
            }
        }
        Ok(())
    }

    /// Steps past what could not be read: after an error, the rest of that node. What comes after
    /// it can still be read.
    pub fn skip_unreadable(&mut self) {
        self.entry = None;
        if self.leaf.take().is_none() {
            self.leave_finished();
            self.skip_node();
        }
    }

    /// Goes on to the next entry or node, without entering that.
    pub(crate) fn settle(&mut self) -> Result<Place<'_>, TreeError<S::Error>> {
        while self.entry.is_none() && self.leaf.is_some() {
            self.read_entry()?;
        }
        if self.entry.is_some() {
            return Ok(Place::Entry(&self.path));
        }
        self.leave_finished();
        let pending = self.frames.last().and_then(|frame| Some((frame, frame.next_child()?)));
        Ok(pending.map_or(Place::End, |(frame, child)| Place::Node {
            first: &child.first,
            id: child.id,
            level: frame.level.unwrap_or(u8::MAX),
        }))
    }

    /// Steps past the node that the cursor stands before.
    pub(crate) fn skip_node(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.next = frame.next.saturating_add(1);
        }
    }

    /// Fetches the node that the cursor stands before, and stands before what it holds.
    pub(crate) fn enter(&mut self) -> Result<(), TreeError<S::Error>> {
        let Some((frame, above)) = self.frames.split_last_mut() else { return Ok(()) };
        let Some(child) = frame.next_child() else { return Ok(()) };
        let node = self.source.node(&child.id).map_err(TreeError::Source)?;
        let id = child.id;
        let misplaced = |reason| TreeError::Misplaced { node: id, reason };
        let unreadable = |error| TreeError::Node { node: id, error };
        let body = Body::open(&node).map_err(unreadable)?;
        if body.kind == NodeKind::List || frame.level.is_some_and(|level| level != body.level) {
            return Err(misplaced("not a node of this level"));
        }
        let expected = frame.level.map(|_| child);
        if body.kind == NodeKind::Interior {
            let below = body.level.checked_sub(1);
            let children = decode_children(body).map_err(unreadable)?;
            let after = frame.next.saturating_add(1);
            let upper = frame.children.get(after).map(|next| &next.first);
            check_children(&children, expected, upper.or_else(|| upper_of(above)))
                .map_err(misplaced)?;
            frame.next = after;
            self.frames.push(Frame { level: below, children, next: 0 });
        } else {
            self.leaf = Some(OpenLeaf::new(id, &node, &body, expected.cloned()));
            frame.next = frame.next.saturating_add(1);
        }
        self.visited.iter_mut().for_each(|visited| visited.push(id));
        Ok(())
    }

    /// Reads the next entry of the open leaf; leaves the leaf where there is none.
    fn read_entry(&mut self) -> Result<(), TreeError<S::Error>> {
        let Some(leaf) = &mut self.leaf else { return Ok(()) };
        let node = leaf.id;
        if let Some(reason) = leaf.refused {
            return Err(TreeError::Misplaced { node, reason });
        }
        self.entry = leaf.read(&mut self.path).map_err(|error| TreeError::Node { node, error })?;
        let checked = match self.entry {
            Some(_) => leaf.check_path(&self.path, upper_of(&self.frames)),
            None => leaf.check_end(),
        };
        if let Err(reason) = checked {
            (self.entry, leaf.refused) = (None, Some(reason));
            return Err(TreeError::Misplaced { node, reason });
        }
        if self.entry.is_none() {
            self.leaf = None;
        }
        Ok(())
    }

    fn leave_finished(&mut self) {
        while self.frames.pop_if(|frame| frame.next_child().is_none()).is_some() {}
    }

    fn upper_bound(&self) -> Option<&PathKey> {
        upper_of(&self.frames)
    }
}

impl Frame {
    fn next_child(&self) -> Option<&Child> {
        self.children.get(self.next)
    }
}

/// The first path after whatever was entered last from the lowest of these frames.
fn upper_of(frames: &[Frame]) -> Option<&PathKey> {
    frames.iter().rev().find_map(|frame| frame.next_child().map(|child| &child.first))
}

fn check_children(
    children: &[Child],
    expected: Option<&Child>,
    upper: Option<&PathKey>,
) -> Result<(), &'static str> {
    let Some(expected) = expected else { return Ok(()) };
    if children.first().is_none_or(|child| child.first != expected.first) {
        return Err("its first path is not the one named");
    }
    let last = children.last().map(|child| &child.first);
    if last.zip(upper).is_some_and(|(last, upper)| last >= upper) {
        return Err("it reaches into the next node");
    }
    let items = children.iter().fold(0u64, |sum, child| sum.saturating_add(child.items));
    let bytes = children.iter().fold(0u64, |sum, child| sum.saturating_add(child.bytes));
    if (items, bytes) != (expected.items, expected.bytes) {
        return Err("its totals are not those named");
    }
    Ok(())
}

impl OpenLeaf {
    fn new(id: ObjectId, node: &Arc<Node>, body: &Body<'_>, expected: Option<Child>) -> Self {
        let items_left = body.items.remaining().len();
        Self {
            id,
            node: Arc::clone(node),
            expected,
            before: Before::default(),
            path_bytes: 0,
            items: 0,
            bytes: 0,
            items_start: node.body.len().saturating_sub(items_left),
            items_left,
            positions_left: body.ids.positions.remaining().len(),
            refused: None,
        }
    }

    /// Reads the next entry, and its path in place of the one before.
    fn read(&mut self, path: &mut PathKey) -> Result<Option<Entry>, FormatError> {
        let mut body =
            Body::resume(&self.node, self.items_start, self.items_left, self.positions_left);
        if self.items_left == 0 {
            body.finish()?;
            return Ok(None);
        }
        take_path(&mut body, self.items == 0, path, &mut self.path_bytes)?;
        let entry = take_entry(&mut body, &mut self.before)?;
        self.items_left = body.items.remaining().len();
        self.positions_left = body.ids.positions.remaining().len();
        self.items = self.items.saturating_add(1);
        self.bytes = self.bytes.saturating_add(entry.counted_bytes());
        Ok(Some(entry))
    }

    /// Checks the path that was read last, before anybody sees it.
    fn check_path(&self, path: &PathKey, upper: Option<&PathKey>) -> Result<(), &'static str> {
        let Some(expected) = &self.expected else { return Ok(()) };
        if self.items == 1 && expected.first != *path {
            return Err("its first path is not the one named");
        }
        if upper.is_some_and(|upper| path >= upper) {
            return Err("it reaches into the next node");
        }
        Ok(())
    }

    fn check_end(&self) -> Result<(), &'static str> {
        let Some(expected) = &self.expected else { return Ok(()) };
        if self.items == 0 {
            return Err("a leaf below the root is empty");
        }
        if (self.items, self.bytes) != (expected.items, expected.bytes) {
            return Err("its totals are not those named");
        }
        Ok(())
    }
}

/// Finds one entry of a tree, fetching one node a level.
///
/// # Errors
/// As [`Cursor::peek`].
pub fn lookup<S: NodeSource>(
    source: S,
    root: ObjectId,
    path: &PathKey,
) -> Result<Option<Entry>, TreeError<S::Error>> {
    let mut cursor = Cursor::new(source, root);
    cursor.seek(path)?;
    cursor.peek()?;
    Ok(cursor.entry.take_if(|_| cursor.path == *path))
}
