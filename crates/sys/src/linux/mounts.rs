//! The mount table: which mount a file lies on, where it is mounted, and of which type it is.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD};

use super::{proc_path, stat};
use crate::{Dir, Name};

/// All mounts that this process sees, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mounts {
    mounts: Vec<Mount>,
}

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Its number, as in [`Stat::mount_id`](crate::Stat::mount_id).
    pub id: u64,
    /// The mounted device, in the form of [`Stat::device`](crate::Stat::device).
    pub device: u64,
    /// Which directory of the file system is mounted; `/` is all of it.
    pub root: Vec<u8>,
    /// Where it is mounted: an absolute path.
    pub point: Vec<u8>,
    /// How it is mounted, such as `rw,noatime`, separated by commas.
    pub flags: Vec<u8>,
    /// The type of file system, such as `ext4`.
    pub file_system: Vec<u8>,
    /// What is mounted, such as `/dev/sda1`; file systems without a device say anything.
    pub source: Vec<u8>,
    /// The file system's own options, separated by commas.
    pub options: Vec<u8>,
}

impl Mount {
    /// Whether nothing can be written to its file system, by whichever mount.
    #[must_use]
    pub fn is_of_read_only_file_system(&self) -> bool {
        self.options.split(|&byte| byte == b',').any(|option| option == b"ro")
    }
}

impl Mounts {
    /// Reads the mount table.
    ///
    /// # Errors
    ///
    /// What the system says when `/proc/thread-self/mountinfo` is read: a thread may have mounts of its own.
    pub fn read() -> io::Result<Self> {
        Ok(Self::parse(&std::fs::read("/proc/thread-self/mountinfo")?))
    }

    /// Reads the text of a mount table; lines that are not understood are left out.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        let lines = text.split(|&byte| byte == b'\n');
        Self { mounts: lines.filter_map(parse_line).collect() }
    }

    /// The mount of that number.
    #[must_use]
    pub fn by_id(&self, id: u64) -> Option<&Mount> {
        self.mounts.iter().find(|mount| mount.id == id)
    }

    /// All mounts, in the order in which they were made.
    pub fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.mounts.iter()
    }

    /// The mount that `path` lies on, links followed; `None` if this process does not see it.
    ///
    /// # Errors
    ///
    /// What the system says of `path`.
    pub fn of_path(&self, path: &Path) -> io::Result<Option<&Mount>> {
        let stat = stat::at(CWD.as_fd(), path.as_os_str().as_bytes(), AtFlags::empty())?;
        Ok(match stat.mount_id {
            Some(id) => self.by_id(id),
            None => self.mounts.iter().rfind(|mount| mount.device == stat.device),
        })
    }
}

/// Where something is mounted, to be known without looking at what is mounted there: that may not answer.
#[derive(Debug, Clone, Default)]
pub struct MountPoints {
    points: HashSet<Vec<u8>>,
    /// The last names of these paths: most directories hold none of them.
    names: HashSet<Vec<u8>>,
}

impl From<&Mounts> for MountPoints {
    fn from(mounts: &Mounts) -> Self {
        let points: HashSet<_> = mounts.mounts.iter().map(|mount| mount.point.clone()).collect();
        let name = |point: &Vec<u8>| point.rsplit(|&byte| byte == b'/').next().map(<[u8]>::to_vec);
        Self { names: points.iter().filter_map(name).collect(), points }
    }
}

impl MountPoints {
    /// Whether something is mounted on what is called `name` in this directory.
    #[must_use]
    pub fn has(&self, dir: &Dir, name: Name<'_>) -> bool {
        if !self.names.contains(name.as_bytes()) {
            return false;
        }
        let above = rustix::fs::readlinkat(CWD, proc_path::of_fd(dir.as_fd()), Vec::new());
        above.is_ok_and(|above| {
            let above = above.as_bytes().strip_suffix(b"/").unwrap_or(above.as_bytes());
            self.points.contains(&[above, b"/", name.as_bytes()].concat())
        })
    }
}

/// Notices that something was mounted, unmounted or mounted otherwise.
#[derive(Debug)]
pub struct MountWatch {
    table: File,
}

impl MountWatch {
    /// One that notices what happens from now on.
    ///
    /// # Errors
    ///
    /// What the system says where `/proc` is not mounted.
    pub fn new() -> io::Result<Self> {
        let watch = Self { table: File::open("/proc/thread-self/mountinfo")? };
        watch.has_changed()?;
        Ok(watch)
    }

    /// Whether something happened since this was asked before.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn has_changed(&self) -> io::Result<bool> {
        let mut polled = [PollFd::new(&self.table, PollFlags::PRI)];
        Ok(poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? > 0)
    }
}

