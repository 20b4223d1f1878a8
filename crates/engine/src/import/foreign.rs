//! What is known of the other program's snapshots: nothing but this.

use std::io::Read;

use holdall_tree::Entry;

/// A snapshot of another program, as its own record says it.
#[derive(Debug, Clone)]
pub struct ForeignSnapshot {
    /// Its id: a hash, so that no two snapshots of any repository have the same.
    pub id: [u8; 32],
    /// When it was made, in nanoseconds since 1970 UTC.
    pub taken_ns: i64,
    /// The computer that was backed up.
    pub host: String,
    /// Who ran the backup.
    pub user: String,
    /// What was backed up: absolute and plain paths.
    pub paths: Vec<Vec<u8>>,
    /// Its tags.
    pub tags: Vec<String>,
}

/// What was found at a path.
pub struct Found {
    /// All that is known without the content: of a file, its attributes and content are empty, and `size` is what the
    /// content has to have. A symbolic link has its target.
    pub entry: Entry,
    /// Extended attributes: names and values.
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
    /// Device and inode of what has more than one name.
    pub linked: Option<(u64, u64)>,
    /// The content of a file.
    pub content: Option<FoundContent>,
}

/// The content of a file.
pub struct FoundContent {
    /// Gives it, from its beginning to its end; an error if that is not to be had.
    pub bytes: Box<dyn Read + Send>,
    /// Whether the file had the same at this path in the snapshot that this one is compared with.
    pub is_as_before: bool,
}
