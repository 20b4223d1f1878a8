//! Paths as keys: one byte string for each path, so that sorting bytes sorts by components.
//!
//! Components are joined by a zero byte, the only byte that no component may hold and the lowest of
//! all, so `/a/b` sorts before `/a.txt`: a directory is followed at once by everything below it.
//! The root is the empty key. A key says nothing of the file system that the path came from; bytes
//! need not be UTF-8.

use std::fmt;

/// Most bytes of a whole key.
pub const PATH_MAX_BYTES: usize = 64 << 10;
/// Most bytes of one component.
pub const COMPONENT_MAX_BYTES: usize = 4096;

/// Joins components.
const JOINT: u8 = 0;

/// Why bytes are not a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// An absolute path starts with `/`.
    #[error("the path is not absolute")]
    NotAbsolute,
    /// Two slashes in a row, or one at the end.
    #[error("the path has an empty component")]
    EmptyComponent,
    /// `.` and `..` name no entry of a tree.
    #[error("the path has a component that is . or ..")]
    DotComponent,
    /// A zero byte, or a slash inside a component.
    #[error("a component has a byte that no file name can have")]
    ForbiddenByte,
    /// A component is over [`COMPONENT_MAX_BYTES`].
    #[error("a component has more than {COMPONENT_MAX_BYTES} bytes")]
    ComponentTooLong,
    /// The key is over [`PATH_MAX_BYTES`].
    #[error("the path has more than {PATH_MAX_BYTES} bytes")]
    TooLong,
}

/// A path as the tree's key: components joined by a zero byte, ordered by components.
///
/// Every value is valid: no component is empty, `.`, `..`, or holds a slash or a zero byte.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PathKey(Vec<u8>);

impl PathKey {
    /// The root directory, `/`: the lowest key.
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// Makes the key of an absolute path such as `/usr/lib`, in bytes as the system gives them.
    ///
    /// # Errors
    /// [`PathError`]: paths must be in their plain form, nothing is cleaned up.
    pub fn from_absolute(path: &[u8]) -> Result<Self, PathError> {
        let relative = path.strip_prefix(b"/").ok_or(PathError::NotAbsolute)?;
        if relative.contains(&JOINT) {
            return Err(PathError::ForbiddenByte);
        }
        let joint = |&byte: &u8| if byte == b'/' { JOINT } else { byte };
        Self::from_bytes(relative.iter().map(joint).collect())
    }

    /// Takes the bytes of a key.
    ///
    /// # Errors
    /// [`PathError`].
    pub fn from_bytes(key: Vec<u8>) -> Result<Self, PathError> {
        if key.len() > PATH_MAX_BYTES {
            return Err(PathError::TooLong);
        }
        if !key.is_empty() {
            check_components(&key)?;
        }
        Ok(Self(key))
    }

    /// The absolute path, such as `/usr/lib`.
    pub fn to_absolute(&self) -> Vec<u8> {
        let slash = |&byte: &u8| if byte == JOINT { b'/' } else { byte };
        std::iter::once(b'/').chain(self.0.iter().map(slash)).collect()
    }

    /// The key's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Says whether this is `/`.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The directory that holds this path; nothing for the root.
    pub fn parent(&self) -> Option<Self> {
        let mut parent = self.clone();
        parent.pop().then_some(parent)
    }

    /// The last component; empty for the root.
    pub fn name(&self) -> &[u8] {
        self.0.rsplit(|&byte| byte == JOINT).next().unwrap_or_default()
    }

    /// The key of `name` in this directory.
    ///
    /// # Errors
    /// [`PathError`] if `name` is no component or the key gets too long.
    pub fn child(&self, name: &[u8]) -> Result<Self, PathError> {
        let mut child = Self(Vec::with_capacity(self.0.len().saturating_add(name.len() | 1)));
        child.0.extend_from_slice(&self.0);
        child.push(name)?;
        Ok(child)
    }

