//! Where snapshots of a file system are kept while runs read them: a place of holdall's own, which no run backs up.

use std::io;

use holdall_sys::{Dir, FileKind, Stat, btrfs};

/// The subvolume with all snapshots that are read, at the top of its file system.
pub(crate) const ALL: &str = ".holdall-snapshots";

/// Whether what is called `name` in a directory is where snapshots are kept, or its place in a snapshot of that directory.
pub(crate) fn is_kept_at(above: &Dir, name: &[u8], stat: &Stat) -> bool {
    let is_it = || {
        let around = above.stat_self()?;
        if !btrfs::is_subvolume(&around) || around.mount_id != stat.mount_id {
            return Ok(false);
        }
        let is_in_top = btrfs::is_in_top_subvolume(above)?;
        let is_kept = btrfs::is_subvolume(stat) && stat.uid == 0 && is_in_top;
        Ok::<_, io::Error>(btrfs::is_place_of_subvolume(stat) || is_kept)
    };
    name == ALL.as_bytes() && stat.kind == FileKind::Dir && is_it().unwrap_or(false)
}
