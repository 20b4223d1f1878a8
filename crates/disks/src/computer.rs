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
    /// Files that are in use as if they were disks, without a loop device.
    pub used_files: Vec<UsedFile>,
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
    /// Of a loop device, the path of what it shows, as who made it saw that.
    pub backing_file: Option<String>,
    /// Of a loop device, the file that it shows.
    pub image: Option<FileId>,
    /// Of a disk, the serial number.
    pub serial: Option<String>,
    /// Of a disk, the number that no other disk in the world has, as far as it tells one.
    pub wwid: Option<String>,
}

/// A file, whatever its path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileId {
    /// The device of its file system.
    pub device: DeviceNumber,
    /// Its number there.
    pub inode: u64,
}

/// A file that is in use as if it were a disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsedFile {
    /// The file.
    pub file: FileId,
    /// Where it is mounted; `None` if it is in use as swap.
    pub point: Option<String>,
}

impl BlockDevice {
    /// Whether both are loop devices that show the same file. Where this user may not ask the kernel, the paths decide.
    fn has_same_image(&self, other: &Self) -> bool {
        match (self.image, other.image) {
            (Some(own), Some(others)) => own == others,
            _ => self.backing_file.is_some() && self.backing_file == other.backing_file,
        }
    }

    /// Whether both are ways to the same disk. Enclosures give the disks in them the same serial number, and controllers of
    /// NVMe their namespaces: these are told apart by their wwid, or by their sizes.
    fn is_same_disk(&self, other: &Self) -> bool {
        match (&self.wwid, &other.wwid) {
            (Some(own), Some(others)) => own == others,
            _ => {
                self.serial.is_some()
                    && self.serial == other.serial
                    && self.size_bytes == other.size_bytes
            }
        }
    }
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

    /// Other loop devices that show the same file.
    pub fn same_images<'a>(
        &'a self,
        device: &'a BlockDevice,
    ) -> impl Iterator<Item = &'a BlockDevice> {
        let others = self.devices.iter().filter(|other| other.number != device.number);
        others.filter(|other| device.has_same_image(other))
    }

    /// Other devices that lead to the same disk, as where it is connected by several paths (multipath).
    pub fn other_paths<'a>(
        &'a self,
        device: &'a BlockDevice,
    ) -> impl Iterator<Item = &'a BlockDevice> {
        let others = self.devices.iter().filter(|other| other.number != device.number);
        others.filter(|other| is_disk(&other.name) && device.is_same_disk(other))
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

/// Whether the kernel's name is that of a disk, or of a loop device, which is one for tests and images.
#[must_use]
pub fn is_disk(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_lettered =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase());
    let after = |prefix: &str| name.strip_prefix(prefix);
    let is_nvme = || {
        let (controller, space) = after("nvme")?.split_once('n')?;
        Some(is_number(controller) && is_number(space))
    };
    ["sd", "hd", "vd", "xvd"].into_iter().filter_map(after).any(is_lettered)
        || ["mmcblk", "loop"].into_iter().filter_map(after).any(is_number)
        || is_nvme().unwrap_or(false)
}