    /// Descends to `name` in this directory, reusing this key's memory.
    ///
    /// # Errors
    /// [`PathError`]; the key is then unchanged.
    pub fn push(&mut self, name: &[u8]) -> Result<(), PathError> {
        check_component(name)?;
        let joint = usize::from(!self.0.is_empty());
        if self.0.len().saturating_add(name.len()).saturating_add(joint) > PATH_MAX_BYTES {
            return Err(PathError::TooLong);
        }
        if joint == 1 {
            self.0.push(JOINT);
        }
        self.0.extend_from_slice(name);
        Ok(())
    }

    /// Goes up to the directory that holds this path; false for the root, which stays.
    pub fn pop(&mut self) -> bool {
        let parent = self.0.iter().rposition(|&byte| byte == JOINT).unwrap_or(0);
        let was_root = self.0.is_empty();
        self.0.truncate(parent);
        !was_root
    }

    /// Says whether `other` lies below this path. No path lies below itself.
    pub fn is_ancestor_of(&self, other: &Self) -> bool {
        match other.0.strip_prefix(&self.0[..]) {
            Some(rest) if self.0.is_empty() => !rest.is_empty(),
            Some(rest) => rest.first() == Some(&JOINT),
            None => false,
        }
    }

    /// The components from the root downwards; none for the root.
    pub fn components(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|&byte| byte == JOINT).filter(|component| !component.is_empty())
    }

    /// The lowest key bytes above this path; they need not be a valid key. All keys from them on and before
    /// [`PathKey::after_subtree`] lie below it.
    pub fn before_children(&self) -> Vec<u8> {
        [&self.0[..], &[JOINT]].concat()
    }

    /// The lowest key bytes above this path and everything below it; nothing for the root, above
    /// which there is none. They need not be a valid key.
    pub fn after_subtree(&self) -> Option<Vec<u8>> {
        (!self.is_root()).then(|| [&self.0[..], &[JOINT.wrapping_add(1)]].concat())
    }

    /// Becomes a copy of `other`, reusing this key's memory.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.0.clone_from(&other.0);
    }

    /// Becomes the key that shares `shared_bytes` with this one and goes on with `suffix`, and
    /// which must be higher, unless this is the `first` of its node.
    ///
    /// Only a suffix that was cut as short as possible is accepted, which makes the comparison one
    /// of a single byte.
    pub(crate) fn step_to(
        &mut self,
        first: bool,
        shared_bytes: usize,
        suffix: &[u8],
    ) -> Result<(), &'static str> {
        if first {
            if shared_bytes != 0 {
                return Err("a first path shares bytes with none");
            }
        } else if shared_bytes > self.0.len()
            || suffix.first().is_none_or(|byte| self.0.get(shared_bytes) >= Some(byte))
        {
            return Err("paths do not ascend");
        }
        if shared_bytes.saturating_add(suffix.len()) > PATH_MAX_BYTES {
            return Err("path is too long");
        }
        self.0.truncate(shared_bytes);
        let component = self.0.iter().rposition(|&byte| byte == JOINT);
        self.0.extend_from_slice(suffix);
        let changed = self.0.get(component.map_or(0, |at| at.saturating_add(1))..);
        if !self.0.is_empty() {
            check_components(changed.unwrap_or_default()).map_err(|_| "not a path")?;
        }
        Ok(())
    }
}

impl fmt::Debug for PathKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PathKey({:?})", String::from_utf8_lossy(&self.to_absolute()))
    }
}

/// The number of bytes at the front in which two keys agree.
pub(crate) fn shared_prefix(left: &[u8], right: &[u8]) -> usize {
    let words = left.as_chunks::<8>().0.iter().zip(right.as_chunks::<8>().0);
    let whole = words.take_while(|(a, b)| a == b).count().saturating_mul(8);
    let rest = left.iter().skip(whole).zip(right.iter().skip(whole));
    whole.saturating_add(rest.take_while(|(a, b)| a == b).count())
}

fn check_components(key: &[u8]) -> Result<(), PathError> {
    key.split(|&byte| byte == JOINT).try_for_each(check_component)
}

