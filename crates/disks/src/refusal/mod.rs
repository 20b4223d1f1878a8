//! Which disks are never written over, whatever is typed: decided from a described computer, without looking at anything.
//!
//! A disk is refused for everything that uses it or a part of it, over any number of layers, and for what uses the same
//! content by another name ([`same_content`]). What the description cannot
//! show, such as a mount in another namespace or a pool of ZFS, the kernel refuses when the disk is claimed
//! ([`Claim`](crate::Claim)).

use std::fmt::{self, Display};

use crate::computer::{BlockDevice, Computer, is_disk};

/// Where the system's own files are mounted.
const OF_THE_SYSTEM: [&str; 6] = ["/", "/boot", "/boot/efi", "/efi", "/usr", "/var"];

/// Why a disk is refused. Each names the device that is in the way: the disk itself, or something on it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It is no device that the kernel has.
    Unknown,
    /// It is a part of a disk.
    Partition {
        /// The disk.
        of: String,
    },
    /// It is put together from disks, lies in memory, or is read from a medium that is not written.
    NoDisk,
    /// It has no medium, or a loop device no file.
    Empty,
    /// It cannot be written to.
    ReadOnly {
        /// What cannot.
        device: String,
    },
    /// The system runs from it.
    System {
        /// What is mounted.
        device: String,
        /// Where.
        point: String,
    },
    /// It is mounted.
    Mounted {
        /// What is mounted.
        device: String,
        /// Where.
        point: String,
    },
    /// Memory is moved there.
    Swap {
        /// Where to.
        device: String,
    },
    /// Another device is put together from it.
    Holder {
        /// The part.
        device: String,
        /// The whole: `md0`, `dm-3`.
        holder: String,
    },
    /// It belongs to a file system that is in use and may lie on several disks.
    Pool {
        /// What belongs to it.
        device: String,
        /// The kind of file system.
        kind: String,
    },
    /// The kernel refuses it to this process, and does not say for what.
    Kernel,
    /// A loop device shows it.
    Loop {
        /// What is shown.
        device: String,
        /// By which one.
        by: String,
    },
    /// Another loop device shows the same file.
    SameFile {
        /// Which one.
        by: String,
    },
    /// It is a loop device on a block device, which is the one to be named.
    OnDevice {
        /// The path of the block device.
        path: String,
    },
    /// It is a loop device on a file that is in use as swap.
    FileIsSwap,
    /// It is a loop device on a file that is mounted without any.
    FileIsMounted {
        /// Where.
        point: String,
    },
    /// Another device leads to the same disk, and is in use.
    SameDisk {
        /// Which one.
        other: String,
    },
}

impl Display for Reason {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => write!(to, "the kernel has no such device"),
            Self::Partition { of } => write!(to, "it is a partition of {of}"),
            Self::NoDisk => write!(to, "it is no disk"),
            Self::Empty => write!(to, "it has no medium"),
            Self::ReadOnly { device } => write!(to, "{device} is read-only"),
            Self::System { device, point } => {
                write!(to, "the system runs from it: {device} is mounted at {point}")
            }
            Self::Mounted { device, point } => write!(to, "{device} is mounted at {point}"),
            Self::Swap { device } => write!(to, "{device} is in use as swap"),
            Self::Holder { device, holder } => {
                write!(to, "{device} is a part of {holder} (RAID, LVM or encryption)")
            }
            Self::Pool { device, kind } => {
                write!(to, "{device} belongs to a {kind} that is in use")
            }
            Self::Kernel => {
                write!(to, "it is in use, as the kernel says, by what is not seen from here")
            }
            Self::Loop { device, by } => write!(to, "{by} shows what is on {device}"),
            Self::SameFile { by } => write!(to, "{by} shows the same file"),
            Self::OnDevice { path } => {
                write!(
                    to,
                    "it shows what is on {path}, which is a device of its own: name that one"
                )
            }
            Self::FileIsSwap => write!(to, "the file that it shows is in use as swap"),
            Self::FileIsMounted { point } => {
                write!(to, "the file that it shows is mounted at {point}")
            }
            Self::SameDisk { other } => {
                write!(
                    to,
                    "{other} is the same disk, as its serial number or wwid says, and is in use"
                )
            }
        }
    }
}

/// All reasons to refuse the disk that the kernel calls `name`, those of the system first; none if it may be written over.
#[must_use]
pub fn reasons(computer: &Computer, name: &str) -> Vec<Reason> {
    let Some(device) = computer.device(name) else { return vec![Reason::Unknown] };
    if let Some(of) = &device.partition_of {
        return vec![Reason::Partition { of: of.clone() }];
    }
    let mut reasons = Vec::new();
    if !is_disk(name) {
        reasons.push(Reason::NoDisk);
    } else if device.size_bytes == 0 {
        reasons.push(Reason::Empty);
    }
    reasons.extend(of_disk(computer, device));
    let parts = std::iter::once(device).chain(computer.partitions(name));
    let read_only = parts.filter(|part| part.is_read_only);
    reasons.extend(read_only.map(|part| Reason::ReadOnly { device: part.name.clone() }));
    reasons.extend(same_content::reasons(computer, device));
    reasons.sort_by_key(|reason| !matches!(reason, Reason::System { .. }));
    reasons
}

/// How a disk, its partitions, and what is put together from these are used.
fn of_disk(computer: &Computer, disk: &BlockDevice) -> Vec<Reason> {
    let above = computer.all_above(&disk.name);
    let mut reasons: Vec<_> =
        above.into_iter().flat_map(|device| of_use(computer, device)).collect();
    let parts = std::iter::once(disk).chain(computer.partitions(&disk.name));
    reasons.extend(parts.flat_map(|part| of_part(computer, part)));
    reasons
}

/// How a device itself, or what is put together from it, is used.
fn of_use<'a>(
    computer: &'a Computer,
    device: &'a BlockDevice,
) -> impl Iterator<Item = Reason> + 'a {
    let name = || device.name.clone();
    let mounted = computer.points(device).map(move |point| {
        let point = point.to_owned();
        match OF_THE_SYSTEM.contains(&&*point) {
            true => Reason::System { device: name(), point },
            false => Reason::Mounted { device: name(), point },
        }
    });
    let swap = computer.swaps.contains(&device.number).then(|| Reason::Swap { device: name() });
    let pools = computer.pools.iter().filter(|pool| pool.devices.contains(&device.name));
    let pools = pools.map(move |pool| Reason::Pool { device: name(), kind: pool.kind.clone() });
    mounted.chain(swap).chain(pools)
}

/// What is built on a disk or on a partition.
fn of_part<'a>(computer: &'a Computer, part: &'a BlockDevice) -> impl Iterator<Item = Reason> + 'a {
    let name = || part.name.clone();
    let held = part.holders.iter();
    let held = held.map(move |holder| Reason::Holder { device: name(), holder: holder.clone() });
    let loops = computer.devices.iter().filter(|one| one.backed_by == Some(part.number));
    let shown = loops.map(move |by| Reason::Loop { device: name(), by: by.name.clone() });
    held.chain(shown)
}

mod same_content;
#[cfg(test)]
mod tests;
