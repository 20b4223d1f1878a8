//! Reads a [`Computer`] from `/sys`, `/proc` and what udev found out, below a root that tests replace by a recorded tree.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use holdall_sys::DeviceNumber;
use holdall_sys::loop_device::image_of;
use holdall_sys::mounts::{Mounts, swap_files_of};

use crate::computer::{BlockDevice, Computer, FileId, Mounted, Pool, UsedFile};

/// `/sys` counts in these whatever the device has.
const SECTOR_BYTES: u64 = 512;
/// The page of a SCSI device's product data that has its serial number begins with so many bytes of its own.
const PAGE_HEADER_BYTES: usize = 4;
/// More than any value that is read here has; what follows is left out.
const MAX_VALUE_CHARS: usize = 256;

impl Computer {
    /// Reads `/sys`, `/proc` and `/run/udev` below `root`, and takes `mounts` for what is mounted.
    ///
    /// # Errors
    /// What the system says of the list of block devices or of that of swap: without them no disk can be said to be free.
    pub fn read(root: &Path, mounts: &Mounts) -> io::Result<Self> {
        let mut devices = Vec::new();
        for entry in fs::read_dir(root.join("sys/class/block"))? {
            let folder = entry?.path();
            // One that was pulled out meanwhile is gone.
            devices.extend(folder.canonicalize().ok().and_then(|folder| device(root, &folder)));
        }
        devices.sort_by(|one, other| one.name.cmp(&other.name));
        let mut computer = Self { devices, pools: pools(root), ..Self::default() };
        computer.mounts = mounts.iter().map(mounted).collect();
        let swaps = swaps(root)?;
        computer.swaps = swap_devices(root, &computer, &swaps);
        // Only a loop device can show a file: without any, no path is looked at, which may not answer.
        if computer.devices.iter().any(|device| device.backing_file.is_some()) {
            computer.used_files = used_files(root, mounts, &swaps);
        }
        computer.find_images(root);
        Ok(computer)
    }

    /// The device that a path in `/dev` stands for, links followed.
    fn at_path(&self, root: &Path, path: &str) -> Option<&BlockDevice> {
        let below = path.strip_prefix("/dev/")?;
        let file = root.join("dev").join(below);
        let file = file.canonicalize().unwrap_or(file);
        self.device(file.file_name()?.to_str()?)
    }

    /// Finds what loop devices show: by asking them, or else, as not every user may, by the path.
    fn find_images(&mut self, root: &Path) {
        let find = |device: &BlockDevice| {
            let path = device.backing_file.as_deref()?;
            match image_of(&root.join("dev").join(&device.name)) {
                Ok(Some(image)) => {
                    let (device, inode) = image.file;
                    Some((Some(FileId { device: split(device), inode }), image.block_device))
                }
                _ => Some((
                    file_at(root, path.as_bytes()),
                    self.at_path(root, path).map(|device| device.number),
                )),
            }
        };
        let found: Vec<_> =
            self.devices.iter().map(|device| find(device).unwrap_or_default()).collect();
        for (device, (image, backed_by)) in self.devices.iter_mut().zip(found) {
            (device.image, device.backed_by) = (image, backed_by);
        }
    }
}

/// What a folder of `/sys`, by its canonical path, tells of a device.
fn device(root: &Path, folder: &Path) -> Option<BlockDevice> {
    let name = |folder: &Path| Some(folder.file_name()?.to_string_lossy().into_owned());
    let is_partition = folder.join("partition").exists();
    let number = number(&value(&folder.join("dev"))?)?;
    let of_disk = |told: Option<String>| told.filter(|_| !is_partition);
    Some(BlockDevice {
        name: name(folder)?,
        number,
        size_bytes: sectors(&folder.join("size")).saturating_mul(SECTOR_BYTES),
        is_read_only: value(&folder.join("ro")).is_some_and(|ro| ro != "0"),
        partition_of: folder.parent().filter(|_| is_partition).and_then(name),
        holders: names(&folder.join("holders")),
        backed_by: None,
        backing_file: value(&folder.join("loop/backing_file")),
        image: None,
        serial: of_disk(serial(root, folder, number)),
        wwid: of_disk(value(&folder.join("wwid")).or_else(|| value(&folder.join("device/wwid")))),
    })
}

fn sectors(file: &Path) -> u64 {
    value(file).and_then(|sectors| sectors.parse().ok()).unwrap_or(0)
}

