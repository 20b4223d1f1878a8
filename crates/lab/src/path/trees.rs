//! Trees that are made to be backed up: few large files, many small ones, a mix, of text or of bytes
//! that do not compress.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{LabError, Scratch, Stop, incompressible, text};

/// Files of a folder.
const FOLDER_FILES: u64 = 100;
/// From this length on, a smaller tree has shorter files, and below it fewer; and a change is one of a
/// part of a file.
const LARGE_BYTES: u64 = 1 << 20;
/// One of so many bytes, or files, is changed.
const CHANGED_ONE_IN: u64 = 100;
/// Text is made from a piece of this length.
const PIECE_BYTES: usize = 1 << 20;

/// Which files a tree has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Four, of 16 MiB each.
    FewLarge,
    /// 2,000 of 4 KiB.
    ManySmall,
    /// From 2 KiB to 8 MiB.
    Mixed,
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::FewLarge, Self::ManySmall, Self::Mixed];

    /// As a table calls it.
    pub fn words(self) -> &'static str {
        match self {
            Self::FewLarge => "few large files",
            Self::ManySmall => "many small files",
            Self::Mixed => "mixed files",
        }
    }

    /// How many bytes the usual tree has.
    pub fn bytes(self) -> u64 {
        self.kinds().iter().map(|(bytes, files)| bytes * files).sum()
    }

    /// Lengths, and how many of each.
    fn kinds(self) -> &'static [(u64, u64)] {
        match self {
            Self::FewLarge => &[(16 << 20, 4)],
            Self::ManySmall => &[(4 << 10, 2000)],
            Self::Mixed => &[(8 << 20, 2), (1 << 20, 10), (64 << 10, 100), (2 << 10, 500)],
        }
    }
}

/// What is in the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Words, which become about a third.
    Text,
    /// What does not compress.
    Incompressible,
}

impl Content {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Text, Self::Incompressible];

    /// As a table calls it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Incompressible => "incompressible",
        }
    }
}

/// Files of one length.
#[derive(Clone, Copy)]
struct Kind {
    bytes: u64,
    files: u64,
    /// Whether they are large ones in the whole tree.
    is_large: bool,
}

/// A tree that is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tree {
    /// Which files.
    pub shape: Shape,
    /// What is in them.
    pub content: Content,
    /// How large it is beside the usual one. Below 1 large files become shorter, and small ones fewer; above
    /// it there are more of each.
    pub share: f64,
}

impl Tree {
    fn kinds(&self) -> impl Iterator<Item = Kind> {
        let share = self.share.max(0.0);
        let times = |whole: u64, share: f64| ((whole as f64 * share) as u64).max(1);
        self.shape.kinds().iter().map(move |&(bytes, files)| match bytes >= LARGE_BYTES {
            true => {
                let (bytes, files) = (times(bytes, share.min(1.0)), times(files, share.max(1.0)));
                Kind { bytes, files, is_large: true }
            }
            false => Kind { bytes, files: times(files, share), is_large: false },
        })
    }

    /// Makes it in a new folder, for which room is claimed.
    ///
    /// # Errors
    /// [`LabError::NoRoom`], [`LabError::Interrupted`], or what the system says.
    pub fn make(&self, scratch: &Scratch, folder: &Path, stop: &Stop) -> Result<(), LabError> {
        scratch.claim(self.room_bytes())?;
        let failed = |error| LabError::io("making files in", folder, error);
        fs::create_dir(folder).map_err(failed)?;
        let mut piece = self.piece();
        for (number, (path, kind)) in (0..).zip(self.paths(folder)) {
            write(&path, kind.bytes, &mut piece, number, stop).map_err(failed)?;
            stop.check()?;
        }
        File::open(folder)
            .and_then(|file| holdall_sys::raw_file::sync_file_system(&file))
            .map_err(failed)
    }

    /// Removes it, and gives its room back.
    ///
    /// # Errors
    /// What the system says.
    pub fn remove(&self, scratch: &Scratch, folder: &Path) -> Result<(), LabError> {
        holdall_sys::removal::remove_tree(folder)
            .map_err(|error| LabError::io("removing", folder, error))?;
        scratch.release(self.room_bytes());
        Ok(())
    }

