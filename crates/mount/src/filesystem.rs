//! What the kernel asks, and what it is answered.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use fuser::{
    Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry,
    ReplyLseek, ReplyOpen, ReplyStatfs, ReplyXattr, Request,
};

use crate::attributes::of_made;
use crate::inode::Inode;
use crate::listing::{self, Listed};
use crate::shared::Shared;
use crate::view::{FOR_EVER, View};

/// Bytes that the kernel reads ahead in a file, where it may so many.
const READ_AHEAD_BYTES: u32 = 1 << 20;
/// As lseek(2) numbers them on Linux.
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;
/// Nothing is ever made anew under an inode.
const GENERATION: Generation = Generation(0);

/// The snapshots as a file system.
pub(crate) struct Snapshots {
    view: View,
    /// Whether the kernel opens files without asking.
    opens_itself: bool,
}

impl Snapshots {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { view: View { shared }, opens_itself: false }
    }

    /// Where data or a hole begins; the kernel asks for nothing else.
    fn sought(&self, inode: Inode, offset: i64, whence: i32) -> Result<i64, Errno> {
        let is_data = match whence {
            SEEK_DATA => true,
            SEEK_HOLE => false,
            _ => return Err(Errno::EINVAL),
        };
        let Inode::In { snapshot, number } = inode else { return Err(Errno::EINVAL) };
        let offset = u64::try_from(offset).map_err(|_| Errno::ENXIO)?;
        let found = self.view.shared.next(snapshot, number, offset, is_data)?;
        found.and_then(|at| i64::try_from(at).ok()).ok_or(Errno::ENXIO)
    }
}

impl Filesystem for Snapshots {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let mut can = |flag| config.add_capabilities(flag).is_ok();
        if !can(InitFlags::FUSE_DO_READDIRPLUS) {
            return Err(ErrorKind::Unsupported.into());
        }
        // What an older kernel does not know it does without.
        let _ = can(InitFlags::FUSE_PARALLEL_DIROPS);
        self.opens_itself = can(InitFlags::FUSE_NO_OPEN_SUPPORT);
        if let Err(most) = config.set_max_readahead(READ_AHEAD_BYTES) {
            let _ = config.set_max_readahead(most);
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let parent = Inode::from(parent);
        match self.view.found(parent, name) {
            Ok(Some((attributes, ttl))) => reply.entry(&ttl, &attributes, GENERATION),
            // What is not in a snapshot never will be: inode 0 says so, and for how long.
            Ok(None) if matches!(parent, Inode::In { .. }) => {
                reply.entry(&FOR_EVER, &of_made(Inode::Above(0), None, 0), GENERATION);
            }
            Ok(None) => reply.error(Errno::ENOENT),
            Err(error) => reply.error(error),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.view.attributes(inode.into()) {
            Ok((attributes, ttl)) => reply.attr(&ttl, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn readlink(&self, _: &Request, inode: INodeNo, reply: ReplyData) {
        match self.view.link_target(inode.into()) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(error),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.opens_itself {
            // From now on it does not ask.
            true => reply.error(Errno::ENOSYS),
            false => reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE),
        }
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = match Inode::from(inode) {
            Inode::Above(_) => Err(Errno::EISDIR),
            Inode::In { snapshot, number } => {
                self.view.shared.read(snapshot, number, offset, size as usize)
            }
        };
        match read {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(error),
        }
    }

    fn lseek(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        match self.sought(inode.into(), offset, whence) {
            Ok(offset) => reply.offset(offset),
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Nothing is written: from now on it does not ask.
        reply.error(Errno::ENOSYS);
    }

    fn opendir(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = match Inode::from(inode) {
            Inode::Above(_) => FopenFlags::empty(),
            Inode::In { .. } => FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_CACHE_DIR,
        };
        reply.opened(FileHandle(0), flags);
    }

    fn readdirplus(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let listed = listing::each(
            &self.view,
            inode.into(),
            offset,
            &mut |Listed { name, attributes, ttl, next }| {
                reply.add(attributes.ino, next, name, &ttl, &attributes, GENERATION)
            },
        );
        match listed {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        /// Of names on Linux.
        const NAME_MAX_BYTES: u32 = 255;
        reply.statfs(0, 0, 0, 0, 0, 4096, NAME_MAX_BYTES, 4096);
    }

    fn getxattr(&self, _: &Request, inode: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let value = self.view.extended(inode.into()).and_then(|attributes| {
            let mut found = attributes.iter().filter(|(its, _)| *its == name.as_bytes());
            found.next().map(|(_, value)| value.to_vec()).ok_or(Errno::NO_XATTR)
        });
        give(value, size, reply);
    }

    fn listxattr(&self, _: &Request, inode: INodeNo, size: u32, reply: ReplyXattr) {
        let names = self.view.extended(inode.into()).map(|attributes| {
            attributes.iter().flat_map(|(name, _)| [name, b"\0"]).flatten().copied().collect()
        });
        give(names, size, reply);
    }
}

/// Gives bytes to who has room for `size` of them, or says how many they are.
fn give(bytes: Result<Vec<u8>, Errno>, size: u32, reply: ReplyXattr) {
    match bytes {
        Err(error) => reply.error(error),
        Ok(bytes) if size == 0 => reply.size(u32::try_from(bytes.len()).unwrap_or(u32::MAX)),
        Ok(bytes) if bytes.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(bytes) => reply.data(&bytes),
    }
}
