//! The file system: its type, how it is mounted, and what its journal keeps.

use std::path::Path;

use holdall_sys::mounts::{Mount, Mounts};
use holdall_sys::raw_file;
use serde::{Deserialize, Serialize};

use super::value;

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// Its type, such as `ext4` or `nfs4`.
    pub kind: String,
    /// What is mounted, such as `/dev/sda1` or `server:/share`.
    pub source: String,
    /// How it is mounted, separated by commas.
    pub options: String,
    /// What goes through its journal: `metadata, after its data (ordered)`, `none`, ...
    pub journal: Option<String>,
}

impl FileSystem {
    /// Reads what the mount and `/proc` below `root` tell; `device` is the device's folder in `/sys`.
    pub(super) fn read(root: &Path, mount: &Mount, device: Option<&Path>) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let kind = text(&mount.file_system);
        let mut options: Vec<String> = Vec::new();
        for option in text(&mount.flags).split(',').chain(text(&mount.options).split(',')) {
            if !option.is_empty() && !options.iter().any(|known| known == option) {
                options.push(option.to_owned());
            }
        }
        let name = device.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let journal = journal(root, &kind, name.as_deref(), &options);
        Self { kind, source: text(&mount.source), options: options.join(","), journal }
    }

    /// In words.
    pub fn words(&self) -> String {
        let journal = self.journal.as_ref().map(|journal| format!(", journal: {journal}"));
        let Self { kind, source, options, .. } = self;
        format!("{kind} on {source}{}, mounted {options}", journal.unwrap_or_default())
    }

    /// What is to be known of figures from it.
    pub(super) fn note(&self) -> Option<String> {
        match &*self.kind {
            "tmpfs" | "ramfs" => Some("This lies in memory: no disk is measured.".to_owned()),
            "overlay" => {
                Some("This is an overlay: the system does not say which disk lies below it.".to_owned())
            }
            "zfs" => Some(
                "ZFS does not tell which disks it lies on: they are not told here, and what they do is \
                 not counted."
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// What a file system makes of direct access (`O_DIRECT`) where it takes it. Some take it because
/// programs ask for it, and move the bytes through memory all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectAccess {
    /// It goes around the page cache.
    Around,
    /// It may go through a cache: that of what carries the file system, such as ZFS and programs (FUSE), or
    /// the system's, as where ext4 keeps data in its journal.
    MayCache,
    /// Its files are in memory and nowhere else.
    InMemory,
}

impl DirectAccess {
    /// By the type of the file system.
    pub fn of(kind: &str) -> Self {
        match kind {
            "tmpfs" | "ramfs" => Self::InMemory,
            "zfs" | "virtiofs" => Self::MayCache,
            kind if kind.starts_with("fuse") => Self::MayCache,
            _ => Self::Around,
        }
    }

    /// Of a file that is there; where nothing is told, a file system is taken at its word.
    pub(crate) fn of_file(file: &Path) -> Self {
        let mounts = Mounts::read().ok();
        let mount = mounts.as_ref().and_then(|mounts| mounts.of_path(file).ok().flatten());
        let kind = mount.map(|mount| String::from_utf8_lossy(&mount.file_system).into_owned());
        let by_kind = kind.map_or(Self::Around, |kind| Self::of(&kind));
        match raw_file::direct_alignment(file) {
            Ok(Some(0)) if by_kind == Self::Around => Self::MayCache,
            _ => by_kind,
        }
    }
}

/// What a journal keeps, where that is known.
fn journal(root: &Path, kind: &str, device: Option<&str>, options: &[String]) -> Option<String> {
    match kind {
        "ext4" | "ext3" => ext_journal(root, kind, device?, options),
        "ext2" | "vfat" | "exfat" => Some("none".to_owned()),
        "xfs" | "jfs" | "ntfs3" | "reiserfs" => Some("metadata".to_owned()),
        "btrfs" | "zfs" | "bcachefs" | "f2fs" => Some("none, copy on write".to_owned()),
        _ => None,
    }
}

/// ext4 tells all its options in `/proc`, and only those that are not the default in the mount table.
fn ext_journal(root: &Path, kind: &str, device: &str, options: &[String]) -> Option<String> {
    let told = value(&root.join(format!("proc/fs/{kind}/{device}/options"))).unwrap_or_default();
    let mut all = options.iter().map(String::as_str).chain(told.lines());
    let mode = all.find_map(|option| option.trim().strip_prefix("data="));
    let journals = root.join("proc/fs/jbd2");
    // The journal's inode is 8; one on another device has that device's name.
    if journals.is_dir() && !journals.join(format!("{device}-8")).exists() {
        let has_device = told.lines().chain(options.iter().map(String::as_str));
        let elsewhere = has_device.into_iter().any(|option| option.starts_with("journal_"));
        return Some(if elsewhere { "on another device" } else { "none" }.to_owned());
    }
    Some(match mode? {
        "journal" => "data and metadata (journal)".to_owned(),
        "ordered" => "metadata, after its data (ordered)".to_owned(),
        "writeback" => "metadata, whenever its data comes (writeback)".to_owned(),
        other => other.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_direct_access_and_does_not_go_around_its_cache_is_known() {
        let all =
            |kinds: &[&str]| kinds.iter().map(|kind| DirectAccess::of(kind)).collect::<Vec<_>>();
        assert_eq!(all(&["ext4", "xfs", "btrfs", "nfs4"]), [DirectAccess::Around; 4]);
        assert_eq!(all(&["zfs", "fuseblk", "fuse.sshfs"]), [DirectAccess::MayCache; 3]);
        assert_eq!(all(&["tmpfs", "ramfs"]), [DirectAccess::InMemory; 2]);
        assert_eq!(DirectAccess::of_file(Path::new("/proc/version")), DirectAccess::Around);
    }
}
