//! Subvolumes and snapshots of btrfs, by the calls that its own tools make (`linux/btrfs.h`).
//!
//! These calls take structures of 4,096 bytes. Here they are bytes, written and read at the places that the kernel's
//! header says.

#![allow(unsafe_code, reason = "the kernel is handed an address")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{self, Getter, Opcode, Updater, opcode};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use crate::{Dir, Name, Stat};

/// The number of the directory at the top of each subvolume.
const TOP_INODE: u64 = 256;
/// The number of the empty directory that a snapshot has where another subvolume was.
const PLACE_INODE: u64 = 2;
/// The number of the subvolume that a file system begins with, which all others lie below.
const TOP_SUBVOLUME: u64 = 5;

const ARGS_BYTES: usize = 4096;
type Args = [u8; ARGS_BYTES];

const GROUP: u8 = 0x94;
const CREATE: Opcode = opcode::write::<Args>(GROUP, 14);
const DESTROY: Opcode = opcode::write::<Args>(GROUP, 15);
const LOOK_UP: Opcode = opcode::read_write::<Args>(GROUP, 18);
const SNAPSHOT: Opcode = opcode::write::<Args>(GROUP, 23);
const FLAGS: Opcode = opcode::read::<u64>(GROUP, 25);
const NESTED: Opcode = opcode::read_write::<Args>(GROUP, 61);
const NAME_OF: Opcode = opcode::read_write::<Args>(GROUP, 62);

const READ_ONLY: u64 = 1 << 1;

/// `btrfs_ioctl_vol_args`: a descriptor, and the name.
const NAME_AT: usize = 8;
/// `btrfs_ioctl_ino_lookup_args`: a subvolume, which is that of the directory if it is 0, a number, and its path.
const LOOKED_UP_AT: usize = 8;
/// `btrfs_ioctl_vol_args_v2`: a descriptor, a number, flags, four numbers, and the name.
const FLAGS_AT: usize = 16;
const SNAPSHOT_NAME_AT: usize = 56;
/// `btrfs_ioctl_get_subvol_rootref_args`: the least number, 255 pairs of a subvolume and its directory, and how many.
const PAIRS_AT: usize = 8;
const PAIRS_MAX: usize = 255;
const PAIRS_COUNT_AT: usize = PAIRS_AT + PAIRS_MAX * 16;
/// `btrfs_ioctl_ino_lookup_user_args`: a directory and a subvolume, its name, and the path of the directory.
const FOUND_NAME_AT: usize = 16;
const FOUND_PATH_AT: usize = FOUND_NAME_AT + 256;

/// Whether this is the directory at the top of a subvolume, if it lies on btrfs.
#[must_use]
pub fn is_subvolume(stat: &Stat) -> bool {
    stat.inode == TOP_INODE
}

/// Whether this is the empty directory that stands for another subvolume in a snapshot, if it lies on btrfs.
#[must_use]
pub fn is_place_of_subvolume(stat: &Stat) -> bool {
    stat.inode == PLACE_INODE
}

/// Whether a directory lies in the subvolume that its file system begins with, and not in one of the others.
///
/// # Errors
/// What the system says: `ENOTTY` if it does not lie on btrfs.
pub fn is_in_top_subvolume(dir: &Dir) -> io::Result<bool> {
    let mut args = [0; ARGS_BYTES];
    // Of this number, anybody may ask.
    put(&mut args, LOOKED_UP_AT, &TOP_INODE.to_ne_bytes());
    call::<LOOK_UP>(dir, &mut args)?;
    Ok(args.starts_with(&TOP_SUBVOLUME.to_ne_bytes()))
}

/// Opens the top of the btrfs file system on `device`, wherever that is mounted. The mount that it is opened by is nowhere
/// to be seen, and ends with it. If the file system is mounted read-only, that ends: do not call it then.
///
/// # Errors
/// What the system says: `EPERM` for anybody but root, `ENOTBLK` for what is no device.
pub fn open_top(device: &[u8]) -> io::Result<Dir> {
    let mount = detached(device, ("subvolid", &TOP_SUBVOLUME.to_string()))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(Dir::from(rustix::fs::openat(mount, ".", flags, Mode::empty())?))
}

/// A mount of the subvolume at `path` below the top of the file system on `device`, which is nowhere yet.
///
/// # Errors
/// As for [`open_top`].
pub fn mount_of(device: &[u8], path: &str) -> io::Result<OwnedFd> {
    detached(device, ("subvol", path))
}

fn detached(device: &[u8], (key, value): (&str, &str)) -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("btrfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(context.as_fd(), "source", device)?;
    rustix::mount::fsconfig_set_string(context.as_fd(), key, value)?;
    rustix::mount::fsconfig_create(context.as_fd())?;
    let noatime = MountAttrFlags::MOUNT_ATTR_NOATIME;
    Ok(rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, noatime)?)
}

