//! Which part of a source is measured: all of it, or as much as fits into the limits.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use holdall_sys::FileKind;

use super::walk::{Item, Walked};
use crate::child_path::child;

/// More starting points than these are too many for one backup.
const MOST_STARTS: usize = 1000;
/// Files of one batch, which one thread reads.
const BATCH_FILES: usize = 64;

/// How much is measured at most.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Files, directories and everything else.
    pub items: u64,
    /// Bytes of files.
    pub bytes: u64,
}

/// Files of one folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) folder: Vec<u8>,
    /// Names and lengths.
    pub(super) files: Vec<(Box<[u8]>, u64)>,
}

/// The part of a source that all steps look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The files and directories that make it up, each with everything below it.
    pub starts: Vec<PathBuf>,
    /// Items of all starts.
    pub items: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Whether it is the whole source.
    pub is_whole: bool,
    pub(super) batches: Vec<Batch>,
}

/// What lies in a directory with everything below it; `None` of one that was not seen as a whole.
type Total = Option<(u64, u64)>;

struct Picking<'a> {
    walked: &'a Walked,
    left: Limits,
    starts: Vec<Vec<u8>>,
}

impl Sample {
    /// The whole of what was walked through if it fits into `limits`, else whatever fits, in the order
    /// of names, directories as a whole where they can be.
    pub fn of(walked: &Walked, limits: Limits) -> Self {
        let mut picking = Picking { walked, left: limits, starts: Vec::new() };
        match total(walked, &walked.top) {
            Some((items, bytes)) if items <= limits.items && bytes <= limits.bytes => {
                picking.starts.push(walked.top.clone());
            }
            _ => picking.pick(&walked.top.clone()),
        }
        let is_whole = picking.starts.first() == Some(&walked.top);
        let mut sample = Self {
            starts: picking.starts.iter().map(|path| path_of(path)).collect(),
            items: 0,
            bytes: 0,
            is_whole,
            batches: Vec::new(),
        };
        picking.starts.iter().for_each(|start| sample.add(walked, start));
        sample
    }

    /// How many regular files it has.
    pub fn files(&self) -> u64 {
        self.batches.iter().map(|batch| batch.files.len() as u64).sum()
    }

    fn add(&mut self, walked: &Walked, start: &[u8]) {
        if let Some(items) = walked.folders.get(start) {
            self.items += 1;
            self.add_folder(walked, start, items);
            return;
        }
        let Some((folder, name)) = parted(start) else { return };
        let siblings = walked.folders.get(folder).map(Vec::as_slice).unwrap_or_default();
        if let Some(item) = siblings.iter().find(|item| &*item.name == name) {
            self.add_items(folder, std::slice::from_ref(item));
        }
    }

    fn add_folder(&mut self, walked: &Walked, folder: &[u8], items: &[Item]) {
        self.add_items(folder, items);
        for item in items.iter().filter(|item| item.kind == FileKind::Dir) {
            let below = child(folder, &item.name);
            if let Some(items) = walked.folders.get(&below) {
                self.add_folder(walked, &below, items);
            }
        }
    }

    fn add_items(&mut self, folder: &[u8], items: &[Item]) {
        self.items += items.len() as u64;
        let files = items.iter().filter(|item| item.kind == FileKind::File);
        let files: Vec<_> = files.map(|item| (item.name.clone(), item.bytes)).collect();
        self.bytes = files.iter().map(|(_, bytes)| *bytes).fold(self.bytes, u64::saturating_add);
        let batches = files.chunks(BATCH_FILES);
        self.batches
            .extend(batches.map(|files| Batch { folder: folder.to_vec(), files: files.to_vec() }));
    }
}

impl Picking<'_> {
    fn pick(&mut self, folder: &[u8]) {
        let items = self.walked.folders.get(folder).map(Vec::as_slice).unwrap_or_default();
        for item in items {
            if self.starts.len() >= MOST_STARTS || self.left.items == 0 {
                return;
            }
            let path = child(folder, &item.name);
            let total = match item.kind {
                FileKind::Dir => total(self.walked, &path),
                _ => Some((1, item.bytes)),
            };
            match total {
                Some((items, bytes)) if items <= self.left.items && bytes <= self.left.bytes => {
                    self.left.items -= items;
                    self.left.bytes -= bytes;
                    self.starts.push(path);
                }
                _ if item.kind == FileKind::Dir => self.pick(&path),
                _ => {}
            }
        }
    }
}

fn total(walked: &Walked, folder: &[u8]) -> Total {
    let items = walked.folders.get(folder)?;
    let (mut count, mut bytes) = (1 + items.len() as u64, 0);
    for item in items {
        bytes += item.bytes;
        if item.kind == FileKind::Dir {
            let (below, bytes_below) = total(walked, &child(folder, &item.name))?;
            // The directory itself was counted as an item.
            count += below - 1;
            bytes += bytes_below;
        }
    }
    Some((count, bytes))
}

fn parted(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let slash = path.iter().rposition(|&byte| byte == b'/')?;
    Some((if slash == 0 { b"/" } else { &path[..slash] }, &path[slash + 1..]))
}

/// A path of the system's bytes.
pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    Path::new(OsStr::from_bytes(bytes)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::walk::walk;
    use super::*;
    use crate::Stop;
    use std::fs;
    use std::time::Duration;

    fn walked() -> (tempfile::TempDir, Walked) {
        let dir = tempfile::tempdir().unwrap();
        for (file, bytes) in [("a/1", 10), ("a/2", 10), ("b/deep/3", 100), ("b/4", 5), ("c", 50)] {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![0; bytes]).unwrap();
        }
        let (walked, _) = walk(dir.path(), Duration::from_secs(60), &Stop::default()).unwrap();
        (dir, walked)
    }

    #[test]
    fn what_fits_is_taken_whole() {
        let (dir, walked) = walked();
        let sample = Sample::of(&walked, Limits { items: 9, bytes: 175 });
        assert!(sample.is_whole);
        assert_eq!(sample.starts, [dir.path().canonicalize().unwrap()]);
        assert_eq!((sample.items, sample.bytes, sample.files()), (9, 175, 5));
    }

    #[test]
    fn what_does_not_fit_is_taken_in_parts_and_never_more_than_the_limits() {
        let (dir, walked) = walked();
        let top = dir.path().canonicalize().unwrap();
        let sample = Sample::of(&walked, Limits { items: 8, bytes: 80 });
        let names = ["a", "b/4", "c"].map(|name| top.join(name));
        assert_eq!((&sample.starts[..], sample.is_whole), (&names[..], false));
        assert_eq!((sample.items, sample.bytes, sample.files()), (5, 75, 4));
        let sample = Sample::of(&walked, Limits { items: 2, bytes: 80 });
        assert_eq!((sample.items, sample.files()), (2, 2), "{sample:?}");
        assert_eq!(Sample::of(&walked, Limits { items: 9, bytes: 3 }).files(), 0);
    }
}
