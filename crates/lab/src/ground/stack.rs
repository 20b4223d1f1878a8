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
    /// Adds what `device`, a folder of `/sys`, consists of.
    pub(super) fn go_down(&mut self, device: &Path, depth: usize) {
        let whole = if device.join("partition").exists() { device.parent() } else { Some(device) };
        let Some(whole) = whole.filter(|_| depth < MAX_DEPTH) else { return };
        let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let parts = parts(whole);
        if let Some(layer) = layer(whole, &name, parts.len()) {
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

/// The devices that one is put together from, in the order of their names.
fn parts(device: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(device.join("slaves")).into_iter().flatten().flatten();
    let mut parts: Vec<_> = entries.filter_map(|entry| entry.path().canonicalize().ok()).collect();
    parts.sort();
    parts
}

/// What a device adds to those that it is put together from, in words.
fn layer(device: &Path, name: &str, parts: usize) -> Option<String> {
    if let Some(level) = value(&device.join("md/level")) {
        return Some(array(device, name, &level, parts));
    }
    if let Some(uuid) = value(&device.join("dm/uuid")) {
        let kind = match uuid.split('-').next() {
            Some("CRYPT") => "encrypted (dm-crypt)",
            Some("LVM") => "LVM volume",
            Some("mpath") => "several paths to one disk",
            _ => "device mapper",
        };
        let named = value(&device.join("dm/name")).unwrap_or_default();
        return Some(format!("{kind} {named}").trim_end().to_owned());
    }
    let file = value(&device.join("loop/backing_file"))?;
    Some(format!("loop device on the file {file}"))
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
