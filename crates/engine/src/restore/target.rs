//! What a restore starts from: a place in the snapshot, and a directory to put it into.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use holdall_format::SessionId;
use holdall_sys::{TargetDir, guarded};
use holdall_tree::{Entry, EntryKind, PathKey, lookup};

use super::immutable::if_immutable;
use super::mark::Earlier;
use super::{Overwrite, RestoreOptions};
use crate::blocks::Nodes;
use crate::records::snapshot_path::{key_of, no_path};
use crate::{EngineError, Snapshot, UnlockedRepository};

/// What of a snapshot is restored.
pub(super) struct Start {
    /// The directory that the target stands for.
    pub(super) top: PathKey,
    /// What the target shall be like; nothing where it is only where paths are put.
    pub(super) top_entry: Option<Entry>,
    /// The one entry in `top` that is wanted, if it is one.
    pub(super) only: Option<PathKey>,
}

impl Start {
    /// Finds what is at `path`; everything without one.
    ///
    /// # Errors
    /// [`EngineError::NoPath`] if nothing is there.
    pub(super) fn find(
        access: &UnlockedRepository,
        session: SessionId,
        snapshot: &Snapshot,
        path: Option<&[u8]>,
    ) -> Result<Self, EngineError> {
        let Some(path) = path else {
            return Ok(Self { top: PathKey::root(), top_entry: None, only: None });
        };
        let none = || no_path(snapshot, path);
        let key = key_of(path).ok_or_else(none)?;
        let found = lookup(Nodes::open(access, session), snapshot.root, &key)?;
        match found {
            None if key.is_root() => Ok(Self { top: key, top_entry: None, only: None }),
            None => Err(none()),
            Some(entry) if entry.kind == EntryKind::Directory => {
                Ok(Self { top: key, top_entry: Some(entry), only: None })
            }
            Some(_) => {
                let top = key.parent().unwrap_or_default();
                Ok(Self { top, top_entry: None, only: Some(key) })
            }
        }
    }
}

/// A target that is open.
pub(super) struct Target {
    pub(super) root: TargetDir,
    /// It keeps its own metadata.
    pub(super) kept: bool,
    /// Nothing was in it.
    pub(super) was_empty: bool,
}

/// Opens the target, making it if it is missing. One that is there keeps its own metadata if it `is_on_the_way`
/// to what is wanted only.
///
/// # Errors
/// [`EngineError::Path`] if it cannot be made or opened, or holds something and nothing is said of
/// overwriting.
pub(super) fn open(
    target: &Path,
    options: &RestoreOptions,
    is_on_the_way: bool,
    earlier: &Earlier,
) -> Result<Target, EngineError> {
    let unusable =
        |reason: String| EngineError::Path { path: target.display().to_string(), reason };
    let refused = || {
        let reason = "it is not empty: choose another directory, or say what to overwrite";
        unusable(reason.to_owned())
    };
    let open = match options.in_place {
        true => TargetDir::open_guarded,
        false => TargetDir::open_root,
    };
    if options.dry_run {
        // Nothing is made in it, and the target need not exist.
        let is_there = open(target);
        if options.overwrite.is_none() && is_there.is_ok_and(|root| holds_something(&root)) {
            return Err(refused());
        }
        let root = TargetDir::open_root(Path::new("/"));
        let root = root.map_err(|error| unusable(error.to_string()))?;
        return Ok(Target { root, kept: true, was_empty: false });
    }
    let made = match options.in_place {
        true => guarded::make_folders(target, 0o777),
        false => std::fs::create_dir_all(target),
    };
    made.map_err(|error| (if_immutable(&error), error))
        .map_err(|(why, error)| format!("it cannot be made: {error}{why}; name another folder"))
        .map_err(unusable)?;
    let root = open(target).map_err(|error| {
        let lack = EngineError::lack(target.as_os_str().as_bytes(), "opening", &error);
        lack.unwrap_or_else(|| unusable(format!("it cannot be opened: {error}")))
    })?;
    let holds_something = holds_something(&root);
    if holds_something && options.overwrite.is_none() {
        return Err(refused());
    }
    let is_kept = is_on_the_way || options.overwrite == Some(Overwrite::Never);
    let was_finished = root.as_dir().stat_self().is_ok_and(|there| !earlier.made(&there));
    let kept = holds_something && is_kept && was_finished;
    Ok(Target { root, kept, was_empty: !holds_something })
}

fn holds_something(root: &TargetDir) -> bool {
    let mut holds_something = false;
    // The listing ends at its first piece.
    let _ = root.as_dir().entries_in_pieces(1, |piece| {
        holds_something |= !piece.is_empty();
        Err(std::io::ErrorKind::Interrupted.into())
    });
    holds_something
}
