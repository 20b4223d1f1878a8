//! From a mount down to the disks: partitions, volumes, encryption, mirrors.

use std::fs;
use std::path::{Path, PathBuf};

use holdall_sys::mounts::Mount;

use super::disk::Disk;
use super::value;

/// No stack is that deep; a tree of links that goes in circles is.
const MAX_DEPTH: usize = 8;

/// The folder of `/sys` that stands for the mounted block device; `None` where there is none.
pub(super) fn block_folder(root: &Path, mount: &Mount) -> Option<PathBuf> {
    let (major, minor) = (mount.device >> 32, mount.device & 0xffff_ffff);
    let by_number = root.join(format!("sys/dev/block/{major}:{minor}"));
    by_number.canonicalize().ok().or_else(|| by_source(root, &mount.source))
}

/// File systems that span several devices have a number of their own, and name one of the devices.
fn by_source(root: &Path, source: &[u8]) -> Option<PathBuf> {
    let source = std::str::from_utf8(source).ok()?.strip_prefix("/dev/")?;
    let device = root.join("dev").join(source);
    let device = device.canonicalize().unwrap_or(device);
    let name = device.file_name()?;
    root.join("sys/class/block").join(name).canonicalize().ok()
}

/// What lies below.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) layers: Vec<String>,
    pub(super) disks: Vec<Disk>,
}

impl Found {
    /// Adds what a file system consists of that lies on `device`, and perhaps on others beside it.
    pub(super) fn go_down_from(&mut self, root: &Path, device: &Path) {
        let Some(pool) = Pool::of(root, device).filter(|pool| pool.devices.len() > 1) else {
            return self.go_down(device, 0);
        };
        self.layers.push(pool.words());
        pool.devices.iter().for_each(|device| self.go_down(device, 1));
    }

    /// Adds what `device`, a folder of `/sys`, consists of.
    pub(super) fn go_down(&mut self, device: &Path, depth: usize) {
        let whole = if device.join("partition").exists() { device.parent() } else { Some(device) };
        let Some(whole) = whole.filter(|_| depth < MAX_DEPTH) else { return };
        let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let parts = parts(whole);
        if let Some(layer) = layer(whole, &name, &parts) {
            self.layers.push(layer);
        }
        if parts.is_empty() {
            let is_known = self.disks.iter().any(|disk| disk.name == name);
            if !is_known {
                self.disks.push(Disk::read(whole, name));
            }
        }
        parts.iter().for_each(|part| self.go_down(part, depth + 1));
    }
}

/// A btrfs that may lie on several devices, of which a mount names one.
struct Pool {
    devices: Vec<PathBuf>,
    /// How content is kept on them, such as `raid1`; several while it is being changed.
    profiles: Vec<String>,
}

impl Pool {
    /// The one that has `device`, by its folder in `/sys/fs/btrfs`; `None` if it is no btrfs.
    fn of(root: &Path, device: &Path) -> Option<Self> {
        let name = device.file_name()?;
        let pools = fs::read_dir(root.join("sys/fs/btrfs")).ok()?.flatten();
        let pool = pools.map(|pool| pool.path()).find(|pool| {
            let member = pool.join("devices").join(name).canonicalize();
            member.is_ok_and(|member| member == device)
        })?;
        let kept = fs::read_dir(pool.join("allocation/data")).into_iter().flatten().flatten();
        let is_profile = |path: &PathBuf| path.is_dir();
        let kept = kept.map(|entry| entry.path()).filter(is_profile);
        let name = |path: PathBuf| Some(path.file_name()?.to_string_lossy().into_owned());
        let mut profiles: Vec<_> = kept.filter_map(name).collect();
        profiles.sort();
        Some(Self { devices: linked(&pool.join("devices")), profiles })
    }

    fn words(&self) -> String {
        let kept = match &self.profiles[..] {
            [] => String::new(),
            profiles => format!(", content as {}", profiles.join(" and ")),
        };
        format!("btrfs of {} devices{kept}", self.devices.len())
    }
}

/// The devices that one is put together from, in the order of their names.
fn parts(device: &Path) -> Vec<PathBuf> {
    linked(&device.join("slaves"))
}

/// Where the links in a folder lead.
fn linked(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut devices: Vec<_> =
        entries.filter_map(|entry| entry.path().canonicalize().ok()).collect();
    devices.sort();
    devices
}

/// What a device adds to those that it is put together from, in words.
fn layer(device: &Path, name: &str, parts: &[PathBuf]) -> Option<String> {
    if let Some(level) = value(&device.join("md/level")) {
        return Some(array(device, name, &level, parts.len()));
    }
    if let Some(uuid) = value(&device.join("dm/uuid")) {
        let kind = match uuid.split('-').next() {
            Some("CRYPT") => "encrypted (dm-crypt)",
            Some("LVM") => lvm(parts),
            Some("mpath") => "several paths to one disk",
            _ => "device mapper",
        };
        let named = value(&device.join("dm/name")).unwrap_or_default();
        return Some(format!("{kind} {named}").trim_end().to_owned());
    }
    let file = value(&device.join("loop/backing_file"))?;
    Some(format!("loop device on the file {file}"))
}

/// What kind of LVM volume has these parts, by their names: those of a mirror are `vg-home_mimage_0`, and those
/// of a RAID, which may be a mirror too, `vg-home_rimage_0`.
fn lvm(parts: &[PathBuf]) -> &'static str {
    let names: Vec<_> = parts.iter().filter_map(|part| value(&part.join("dm/name"))).collect();
    let any = |infix: &str| names.iter().any(|name| name.contains(infix));
    match (any("_mimage_"), any("_rimage_")) {
        (true, _) => "LVM mirror",
        (_, true) => "LVM RAID",
        _ => "LVM volume",
    }
}

/// A mirror or another array of disks, and whether it is whole.
fn array(device: &Path, name: &str, level: &str, parts: usize) -> String {
    let kind = match level {
        "raid1" => "mirror".to_owned(),
        "raid10" => "striped mirror".to_owned(),
        other => format!("array ({other})"),
    };
    let mut words = format!("{kind} {name} of {parts} disks");
    let missing = value(&device.join("md/degraded")).filter(|missing| missing != "0");
    if let Some(missing) = missing {
        words.push_str(&format!(", {missing} missing"));
    }
    let action = value(&device.join("md/sync_action")).filter(|action| action != "idle");
    if let Some(action) = action {
        let done = value(&device.join("md/sync_completed")).unwrap_or_default();
        words.push_str(format!(", busy with {action} ({done})").trim_end_matches(" ()"));
    }
    words
}
