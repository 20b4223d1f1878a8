//! A look at the tree that is to be tried: how much it is, and what a backup leaves out of it.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Context, Result};
use holdall_engine::Patterns;
use holdall_sys::{Dir, FileKind, Name, Stat};

use crate::terminal::interrupt::Interrupt;

/// The longest `.holdallignore` that is read.
const IGNORE_FILE_MAX_BYTES: u64 = 1 << 20;
/// What a directory entry and its inode take at most on common file systems.
const ITEM_BYTES: u64 = 1024;

/// What was seen.
#[derive(Default)]
pub(crate) struct Survey {
    /// Files, directories, links, ...
    pub(crate) items: u64,
    /// Bytes of content, without holes.
    pub(crate) bytes: u64,
    /// What it takes on its disk.
    pub(crate) disk_bytes: u64,
    /// Directories on which something else is mounted.
    elsewhere: Vec<Vec<u8>>,
    /// The rules of `.holdallignore` files, outermost first.
    ignores: Vec<Patterns>,
}

impl Survey {
    /// Looks at everything on the file system of `dir`.
    ///
    /// # Errors
    /// If `dir` cannot be read, or a signal comes; what lies below and cannot be read is left to
    /// the backup to tell.
    pub(crate) fn take(dir: &Path, interrupt: &Interrupt) -> Result<Self> {
        let top = dir.as_os_str().as_bytes();
        let opened = Dir::open_absolute(top).with_context(|| format!("{}", dir.display()))?;
        let stat = opened.stat_self()?;
        let mut survey = Self { items: 1, ..Self::default() };
        // Paths wait, not open directories: there may be more of those than may be open at once.
        let mut waiting = vec![top.to_vec()];
        while let Some(path) = waiting.pop() {
            interrupt.refuse_if_happened()?;
            if let Ok(dir) = Dir::open_absolute(&path) {
                survey.look(&dir, &path, stat.device, &mut waiting);
            }
        }
        Ok(survey)
    }

    /// The room that a copy takes, and that a server takes for it, together.
    pub(crate) fn room_bytes(&self) -> u64 {
        let once = self.bytes.max(self.disk_bytes).saturating_add(self.items * ITEM_BYTES);
        once.saturating_mul(2)
    }

    /// Whether a backup that stays on one file system leaves this absolute path out.
    pub(crate) fn leaves_out(&self, path: &[u8]) -> bool {
        let below = |point: &Vec<u8>| {
            path.strip_prefix(&point[..]).is_some_and(|rest| rest.starts_with(b"/"))
        };
        self.elsewhere.iter().any(below) || self.ignored(path)
    }

    fn ignored(&self, path: &[u8]) -> bool {
        if self.ignores.is_empty() {
            return false;
        }
        let is_dir = Path::new(OsStr::from_bytes(path)).symlink_metadata();
        let is_dir = is_dir.is_ok_and(|metadata| metadata.is_dir());
        let mut says = self.ignores.iter().rev().map(|rules| rules.says_with_parents(path, is_dir));
        says.find_map(|says| says).unwrap_or(false)
    }

    fn look(&mut self, dir: &Dir, path: &[u8], device: u64, waiting: &mut Vec<Vec<u8>>) {
        let Ok(entries) = dir.entries() else { return };
        self.ignores.extend(ignore_rules(dir, path));
        for entry in entries.iter() {
            let Ok(stat) = dir.stat(entry.name()) else { continue };
            self.count(&stat);
            if stat.kind != FileKind::Dir {
                continue;
            }
            let slash: &[u8] = if path == b"/" { b"" } else { b"/" };
            let below = [path, slash, entry.name().as_bytes()].concat();
            if stat.device != device {
                self.elsewhere.push(below);
            } else {
                waiting.push(below);
            }
        }
    }

    fn count(&mut self, stat: &Stat) {
        let on_disk = stat.blocks.saturating_mul(512);
        self.items += 1;
        self.disk_bytes = self.disk_bytes.saturating_add(on_disk);
        if stat.kind == FileKind::File {
            // A small file may lie in its inode and take no blocks at all.
            let content = if stat.size <= 4096 { stat.size } else { stat.size.min(on_disk) };
            self.bytes = self.bytes.saturating_add(content);
        }
    }
}

fn ignore_rules(dir: &Dir, path: &[u8]) -> Option<Patterns> {
    let (file, _) = dir.open_file(Name::new(b".holdallignore").ok()?).ok()?;
    let mut text = Vec::new();
    file.take(IGNORE_FILE_MAX_BYTES).read_to_end(&mut text).ok()?;
    let mut rules = Patterns::below(path);
    // A line that is no pattern is told by the backup.
    let _ = rules.add_file(&text, false);
    Some(rules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn everything_is_counted_and_ignored_paths_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("a/b")).unwrap();
        fs::write(top.join("a/one"), [1; 10]).unwrap();
        fs::write(top.join("a/b/two"), [2; 5]).unwrap();
        fs::write(top.join("a/.holdallignore"), "two\n").unwrap();
        let survey = Survey::take(&top, &Interrupt::default()).unwrap();
        assert_eq!((survey.items, survey.bytes), (6, 19));
        assert!(survey.room_bytes() >= 2 * 19);
        let leaves_out = |path: &str| survey.leaves_out(top.join(path).as_os_str().as_bytes());
        assert!(leaves_out("a/b/two") && !leaves_out("a/one") && !leaves_out("two"));
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        assert!(Survey::take(Path::new("/no/such/folder"), &Interrupt::default()).is_err());
    }
}
