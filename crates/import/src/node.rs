//! A node of restic's tree in the words of an entry.

use std::os::unix::ffi::OsStrExt;

use holdall_engine::{Content, Entry, EntryKind, Time};
use rustic_core::repofile::{Metadata, Node, NodeType};

/// Permissions, and where Go has what is above them.
const GO_PERMISSIONS: u32 = 0o777;
const GO_SETUID: u32 = 1 << 23;
const GO_SETGID: u32 = 1 << 22;
const GO_STICKY: u32 = 1 << 20;

/// The entry of a node: of a file, without its content.
pub(crate) fn entry(node: &Node) -> Entry {
    let meta = &node.meta;
    let kind = kind(&node.node_type);
    let mut entry = Entry {
        mode: mode(meta.mode.unwrap_or(0)),
        uid: meta.uid.unwrap_or(0),
        gid: meta.gid.unwrap_or(0),
        user: name(meta.user.as_deref()),
        group: name(meta.group.as_deref()),
        mtime: time(meta.mtime),
        ctime: time(meta.ctime),
        inode: meta.inode,
        ..Entry::empty(kind)
    };
    match kind {
        EntryKind::File => entry.size = meta.size,
        EntryKind::Symlink => {
            let target = node.node_type.to_link().as_os_str().as_bytes();
            entry.size = target.len() as u64;
            entry.content = Content::Inline(target.to_vec());
        }
        _ => {}
    }
    entry
}

/// Names and values of a node's extended attributes.
pub(crate) fn attributes(meta: &Metadata) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pairs = meta.extended_attributes.iter();
    pairs
        .map(|one| (one.name.clone().into_bytes(), one.value.clone().unwrap_or_default()))
        .collect()
}

/// Device and inode of what has more than one name.
pub(crate) fn linked(node: &Node) -> Option<(u64, u64)> {
    let meta = &node.meta;
    let is_linked = meta.links > 1 && meta.inode != 0 && !node.is_dir();
    is_linked.then_some((meta.device_id, meta.inode))
}

fn kind(node: &NodeType) -> EntryKind {
    let numbers = |device: u64| (rustix::fs::major(device), rustix::fs::minor(device));
    match node {
        NodeType::File => EntryKind::File,
        NodeType::Dir => EntryKind::Directory,
        NodeType::Symlink { .. } => EntryKind::Symlink,
        NodeType::Fifo => EntryKind::Fifo,
        NodeType::Socket => EntryKind::Socket,
        NodeType::Dev { device } => {
            let (major, minor) = numbers(*device);
            EntryKind::BlockDevice { major, minor }
        }
        NodeType::Chardev { device } => {
            let (major, minor) = numbers(*device);
            EntryKind::CharDevice { major, minor }
        }
    }
}

/// The mode that restic keeps is one of the language that it is written in.
fn mode(go: u32) -> u32 {
    let above = [(GO_SETUID, 0o4000), (GO_SETGID, 0o2000), (GO_STICKY, 0o1000)];
    let above = above.into_iter().filter(|(bit, _)| go & bit != 0);
    above.fold(go & GO_PERMISSIONS, |mode, (_, bit)| mode | bit)
}

fn name(name: Option<&str>) -> std::sync::Arc<[u8]> {
    name.unwrap_or_default().as_bytes().into()
}

fn time(time: Option<rustic_core::jiff::Timestamp>) -> Time {
    let Some(time) = time else { return Time::default() };
    let nanos = time.as_nanosecond();
    let secs = nanos.div_euclid(1_000_000_000);
    Time {
        secs: i64::try_from(secs).unwrap_or_default(),
        nanos: u32::try_from(nanos.rem_euclid(1_000_000_000)).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_above_permissions_are_where_the_system_has_them() {
        assert_eq!(mode(0o755), 0o755);
        assert_eq!(mode(1 << 31 | GO_STICKY | 0o777), 0o1777);
        assert_eq!(mode(GO_SETUID | GO_SETGID | 0o750), 0o6750);
    }

    #[test]
    fn a_time_before_1970_is_rounded_down() {
        let before = rustic_core::jiff::Timestamp::new(-1, -5).unwrap();
        assert_eq!(time(Some(before)), Time { secs: -2, nanos: 999_999_995 });
    }
}