/// The directory at which the file system that holds `path` is mounted.
///
/// # Errors
///
/// `NotFound` if this process does not see the mount; else what the system says.
pub fn mount_point_of(path: &Path) -> io::Result<Vec<u8>> {
    let mounts = Mounts::read()?;
    let mount = mounts.of_path(path)?.ok_or(io::ErrorKind::NotFound)?;
    Ok(mount.point.clone())
}

/// The files that the system swaps to, by their absolute paths.
///
/// # Errors
///
/// What the system says when `/proc/swaps` is read.
pub fn swap_files() -> io::Result<Vec<Vec<u8>>> {
    Ok(swap_files_of(&std::fs::read("/proc/swaps")?))
}

/// Reads the text of `/proc/swaps`: `path kind size used priority`, below a line of titles (proc(5)).
#[must_use]
pub fn swap_files_of(table: &[u8]) -> Vec<Vec<u8>> {
    let file = |line: &[u8]| {
        let mut fields = line.split(|byte| b" \t".contains(byte)).filter(|field| !field.is_empty());
        let path = fields.next()?;
        (fields.next()? == b"file").then(|| unescape(path))
    };
    table.split(|&byte| byte == b'\n').filter_map(file).collect()
}

/// `id parent major:minor root point options [optional...] - type source super-options`
/// (proc_pid_mountinfo(5)).
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|&byte| byte == b' ');
    let id = number(fields.next()?)?;
    let mut device = fields.nth(1)?.split(|&byte| byte == b':');
    let (major, minor) = (number(device.next()?)?, number(device.next()?)?);
    let (root, point) = (unescape(fields.next()?), unescape(fields.next()?));
    let flags = unescape(fields.next()?);
    fields.find(|field| *field == b"-")?;
    let file_system = unescape(fields.next()?);
    let source = unescape(fields.next().unwrap_or_default());
    let options = unescape(fields.next().unwrap_or_default());
    let device = stat::combine(u32::try_from(major).ok()?, u32::try_from(minor).ok()?);
    Some(Mount { id, device, root, point, flags, file_system, source, options })
}

fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// Undoes the kernel's `\040` for blanks, tabs, newlines and backslashes.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        match octal(rest) {
            Some((byte, after)) => {
                plain.push(byte);
                rest = after;
            }
            None => {
                plain.push(first);
                rest = after;
            }
        }
    }
    plain
}

fn octal(text: &[u8]) -> Option<(u8, &[u8])> {
    let (code, rest) = text.strip_prefix(b"\\")?.split_at_checked(3)?;
    let byte = u8::from_str_radix(std::str::from_utf8(code).ok()?, 8).ok()?;
    Some((byte, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_with_blanks_in_its_paths_and_optional_fields_is_understood() {
        let line = br"36 35 98:1 /a\040b /mnt/with\011tab rw shared:1 master:2 - ext4 /dev/vda rw";
        let mounts = Mounts::parse(line);
        let mount = mounts.by_id(36).expect("the mount is there");
        assert_eq!(mount.device, 98 << 32 | 1);
        assert_eq!(mount.root, b"/a b");
        assert_eq!(mount.point, b"/mnt/with\ttab");
        assert_eq!(mount.file_system, b"ext4");
        assert_eq!(mount.source, b"/dev/vda");
        assert_eq!((&mount.flags[..], &mount.options[..]), (&b"rw"[..], &b"rw"[..]));
    }

    #[test]
    fn the_files_that_are_swapped_to_are_told_from_devices() {
        let table = b"Filename\t\tType\t\tSize\tUsed\tPriority\n\
                      /a\\040swap   file\t\t16380\t0\t-2\n/dev/vdb partition\t1\t0\t-3\n";
        assert_eq!(swap_files_of(table), [b"/a swap"]);
    }

    #[test]
    fn a_mount_point_is_known_by_its_name_in_a_directory() {
        let points = MountPoints::from(&Mounts::read().expect("proc is mounted"));
        let has = |dir: &[u8], name: &[u8]| {
            points.has(
                &Dir::open_absolute(dir).expect("it is there"),
                Name::new(name).expect("a name"),
            )
        };
        assert!(has(b"/", b"proc") && !has(b"/proc", b"proc") && !has(b"/", b"etc-"));
    }

    #[test]
    fn the_root_of_proc_is_its_own_mount_point() {
        assert_eq!(mount_point_of(Path::new("/proc")).expect("proc is mounted"), b"/proc");
        assert_eq!(mount_point_of(Path::new("/proc/self")).expect("proc is mounted"), b"/proc");
    }

    proptest! {
        #[test]
        fn no_line_makes_the_reader_fail(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Mounts::parse(&text);
            let mut line = b"36 35 98:1 / /mnt".to_vec();
            line.extend_from_slice(&text);
            let _ = Mounts::parse(&line);
            prop_assert!(unescape(&text).len() <= text.len());
        }
    }
}
