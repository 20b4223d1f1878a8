//! Comparing two trees in everything that a restore must bring back.
//!
//! Access and change times are left out: reading changes the one, and nobody can set the other.
//! Contents are compared where either file has data, so that holes take no time.

mod content;
mod entry;

use std::collections::HashMap;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use holdall_sys::{Dir, Entry, FileKind, Listing, Name, Stat, xattr};

/// What to compare and what to let pass.
#[derive(Debug, Clone)]
pub struct CompareOptions {
    /// Whether owners and groups must be the same.
    pub owners: bool,
    /// Whether extended attributes, ACLs and capabilities must be the same.
    pub xattrs: bool,
    /// Whether the metadata of the two roots must be the same.
    pub roots: bool,
    /// How many bytes of data a file may have more than its original had: a hole that was filled.
    pub filled_bytes: u64,
    /// Paths from the root that are not looked at, with what is in them.
    pub left_out: Vec<Vec<u8>>,
}

impl Default for CompareOptions {
    /// Everything, the roots too, and 8 KiB that a file system may round up.
    fn default() -> Self {
        Self {
            owners: true,
            xattrs: true,
            roots: true,
            filled_bytes: 8 << 10,
            left_out: Vec::new(),
        }
    }
}

/// One thing that is not the same in both trees.
#[derive(Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where: the path from the root, without a leading slash; empty for the root itself.
    pub path: Vec<u8>,
    /// What.
    pub field: Field,
    /// What the first tree has.
    pub left: String,
    /// What the second tree has.
    pub right: String,
}

/// What two trees can differ in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    /// It is only in the first tree.
    Missing,
    /// It is only in the second tree.
    Extra,
    /// The kind of file.
    Kind,
    /// The permission bits.
    Mode,
    /// The owner's user id.
    User,
    /// The owner's group id.
    Group,
    /// The length.
    Size,
    /// The modification time.
    Mtime,
    /// Where a symbolic link points.
    Target,
    /// Which device a device file stands for.
    Device,
    /// The extended attribute of that name.
    Xattr(Vec<u8>),
    /// The content.
    Content,
    /// Holes that were filled.
    Holes,
    /// Which names are one file.
    HardLinks,
    /// It could not be read, in one tree or both.
    Unreadable,
}

impl fmt::Debug for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.escape_ascii();
        write!(formatter, "{path}: {:?}: {} / {}", self.field, self.left, self.right)
    }
}

/// Compares the tree at `left` with the one at `right`, both absolute, and lists every difference
/// in the order of the walk.
///
/// What cannot be read is a difference too.
#[must_use]
pub fn compare_trees(left: &Path, right: &Path, options: &CompareOptions) -> Vec<Difference> {
    let mut comparison = Comparison {
        options,
        path: Vec::new(),
        left_groups: HashMap::new(),
        right_groups: HashMap::new(),
        differences: Vec::new(),
    };
    let open = |path: &Path| Dir::open_absolute(path.as_os_str().as_bytes());
    if let Some((left, right)) = comparison.both(open(left), open(right)) {
        comparison.roots(&left, &right);
    }
    comparison.differences
}

/// A file's identity in its own tree.
type Inode = (u64, u64);

/// A comparison on its way.
struct Comparison<'a> {
    options: &'a CompareOptions,
    path: Vec<u8>,
    left_groups: HashMap<Inode, Vec<u8>>,
    right_groups: HashMap<Inode, Vec<u8>>,
    differences: Vec<Difference>,
}

