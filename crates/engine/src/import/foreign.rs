//! What is known of the other program's snapshots: nothing but this.

use std::io::Read;

use holdall_format::Shown;
use holdall_format::limits::{
    BLOCK_MAX_PLAIN_BYTES, RECORD_MAX_PATHS, RECORD_MAX_TAGS, RECORD_NAME_MAX_BYTES,
    RECORD_PATH_MAX_BYTES,
};
use holdall_tree::{Entry, PathKey};

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

impl ForeignSnapshot {
    /// Why no record can say what this one says, if so. It is written last, and would be refused after all the work.
    pub fn unrecordable(&self) -> Option<String> {
        let Self { host, user, paths, tags, .. } = self;
        let all_bytes: usize = paths.iter().map(Vec::len).sum();
        let lengths =
            [("its host", host), ("its user", user)].map(|(what, name)| (what, name.len()));
        let tag = tags.iter().map(String::len).max().unwrap_or_default();
        let longest = lengths.into_iter().chain([("a tag of it", tag)]);
        let mut too_long = longest.filter(|(_, len_bytes)| *len_bytes > RECORD_NAME_MAX_BYTES);
        if let Some((what, len_bytes)) = too_long.next() {
            return Some(format!(
                "{what} has {len_bytes} bytes, of at most {RECORD_NAME_MAX_BYTES}"
            ));
        }
        if tags.len() > RECORD_MAX_TAGS {
            return Some(format!("it has {} tags, of at most {RECORD_MAX_TAGS}", tags.len()));
        }
        if paths.len() > RECORD_MAX_PATHS || all_bytes > BLOCK_MAX_PLAIN_BYTES {
            return Some(format!("it is of too many paths: {}", paths.len()));
        }
        paths
            .iter()
            .find(|path| !is_recordable(path))
            .map(|path| format!("it is of a path that no snapshot can have: {}", Shown(path)))
    }
}

fn is_recordable(path: &[u8]) -> bool {
    path.len() <= RECORD_PATH_MAX_BYTES && PathKey::from_absolute(path).is_ok()
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
