//! What snapshots reach, and what of it is lost.

use std::collections::{HashMap, HashSet};

use holdall_format::{ObjectId, SessionId};
use holdall_tree::{LIST_MAX_LEVEL, NodeSource, TREE_MAX_LEVEL};

use super::repaired::Repaired;
use crate::blocks::Nodes;
use crate::error::is_damaged;
use crate::verify::{GoodIds, stored_nodes};
use crate::{EngineError, Run, UnlockedRepository};

/// Nodes below each other, beyond which no honest tree goes.
const DEPTH_MAX: u8 = TREE_MAX_LEVEL + LIST_MAX_LEVEL + 2;

/// What a repository still has, by what its blocks opened to.
pub(super) struct Reach {
    good: GoodIds,
    nodes: Nodes,
    /// Nodes below which nothing is lost.
    whole: HashSet<ObjectId>,
    /// Nodes that were put, or would be, with what they refer to.
    repaired_nodes: HashMap<ObjectId, Vec<ObjectId>>,
    repaired_chunks: HashSet<ObjectId>,
}

impl Reach {
    pub(super) fn new(access: &UnlockedRepository, session: SessionId, good: GoodIds) -> Self {
        let (whole, repaired_nodes, repaired_chunks) = Default::default();
        // As the repository has them: what is only in this machine's cache is lost to all others.
        let nodes = stored_nodes(access, session);
        Self { good, nodes, whole, repaired_nodes, repaired_chunks }
    }

    /// Whether no good copy of a chunk is stored.
    pub(super) fn lacks_chunk(&self, id: &ObjectId) -> bool {
        !self.good.has_chunk(id) && !self.repaired_chunks.contains(id)
    }

    /// The same of a node.
    pub(super) fn lacks_node(&self, id: &ObjectId) -> bool {
        !self.good.has_node(id) && !self.repaired_nodes.contains_key(id)
    }

    /// The same of an object that may be either.
    pub(super) fn lacks(&self, id: &ObjectId) -> bool {
        self.lacks_chunk(id) && self.lacks_node(id)
    }

    /// Notes what was put, or would be.
    pub(super) fn add(&mut self, repaired: Repaired) {
        self.repaired_chunks.extend(repaired.chunks);
        self.repaired_nodes.extend(repaired.nodes);
    }

    /// What a node refers to; `None` if it is lost.
    fn references(&mut self, id: &ObjectId) -> Result<Option<Vec<ObjectId>>, EngineError> {
        if let Some(references) = self.repaired_nodes.get(id) {
            return Ok(Some(references.clone()));
        }
        if !self.good.has_node(id) {
            return Ok(None);
        }
        match self.nodes.node(id) {
            Err(error) if is_damaged(&error) => Ok(None),
            node => Ok(Some(node?.refs.clone())),
        }
    }

    /// The lost objects that are known of below a root. What a lost node refers to is not known.
    ///
    /// # Errors
    /// What keeps nodes that are there from being read; [`EngineError::Interrupted`].
    pub(super) fn lost_below(
        &mut self,
        root: &ObjectId,
        run: &Run,
    ) -> Result<HashSet<ObjectId>, EngineError> {
        let mut descent = Descent { run, lost: HashSet::new(), seen: HashSet::new() };
        descent.is_whole(self, root, 0)?;
        Ok(descent.lost)
    }
}

/// One walk through references.
struct Descent<'a> {
    run: &'a Run,
    lost: HashSet<ObjectId>,
    /// Nodes below which something is lost.
    seen: HashSet<ObjectId>,
}

impl Descent<'_> {
    /// Walks below an object; says whether nothing is lost there.
    fn is_whole(
        &mut self,
        reach: &mut Reach,
        id: &ObjectId,
        depth: u8,
    ) -> Result<bool, EngineError> {
        if reach.whole.contains(id) || !reach.lacks_chunk(id) {
            return Ok(true);
        }
        if self.seen.contains(id) || depth > DEPTH_MAX {
            return Ok(false);
        }
        self.run.check()?;
        let Some(references) = reach.references(id)? else {
            self.seen.insert(*id);
            self.lost.insert(*id);
            return Ok(false);
        };
        let mut is_whole = true;
        for below in &references {
            is_whole &= self.is_whole(reach, below, depth + 1)?;
        }
        if is_whole {
            reach.whole.insert(*id);
        } else {
            self.seen.insert(*id);
        }
        Ok(is_whole)
    }
}
