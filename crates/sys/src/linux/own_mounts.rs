//! Mounts that only this program sees.
//!
//! A thread goes into a namespace of its own, where all is mounted as outside, and what it mounts is seen by it and by the
//! threads and programs that it starts from then on. The mounts end with them, even if they are killed.

#![allow(
    unsafe_code,
    reason = "the call for a namespace of its own is marked so, for other uses of it"
)]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::mount::{MountPropagationFlags, MoveMountFlags, OpenTreeFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use crate::Dir;

/// The namespace that a thread is in.
const OWN: &str = "/proc/thread-self/ns/mnt";

/// While it lives, the thread that made it has a namespace of its own.
#[derive(Debug)]
pub struct OwnMounts {
    outside: View,
}

/// A namespace, and what a thread in it takes for the root and for the current folder.
#[derive(Debug)]
struct View {
    namespace: File,
    root: OwnedFd,
    folder: OwnedFd,
}

impl View {
    /// That of this thread.
    fn own() -> io::Result<Self> {
        let open = |path| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::openat(CWD, path, flags, Mode::empty())
        };
        Ok(Self { namespace: File::open(OWN)?, root: open("/")?, folder: open(".")? })
    }

    /// Gives it to this thread.
    fn take(&self) -> io::Result<()> {
        let kind = Some(LinkNameSpaceType::Mount);
        rustix::thread::move_into_link_name_space(self.namespace.as_fd(), kind)?;
        // Going there has led to the namespace's own root.
        rustix::process::fchdir(&self.root)?;
        rustix::process::chroot(".")?;
        Ok(rustix::process::fchdir(&self.folder)?)
    }
}

impl OwnMounts {
    /// Goes into a namespace of its own. What others mount and unmount outside happens there too.
    ///
    /// # Errors
    /// What the system says: `EPERM` for anybody but root, and for root without `CAP_SYS_ADMIN` and `CAP_SYS_CHROOT`.
    pub fn enter() -> io::Result<Self> {
        let own = Self { outside: View::own()? };
        // SAFETY: this gives the thread its own mounts and its own current folder, and shares descriptors as before.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }?;
        // Who may not go back is not to begin.
        View::own()?.take()?;
        let apart = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
        rustix::mount::mount_change("/", apart)?;
        Ok(own)
    }

    /// Shows everything once more below `folder`, as it is mounted now.
    ///
    /// # Errors
    /// What the system says.
    pub fn show_all_below(&self, folder: &[u8]) -> io::Result<()> {
        self.attach(&copy(&place(b"/")?, OpenTreeFlags::AT_RECURSIVE)?, folder)
    }

    /// Shows what is at `from` at `to` too, without what is mounted below it.
    ///
    /// # Errors
    /// What the system says, as of [`open_dir`].
    pub fn show(&self, from: &[u8], to: &[u8]) -> io::Result<()> {
        self.attach(&copy(&place(from)?, OpenTreeFlags::empty())?, to)
    }

    /// Mounts what is nowhere yet.
    ///
    /// # Errors
    /// What the system says, as of [`open_dir`].
    pub fn attach(&self, mount: &OwnedFd, to: &[u8]) -> io::Result<()> {
        let by_descriptors =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        Ok(rustix::mount::move_mount(mount, "", place(to)?, "", by_descriptors)?)
    }
}

impl Drop for OwnMounts {
    fn drop(&mut self) {
        // It worked on the way in. Where it does not, all is still seen as it was seen in between.
        let _ = self.outside.take();
    }
}

/// Opens the directory at an absolute path that has no link in it.
///
/// # Errors
/// `ELOOP` if a link is on the way, which somebody put there meanwhile; else what the system says.
pub fn open_dir(path: &[u8]) -> io::Result<Dir> {
    Ok(Dir::from(without_links(path, OFlags::RDONLY | OFlags::DIRECTORY)?))
}

fn place(path: &[u8]) -> io::Result<OwnedFd> {
    without_links(path, OFlags::PATH)
}

fn without_links(path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?)
}

fn copy(place: &OwnedFd, more: OpenTreeFlags) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    Ok(rustix::mount::open_tree(place, "", flags | OpenTreeFlags::AT_EMPTY_PATH | more)?)
}