/// `8:16`, as `/sys` writes it.
pub(crate) fn number(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.split_once(':')?;
    Some(DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

fn mounted(mount: &holdall_sys::mounts::Mount) -> Mounted {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Mounted { number: split(mount.device), source: text(&mount.source), point: text(&mount.point) }
}

/// The two numbers of a device in the form of [`Stat::device`](holdall_sys::Stat::device).
fn split(device: u64) -> DeviceNumber {
    DeviceNumber { major: (device >> 32) as u32, minor: device as u32 }
}

/// The text of the list of swap.
fn swaps(root: &Path) -> io::Result<Vec<u8>> {
    match fs::read(root.join("proc/swaps")) {
        // A kernel without swap.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}

/// Devices with swap.
fn swap_devices(root: &Path, computer: &Computer, swaps: &[u8]) -> Vec<DeviceNumber> {
    let text = String::from_utf8_lossy(swaps);
    let paths = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    paths.filter_map(|path| Some(computer.at_path(root, path)?.number)).collect()
}

/// Files with swap, and those that a file system is mounted from without a loop device, as the kernel (erofs) and FUSE do.
fn used_files(root: &Path, mounts: &Mounts, swaps: &[u8]) -> Vec<UsedFile> {
    let used =
        |path: &[u8], point: Option<String>| Some(UsedFile { file: file_at(root, path)?, point });
    let swapped = swap_files_of(swaps).into_iter().filter_map(|path| used(&path, None));
    let mounted = mounts.iter().filter_map(|mount| {
        used(&mount.source, Some(String::from_utf8_lossy(&mount.point).into_owned()))
    });
    swapped.chain(mounted).collect()
}

/// The file at an absolute path.
fn file_at(root: &Path, path: &[u8]) -> Option<FileId> {
    let below = Path::new(OsStr::from_bytes(path)).strip_prefix("/").ok()?;
    let found = fs::metadata(root.join(below)).ok().filter(fs::Metadata::is_file)?;
    let (major, minor) = (rustix::fs::major(found.dev()), rustix::fs::minor(found.dev()));
    Some(FileId { device: DeviceNumber { major, minor }, inode: found.ino() })
}

/// File systems of several devices tell in `/sys/fs` which ones they use.
fn pools(root: &Path) -> Vec<Pool> {
    let folders = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
    let btrfs = folders(root.join("sys/fs/btrfs")).map(|pool| Pool {
        kind: "btrfs".to_owned(),
        devices: names(&pool.path().join("devices")),
    });
    let bcachefs = folders(root.join("sys/fs/bcachefs")).map(|pool| {
        let member = |member: fs::DirEntry| {
            let device = member.path().join("block").canonicalize().ok()?;
            Some(device.file_name()?.to_string_lossy().into_owned())
        };
        let devices = folders(pool.path()).filter_map(member).collect();
        Pool { kind: "bcachefs".to_owned(), devices }
    });
    btrfs.chain(bcachefs).filter(|pool| !pool.devices.is_empty()).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// What udev found out of a device and calls `key`; `None` where there is no udev, too.
pub(crate) fn udev(root: &Path, number: DeviceNumber, key: &str) -> Option<String> {
    let file = format!("run/udev/data/b{}:{}", number.major, number.minor);
    let text = String::from_utf8_lossy(&fs::read(root.join(file)).ok()?).into_owned();
    let property =
        |line: &str| line.strip_prefix("E:")?.strip_prefix(key)?.strip_prefix('=').map(short);
    text.lines().find_map(property).flatten()
}

/// The serial number of a disk. Drives tell it in different places. That of udev comes first: it has asked the drive behind an enclosure's bridge.
pub(crate) fn serial(root: &Path, folder: &Path, number: DeviceNumber) -> Option<String> {
    udev(root, number, "ID_SERIAL_SHORT")
        .or_else(|| value(&folder.join("device/serial")))
        .or_else(|| value(&folder.join("serial")))
        .or_else(|| {
            let page = fs::read(folder.join("device/vpd_pg80")).ok()?;
            short(&String::from_utf8_lossy(page.get(PAGE_HEADER_BYTES..)?))
        })
}

/// A small file of `/sys`; `None` if it is not there or empty.
pub(crate) fn value(file: &Path) -> Option<String> {
    short(&String::from_utf8_lossy(&fs::read(file).ok()?))
}

/// Text of a device, which may be anything: without the blanks around it, and not long.
pub(crate) fn short(text: &str) -> Option<String> {
    let is_blank = |c: char| c.is_whitespace() || c == '\0';
    let text: String = text.trim_matches(is_blank).chars().take(MAX_VALUE_CHARS).collect();
    (!text.is_empty()).then_some(text)
}
