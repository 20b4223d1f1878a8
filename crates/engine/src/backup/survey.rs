//! A look at a tree on one file system: how much it is, and what a backup leaves out of it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use holdall_sys::{Dir, FileKind, Stat};

use crate::filter::exclude::LocalRules;
use crate::{EngineError, Run};

/// What a directory entry and its inode take at most on common file systems.
const ITEM_BYTES: u64 = 1024;

/// What was seen of a tree.
#[derive(Debug, Default)]
pub struct Survey {
    /// Files, directories, links, ...
    pub items: u64,
    /// Bytes of content, without holes.
    pub bytes: u64,
    /// What it takes on its disk.
    pub disk_bytes: u64,
    /// Directories on which something else is mounted.
    elsewhere: Vec<Vec<u8>>,
    /// The rules of `.holdallignore` files, outermost first.
    ignores: Vec<LocalRules>,
}

impl Survey {
    /// Looks at everything on the file system of `dir`.
    ///
    /// # Errors
    /// [`EngineError::Io`] if `dir` cannot be read, [`EngineError::Interrupted`] once `run` is to stop. What lies below and
    /// cannot be read is left to the backup to report.
    pub fn take(dir: &Path, run: &Run) -> Result<Self, EngineError> {
        let top = dir.as_os_str().as_bytes();
        let cannot = |error| EngineError::io(dir.display().to_string(), error);
        let stat = Dir::open_absolute(top).and_then(|opened| opened.stat_self()).map_err(cannot)?;
        let mut survey = Self { items: 1, ..Self::default() };
        // Paths wait, not open directories: there may be more of those than may be open at once.
        let mut waiting = vec![top.to_vec()];
        while let Some(path) = waiting.pop() {
            run.check()?;
            if let Ok(dir) = Dir::open_absolute(&path) {
                survey.look(&dir, &path, stat.device, &mut waiting);
            }
        }
        Ok(survey)
    }

    /// The room that a copy takes, and that a server takes for it, together.
    pub fn room_bytes(&self) -> u64 {
        let once = self.bytes.max(self.disk_bytes).saturating_add(self.items * ITEM_BYTES);
        once.saturating_mul(2)
    }

    /// Whether a backup that stays on one file system leaves this absolute path out.
    pub fn leaves_out(&self, path: &[u8]) -> bool {
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
        // A line that is no pattern, the backup reports.
        let rules = LocalRules::is_in(&entries).then(|| LocalRules::read(dir, path)).flatten();
        self.ignores.extend(rules.map(|(rules, _)| rules));
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
        let survey = Survey::take(&top, &Run::new()).unwrap();
        assert_eq!((survey.items, survey.bytes), (6, 19));
        assert!(survey.room_bytes() >= 2 * 19);
        let leaves_out = |path: &str| survey.leaves_out(top.join(path).as_os_str().as_bytes());
        assert!(leaves_out("a/b/two") && !leaves_out("a/one") && !leaves_out("two"));
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        assert!(Survey::take(Path::new("/no/such/folder"), &Run::new()).is_err());
    }
}
