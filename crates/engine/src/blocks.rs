//! Nodes of trees by id: from blocks that are open already, from the cache on this machine, and only
//! then from the repository.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use holdall_crypto::{IdKeys, Opener};
use holdall_format::{Block, BlockKind, ObjectId, SessionId};
use holdall_protocol::{Repository, RepositoryError};
use holdall_tree::{Node, NodeSource};

use crate::cache::node_cache::NodeCache;
use crate::run::lock;
use crate::{EngineError, UnlockedRepository};

/// Open blocks that are kept; a walk uses one after the other, and returns to a few.
const OPEN_BLOCKS: usize = 6;
/// Copies of a damaged object that are tried.
const COPIES_TRIED: u32 = 3;

/// A cache that may be absent, shared by the threads of a run.
pub(crate) type SharedNodeCache = Arc<Mutex<Option<NodeCache>>>;

/// Opens this repository's node cache, or does without where it is in use or cannot be made.
pub(crate) fn open_node_cache(access: &UnlockedRepository) -> SharedNodeCache {
    Arc::new(Mutex::new(NodeCache::open(&access.cache).ok()))
}

/// A source of nodes whose ids are always checked.
pub(crate) struct Nodes {
    repository: Arc<dyn Repository>,
    session: SessionId,
    ids: IdKeys,
    opener: Opener,
    cache: SharedNodeCache,
    /// The newest is last.
    open: Vec<HashMap<ObjectId, Arc<Node>>>,
    /// What the repository does not have any more, whatever is cached here.
    lost: Arc<HashSet<ObjectId>>,
}

impl Nodes {
    /// Nodes by way of this repository's cache.
    pub(crate) fn open(access: &UnlockedRepository, session: SessionId) -> Self {
        Self::with_cache(access, session, open_node_cache(access))
    }

    /// Nodes by way of a cache that is open already.
    pub(crate) fn with_cache(
        access: &UnlockedRepository,
        session: SessionId,
        cache: SharedNodeCache,
    ) -> Self {
        Self {
            repository: Arc::clone(&access.repository),
            session,
            ids: access.keys.ids().clone(),
            opener: Opener::new(access.keys.sealing(), access.config.repository),
            cache,
            open: Vec::new(),
            lost: Arc::default(),
        }
    }

    /// The same, with these nodes taken for damaged.
    pub(crate) fn without(self, lost: Arc<HashSet<ObjectId>>) -> Self {
        Self { lost, ..self }
    }

    fn find_open(&mut self, id: &ObjectId) -> Option<Arc<Node>> {
        let at = self.open.iter().rposition(|block| block.contains_key(id))?;
        let node = self.open.get(at)?.get(id).map(Arc::clone);
        if at + 1 < self.open.len() {
            let block = self.open.remove(at);
            self.open.push(block);
        }
        node
    }

    /// Opens a block, keeps its nodes, and gives the one that was asked for.
    fn open_block<B: AsRef<[u8]>>(
        &mut self,
        block: &Block<B>,
        wanted: &ObjectId,
    ) -> Result<Option<Arc<Node>>, EngineError> {
        let opened = self.opener.open(block, BlockKind::Nodes)?;
        let mut nodes = HashMap::with_capacity(opened.objects.len());
        for object in opened.objects {
            let body = opened.plain.get(object.range).unwrap_or_default().to_vec();
            nodes.insert(object.id, Arc::new(Node { refs: object.refs, body }));
        }
        let Some(node) = nodes.get(wanted).map(Arc::clone) else { return Ok(None) };
        if self.ids.node_id(&node.refs, &node.body) != *wanted {
            return Ok(None);
        }
        if self.open.len() >= OPEN_BLOCKS {
            self.open.remove(0);
        }
        self.open.push(nodes);
        Ok(Some(node))
    }

    fn cached(&mut self, id: &ObjectId) -> Option<Arc<Node>> {
        let block = lock(&self.cache).as_ref()?.find(id)?;
        self.open_block(&block, id).ok().flatten()
    }

    fn fetched(&mut self, id: &ObjectId) -> Result<Arc<Node>, EngineError> {
        for copy in 0..COPIES_TRIED {
            let blocks: Vec<Bytes> =
                match self.repository.fetch_objects(&self.session, &[*id], copy) {
                    Err(RepositoryError::MissingObjects { .. }) if copy > 0 => break,
                    Err(RepositoryError::Damaged { .. }) => continue,
                    fetched => fetched?.blocks,
                };
            let first = blocks.into_iter().next().and_then(|bytes| Block::decode(bytes).ok());
            let Some(block) = first else { continue };
            if let Ok(Some(node)) = self.open_block(&block, id) {
                if let Some(cache) = lock(&self.cache).as_mut() {
                    // A cache that cannot be written is a slower next run, nothing more.
                    let _ = cache.add(&block);
                }
                return Ok(node);
            }
        }
        Err(EngineError::damaged(format!("node {id}"), "no copy of it opens to its id"))
    }
}

impl NodeSource for Nodes {
    type Error = EngineError;

    fn node(&mut self, id: &ObjectId) -> Result<Arc<Node>, EngineError> {
        if self.lost.contains(id) {
            return Err(RepositoryError::MissingObjects { ids: vec![*id] }.into());
        }
        if let Some(node) = self.find_open(id).or_else(|| self.cached(id)) {
            // Every use is checked, since only the node first asked for was checked when its
            // block was opened.
            if self.ids.node_id(&node.refs, &node.body) == *id {
                return Ok(node);
            }
        }
        self.fetched(id)
    }
}
