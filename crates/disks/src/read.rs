//! Reads a [`Computer`] from `/sys`, `/proc` and what udev found out, below a root that tests replace by a recorded tree.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use holdall_sys::DeviceNumber;
use holdall_sys::mounts::Mounts;

use crate::computer::{BlockDevice, Computer, Mounted, Pool};

/// `/sys` counts in these whatever the device has.
const SECTOR_BYTES: u64 = 512;
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
            devices.extend(folder.canonicalize().ok().and_then(|folder| device(&folder)));
        }
        devices.sort_by(|one, other| one.name.cmp(&other.name));
        let mut computer = Self { devices, pools: pools(root), ..Self::default() };
        computer.mounts = mounts.iter().map(mounted).collect();
        computer.swaps = swaps(root, &computer)?;
        computer.find_backing_devices(root);
        Ok(computer)
    }

    /// The device that a path in `/dev` stands for, links followed.
    fn at_path(&self, root: &Path, path: &str) -> Option<&BlockDevice> {
        let below = path.strip_prefix("/dev/")?;
        let file = root.join("dev").join(below);
        let file = file.canonicalize().unwrap_or(file);
        self.device(file.file_name()?.to_str()?)
    }

    fn find_backing_devices(&mut self, root: &Path) {
        let number = |device: &BlockDevice| {
            Some(self.at_path(root, device.backing_file.as_deref()?)?.number)
        };
        let numbers: Vec<_> = self.devices.iter().map(number).collect();
        for (device, number) in self.devices.iter_mut().zip(numbers) {
            device.backed_by = number;
        }
    }
}

/// What a folder of `/sys`, by its canonical path, tells of a device.
fn device(folder: &Path) -> Option<BlockDevice> {
    let name = |folder: &Path| Some(folder.file_name()?.to_string_lossy().into_owned());
    let is_partition = folder.join("partition").exists();
    Some(BlockDevice {
        name: name(folder)?,
        number: number(&value(&folder.join("dev"))?)?,
        size_bytes: sectors(&folder.join("size")).saturating_mul(SECTOR_BYTES),
        is_read_only: value(&folder.join("ro")).is_some_and(|ro| ro != "0"),
        partition_of: folder.parent().filter(|_| is_partition).and_then(name),
        holders: names(&folder.join("holders")),
        backed_by: None,
        backing_file: value(&folder.join("loop/backing_file")),
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
    let (major, minor) = ((mount.device >> 32) as u32, mount.device as u32);
    let number = DeviceNumber { major, minor };
    Mounted { number, source: text(&mount.source), point: text(&mount.point) }
}

/// Devices with swap, and none of the files: what these lie on is mounted.
fn swaps(root: &Path, computer: &Computer) -> io::Result<Vec<DeviceNumber>> {
    let text = match fs::read_to_string(root.join("proc/swaps")) {
        // A kernel without swap.
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    let paths = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    Ok(paths.filter_map(|path| Some(computer.at_path(root, path)?.number)).collect())
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
