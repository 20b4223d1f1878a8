//! Somebody who works in folders in every way that a file system allows, one step after the other, as a seed says.
//!
//! Files stay open over many steps, and are written through mappings by a process of its own, as no program in safe Rust can. Files
//! get several names now and then, which lose them again soon, since much is harder to tell of such files.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::fs::{
    AtFlags, CWD, RenameFlags, Timespec, Timestamps, XattrFlags, renameat_with, setxattr, utimensat,
};

use crate::Random;

/// Above it, more is removed than made.
const ENTRIES: usize = 120;
/// Files that stay open, and those that stay mapped.
const OPEN: usize = 6;
/// Writes the first byte of files through mappings. Their descriptors are closed once they are mapped.
const MAPPER: &str = "\
import mmap, os, sys
maps = []
for line in sys.stdin:
    verb, rest = line.rstrip('\\n').split(' ', 1)
    if verb == 'map':
        file = os.open(rest, os.O_RDWR)
        maps.append(mmap.mmap(file, 1))
        os.close(file)
    elif verb == 'write' and maps:
        maps[int(rest) % len(maps)][0:1] = bytes([int(rest) % 256])
    elif verb == 'unmap' and maps:
        maps.pop(0).close()
    print('', flush=True)
";

/// Works in some folders.
#[derive(Debug)]
pub struct Disturber {
    random: Random,
    folders: Vec<PathBuf>,
    made: u64,
    open: VecDeque<File>,
    mapper: Child,
    orders: ChildStdin,
    done: BufReader<ChildStdout>,
}