impl Comparison<'_> {
    fn note(&mut self, field: Field, left: impl fmt::Display, right: impl fmt::Display) {
        let path = self.path.clone();
        let (left, right) = (left.to_string(), right.to_string());
        self.differences.push(Difference { path, field, left, right });
    }

    /// Notes a field that both have, if it is not the same.
    fn same<T: PartialEq + fmt::Debug>(&mut self, field: Field, left: T, right: T) {
        if left != right {
            self.note(field, format!("{left:?}"), format!("{right:?}"));
        }
    }

    /// Takes two results; an error on either side is noted and ends this part.
    fn both<L, R, E: fmt::Display>(
        &mut self,
        left: Result<L, E>,
        right: Result<R, E>,
    ) -> Option<(L, R)> {
        match (left, right) {
            (Ok(left), Ok(right)) => Some((left, right)),
            (left, right) => {
                let word = |error: Option<E>| error.map_or("read".to_owned(), |e| e.to_string());
                self.note(Field::Unreadable, word(left.err()), word(right.err()));
                None
            }
        }
    }

    fn roots(&mut self, left: &Dir, right: &Dir) {
        if self.options.roots
            && let Some((left_stat, right_stat)) = self.both(left.stat_self(), right.stat_self())
        {
            self.metadata(&left_stat, &right_stat);
            self.xattrs(xattr::read_fd(left), xattr::read_fd(right));
        }
        self.dirs(left, right);
    }

    /// Merges the two sorted listings. Goes as deep as the tree is, with two open directories and
    /// a frame of the stack for each level.
    fn dirs(&mut self, left: &Dir, right: &Dir) {
        let Some((left_list, right_list)) = self.both(left.entries(), right.entries()) else {
            return;
        };
        let (mut left_at, mut right_at) = (0, 0);
        while let Some((name, in_left, in_right)) = next(&left_list, left_at, &right_list, right_at)
        {
            left_at += usize::from(in_left);
            right_at += usize::from(in_right);
            let outer_bytes = self.path.len();
            self.enter(name);
            if !self.options.left_out.contains(&self.path) {
                match (in_left, in_right) {
                    (true, true) => self.entries(left, right, name),
                    (true, false) => self.note(Field::Missing, "there", "nothing"),
                    _ => self.note(Field::Extra, "nothing", "there"),
                }
            }
            self.path.truncate(outer_bytes);
        }
    }

    fn enter(&mut self, name: Name<'_>) {
        if !self.path.is_empty() {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name.as_bytes());
    }

    fn entries(&mut self, left: &Dir, right: &Dir, name: Name<'_>) {
        let stats = self.both(left.stat(name), right.stat(name));
        let Some((left_stat, right_stat)) = stats else { return };
        self.same(Field::Kind, left_stat.kind, right_stat.kind);
        if left_stat.kind != right_stat.kind {
            return;
        }
        self.metadata(&left_stat, &right_stat);
        self.hard_links(&left_stat, &right_stat);
        self.xattrs(xattr::read_at(left, name), xattr::read_at(right, name));
        match left_stat.kind {
            FileKind::File => self.contents(left, right, name),
            FileKind::Symlink => self.targets(left, right, name),
            FileKind::Dir => {
                let below = self.both(left.open_child(name), right.open_child(name));
                if let Some((left, right)) = below {
                    self.dirs(&left, &right);
                }
            }
            _ => self.same(Field::Device, left_stat.rdev, right_stat.rdev),
        }
    }

    /// A file is known by the first of its names on the walk, which is the same in both trees.
    fn hard_links(&mut self, left: &Stat, right: &Stat) {
        if left.kind == FileKind::Dir || (left.nlink < 2 && right.nlink < 2) {
            return;
        }
        let first_left = first_name(&mut self.left_groups, left, &self.path);
        let first_right = first_name(&mut self.right_groups, right, &self.path);
        if first_left != first_right {
            let (left, right) = (first_left.escape_ascii(), first_right.escape_ascii());
            self.note(Field::HardLinks, format!("same as {left}"), format!("same as {right}"));
        }
    }
}

fn first_name(groups: &mut HashMap<Inode, Vec<u8>>, stat: &Stat, path: &[u8]) -> Vec<u8> {
    groups.entry((stat.device, stat.inode)).or_insert_with(|| path.to_vec()).clone()
}

/// The next name of either listing, and in which of them it is.
fn next<'a>(
    left: &'a Listing,
    left_at: usize,
    right: &'a Listing,
    right_at: usize,
) -> Option<(Name<'a>, bool, bool)> {
    match (left.get(left_at).map(name_of), right.get(right_at).map(name_of)) {
        (None, None) => None,
        (Some(name), None) => Some((name, true, false)),
        (None, Some(name)) => Some((name, false, true)),
        (Some(left), Some(right)) => Some((left.min(right), left <= right, right <= left)),
    }
}

fn name_of(entry: Entry<'_>) -> Name<'_> {
    entry.name()
}

#[cfg(test)]
mod tests;
