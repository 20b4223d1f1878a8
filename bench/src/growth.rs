//! How time and memory of holdall grow with the number of files.

use std::path::Path;

use anyhow::{Result, ensure};
use clap::ValueEnum;

use crate::dataset::tiny_files;
use crate::measure::Measure;
use crate::record::Row;
use crate::report::GROWTH_PREFIX;
use crate::session::Bench;
use crate::workdir::Room;

/// A number of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Size {
    /// 10,000
    #[value(name = "10k")]
    TenThousand,
    /// 100,000
    #[value(name = "100k")]
    HundredThousand,
    /// 1,000,000: needs about 6 GB
    #[value(name = "1M")]
    Million,
    /// 5,000,000: needs about 28 GB
    #[value(name = "5M")]
    FiveMillion,
}

/// What is measured at every size.
pub(crate) const MEASURES: [Measure; 2] = [Measure::First, Measure::Unchanged];
/// A tiny file takes a block and an inode, a folder of 50 as much, and the repository its content.
const BYTES_PER_FILE: u64 = 5_000;

impl Size {
    /// As it is typed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TenThousand => "10k",
            Self::HundredThousand => "100k",
            Self::Million => "1M",
            Self::FiveMillion => "5M",
        }
    }

    fn files(self) -> u64 {
        match self {
            Self::TenThousand => 10_000,
            Self::HundredThousand => 100_000,
            Self::Million => 1_000_000,
            Self::FiveMillion => 5_000_000,
        }
    }

    /// What this size takes.
    pub(crate) fn room(self) -> Room {
        let files = self.files().max(100_000);
        Room { bytes: files * BYTES_PER_FILE, files: files / 10 * 12 }
    }
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
    println!(
        "takes up to {:.1} of {:.1} GB that are free in {folder:?}",
        room.bytes as f64 / 1e9,
        free_bytes as f64 / 1e9,
    );
    Ok(())
}

/// Measures every size up to `up_to` and adds the rows.
///
/// # Errors
///
/// If one cannot be measured; those before it are added.
pub(crate) fn measure(bench: &Bench<'_>, up_to: Size, rows: &mut Vec<Row>) -> Result<()> {
    for size in Size::value_variants().iter().filter(|size| **size <= up_to) {
        let name = format!("{GROWTH_PREFIX}{}", size.name());
        bench.measure(&name, &tiny_files(size.files() as usize), rows)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_typed_as_they_are_shown_and_have_room() {
        for size in Size::value_variants() {
            assert_eq!(Size::from_str(size.name(), false), Ok(*size));
            // A block each at least, and an inode for each folder of 50 too.
            assert!(size.room().bytes > size.files() * 4096);
            assert!(size.room().files >= size.files() / 50 * 51);
        }
        assert!(Size::from_str("50M", false).is_err());
    }

    #[test]
    fn a_place_that_is_too_small_is_told_before() {
        let dir = tempfile::tempdir().unwrap();
        ensure_room(dir.path(), Room { bytes: 1, files: 1 }).unwrap();
        let error = ensure_room(dir.path(), Room { bytes: u64::MAX / 2, files: 1 }).unwrap_err();
        assert!(error.to_string().contains("GB free"), "{error}");
    }
}