fn check_component(component: &[u8]) -> Result<(), PathError> {
    match component {
        b"" => Err(PathError::EmptyComponent),
        b"." | b".." => Err(PathError::DotComponent),
        _ if component.len() > COMPONENT_MAX_BYTES => Err(PathError::ComponentTooLong),
        _ if component.iter().any(|&byte| byte == b'/' || byte == JOINT) => {
            Err(PathError::ForbiddenByte)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(path: &str) -> PathKey {
        PathKey::from_absolute(path.as_bytes()).unwrap()
    }

    #[test]
    fn a_directory_is_followed_by_what_is_below_it() {
        let mut paths = ["/a.txt", "/a/b/c", "/a", "/", "/a/b", "/a b", "/a/b.d"].map(key);
        paths.sort();
        assert_eq!(paths, ["/", "/a", "/a/b", "/a/b/c", "/a/b.d", "/a b", "/a.txt"].map(key));
    }

    #[test]
    fn what_is_no_plain_absolute_path_is_refused() {
        let long = format!("/{}", "x".repeat(COMPONENT_MAX_BYTES + 1));
        let deep = "/0123456".repeat(PATH_MAX_BYTES / 8 + 1);
        for path in ["", "a", "//", "/a/", "/a//b", "/.", "/..", "/a/../b", "/a\0b", &long, &deep] {
            assert!(PathKey::from_absolute(path.as_bytes()).is_err(), "{path:?}");
        }
        assert!(PathKey::root().child(b"a/b").is_err());
        assert!(PathKey::from_bytes(b"a\0\0b".to_vec()).is_err());
    }

    #[test]
    fn going_down_and_up_gives_the_path_again() {
        let path = key("/usr/lib/x");
        assert_eq!(path.name(), b"x");
        assert_eq!(path.parent().unwrap(), key("/usr/lib"));
        assert_eq!(path.parent().unwrap().child(b"x").unwrap(), path);
        assert_eq!(path.components().collect::<Vec<_>>(), [&b"usr"[..], b"lib", b"x"]);
        assert_eq!(PathKey::root().parent(), None);
        assert_eq!(PathKey::root().name(), b"");
        assert_eq!(key("/a").parent(), Some(PathKey::root()));
    }

    #[test]
    fn only_what_lies_below_has_an_ancestor() {
        assert!(PathKey::root().is_ancestor_of(&key("/a")));
        assert!(key("/a").is_ancestor_of(&key("/a/b")));
        for (upper, lower) in [("/a", "/a"), ("/", "/"), ("/a", "/ab"), ("/a/b", "/a")] {
            assert!(!key(upper).is_ancestor_of(&key(lower)), "{upper} {lower}");
        }
    }

    #[test]
    fn the_bytes_after_a_subtree_part_it_from_its_next_sibling() {
        let after = key("/a").after_subtree().unwrap();
        assert!(key("/a/\u{ff}/z").as_bytes() < &after[..]);
        assert!(key("/a\u{1}").as_bytes() >= &after[..]);
        assert_eq!(PathKey::root().after_subtree(), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_path_that_reads_back_or_an_error(path: Vec<u8>) {
            let path = [b"/", &path[..]].concat();
            if let Ok(key) = PathKey::from_absolute(&path) {
                prop_assert_eq!(key.to_absolute(), path);
                prop_assert_eq!(PathKey::from_bytes(key.as_bytes().to_vec()), Ok(key));
            }
        }

        #[test]
        fn a_step_is_accepted_only_if_it_ascends_to_a_valid_key(
            from in "[ab\0]{0,6}", shared in 0usize..8, suffix in "[ab./\0]{0,6}"
        ) {
            let Ok(before) = PathKey::from_bytes(from.into_bytes()) else { return Ok(()) };
            let mut key = before.clone();
            if key.step_to(false, shared, suffix.as_bytes()).is_ok() {
                prop_assert!(key > before);
                prop_assert_eq!(shared_prefix(before.as_bytes(), key.as_bytes()), shared);
                prop_assert!(PathKey::from_bytes(key.as_bytes().to_vec()).is_ok());
            }
        }
    }
}
