//! Entries: what is known of one path, enough to restore it and to see that it changed.

use crate::content::Content;
use std::sync::Arc;

/// Most bytes of a user's or group's name.
pub const OWNER_NAME_MAX_BYTES: usize = 255;
/// Attributes up to this many encoded bytes may live in the entry; larger ones go to chunks.
pub const ATTRIBUTES_INLINE_MAX_BYTES: usize = 2048;
/// Extents up to this many encoded bytes may live in the entry; larger ones go to chunks.
pub const EXTENTS_INLINE_MAX_BYTES: usize = 1024;
/// Most bytes of content in an entry: a symbolic link's target always fits.
pub const CONTENT_INLINE_MAX_BYTES: usize = 4096;

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link; the content is its target.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket's name.
    Socket,
    /// A character device.
    CharDevice {
        /// The driver.
        major: u32,
        /// The device.
        minor: u32,
    },
    /// A block device.
    BlockDevice {
        /// The driver.
        major: u32,
        /// The device.
        minor: u32,
    },
}

/// A time as file systems keep it, from 1970 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time {
    /// Whole seconds since 1970 in UTC, rounded down.
    pub secs: i64,
    /// Nanoseconds after that, below 1,000,000,000.
    pub nanos: u32,
}

/// What is known of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What the path is.
    pub kind: EntryKind,
    /// Permissions with setuid, setgid and sticky: 12 bits.
    pub mode: u32,
    /// The owner's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
    /// The owner's name, empty if unknown; shared, as most entries have the same.
    pub user: Arc<[u8]>,
    /// The group's name, empty if unknown.
    pub group: Arc<[u8]>,
    /// When the content was last modified.
    pub mtime: Time,
    /// When anything of the inode last changed; never restored, only compared.
    pub ctime: Time,
    /// Bytes, with holes.
    pub size: u64,
    /// The inode's number; never restored, only compared.
    pub inode: u64,
    /// May have changed while or after it was read, without showing: read it again next time.
    pub unsettled: bool,
    /// The hard-link group that it belongs to, if it has more than one name.
    pub hardlink: Option<[u8; 16]>,
    /// Extended attributes and access control lists, as [`crate::Attributes`] encodes them.
    pub attributes: Content,
    /// A file's content, or a symbolic link's target.
    pub content: Content,
    /// For a sparse file, where its data lies, as [`crate::Extents`] encodes it; the content is
    /// then the data alone, without the holes.
    pub extents: Option<Content>,
}

impl Entry {
    /// An entry of that kind without anything else: mode, owner, times, size and inode are zero.
    pub fn empty(kind: EntryKind) -> Self {
        Self {
            kind,
            mode: 0,
            uid: 0,
            gid: 0,
            user: Arc::default(),
            group: Arc::default(),
            mtime: Time::default(),
            ctime: Time::default(),
            size: 0,
            inode: 0,
            unsettled: false,
            hardlink: None,
            attributes: Content::empty(),
            content: Content::empty(),
            extents: None,
        }
    }

    /// What the entry adds to its tree's bytes: the size of a file, nothing for all else.
    pub fn counted_bytes(&self) -> u64 {
        if self.kind == EntryKind::File { self.size } else { 0 }
    }

    /// Says why the format has no place for this entry; the reasons are those of the decoder.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.mode > 0o7777 {
            return Err("mode has more than 12 bits");
        }
        if self.mtime.nanos >= 1_000_000_000 || self.ctime.nanos >= 1_000_000_000 {
            return Err("nanoseconds are a second or more");
        }
        if self.user.len() > OWNER_NAME_MAX_BYTES || self.group.len() > OWNER_NAME_MAX_BYTES {
            return Err("the owner's name is too long");
        }
        self.attributes.check(ATTRIBUTES_INLINE_MAX_BYTES)?;
        self.content.check(CONTENT_INLINE_MAX_BYTES)?;
        self.extents.iter().try_for_each(|extents| extents.check(EXTENTS_INLINE_MAX_BYTES))
    }
}
