//! A directory of the tree while it is filled: every entry gets a time of its own, and the
//! directory gets its own last, when nothing changes it any more.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use holdall_sys::{DeviceNumber, FileKind, Name, TargetDir, Timestamp, metadata};

use crate::Random;

/// A directory that is being filled.
pub(super) struct Place {
    dir: TargetDir,
    made: u32,
}

impl Place {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { dir: TargetDir::open_root(path)?, made: 0 })
    }

    pub(super) fn dir(&self) -> &TargetDir {
        &self.dir
    }

    /// Makes a directory here; the caller fills it and then calls [`Place::finish`], or drops it.
    pub(super) fn sub(&mut self, name: &[u8]) -> io::Result<Self> {
        self.made += 1;
        let dir = self.dir.create_dir(Name::new(name)?, 0o755)?;
        metadata::set_mode(&dir, 0o755)?;
        Ok(Self { dir, made: self.made.wrapping_mul(1_000) })
    }

    /// Makes a file with that content and a time of its own.
    pub(super) fn file(&mut self, name: &[u8], content: &[u8]) -> io::Result<File> {
        let file = self.dir.create_file(Name::new(name)?, 0o600)?;
        file.write_all_at(content, 0)?;
        metadata::set_mode(&file, 0o644)?;
        metadata::set_mtime(&file, self.next_time())?;
        Ok(file)
    }

    /// Makes a file whose content differs from that of others and does not compress.
    pub(super) fn random_file(&mut self, name: &[u8], len_bytes: usize) -> io::Result<File> {
        let content = Random::new(u64::from(self.made) << 32 | len_bytes as u64).bytes(len_bytes);
        self.file(name, &content)
    }

    pub(super) fn symlink(&mut self, name: &[u8], target: &[u8]) -> io::Result<()> {
        let name = Name::new(name)?;
        self.dir.create_symlink(target, name)?;
        let time = self.next_time();
        metadata::set_mtime_at(&self.dir, name, time)
    }

    pub(super) fn special(
        &mut self,
        name: &[u8],
        kind: FileKind,
        rdev: DeviceNumber,
    ) -> io::Result<()> {
        let name = Name::new(name)?;
        self.dir.create_special(name, kind, rdev, 0o600)?;
        let time = self.next_time();
        metadata::set_mtime_at(&self.dir, name, time)
    }

    pub(super) fn link(&self, existing: &[u8], to: &Self, name: &[u8]) -> io::Result<()> {
        to.dir.link_from(&self.dir, Name::new(existing)?, Name::new(name)?)
    }

    /// A time that no other entry of this directory has, with nanoseconds.
    pub(super) fn next_time(&mut self) -> Timestamp {
        self.made = self.made.wrapping_add(1);
        Timestamp {
            secs: 1_000_000_000 + i64::from(self.made) * 86_399,
            nanos: self.made.wrapping_mul(7_919).wrapping_add(123_456_789) % 1_000_000_000,
        }
    }

    /// Gives the directory its time, after the last change in it.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let time = self.next_time();
        metadata::set_mtime(&self.dir, time)
    }
}
