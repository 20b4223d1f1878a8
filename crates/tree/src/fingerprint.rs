//! Fingerprints: how a leaf is known again by what a directory listing tells of its paths, without
//! fetching it.
//!
//! A backup whose source did not change would fetch, open and compare every leaf of the last
//! snapshot only to build the same ones again. A fingerprint is a keyed hash over a leaf's id and
//! the facts of its entries that an edit cannot leave as they were. Where it is that of the paths
//! which are there now, the leaf can be taken over whole.
//!
//! ```text
//! | leaf id 32 | per entry: path bytes shared with the path before u32 | suffix length u32 | suffix
//! |            | kind u8 | device: major u32, minor u32 | mode u32 | uid u32 | gid u32
//! |            | nanoseconds of mtime u32, of ctime u32 | seconds of mtime i64, of ctime i64
//! |            | size u64 | inode u64 |
//! ```
//!
//! All numbers are little-endian. What is no device has no device numbers, and the size of what is
//! no file is zero. The id is in it, so that nobody without the key can bind a leaf to other files. An entry
//! that is not settled must be read again, and one of several hard links belongs to a group that is
//! computed anew: their leaves have no fingerprint. It never leaves the computer: it is no format
//! that others read.

use crate::boundary::Boundary;
use crate::entry::{Entry, EntryKind, Time};
use crate::path::{PathKey, shared_prefix};
use holdall_format::ObjectId;

/// Where the records begin: behind the leaf's id.
const RECORDS_START: usize = ObjectId::LEN;
/// Bytes of what [`Fingerprints::check`] gives.
pub const CHECK_BYTES: usize = 16;
/// Bytes of a record without its path.
const RECORD_FIXED_BYTES: usize = 69;

/// How a leaf is known again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 16]);

impl Fingerprint {
    /// Takes the bytes of one.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// A leaf that a cache remembers: how it is known again, and what no interior node says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownLeaf {
    /// What its entries are known again by.
    pub fingerprint: Fingerprint,
    /// How many of its entries are directories.
    pub dirs: u32,
}

/// What is needed to know leaves again.
///
/// Secret: with the key, a leaf can be passed off as one of other files.
#[derive(Clone)]
pub struct Fingerprints {
    key: [u8; 32],
    check_key: [u8; 32],
    boundary: Boundary,
}

impl Fingerprints {
    /// Fingerprints of trees whose leaves have 2^`leaf_bits` entries on average.
    pub fn new(key: [u8; 32], boundary_key: [u8; 32], leaf_bits: u8) -> Self {
        // No record of a leaf is as short, so that the key is never a fingerprint.
        let check_key = *blake3::keyed_hash(&key, b"check").as_bytes();
        Self { key, check_key, boundary: Boundary::new(boundary_key, leaf_bits.clamp(1, 8)) }
    }

    /// Whether a leaf begins at this path in every tree that has it.
    pub fn starts_leaf(&self, path: &PathKey) -> bool {
        self.boundary.levels_of_path(path.as_bytes()) > 0
    }

    /// What shows that whoever wrote these bytes into a cache had the key.
    pub fn check(&self, bytes: &[u8]) -> [u8; CHECK_BYTES] {
        let hash = blake3::keyed_hash(&self.check_key, bytes);
        hash.as_bytes().first_chunk().copied().unwrap_or_default()
    }
}

/// What is known of a path from its metadata alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// What the path is.
    pub kind: EntryKind,
    /// Permissions with setuid, setgid and sticky: 12 bits.
    pub mode: u32,
    /// The owner's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
    /// When the content was last modified.
    pub mtime: Time,
    /// When anything of the inode last changed.
    pub ctime: Time,
    /// Bytes; only a file's count.
    pub size: u64,
    /// The inode's number.
    pub inode: u64,
}

impl From<&Entry> for Facts {
    fn from(entry: &Entry) -> Self {
        Self {
            kind: entry.kind,
            mode: entry.mode,
            uid: entry.uid,
            gid: entry.gid,
            mtime: entry.mtime,
            ctime: entry.ctime,
            size: entry.size,
            inode: entry.inode,
        }
    }
}

/// What goes into the fingerprint of a leaf, entry by entry.
#[derive(Debug, Clone)]
pub struct LeafRecord {
    bytes: Vec<u8>,
    last: PathKey,
    has_none: bool,
    dirs: u32,
}

impl Default for LeafRecord {
    fn default() -> Self {
        Self { bytes: vec![0; RECORDS_START], last: PathKey::root(), has_none: false, dirs: 0 }
    }
}

impl LeafRecord {
    /// Adds what is known of the next path.
    pub fn add(&mut self, path: &PathKey, facts: &Facts) {
        let (kind, device) = match facts.kind {
            EntryKind::File => (0, None),
            EntryKind::Directory => (1, None),
            EntryKind::Symlink => (2, None),
            EntryKind::Fifo => (3, None),
            EntryKind::Socket => (4, None),
            EntryKind::CharDevice { major, minor } => (5, Some([major, minor])),
            EntryKind::BlockDevice { major, minor } => (6, Some([major, minor])),
        };
        self.dirs = self.dirs.saturating_add(u32::from(facts.kind == EntryKind::Directory));
        let size = if facts.kind == EntryKind::File { facts.size } else { 0 };
        let (mtime, ctime) = (facts.mtime, facts.ctime);
        self.add_path(path);
        self.bytes.push(kind);
        self.bytes.extend(device.iter().flatten().flat_map(|number| number.to_le_bytes()));
        for number in [facts.mode, facts.uid, facts.gid, mtime.nanos, ctime.nanos] {
            self.bytes.extend_from_slice(&number.to_le_bytes());
        }
        let (mtime, ctime) = (mtime.secs.cast_unsigned(), ctime.secs.cast_unsigned());
        for number in [mtime, ctime, size, facts.inode] {
            self.bytes.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn add_path(&mut self, path: &PathKey) {
        let shared = shared_prefix(self.last.as_bytes(), path.as_bytes());
        let suffix = path.as_bytes().get(shared..).unwrap_or_default();
        self.bytes.reserve(suffix.len().saturating_add(RECORD_FIXED_BYTES));
        for len in [shared, suffix.len()] {
            // A path has 64 KiB at most.
            let len = u32::try_from(len).unwrap_or(u32::MAX);
            self.bytes.extend_from_slice(&len.to_le_bytes());
        }
        self.bytes.extend_from_slice(suffix);
        self.last.copy_from(path);
    }

    /// Forgets what was added.
    pub fn clear(&mut self) {
        self.bytes.truncate(RECORDS_START);
        self.last.copy_from(&PathKey::root());
        self.has_none = false;
        self.dirs = 0;
    }

    /// Adds the next entry of a leaf that is built.
    pub(crate) fn add_entry(&mut self, path: &PathKey, entry: &Entry) {
        self.has_none |= entry.unsettled || entry.hardlink.is_some();
        if !self.has_none {
            self.add(path, &Facts::from(entry));
        }
    }

    /// How the leaf with that id and what was added is known again, unless it cannot be. The record
    /// is empty then.
    pub fn take(&mut self, fingerprints: &Fingerprints, leaf: &ObjectId) -> Option<KnownLeaf> {
        self.bytes.iter_mut().zip(leaf.as_bytes()).for_each(|(to, from)| *to = *from);
        let hash = (!self.has_none).then(|| blake3::keyed_hash(&fingerprints.key, &self.bytes));
        let dirs = self.dirs;
        self.clear();
        let fingerprint = Fingerprint(hash?.as_bytes().first_chunk().copied()?);
        Some(KnownLeaf { fingerprint, dirs })
    }
}