    /// Changes about 1 % of it: a stretch of each large file, and all of some small ones.
    ///
    /// # Errors
    /// What the system says.
    pub fn change(&self, folder: &Path) -> Result<(), LabError> {
        let failed = |error| LabError::io("changing files in", folder, error);
        let mut piece = self.piece();
        for (number, (path, Kind { bytes, is_large, .. })) in (0_u64..).zip(self.paths(folder)) {
            if is_large {
                let length = (bytes / CHANGED_ONE_IN).min(piece.len() as u64) as usize;
                crate::disk::stamp(&mut piece, !number);
                let file = fs::OpenOptions::new().write(true).open(&path).map_err(failed)?;
                file.write_all_at(&piece[..length], bytes / 2).map_err(failed)?;
            } else if number.is_multiple_of(CHANGED_ONE_IN) {
                fs::remove_file(&path).map_err(failed)?;
                write(&path, bytes, &mut piece, !number, &Stop::default()).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// What it may take on a disk: small files take more than their bytes.
    fn room_bytes(&self) -> u64 {
        self.kinds().map(|kind| (kind.bytes + 4096) * kind.files).sum()
    }

    /// Where its files are, and of which kind. Short ones of one kind may be as long as those of another.
    fn paths(&self, folder: &Path) -> impl Iterator<Item = (PathBuf, Kind)> {
        let folder = folder.to_owned();
        self.kinds().enumerate().flat_map(move |(at, kind)| {
            let folder = folder.clone();
            (0..kind.files).map(move |number| {
                let below = format!("{at}-{}/file-{number}", number / FOLDER_FILES);
                (folder.join(below), kind)
            })
        })
    }

    fn piece(&self) -> Vec<u8> {
        match self.content {
            Content::Text => text(PIECE_BYTES, 1),
            Content::Incompressible => incompressible(PIECE_BYTES, 1),
        }
    }
}

/// Writes a new file of pieces that are like no others: what stores each content once finds nothing.
fn write(path: &Path, bytes: u64, piece: &mut [u8], number: u64, stop: &Stop) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    // Small files are different parts of the piece, or together they would compress to nothing.
    let spare = (piece.len() as u64).saturating_sub(bytes) + 1;
    let start = number.wrapping_mul(bytes) % spare;
    let part = if spare > 1 { &mut piece[start as usize..] } else { piece };
    crate::files::write_file(path, bytes, part, number, stop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = BTreeMap::new();
        for inner in fs::read_dir(folder).unwrap() {
            for file in fs::read_dir(inner.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                all.insert(path.clone(), fs::read(path).unwrap());
            }
        }
        all
    }

    fn bytes_of(tree: &Tree) -> u64 {
        tree.kinds().map(|kind| kind.bytes * kind.files).sum()
    }

    #[test]
    fn a_tree_has_its_bytes_and_about_one_in_a_hundred_changes() {
        for shape in Shape::ALL {
            let dir = tempfile::tempdir().unwrap();
            let (scratch, _) = Scratch::make(dir.path()).unwrap();
            let folder = scratch.path().join("tree");
            let tree = Tree { shape, content: Content::Incompressible, share: 0.0625 };
            let room = scratch.room_bytes();
            tree.make(&scratch, &folder, &Stop::default()).unwrap();
            let before = content(&folder);
            assert_eq!(before.values().map(|one| one.len() as u64).sum::<u64>(), bytes_of(&tree));
            tree.change(&folder).unwrap();
            let after = content(&folder);
            let changed = before.iter().filter(|(path, one)| after[*path] != **one).count();
            assert!(changed > 0 && after.len() == before.len(), "{shape:?}: {changed}");
            let bytes: usize = before
                .iter()
                .flat_map(|(path, one)| one.iter().zip(&after[path]))
                .filter(|(before, after)| before != after)
                .count();
            assert!((bytes as u64) < bytes_of(&tree) / 20, "{shape:?}: {bytes} bytes");
            tree.remove(&scratch, &folder).unwrap();
            assert_eq!(scratch.room_bytes(), room);
        }
    }

    #[test]
    fn a_tree_becomes_as_large_as_its_share_says() {
        for shape in Shape::ALL {
            for share in [0.25, 1.0, 3.0, 7.7] {
                let bytes = bytes_of(&Tree { shape, content: Content::Text, share }) as f64;
                let wanted = shape.bytes() as f64 * share;
                assert!((0.9..1.01).contains(&(bytes / wanted)), "{shape:?} {share}: {bytes}");
            }
        }
    }

    #[test]
    fn a_tree_that_is_to_end_is_not_taken_for_a_whole_one() {
        let dir = tempfile::tempdir().unwrap();
        let (scratch, _) = Scratch::make(dir.path()).unwrap();
        let tree = Tree { shape: Shape::FewLarge, content: Content::Text, share: 0.0625 };
        let wished = Stop::on(Arc::new(AtomicBool::new(true)));
        let made = tree.make(&scratch, &scratch.path().join("tree"), &wished);
        assert!(matches!(made, Err(LabError::Interrupted)));
    }

    #[test]
    fn text_compresses_and_every_file_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let (scratch, _) = Scratch::make(dir.path()).unwrap();
        let folder = scratch.path().join("tree");
        let tree = Tree { shape: Shape::ManySmall, content: Content::Text, share: 0.05 };
        tree.make(&scratch, &folder, &Stop::default()).unwrap();
        let all = content(&folder);
        let mut different: Vec<_> = all.values().collect();
        different.sort();
        different.dedup();
        assert_eq!((all.len(), different.len()), (100, 100));
        let letters = all.values().flatten().filter(|byte| byte.is_ascii_lowercase()).count();
        assert!(letters as u64 > bytes_of(&tree) / 2, "{letters}");
    }
}
