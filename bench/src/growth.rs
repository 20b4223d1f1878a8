//! How time and memory of holdall grow with the number of files.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::dataset::tiny_files;
use crate::measure::Measure;
use crate::record::Row;
use crate::report::GROWTH_PREFIX;
use crate::session::Bench;
use crate::workdir::Room;

const SIZES: [u64; 4] = [10_000, 100_000, 1_000_000, 5_000_000];
/// What is measured at every size.
pub(crate) const MEASURES: [Measure; 2] = [Measure::First, Measure::Unchanged];
/// A tiny file takes a block and an inode, a folder of 50 as much, and the repository its content.
const BYTES_PER_FILE: u64 = 5_000;

/// The sizes that are measured.
pub(crate) fn sizes(up_to: u64) -> Vec<u64> {
    SIZES.into_iter().filter(|files| *files <= up_to).collect()
}

/// What the largest size takes.
pub(crate) fn room(up_to: u64) -> Room {
    let files = sizes(up_to).into_iter().max().unwrap_or(0).max(1_000_000);
    Room { bytes: files * BYTES_PER_FILE, files: files / 10 * 12 }
}

/// Whether `folder` has as much room, before anything is written.
///
/// # Errors
///
/// If it does not, with how much it lacks.
pub(crate) fn ensure_room(folder: &Path, room: Room) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let space = rustix::fs::statvfs(folder)?;
    let free_bytes = space.f_bavail * space.f_frsize;
    ensure!(
        // A loop mount leaves a tenth of what is free alone.
        free_bytes / 10 * 9 >= room.bytes,
        "{folder:?} has {:.1} GB free, and this needs {:.1} GB: lower --up-to, or --work elsewhere",
        free_bytes as f64 / 1e9,
        room.bytes as f64 / 9e8,
    );
    Ok(())
}

/// Measures every size up to `up_to` and adds the rows.
///
/// # Errors
///
/// If no size is that small, or one cannot be measured.
pub(crate) fn measure(bench: &Bench<'_>, up_to: u64, rows: &mut Vec<Row>) -> Result<()> {
    ensure!(!sizes(up_to).is_empty(), "the smallest size is {} files", SIZES[0]);
    for files in sizes(up_to) {
        let name = format!("{GROWTH_PREFIX}{files}");
        bench.measure(&name, &tiny_files(files as usize), rows)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_end_where_they_are_told_to() {
        assert_eq!(sizes(1_000_000), [10_000, 100_000, 1_000_000]);
        assert_eq!(sizes(4_999_999).len(), 3);
        assert_eq!(sizes(5_000_000).len(), 4);
        assert!(room(5_000_000).files >= 5_100_000 && room(5_000_000).bytes > 20_000_000_000);
    }

    #[test]
    fn a_place_that_is_too_small_is_told_before() {
        let dir = tempfile::tempdir().unwrap();
        ensure_room(dir.path(), Room { bytes: 1, files: 1 }).unwrap();
        let error = ensure_room(dir.path(), Room { bytes: u64::MAX / 2, files: 1 }).unwrap_err();
        assert!(error.to_string().contains("GB free"), "{error}");
    }
}
