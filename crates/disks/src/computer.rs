//! Block devices of a computer and what uses them, as plain data: what may be written over is decided from this alone.

use std::collections::BTreeSet;

use holdall_sys::DeviceNumber;

/// All block devices that the kernel has, and all that is known to use one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Computer {
    /// Disks, partitions, and what is put together from them.
    pub devices: Vec<BlockDevice>,
    /// What is mounted, as far as this process sees it.
    pub mounts: Vec<Mounted>,
    /// Devices and partitions with swap in use.
    pub swaps: Vec<DeviceNumber>,
    /// File systems that are in use and may span several devices.
    pub pools: Vec<Pool>,
}

/// One block device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockDevice {
    /// The kernel's name, such as `sdb` or `sdb1`.
    pub name: String,
    /// Its numbers.
    pub number: DeviceNumber,
    /// How large it is; 0 without a medium.
    pub size_bytes: u64,
    /// Whether the kernel refuses to write to it.
    pub is_read_only: bool,
    /// Of a partition, the disk that it is on.
    pub partition_of: Option<String>,
    /// Devices that are put together from it: encryption, volumes, arrays.
    pub holders: Vec<String>,
    /// Of a loop device on another block device, that one.
    pub backed_by: Option<DeviceNumber>,
    /// Of a loop device on a file, the file.
    pub backing_file: Option<String>,
}

/// Something that is mounted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mounted {
    /// The device; file systems that span several have a number of their own.
    pub number: DeviceNumber,
    /// What is said to be mounted, such as `/dev/sdb1`.
    pub source: String,
    /// Where.
    pub point: String,
}

/// A file system that is in use, and may span several devices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pool {
    /// Its kind, such as `btrfs`.
    pub kind: String,
    /// The kernel's names of its devices.
    pub devices: Vec<String>,
}

impl Computer {
    /// The device of that name.
    #[must_use]
    pub fn device(&self, name: &str) -> Option<&BlockDevice> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// The device of those numbers.
    #[must_use]
    pub fn numbered(&self, number: DeviceNumber) -> Option<&BlockDevice> {
        self.devices.iter().find(|device| device.number == number)
    }

    /// The partitions of a disk.
    pub fn partitions(&self, disk: &str) -> impl Iterator<Item = &BlockDevice> {
        self.devices.iter().filter(move |device| device.partition_of.as_deref() == Some(disk))
    }

    /// Where a device is mounted.
    pub fn points(&self, device: &BlockDevice) -> impl Iterator<Item = &str> {
        let is_it = move |mount: &&Mounted| {
            mount.number == device.number
                || mount.source.strip_prefix("/dev/") == Some(&device.name)
        };
        self.mounts.iter().filter(is_it).map(|mount| &*mount.point)
    }

    /// A disk, its partitions, and all that is put together from any of these, over any number of steps.
    #[must_use]
    pub fn all_above(&self, disk: &str) -> Vec<&BlockDevice> {
        let mut names = BTreeSet::new();
        let mut found = Vec::new();
        let mut next: Vec<_> = self.device(disk).into_iter().collect();
        while let Some(device) = next.pop() {
            // A description that goes in circles ends, too.
            if !names.insert(&device.name) {
                continue;
            }
            found.push(device);
            next.extend(self.partitions(&device.name));
            next.extend(device.holders.iter().filter_map(|holder| self.device(holder)));
            next.extend(self.devices.iter().filter(|loops| loops.backed_by == Some(device.number)));
        }
        found
    }
}
