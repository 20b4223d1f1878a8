//! Disks that nothing uses, and whose content is in use by another name: another loop device on the same file, the device
//! below a loop device, another path to the same disk.

use super::{Reason, of_disk};
use crate::computer::{BlockDevice, Computer};

/// Why a disk is refused for its content.
pub(super) fn reasons(computer: &Computer, disk: &BlockDevice) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for by in computer.same_images(disk) {
        reasons.extend(of_disk(computer, by));
        reasons.push(Reason::SameFile { by: by.name.clone() });
    }
    for other in computer.other_paths(disk) {
        let of_other = of_disk(computer, other);
        if !of_other.is_empty() {
            reasons.extend(of_other);
            reasons.push(Reason::SameDisk { other: other.name.clone() });
        }
    }
    if disk.backed_by.is_some() {
        let path = disk.backing_file.clone().unwrap_or_default();
        reasons.push(Reason::OnDevice { path });
    }
    let used = computer.used_files.iter().filter(|used| Some(used.file) == disk.image);
    reasons.extend(used.map(|used| match used.point.clone() {
        Some(point) => Reason::FileIsMounted { point },
        None => Reason::FileIsSwap,
    }));
    reasons
}
