//! How the sources of a backup lie to each other, and what patterns can reach of them.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use crate::{FOLLOWED, Patterns, Source};

/// A source that would be recorded where another records what lies in it.
#[derive(Debug, PartialEq, Eq)]
pub struct Overlap<'a> {
    /// The one within.
    pub inner: &'a Source,
    /// The one around it, or at the same place.
    pub outer: &'a Source,
}

/// The first source that is recorded within another and not read there: of the two that are meant for one place, only one
/// could be.
pub fn overlap(sources: &[Source]) -> Option<Overlap<'_>> {
    let recorded: HashMap<_, _> = sources.iter().map(|source| (&source.path[..], source)).collect();
    let overlap = |inner: &Source| {
        let slashes = inner.path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let ends = slashes.map(|(at, _)| at).chain([inner.path.len()]);
        ends.map(|end| inner.path.split_at(end)).find_map(|(outer, rest)| {
            let outer = recorded.get(if outer.is_empty() { &b"/"[..] } else { outer })?;
            let expected = match rest {
                [] => outer.read_at.clone(),
                rest => plain_path(&[&outer.read_at, &b"/"[..], rest].concat()),
            };
            (expected != inner.read_at).then_some(*outer)
        })
    };
    sources.iter().find_map(|inner| Some(Overlap { inner, outer: overlap(inner)? }))
}

/// A pattern that can match nothing, since it is about where a source is read.
#[derive(Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// As it was given.
    pub pattern: Vec<u8>,
    /// Where the source is read.
    pub read_at: Vec<u8>,
    /// Where it is recorded, which is where patterns begin.
    pub path: Vec<u8>,
}

/// The first pattern of what is recorded elsewhere: below a link that is followed, or where a source is read.
pub fn misplaced(sources: &[Source], patterns: &Patterns) -> Option<Misplaced> {
    let read_elsewhere = |source: &Source| {
        let read_at = source.read_at.strip_suffix(FOLLOWED).unwrap_or(&source.read_at);
        let real = folder_behind(read_at).unwrap_or_else(|| read_at.to_vec());
        (real != source.path && real != b"/").then(|| (real, source.path.clone()))
    };
    let moved: Vec<_> = sources.iter().filter_map(read_elsewhere).collect();
    if moved.is_empty() {
        return None;
    }
    patterns.anchored().find_map(|(pattern, begin)| {
        let is_recorded =
            |source: &Source| within(&begin, &source.path) || within(&source.path, &begin);
        let read = moved.iter().find(|(real, _)| within(&begin, real));
        let (read_at, path) = read.filter(|_| !sources.iter().any(is_recorded))?.clone();
        Some(Misplaced { pattern: pattern.to_vec(), read_at, path })
    })
}

/// The folder that a path which is a link leads to.
pub fn folder_behind(path: &[u8]) -> Option<Vec<u8>> {
    let path = Path::new(OsStr::from_bytes(path));
    let is_link = path.symlink_metadata().is_ok_and(|there| there.is_symlink());
    let folder = is_link.then(|| path.canonicalize().ok()).flatten()?;
    folder.is_dir().then(|| folder.into_os_string().into_vec())
}

/// An absolute path in its plain form: one slash between components, none at the end.
pub fn plain_path(path: &[u8]) -> Vec<u8> {
    let components =
        path.split(|&byte| byte == b'/').filter(|name| !name.is_empty() && *name != b".");
    let joined: Vec<u8> = components.flat_map(|name| [b"/", name].concat()).collect();
    if joined.is_empty() { b"/".to_vec() } else { joined }
}

/// Whether a plain path is another, which is not the root, or lies below it.
fn within(path: &[u8], of: &[u8]) -> bool {
    path.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(all: &[(&str, &str)]) -> Vec<Source> {
        let source = |(path, read_at): &(&str, &str)| Source {
            path: path.as_bytes().to_vec(),
            read_at: read_at.as_bytes().to_vec(),
        };
        all.iter().map(source).collect()
    }

    #[test]
    fn a_source_within_another_is_read_there() {
        let overlaps = |all: &[(&str, &str)]| overlap(&sources(all)).is_some();
        assert!(!overlaps(&[("/home", "/snap"), ("/home/ada", "/snap/ada"), ("/homes", "/x")]));
        assert!(!overlaps(&[("/", "/snap"), ("/x", "/snap/x")]));
        assert!(overlaps(&[("/home", "/snap"), ("/home/ada", "/home/ada")]));
        assert!(overlaps(&[("/home/ada", "/home/ada"), ("/home", "/snap")]));
        assert!(overlaps(&[("/home", "/snap"), ("/home", "/home")]));
        assert!(overlaps(&[("/", "/"), ("/home", "/snap")]));
    }

    #[test]
    fn a_pattern_of_where_a_source_is_read_matches_nothing() {
        let moved = sources(&[("/home", "/snap"), ("/srv", "/srv")]);
        let found = |pattern: &str| {
            let mut patterns = Patterns::below(b"/");
            patterns.add(pattern.as_bytes(), false).unwrap();
            misplaced(&moved, &patterns).map(|found| (found.read_at, found.path))
        };
        assert_eq!(found("/snap/ada"), Some((b"/snap".to_vec(), b"/home".to_vec())));
        for reached in ["/home/ada", "/srv/x", "/snaps", "snap", "*.o"] {
            assert_eq!(found(reached), None, "{reached}");
        }
    }

    #[test]
    fn a_plain_path_has_one_slash_between_names() {
        for (path, plain) in [("//a/./b//", "/a/b"), ("/", "/"), ("/.", "/"), ("/a", "/a")] {
            assert_eq!(plain_path(path.as_bytes()), plain.as_bytes());
        }
    }
}