impl Disturber {
    /// One that works in these folders, which have to be there, and most in the first one.
    ///
    /// # Errors
    ///
    /// If `python3` cannot be started.
    pub fn new(folders: Vec<PathBuf>, seed: u64) -> io::Result<Self> {
        let mut command = Command::new("python3");
        let command = command.args(["-c", MAPPER]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut mapper = command.spawn()?;
        let (Some(orders), Some(done)) = (mapper.stdin.take(), mapper.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let random = Random::new(seed);
        let (open, done) = (VecDeque::new(), BufReader::new(done));
        Ok(Self { random, folders, made: 0, open, mapper, orders, done })
    }

    /// Does one thing, and says what it was.
    ///
    /// # Errors
    ///
    /// What the file system says.
    pub fn step(&mut self) -> io::Result<String> {
        let all = self.all()?;
        let (folders, files): (Vec<_>, Vec<_>) = all.iter().partition(|(_, about)| about.is_dir());
        let linked = files.iter().find(|(_, about)| about.is_file() && about.nlink() > 1);
        if let Some((path, _)) = linked.filter(|_| self.random.one_in(12)) {
            fs::remove_file(path)?;
            return Ok(format!("unlink {} of several names", path.display()));
        }
        let plain: Vec<_> = files.iter().filter(|(_, about)| about.is_file()).collect();
        let Some(folder) = self.pick(&folders).map(|(path, _)| path.clone()) else {
            return self.make(self.folders[0].clone());
        };
        let file = self.pick(&plain).map(|(path, _)| path.clone());
        let any = self.pick(&all).map(|(path, _)| path.clone());
        if all.len() > ENTRIES && self.random.one_in(3) {
            return any.map_or_else(|| Ok(String::new()), |path| remove(&path));
        }
        match (self.random.below(20), file, any) {
            (0..6, None, _) | (_, _, None) | (0..5, _, _) => self.make(folder),
            (5..10, Some(file), _) => self.write(&file),
            (10..12, _, Some(any)) => self.rename(&any, &folder, &all),
            (12..15, _, Some(any)) => self.touch(&any),
            (15, Some(file), _) => self.keep_open(&file),
            (16, _, _) => self.write_open(),
            (17, Some(file), _) => self.map(&file),
            (18, Some(file), _) => self.link(&file, &folder),
            (_, _, Some(any)) if self.random.one_in(3) => remove(&any),
            (_, _, Some(any)) => self.touch(&any),
        }
    }

    /// A name that was not used before, or one that often was.
    fn name(&mut self) -> String {
        const OFTEN: u64 = 30;
        self.made += 1;
        match self.random.one_in(2) {
            true => format!("new{}", self.made),
            false => format!("old{}", self.random.below(OFTEN)),
        }
    }

    fn make(&mut self, folder: PathBuf) -> io::Result<String> {
        let path = folder.join(self.name());
        if path.symlink_metadata().is_ok() {
            return Ok(format!("{} is there", path.display()));
        }
        let kind = self.random.below(6);
        match kind {
            0..2 => fs::create_dir(&path)?,
            2 => symlink(format!("to{}", self.made), &path)?,
            _ => fs::write(&path, self.content())?,
        }
        Ok(format!("make {}, kind {kind}", path.display()))
    }

    /// Never empty, as it may be mapped.
    fn content(&mut self) -> Vec<u8> {
        let length = 1 + self.random.index(3000);
        self.random.bytes(length)
    }

    fn write(&mut self, file: &Path) -> io::Result<String> {
        let content = self.content();
        let way = self.random.below(4);
        match way {
            0 => OpenOptions::new().append(true).open(file)?.write_all(&content)?,
            1 => OpenOptions::new().write(true).open(file)?.write_all(&content)?,
            2 => OpenOptions::new().write(true).open(file)?.set_len(content.len() as u64)?,
            _ => {
                // As editors do.
                let new = file.with_extension("new");
                fs::write(&new, content)?;
                fs::rename(new, file)?;
            }
        }
        Ok(format!("write {}, way {way}", file.display()))
    }

    fn rename(
        &mut self,
        from: &Path,
        folder: &Path,
        all: &[(PathBuf, fs::Metadata)],
    ) -> io::Result<String> {
        let to = match (self.random.below(3), self.pick(all)) {
            (0, Some((other, _))) => other.clone(),
            _ => folder.join(self.name()),
        };
        if to.starts_with(from) || from.starts_with(&to) {
            return Ok(format!("no rename of {} into itself", from.display()));
        }
        let flags = match to.symlink_metadata().is_ok() && self.random.one_in(2) {
            true => RenameFlags::EXCHANGE,
            false => RenameFlags::empty(),
        };
        // A folder that is not empty, or another kind, is not replaced.
        let done = renameat_with(CWD, from, CWD, &to, flags).is_ok();
        Ok(format!("rename {} to {}, {flags:?}: {done}", from.display(), to.display()))
    }

    fn touch(&mut self, path: &Path) -> io::Result<String> {
        let way = self.random.below(5);
        let is_link = path.is_symlink();
        match way {
            0 if !is_link => {
                let mode = 0o700 + self.random.below(64) as u32;
                fs::set_permissions(path, Permissions::from_mode(mode))?;
            }
            1 => {
                let owner = Some(self.random.below(5) as u32);
                std::os::unix::fs::lchown(path, owner, owner)?;
            }
            2 if !is_link => {
                let value = self.random.next_u64().to_le_bytes();
                setxattr(path, "user.disturbed", &value, XattrFlags::empty())?;
            }
            3 if !is_link => {
                let _ = rustix::fs::removexattr(path, "user.disturbed");
            }
            _ => {
                let seconds = self.random.below(1_000_000_000) as i64;
                let time = Timespec { tv_sec: seconds, tv_nsec: 0 };
                let times = Timestamps { last_access: time, last_modification: time };
                utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
            }
        }
        Ok(format!("touch {}, way {way}", path.display()))
    }

    fn keep_open(&mut self, file: &Path) -> io::Result<String> {
        self.open.push_back(OpenOptions::new().append(true).open(file)?);
        if self.open.len() > OPEN {
            self.open.pop_front();
        }
        Ok(format!("keep {} open", file.display()))
    }

    fn write_open(&mut self) -> io::Result<String> {
        if self.random.one_in(2) {
            let number = self.random.next_u64() >> 1;
            return self.order(&format!("write {number}"));
        }
        let content = self.content();
        let Some(at) = (!self.open.is_empty()).then(|| self.random.index(self.open.len())) else {
            return Ok("nothing is open".to_owned());
        };
        self.open[at].write_all(&content)?;
        Ok(format!("write the open file {at}"))
    }

    fn map(&mut self, file: &Path) -> io::Result<String> {
        if self.random.one_in(2) {
            return self.order("unmap the oldest");
        }
        self.order(&format!("map {}", file.display()))
    }

    fn link(&mut self, file: &Path, folder: &Path) -> io::Result<String> {
        let to = folder.join(self.name());
        if !self.random.one_in(12) || to.symlink_metadata().is_ok() {
            return Ok("no link".to_owned());
        }
        fs::hard_link(file, &to)?;
        Ok(format!("link {} to {}", to.display(), file.display()))
    }

    /// Has the mapper do something, and waits until it has.
    fn order(&mut self, order: &str) -> io::Result<String> {
        writeln!(self.orders, "{order}")?;
        if self.done.read_line(&mut String::new())? == 0 {
            return Err(io::Error::other("the process that maps files has ended"));
        }
        Ok(order.to_owned())
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        // The first folder's are listed first.
        let bound = if self.random.one_in(4) { all.len() } else { all.len().div_ceil(2) };
        (bound > 0).then(|| &all[self.random.index(bound)])
    }

    /// Everything below the folders, with what was seen of it.
    fn all(&self) -> io::Result<Vec<(PathBuf, fs::Metadata)>> {
        let mut all = Vec::new();
        let mut folders: VecDeque<_> = self.folders.iter().cloned().collect();
        while let Some(folder) = folders.pop_front() {
            let mut paths = Vec::new();
            for entry in fs::read_dir(folder)? {
                paths.push(entry?.path());
            }
            paths.sort();
            for path in paths {
                let about = path.symlink_metadata()?;
                if about.is_dir() {
                    folders.push_back(path.clone());
                }
                all.push((path, about));
            }
        }
        Ok(all)
    }
}

impl Drop for Disturber {
    fn drop(&mut self) {
        let _ = self.mapper.kill();
        let _ = self.mapper.wait();
    }
}

fn remove(path: &Path) -> io::Result<String> {
    match path.symlink_metadata()?.is_dir() {
        true => fs::remove_dir_all(path)?,
        false => fs::remove_file(path)?,
    }
    Ok(format!("remove {}", path.display()))
}
