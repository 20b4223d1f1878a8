//! Walking restic's trees, a folder at a time, beside those of an earlier snapshot.
//!
//! Each folder is a blob with its nodes; folders with the same id are the same with everything below them.

use std::collections::HashMap;
use std::sync::Arc;

use holdall_engine::{EngineError, Entries, EntryKind, ForeignTree, Found, FoundContent, PathKey};
use rustic_core::repofile::Node;
use rustic_core::{Id, TreeId};

use crate::content::Content;
use crate::indexed::Indexed;
use crate::node;
use crate::nodes::Nodes;

/// The most folders within each other: paths have 64 KiB, and each takes memory while it is walked.
const MAX_DEPTH: usize = 4096;

/// The tree of a snapshot.
pub struct ResticTree {
    repository: Arc<Indexed>,
    root: TreeId,
    base: Option<TreeId>,
}

/// A folder that is being walked.
struct Folder {
    path: PathKey,
    /// Its nodes that were not handed over, the next one last.
    nodes: Vec<(Vec<u8>, Node)>,
    /// Those of the same folder in the earlier snapshot.
    before: HashMap<Vec<u8>, Node>,
}

impl ResticTree {
    pub(crate) fn new(repository: Arc<Indexed>, root: [u8; 32], base: Option<[u8; 32]>) -> Self {
        let id = |bytes| TreeId::from(Id::new(bytes));
        Self { repository, root: id(root), base: base.map(id) }
    }

    /// Reads a folder, and names what of it is not understood. What the earlier snapshot has there is only of use, and
    /// nothing without it is wrong.
    fn folder(
        &self,
        entries: &mut Entries<'_>,
        path: PathKey,
        id: &TreeId,
        before: Option<&TreeId>,
    ) -> Result<Folder, String> {
        let Nodes { mut nodes, left_out } = Nodes::read(&self.repository, id)?;
        for (name, reason) in left_out {
            match path.child(&name) {
                Ok(path) => entries.problem(&path, format!("not imported: {reason}")),
                Err(_) => not_named(entries, &path, &name, &reason),
            }
        }
        nodes.sort_by(|(left, _), (right, _)| right.cmp(left));
        let before = before.and_then(|id| Nodes::read(&self.repository, id).ok());
        let before = before.map(|before| before.nodes.into_iter().collect()).unwrap_or_default();
        Ok(Folder { path, nodes, before })
    }

    /// Hands one node over; the folder that it is, if that has to be walked.
    fn node(
        &self,
        entries: &mut Entries<'_>,
        path: PathKey,
        node: Node,
        before: Option<Node>,
    ) -> Result<Option<Folder>, EngineError> {
        if before.as_ref() == Some(&node) && entries.keep(&path)? {
            return Ok(None);
        }
        let blobs = node.content.clone().unwrap_or_default();
        let is_as_before = before.as_ref().is_some_and(|before| {
            before.is_file()
                && before.meta.size == node.meta.size
                && before.content.clone().unwrap_or_default() == blobs
        });
        let entry = node::entry(&node);
        let content = (entry.kind == EntryKind::File).then(|| FoundContent {
            bytes: Box::new(Content::new(Arc::clone(&self.repository), blobs)),
            is_as_before,
        });
        let (attributes, linked) = (node::attributes(&node.meta), node::linked(&node));
        entries.put(path.clone(), Found { entry, attributes, linked, content })?;
        let Some(subtree) = node.subtree.filter(|_| node.is_dir()) else { return Ok(None) };
        let before = before.and_then(|before| before.subtree);
        match self.folder(entries, path.clone(), &subtree, before.as_ref()) {
            Ok(folder) => Ok(Some(folder)),
            Err(reason) => {
                let what = format!("what is in it is not imported: {reason}");
                entries.problem(&path, what);
                Ok(None)
            }
        }
    }
}

impl ForeignTree for ResticTree {
    fn walk(&mut self, entries: &mut Entries<'_>) -> Result<(), EngineError> {
        let root = self.folder(entries, PathKey::root(), &self.root, self.base.as_ref());
        let root = root.map_err(|reason| EngineError::damaged("its tree", reason))?;
        let mut folders = vec![root];
        while let Some(folder) = folders.last_mut() {
            let Some((name, node)) = folder.nodes.pop() else {
                folders.pop();
                continue;
            };
            let path = match folder.path.child(&name) {
                Ok(path) => path,
                Err(error) => {
                    not_named(entries, &folder.path, &name, &error.to_string());
                    continue;
                }
            };
            let before = folder.before.remove(&name);
            let is_deep = folders.len() >= MAX_DEPTH;
            match self.node(entries, path, node, before)? {
                Some(folder) if is_deep => {
                    entries
                        .problem(&folder.path, "what is in it is not imported: too many folders");
                }
                Some(folder) => folders.push(folder),
                None => {}
            }
        }
        Ok(())
    }
}

/// Tells of a node whose name no path can have.
fn not_named(entries: &mut Entries<'_>, folder: &PathKey, name: &[u8], reason: &str) {
    let name = String::from_utf8_lossy(name);
    entries.problem(folder, format!("{name:?} in it is not imported: {reason}"));
}
