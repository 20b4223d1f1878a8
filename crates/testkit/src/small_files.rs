//! Very many small files, quickly: what a backup that pays per file is slowest at.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use holdall_sys::{Name, TargetDir};

use crate::Random;

/// How many files, and of what size.
#[derive(Debug, Clone, Copy)]
pub struct SmallFiles {
    /// How many files in all.
    pub files: usize,
    /// How many directories they are spread over evenly, all in one parent.
    pub dirs: usize,
    /// The median size in bytes; sizes reach from an eighth to eight times of it.
    pub median_bytes: u64,
    /// Where contents and sizes come from.
    pub seed: u64,
}

/// Makes the files in `dir`, which must exist, and returns how many bytes they hold.
///
/// Contents do not compress and no two are alike.
///
/// # Errors
///
/// What the file system says; what was made stays.
pub fn small_files(dir: &Path, wanted: &SmallFiles) -> io::Result<u64> {
    let root = TargetDir::open_root(dir)?;
    let mut random = Random::new(wanted.seed);
    let dirs = wanted.dirs.max(1);
    let mut total_bytes = 0;
    for number in 0..dirs {
        let name = format!("dir-{number:06}");
        let here = root.create_dir(Name::new(name.as_bytes())?, 0o755)?;
        let files = (wanted.files * (number + 1)) / dirs - (wanted.files * number) / dirs;
        total_bytes += fill(&here, files, wanted.median_bytes, &mut random)?;
    }
    Ok(total_bytes)
}

fn fill(dir: &TargetDir, files: usize, median: u64, random: &mut Random) -> io::Result<u64> {
    let mut total_bytes = 0;
    for number in 0..files {
        let content = random_small(median, random);
        let name = format!("file-{number:06}.dat");
        dir.create_file(Name::new(name.as_bytes())?, 0o600)?.write_all_at(&content, 0)?;
        total_bytes += content.len() as u64;
    }
    Ok(total_bytes)
}

/// Half of the sizes lie below the median and half above, evenly over the powers of two.
fn random_small(median: u64, random: &mut Random) -> Vec<u8> {
    let factor = 2_f64.powf(random.below(6_001) as f64 / 1_000.0 - 3.0);
    random.bytes((median as f64 * factor) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn all_files_are_made_and_their_median_is_near_what_was_asked() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let wanted = SmallFiles { files: 301, dirs: 7, median_bytes: 1_000, seed: 3 };
        let total_bytes = small_files(folder.path(), &wanted).expect("room");
        let root = holdall_sys::Dir::open_absolute(folder.path().as_os_str().as_bytes());
        let root = root.expect("it is there");
        let mut sizes = Vec::new();
        for entry in root.entries().expect("readable").iter() {
            let dir = root.open_child(entry.name()).expect("a directory");
            let listing = dir.entries().expect("readable");
            let stats = listing.iter().map(|file| dir.stat(file.name()).expect("there").size);
            sizes.extend(stats);
        }
        sizes.sort_unstable();
        assert_eq!(sizes.len(), 301);
        assert_eq!(sizes.iter().sum::<u64>(), total_bytes);
        assert!((500..2_000).contains(&sizes[150]), "the median is {}", sizes[150]);
    }
}
