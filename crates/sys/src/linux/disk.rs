//! What lies under a path: its device, and how much room is left on it.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;

use super::stat;

/// How many bytes this user may still write to the file system that holds `path`.
///
/// # Errors
///
/// What the system says.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// As [`free_bytes`]; `None` where the file system does not tell, as some in memory and in user space.
///
/// # Errors
///
/// What the system says.
pub fn free_bytes_if_told(path: &Path) -> io::Result<Option<u64>> {
    let stat = rustix::fs::statvfs(path)?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    Ok((stat.f_blocks > 0).then_some(free))
}

/// How large a file system is, and how much of it is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskRoom {
    /// Bytes that this user may still write.
    pub free_bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
}

/// That of the file system that holds `path`; `None` as for [`free_bytes_if_told`].
///
/// # Errors
///
/// What the system says.
pub fn room_if_told(path: &Path) -> io::Result<Option<DiskRoom>> {
    let stat = rustix::fs::statvfs(path)?;
    let [free_bytes, total_bytes] =
        [stat.f_bavail, stat.f_blocks].map(|blocks| blocks.saturating_mul(stat.f_frsize));
    Ok((total_bytes > 0).then_some(DiskRoom { free_bytes, total_bytes }))
}

/// File systems that other computers may write to as well, or that a process carries: locks may hold
/// on this computer only. The numbers are those of `statfs(2)`.
const SHARES: [u64; 12] = [
    0x6969,      // NFS
    0x517b,      // SMB
    0xff53_4d42, // CIFS
    0xfe53_4d42, // SMB 2 and 3
    0x6573_5546, // FUSE
    0x0102_1997, // 9P
    0x00c3_6400, // Ceph
    0x5346_414f, // OpenAFS
    0x6b41_4653, // AFS
    0x7375_7245, // Coda
    0x0bd0_0bd0, // Lustre
    0x786f_4256, // folders of a virtual machine's host
];

/// The number of the file system that holds `path`, as `statfs(2)` knows it.
///
/// # Errors
///
/// What the system says.
pub fn file_system(path: &Path) -> io::Result<u64> {
    // The type is signed or not as the processor has it; the magic numbers have 32 bits.
    match rustix::fs::statfs(path) {
        // A sandbox says so of a call that it hides.
        Err(Errno::NOSYS | Errno::PERM) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "the system or a sandbox refuses the call `statfs`, which tells disks from shares",
        )),
        told => Ok(told?.f_type as u64 & 0xffff_ffff),
    }
}

/// The same of the one that an open file or directory lies on.
///
/// # Errors
///
/// What the system says.
pub fn file_system_of(fd: impl AsFd) -> io::Result<u64> {
    Ok(rustix::fs::fstatfs(fd)?.f_type as u64 & 0xffff_ffff)
}

/// File systems that hold nothing: what they show, the kernel makes up when it is read.
const VIEWS: [u64; 15] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x7472_6163, // tracefs
    0x6462_6720, // debugfs
    0x7363_6673, // securityfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0xcafe_4a11, // bpf
    0x6265_6570, // configfs
    0x4249_4e4d, // binfmt_misc
    0xf97c_ff8c, // selinuxfs
    0x6573_5543, // fusectl
    0x1cd1,      // devpts
    0x1980_0202, // mqueue
    0x6e73_6673, // nsfs
];

/// Says whether [`file_system`] gave the number of one that only shows the kernel's state, as `proc` and `sysfs`.
#[must_use]
pub fn is_view(file_system: u64) -> bool {
    VIEWS.contains(&file_system)
}

/// Says whether [`file_system`] gave the number of one that other computers may write to as well.
#[must_use]
pub fn is_share(file_system: u64) -> bool {
    SHARES.contains(&file_system)
}

/// The device that `path` lies on, links followed, in the form of [`Stat::device`](crate::Stat).
///
/// # Errors
///
/// What the system says.
pub fn device_of(path: &Path) -> io::Result<u64> {
    Ok(stat::at(CWD.as_fd(), path.as_os_str().as_bytes(), AtFlags::empty())?.device)
}
