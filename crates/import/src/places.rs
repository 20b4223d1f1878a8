//! Where a snapshot's tree has what was backed up.
//!
//! restic records absolute paths. What was given to it by a relative path is in the tree from its own first folder on: of
//! `docs`, backed up in `/srv`, the path is `/srv/docs`, and the tree has `/docs`. Of `.`, the tree has what is in that folder.

use std::collections::HashMap;

use rustic_core::TreeId;

use crate::indexed::Indexed;
use crate::nodes::Nodes;

/// The folders of a tree that were looked at.
struct Folders<'a> {
    repository: &'a Indexed,
    root: TreeId,
    /// The names in each, with the folders that they are.
    seen: HashMap<TreeId, HashMap<Vec<u8>, Option<TreeId>>>,
}

/// The paths of a snapshot as its tree has them. One that it has nowhere stays: what was there could not be read.
pub(crate) fn placed(repository: &Indexed, root: TreeId, paths: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut folders = Folders { repository, root, seen: HashMap::new() };
    let has: Vec<_> = paths.iter().map(|path| folders.has(path)).collect();
    let absolute: Vec<_> = paths.iter().zip(&has).filter(|(_, has)| **has).collect();
    let is_of_another = |end: &[u8]| absolute.iter().any(|(path, _)| is_within(path, end));
    let mut found = |path: &Vec<u8>| {
        ends(path).find(|end| folders.has(end) && !is_of_another(end)).map(<[u8]>::to_vec)
    };
    let places: Vec<_> = paths
        .iter()
        .zip(&has)
        .map(|(path, has)| if *has { Some(path.clone()) } else { found(path) })
        .collect();
    if places.iter().all(Option::is_none) && !folders.is_empty() {
        return vec![b"/".to_vec()];
    }
    places.into_iter().zip(paths).map(|(place, path)| place.unwrap_or(path.clone())).collect()
}

/// Whether a path is a folder, or below it.
fn is_within(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

/// What a path ends in, from its second component on, longest first.
fn ends(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[at..])
}

impl Folders<'_> {
    /// Whether a plain path is in the tree.
    fn has(&mut self, path: &[u8]) -> bool {
        let mut folder = Some(self.root);
        let names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        names.into_iter().all(|name| {
            let found = folder.and_then(|id| self.names(id).get(name).copied());
            folder = found.flatten();
            found.is_some()
        })
    }

    fn is_empty(&mut self) -> bool {
        self.names(self.root).is_empty()
    }

    /// What is in a folder; nothing, if it cannot be read.
    fn names(&mut self, id: TreeId) -> &HashMap<Vec<u8>, Option<TreeId>> {
        self.seen.entry(id).or_insert_with(|| {
            let nodes = Nodes::read(self.repository, &id).map(|read| read.nodes);
            let named = nodes.unwrap_or_default().into_iter();
            named.map(|(name, node)| (name, node.subtree)).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_ends_in_what_a_relative_one_may_have_been() {
        let all: Vec<_> = ends(b"/srv/a/docs").collect();
        assert_eq!(all, [&b"/a/docs"[..], b"/docs"]);
        assert_eq!(ends(b"/").count(), 0);
        assert!(is_within(b"/docs/a", b"/docs") && !is_within(b"/docs2", b"/docs"));
    }
}
