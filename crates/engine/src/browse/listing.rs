//! What a snapshot holds at a path.

use holdall_tree::{Cursor, Entry, EntryKind, NodeSource};

use crate::blocks::Nodes;
use crate::records::snapshot_path::{key_of, no_path};
use crate::{EngineError, Run, Snapshot, UnlockedRepository};

/// One entry of a listing.
#[derive(Debug, Clone, Copy)]
pub struct ListedEntry<'a> {
    /// Its absolute path, any bytes.
    pub path: &'a [u8],
    /// What is known of it.
    pub entry: &'a Entry,
}

/// Shows what is at an absolute path: a directory's direct children, or everything below it where
/// `recursive` is set; for anything else the entry itself.
///
/// # Errors
/// [`EngineError::NoPath`] if nothing is there; [`EngineError::Damaged`] for a tree that cannot be
/// read on; [`EngineError::Interrupted`]; the first error of `visit`.
pub fn list(
    access: &UnlockedRepository,
    snapshot: &Snapshot,
    path: &[u8],
    recursive: bool,
    run: &Run,
    visit: &mut dyn FnMut(ListedEntry<'_>) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    // Each entry that is shown shows the wish to stop, too.
    let visit = &mut |listed: ListedEntry<'_>| run.check().and_then(|()| visit(listed));
    access.reading(|session| {
        let nodes = Nodes::open(access, session);
        list_in(Cursor::new(nodes, snapshot.root), snapshot, path, recursive, visit)
    })
}

pub(super) fn list_in(
    mut cursor: Cursor<impl NodeSource<Error = EngineError>>,
    snapshot: &Snapshot,
    path: &[u8],
    recursive: bool,
    visit: &mut dyn FnMut(ListedEntry<'_>) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let top = key_of(path).ok_or_else(|| no_path(snapshot, path))?;
    cursor.seek(&top)?;
    match cursor.peek()? {
        Some((found, entry)) if *found == top => {
            if entry.kind != EntryKind::Directory {
                return visit(ListedEntry { path: &top.to_absolute(), entry });
            }
            cursor.advance();
        }
        _ if top.is_root() => {}
        _ => return Err(no_path(snapshot, path)),
    }
    while let Some((found, entry)) = cursor.next()? {
        if !top.is_ancestor_of(&found) {
            break;
        }
        visit(ListedEntry { path: &found.to_absolute(), entry: &entry })?;
        if !recursive && entry.kind == EntryKind::Directory {
            cursor.skip_subtree(&found)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_world::{World, directory, small_file};

    fn listed(path: &str, recursive: bool) -> Result<Vec<String>, EngineError> {
        listed_in(&Run::new(), path, recursive)
    }

    fn listed_in(run: &Run, path: &str, recursive: bool) -> Result<Vec<String>, EngineError> {
        let world = World::new();
        let snapshot = world.snapshot(&[
            ("/", directory()),
            ("/a", directory()),
            ("/a/b", directory()),
            ("/a/b/c", small_file(b"")),
            ("/a/z", small_file(b"")),
            ("/a.txt", small_file(b"")),
        ]);
        let mut paths = Vec::new();
        list(&world.access, &snapshot, path.as_bytes(), recursive, run, &mut |listed| {
            paths.push(String::from_utf8_lossy(listed.path).into_owned());
            Ok(())
        })?;
        Ok(paths)
    }

    #[test]
    fn a_directory_shows_its_children_or_everything_below_it() {
        assert_eq!(listed("/", false).unwrap(), ["/a", "/a.txt"]);
        assert_eq!(listed("/a/", false).unwrap(), ["/a/b", "/a/z"]);
        assert_eq!(listed("/a", true).unwrap(), ["/a/b", "/a/b/c", "/a/z"]);
        assert_eq!(listed("/a/b/c", false).unwrap(), ["/a/b/c"]);
    }

    #[test]
    fn a_wish_to_stop_ends_the_listing() {
        let run = Run::new();
        run.stop();
        let ended = listed_in(&run, "/", true);
        assert!(matches!(ended, Err(EngineError::Interrupted)), "{ended:?}");
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        for path in ["/b", "/a/b/c/d", "a", "", "/a/../a"] {
            assert!(matches!(listed(path, false), Err(EngineError::NoPath { .. })), "{path}");
        }
    }
}
