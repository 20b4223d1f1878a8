//! The disks of a computer, with what is on them and what keeps them from being written over.

use std::path::Path;

use holdall_lab::storage_stack::Disk;
use holdall_sys::mounts::Mounts;

use crate::claim::{computer, is_in_use, used_elsewhere};
use crate::computer::{BlockDevice, Computer, is_disk};
use crate::content::{Signature, signatures};
use crate::error::{DiskError, failed};
use crate::identity::Identity;
use crate::read::udev;
use crate::refusal::{Reason, reasons};

/// A disk.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// By what it is known.
    pub identity: Identity,
    /// How it is connected, how fast, and what else its drivers tell.
    pub disk: Disk,
    /// What is on it: itself, if it has no partitions, or each of these.
    pub parts: Vec<Part>,
    /// Why it is not written over; none if it may be.
    pub refused: Vec<Reason>,
}

/// A disk without partitions, or a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The kernel's name.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its file system or the like, as udev knows it or as is found where this user may look.
    pub content: Option<Signature>,
    /// Where it, or what is put together from it, is mounted.
    pub mounted_at: Vec<String>,
}

/// All disks that have a medium, in the order of their names. Loop devices are among them if they can be written to:
/// others are packages of programs.
///
/// # Errors
/// What the system says of the list of its devices.
pub fn list() -> Result<Vec<Listed>, DiskError> {
    let mounts = Mounts::read().map_err(failed("reading what is mounted"))?;
    let mut listed = read(Path::new("/"), &mounts, &|name| signatures(name).unwrap_or_default())?;
    let computer = computer()?;
    for disk in listed.iter_mut().filter(|disk| disk.refused.is_empty()) {
        let name = &disk.identity.name;
        let unseen = is_in_use(name).then_some(Reason::Kernel);
        disk.refused.extend(unseen.or_else(|| used_elsewhere(&computer, name)));
    }
    Ok(listed)
}

/// The same below a root; `look` finds the signatures on a device that udev knows nothing of.
///
/// # Errors
/// What the system says of the list of its devices.
pub fn read(
    root: &Path,
    mounts: &Mounts,
    look: &dyn Fn(&str) -> Vec<Signature>,
) -> Result<Vec<Listed>, DiskError> {
    let computer = Computer::read(root, mounts).map_err(failed("reading the list of disks"))?;
    let is_shown = |device: &&BlockDevice| {
        let is_package = device.name.starts_with("loop") && device.is_read_only;
        is_disk(&device.name) && device.size_bytes > 0 && !is_package
    };
    let listed = |device: &BlockDevice| {
        Some(Listed {
            identity: Identity::read(root, &device.name)?,
            disk: Disk::named(root, &device.name)?,
            parts: parts(root, &computer, device, look),
            refused: reasons(&computer, &device.name),
        })
    };
    Ok(computer.devices.iter().filter(is_shown).filter_map(listed).collect())
}

fn parts(
    root: &Path,
    computer: &Computer,
    disk: &BlockDevice,
    look: &dyn Fn(&str) -> Vec<Signature>,
) -> Vec<Part> {
    let mut parts: Vec<_> = computer.partitions(&disk.name).collect();
    if parts.is_empty() {
        parts.push(disk);
    }
    let part = |part: &BlockDevice| {
        let above = computer.all_above(&part.name);
        let points = above.iter().flat_map(|device| computer.points(device));
        Part {
            name: part.name.clone(),
            size_bytes: part.size_bytes,
            content: content(root, part, look),
            mounted_at: points.map(str::to_owned).collect(),
        }
    };
    parts.into_iter().map(part).collect()
}

fn content(
    root: &Path,
    part: &BlockDevice,
    look: &dyn Fn(&str) -> Vec<Signature>,
) -> Option<Signature> {
    let told = |key| udev(root, part.number, key);
    match told("ID_FS_TYPE") {
        Some(kind) => Some(Signature { kind, label: told("ID_FS_LABEL") }),
        None => look(&part.name).into_iter().next(),
    }
}
