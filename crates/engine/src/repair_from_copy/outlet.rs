//! What becomes of objects that a walk brings up: first it is found out which of them are the lost ones,
//! then those are put.
//!
//! A node that is lost says what else is: its references are covered by its id. Below it nothing is
//! known before, and since children are built before their parents, a first walk only notes ids.

use std::collections::{HashMap, HashSet};

use holdall_format::ObjectId;
use holdall_tree::BuiltNode;

use super::reach::Reach;
use super::repaired::Repaired;
use crate::EngineError;
use crate::storing::Putter;

/// Where objects go that the repository lacks, under ids that were computed from their content.
pub(super) trait Outlet {
    /// Whether a lost chunk is to be fetched.
    fn wants(&self, chunk: &ObjectId) -> bool;

    /// Takes a chunk.
    fn chunk(&mut self, id: ObjectId, bytes: &[u8]) -> Result<(), EngineError>;

    /// Takes a node, after all that it refers to.
    fn node(&mut self, node: BuiltNode) -> Result<(), EngineError>;
}

/// The first walk: which ids come up. About 1 KiB for each node that is lost.
#[derive(Default)]
pub(super) struct Rehearsal {
    /// Lengths of chunks.
    chunks: HashMap<ObjectId, u64>,
    /// Lengths of nodes, and what they refer to.
    nodes: HashMap<ObjectId, (u64, Vec<ObjectId>)>,
}

impl Rehearsal {
    /// What of all that came up is lost: what is known to be, and what nodes refer to that are.
    pub(super) fn repaired(&self, lost: &HashSet<ObjectId>, reach: &Reach) -> Repaired {
        let mut repaired = Repaired::default();
        let mut seen = HashSet::new();
        let mut pending: Vec<ObjectId> = lost.iter().copied().collect();
        while let Some(id) = pending.pop() {
            if !seen.insert(id) {
                continue;
            }
            if let Some((bytes, refs)) = self.nodes.get(&id) {
                pending.extend(refs.iter().filter(|id| reach.lacks(id)));
                repaired.add_node(id, refs.clone(), *bytes);
            } else if let Some(bytes) = self.chunks.get(&id) {
                repaired.add_chunk(id, *bytes);
            }
        }
        repaired
    }
}

impl Outlet for Rehearsal {
    fn wants(&self, chunk: &ObjectId) -> bool {
        !self.chunks.contains_key(chunk)
    }

    fn chunk(&mut self, id: ObjectId, bytes: &[u8]) -> Result<(), EngineError> {
        self.chunks.insert(id, bytes.len() as u64);
        Ok(())
    }

    fn node(&mut self, node: BuiltNode) -> Result<(), EngineError> {
        self.nodes.insert(node.id, (node.body.len() as u64, node.refs));
        Ok(())
    }
}

/// The second walk: what is lost is put.
pub(super) struct Putting<'a> {
    putter: Putter<'a>,
    /// What is to be put and was not yet.
    wanted: HashSet<ObjectId>,
    put: Repaired,
}

impl<'a> Putting<'a> {
    pub(super) fn new(putter: Putter<'a>, wanted: &Repaired) -> Self {
        let nodes = wanted.nodes.iter().map(|(id, _)| id);
        let wanted = wanted.chunks.iter().chain(nodes).copied().collect();
        Self { putter, wanted, put: Repaired::default() }
    }

    /// Sends what is left, and says what was put. It is durable then.
    pub(super) fn finish(self) -> Result<Repaired, EngineError> {
        self.putter.finish()?;
        Ok(self.put)
    }
}

impl Outlet for Putting<'_> {
    fn wants(&self, chunk: &ObjectId) -> bool {
        self.wanted.contains(chunk)
    }

    fn chunk(&mut self, id: ObjectId, bytes: &[u8]) -> Result<(), EngineError> {
        if self.wanted.remove(&id) {
            self.putter.chunk(id, bytes)?;
            self.put.add_chunk(id, bytes.len() as u64);
        }
        Ok(())
    }

    fn node(&mut self, node: BuiltNode) -> Result<(), EngineError> {
        let BuiltNode { id, kind, refs, body, .. } = node;
        if self.wanted.remove(&id) {
            self.putter.node(kind, id, refs.clone(), &body)?;
            self.put.add_node(id, refs, body.len() as u64);
        }
        Ok(())
    }
}
