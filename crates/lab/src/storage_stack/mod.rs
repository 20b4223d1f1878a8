//! What a directory lies on: file system, journal, what is stacked below it, and the disks themselves
//! with the bus that they hang on.
//!
//! A slow disk is often a fast one in the wrong place: an NVMe drive on one lane of four, a USB 3
//! enclosure on a USB 2 cable. Each fact is therefore told beside what the device could do. All of it
//! is read from `/sys` and `/proc`, below a root that tests can replace by a recorded tree, and nothing
//! is asked of the device itself: that would take rights, and wake it up.

mod bus;
mod counters;
mod disk;
mod file_system;
mod layers;
mod links;

use std::io;
use std::path::Path;

use holdall_sys::mounts::{Mount, Mounts};
use serde::{Deserialize, Serialize};

pub use bus::Bus;
pub use counters::{DeviceCounters, DeviceWork, Pattern};
pub use disk::Disk;
pub use file_system::{DirectAccess, FileSystem};
pub use links::PcieLink;

/// What a directory lies on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StorageStack {
    /// Where the file system is mounted.
    pub mount_point: String,
    /// The file system.
    pub file_system: FileSystem,
    /// What lies between it and the disks, from the top: `mirror md0 of 2 disks`, `encrypted`, ...
    pub layers: Vec<String>,
    /// The disks; none where there are none, as on a share or in memory.
    pub disks: Vec<Disk>,
}

impl StorageStack {
    /// What `dir` lies on, on this computer.
    ///
    /// # Errors
    /// What the system says of `dir` or of its own table of mounts.
    pub fn of(dir: &Path) -> io::Result<Self> {
        let mounts = Mounts::read()?;
        let mount = mounts.of_path(dir)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(Self::read(Path::new("/"), mount))
    }

    /// What a mount lies on, by `/sys` and `/proc` below `root`. What is not told there is left out.
    pub fn read(root: &Path, mount: &Mount) -> Self {
        let device = layers::block_folder(root, mount);
        let mut found = layers::Found::default();
        if let Some(device) = &device {
            found.go_down_from(root, device);
        }
        Self {
            mount_point: String::from_utf8_lossy(&mount.point).into_owned(),
            file_system: FileSystem::read(root, mount, device.as_deref()),
            layers: found.layers,
            disks: found.disks,
        }
    }

    /// Whether there is a disk below, which counts what it does.
    pub fn has_disk(&self) -> bool {
        !self.disks.is_empty()
    }

    /// Whether it lies in memory and nowhere else.
    pub fn is_in_memory(&self) -> bool {
        DirectAccess::of(&self.file_system.kind) == DirectAccess::InMemory
    }

    /// The facts, each with a name.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![
            ("mounted at", self.mount_point.clone()),
            ("file system", self.file_system.words()),
        ];
        facts.extend(self.layers.iter().map(|layer| ("below it", layer.clone())));
        facts.extend(self.disks.iter().map(|disk| ("disk", disk.words())));
        facts
    }

    /// What keeps a disk from what it could do, a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let of_disks = self.disks.iter().filter_map(Disk::note);
        of_disks.chain(self.file_system.note()).collect()
    }
}

/// A small file of `/sys` or `/proc` without the blanks around it; `None` if it is not there or empty.
fn value(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
