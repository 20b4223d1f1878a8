//! The sources in order: overlaps merged, and the directories above them.

use std::collections::BTreeSet;

use holdall_tree::PathKey;

use super::{FOLLOWED, Source};
use crate::EngineError;

/// One step of the plan over all sources, in the tree's order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A directory above a source: only its own metadata is recorded, if it can be read anywhere.
    Ancestor { path: PathKey, read_at: Option<Vec<u8>> },
    /// A source with everything below it.
    Source { path: PathKey, read_at: Vec<u8> },
}

/// Sorts the sources, drops those that lie within others, and puts each directory above them before
/// them once. The root directory is recorded only if it is a source itself.
///
/// # Errors
/// [`EngineError::Path`] for a path that is not absolute or not clean.
pub(super) fn steps(sources: &[Source]) -> Result<Vec<Step>, EngineError> {
    let mut keyed = sources
        .iter()
        .map(|source| {
            let key = PathKey::from_absolute(&source.path).map_err(|error| EngineError::Path {
                path: String::from_utf8_lossy(&source.path).into_owned(),
                reason: error.to_string(),
            })?;
            Ok((key, source.read_at.clone()))
        })
        .collect::<Result<Vec<_>, EngineError>>()?;
    keyed.sort();
    keyed.dedup_by(|next, kept| next.0 == kept.0 || kept.0.is_ancestor_of(&next.0));
    let mut steps = Vec::new();
    let mut last_ancestor = PathKey::root();
    for (path, read_at) in keyed {
        for (ancestor, its_read_at) in ancestors(&path, &read_at) {
            if !(ancestor == last_ancestor || ancestor.is_ancestor_of(&last_ancestor)) {
                steps.push(Step::Ancestor { path: ancestor.clone(), read_at: its_read_at });
                last_ancestor = ancestor;
            }
        }
        steps.push(Step::Source { path, read_at });
    }
    Ok(steps)
}

/// Where the sources are recorded, those within others too.
pub(super) fn named(sources: &[Source]) -> BTreeSet<PathKey> {
    sources.iter().filter_map(|source| PathKey::from_absolute(&source.path).ok()).collect()
}

/// Those that lie within others: the walk of those comes to them, unless something is in its way.
pub(super) fn inner(sources: &[Source]) -> BTreeSet<PathKey> {
    let mut inner = named(sources);
    let mut outer: Option<PathKey> = None;
    inner.retain(|path| {
        let is_inner = outer.as_ref().is_some_and(|outer| outer.is_ancestor_of(path));
        if !is_inner {
            outer = Some(path.clone());
        }
        is_inner
    });
    inner
}

/// The directories above `path`, outermost first, without the root, and where each is read: as far
/// above `read_at` as it is above `path`, while what lies between has the same names.
fn ancestors(path: &PathKey, read_at: &[u8]) -> Vec<(PathKey, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    // Above a link is what is above it, and not above where it leads to.
    let read_at = read_at.strip_suffix(FOLLOWED).unwrap_or(read_at);
    let mut below = (path.clone(), PathKey::from_absolute(read_at).ok());
    while let Some(ancestor) = below.0.parent().filter(|ancestor| !ancestor.is_root()) {
        let counterpart = below.1.filter(|counterpart| counterpart.name() == below.0.name());
        let counterpart = counterpart.and_then(|counterpart| counterpart.parent());
        found.push((ancestor.clone(), counterpart.as_ref().map(PathKey::to_absolute)));
        below = (ancestor, counterpart);
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(paths: &[&str]) -> Vec<String> {
        let sources: Vec<Source> = paths
            .iter()
            .map(|path| Source {
                path: path.as_bytes().to_vec(),
                read_at: path.as_bytes().to_vec(),
            })
            .collect();
        let text = |path: &PathKey| String::from_utf8(path.to_absolute()).unwrap();
        steps(&sources)
            .unwrap()
            .iter()
            .map(|step| match step {
                Step::Ancestor { path, .. } => format!("({})", text(path)),
                Step::Source { path, .. } => text(path),
            })
            .collect()
    }

    #[test]
    fn sources_are_sorted_merged_and_come_behind_what_is_above_them() {
        assert_eq!(
            plan(&["/b/c", "/a/x/y", "/a/x", "/a/w", "/b/c"]),
            ["(/a)", "/a/w", "/a/x", "(/b)", "/b/c"]
        );
        assert_eq!(plan(&["/"]), ["/"]);
        assert_eq!(
            plan(&["/a/b/c", "/a/b-c/d"]),
            ["(/a)", "(/a/b)", "/a/b/c", "(/a/b-c)", "/a/b-c/d"]
        );
    }

    #[test]
    fn a_relative_source_is_refused_by_name() {
        let source = Source { path: b"home".to_vec(), read_at: b"home".to_vec() };
        assert!(steps(&[source]).unwrap_err().to_string().starts_with("home"));
    }

    #[test]
    fn what_is_above_a_source_read_elsewhere_is_read_there_too_or_nowhere() {
        let read_at = |path: &[u8], read_at: &[u8]| {
            let source = Source { path: path.to_vec(), read_at: read_at.to_vec() };
            let steps = steps(&[source]).unwrap().into_iter();
            steps
                .filter_map(|step| match step {
                    Step::Ancestor { read_at, .. } => {
                        Some(read_at.map(|path| String::from_utf8(path).unwrap()))
                    }
                    Step::Source { .. } => None,
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(read_at(b"/home/ada", b"/home/ada"), [Some("/home".to_owned())]);
        assert_eq!(read_at(b"/home/ada", b"/snap/home/ada"), [Some("/snap/home".to_owned())]);
        assert_eq!(read_at(b"/home/ada", b"/home/ada/."), [Some("/home".to_owned())]);
        assert_eq!(read_at(b"/laptop/data", b"/mnt/x"), [None]);
    }
}