/// Makes an empty subvolume.
///
/// # Errors
/// What the system says: `EEXIST` if there is something of that name.
pub fn create(into: &Dir, name: Name<'_>) -> io::Result<()> {
    let mut args = [0; ARGS_BYTES];
    put(&mut args, NAME_AT, name.as_bytes());
    call::<CREATE>(into, &mut args)
}

/// Removes a subvolume with all that is in it; the file system gives its space back by and by.
///
/// # Errors
/// What the system says: `ENOTEMPTY` if another one lies in it.
pub fn destroy(from: &Dir, name: Name<'_>) -> io::Result<()> {
    let mut args = [0; ARGS_BYTES];
    put(&mut args, NAME_AT, name.as_bytes());
    call::<DESTROY>(from, &mut args)
}

/// Removes a subvolume if nothing is in it.
///
/// # Errors
/// What the system says: `ENOTEMPTY` if something is, `EPERM` before Linux 4.18.
pub fn remove_empty(from: &Dir, name: Name<'_>) -> io::Result<()> {
    Ok(rustix::fs::unlinkat(from, name.as_bytes(), AtFlags::REMOVEDIR)?)
}

/// Makes a snapshot of a subvolume that nobody can write to. In the place of those nested in it are empty directories.
///
/// # Errors
/// What the system says: `EXDEV` if they lie on different file systems, `ENOSPC` if it is full.
pub fn snapshot(subvolume: &Dir, into: &Dir, name: Name<'_>) -> io::Result<()> {
    let mut args = [0; ARGS_BYTES];
    put(&mut args, 0, &i64::from(subvolume.as_fd().as_raw_fd()).to_ne_bytes());
    put(&mut args, FLAGS_AT, &READ_ONLY.to_ne_bytes());
    put(&mut args, SNAPSHOT_NAME_AT, name.as_bytes());
    call::<SNAPSHOT>(into, &mut args)
}

/// Whether nobody can write to a subvolume.
///
/// # Errors
/// What the system says: `EINVAL` for a directory that is no subvolume.
pub fn is_read_only(subvolume: &Dir) -> io::Result<bool> {
    // SAFETY: the kernel writes a number of eight bytes, as `Getter` has place for.
    let flags = unsafe { ioctl::ioctl(subvolume, Getter::<FLAGS, u64>::new()) }?;
    Ok(flags & READ_ONLY != 0)
}

/// The subvolumes directly within one, by their paths from its top.
///
/// # Errors
/// What the system says; `ENOTTY` before Linux 4.18.
pub fn nested(subvolume: &Dir) -> io::Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    let mut next = 0_u64;
    loop {
        let mut args = [0; ARGS_BYTES];
        put(&mut args, 0, &next.to_ne_bytes());
        let is_all = match call::<NESTED>(subvolume, &mut args) {
            Ok(()) => true,
            Err(error) if Errno::from_io_error(&error) == Some(Errno::OVERFLOW) => false,
            Err(error) => return Err(error),
        };
        let count = args.get(PAIRS_COUNT_AT).map_or(0, |count| usize::from(*count));
        let pairs = args.get(PAIRS_AT..).unwrap_or_default().as_chunks::<8>().0;
        for pair in pairs.as_chunks::<2>().0.iter().take(count.min(PAIRS_MAX)) {
            let [id, directory] = pair.map(u64::from_ne_bytes);
            found.extend(path_of(subvolume, id, directory)?);
            next = id + 1;
        }
        if is_all || count == 0 {
            return Ok(found);
        }
    }
}

/// The path of the subvolume `id` in the directory of that number; nothing if it was removed meanwhile.
fn path_of(subvolume: &Dir, id: u64, directory: u64) -> io::Result<Option<Vec<u8>>> {
    let mut args = [0; ARGS_BYTES];
    put(&mut args, 0, &directory.to_ne_bytes());
    put(&mut args, 8, &id.to_ne_bytes());
    match call::<NAME_OF>(subvolume, &mut args) {
        Ok(()) => Ok(Some([text(&args, FOUND_PATH_AT), text(&args, FOUND_NAME_AT)].concat())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn call<const OPCODE: Opcode>(dir: &Dir, args: &mut Args) -> io::Result<()> {
    // SAFETY: each of these calls reads and writes a structure of 4,096 bytes, which `args` has and outlives the call.
    Ok(unsafe { ioctl::ioctl(dir, Updater::<OPCODE, Args>::new(args)) }?)
}

/// Puts bytes into the structure; there is place for all that a [`Name`] can be, and a zero behind it.
fn put(args: &mut Args, at: usize, bytes: &[u8]) {
    let place = args.get_mut(at..).unwrap_or_default();
    place.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
}

/// What stands at a place, up to a zero.
fn text(args: &Args, at: usize) -> &[u8] {
    let rest = args.get(at..).unwrap_or_default();
    rest.split(|&byte| byte == 0).next().unwrap_or_default()
}
