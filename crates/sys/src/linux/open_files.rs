//! Which files are open for writing, by any process: what is written through a mapping is told by nothing before that is closed.
//!
//! Everything comes from `/proc`. A process in another mount namespace has other paths, so that files are given by links of `/proc`
//! that lead to them, with the device that they lie on; nothing is followed here, as what it leads to may not answer.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags};
use rustix::io::Errno;

use super::loop_device::image_of;
use super::mounts::Mounts;

/// `PROC_PID_INIT_INO`: the namespace in which all processes are seen.
const ALL_PROCESSES: &str = "pid:[4026531836]";
/// A sandbox may hide it from root; it starts what writes, and writes nothing through mappings itself.
const FIRST_PROCESS: &str = "1";
/// Of the flags in `/proc/PID/fdinfo`.
const ACCESS_MODE: u32 = 0o3;
const ONLY_A_PLACE: u32 = libc::O_PATH as u32;

/// A file that is open for writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFile {
    /// The device of its file system, in the form of [`Stat::device`](crate::Stat::device).
    pub device: u64,
    /// A link of `/proc` that leads to it for as long as it is open.
    pub link: PathBuf,
}

/// The file behind a loop device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its path, as who made the loop device saw it: another file may have that path here.
    pub path: PathBuf,
    /// Its device, in the form of [`Stat::device`](crate::Stat::device), and its inode, if the loop device says that.
    pub identity: Option<(u64, u64)>,
}

/// What is open for writing.
#[derive(Debug, Default)]
pub struct OpenFiles {
    /// What processes have open, or have mapped together with others. A map need not be writable now: its process may make it
    /// so again, and may have written before.
    pub files: Vec<OpenFile>,
    /// The images behind loop devices: the kernel itself writes these.
    pub images: Vec<Image>,
    /// The upper directories of overlays, by the paths that who mounted them saw. What is written to a file through the overlay
    /// is not told here.
    pub upper_directories: Vec<PathBuf>,
    /// Whether all processes could be looked at.
    pub is_complete: bool,
}

impl OpenFiles {
    /// Those on file systems of which `is_wanted` holds, by their devices.
    ///
    /// # Errors
    ///
    /// What the system says where `/proc` is not mounted.
    pub fn look(is_wanted: impl Fn(u64) -> bool) -> io::Result<Self> {
        let namespace = fs::read_link("/proc/self/ns/pid")?;
        let is_complete = namespace.as_os_str() == ALL_PROCESSES;
        let mut looking = Looking {
            is_wanted: &is_wanted,
            namespaces: HashMap::new(),
            found: Self { is_complete, images: loop_images(&is_wanted)?, ..Self::default() },
        };
        for process in fs::read_dir("/proc")?.flatten() {
            let name = process.file_name();
            if name.to_str().is_none_or(|name| name.parse::<u32>().is_err()) {
                continue;
            }
            if looking.process(&process.path()).is_err() && name != FIRST_PROCESS {
                looking.found.is_complete = false;
            }
        }
        Ok(looking.found)
    }
}

/// Whether there is no such process, or file of it, any more.
fn has_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

/// Where `/proc` shows the threads of a process, as each may outlive the others.
fn threads(process: &Path) -> Vec<PathBuf> {
    let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    threads.map(|thread| Path::new("/proc").join(thread.file_name())).collect()
}

struct Looking<'a> {
    is_wanted: &'a dyn Fn(u64) -> bool,
    /// The devices of mounts by their numbers, for each mount namespace.
    namespaces: HashMap<PathBuf, HashMap<u64, u64>>,
    found: OpenFiles,
}

impl Looking<'_> {
    /// Looks at a process, by its first thread or, if that has ended, by another.
    fn process(&mut self, process: &Path) -> io::Result<()> {
        let is_shown = |looked: &io::Result<bool>| match looked {
            Ok(is_shown) => *is_shown,
            Err(error) => !has_ended(error),
        };
        let first = self.thread(process);
        if is_shown(&first) {
            return first.map(|_| ());
        }
        let others = threads(process).into_iter().filter(|thread| thread != process);
        others
            .map(|thread| self.thread(&thread))
            .find(is_shown)
            .map_or(Ok(()), |last| last.map(|_| ()))
    }

    /// Looks at what a thread has, which it shares with all of its process. Says whether it has anything.
    fn thread(&mut self, process: &Path) -> io::Result<bool> {
        let namespace = fs::read_link(process.join("ns/mnt"))?;
        if !self.namespaces.contains_key(&namespace) {
            let mounts = Mounts::parse(&fs::read(process.join("mountinfo"))?);
            self.found.upper_directories.extend(upper_directories(&mounts));
            let devices = mounts.iter().map(|mount| (mount.id, mount.device)).collect();
            self.namespaces.insert(namespace.clone(), devices);
        }
        let Some(devices) = self.namespaces.get(&namespace) else { return Ok(false) };
        for open in fs::read_dir(process.join("fdinfo"))? {
            let open = open?;
            let Ok(about) = fs::read_to_string(open.path()) else { continue };
            let Some(mount) = writable_on(&about) else { continue };
            let link = process.join("fd").join(open.file_name());
            // It may have been opened in another namespace.
            let device = devices.get(&mount).copied().or_else(|| device_of(&link));
            if let Some(device) = device.filter(|device| (self.is_wanted)(*device)) {
                self.found.files.push(OpenFile { device, link });
            }
        }
        let maps = fs::read(process.join("maps"))?;
        for line in maps.split(|&byte| byte == b'\n') {
            let mapped =
                std::str::from_utf8(line.get(..MAP_BYTES.min(line.len())).unwrap_or_default());
            let Some((device, range)) = mapped.ok().and_then(shared_map) else { continue };
            if (self.is_wanted)(device) {
                self.found
                    .files
                    .push(OpenFile { device, link: process.join("map_files").join(range) });
            }
        }
        Ok(!maps.is_empty())
    }
}

/// The device that a link of `/proc` leads to, as far as that is known without asking it.
fn device_of(link: &Path) -> Option<u64> {
    let unasked = AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let stat = rustix::fs::statx(CWD, link, unasked, StatxFlags::TYPE).ok()?;
    Some(super::stat::combine(stat.stx_dev_major, stat.stx_dev_minor))
}

/// The mount of a file that is open for writing, from its `/proc/PID/fdinfo`.
fn writable_on(about: &str) -> Option<u64> {
    let field = |name: &str| about.lines().find_map(|line| line.strip_prefix(name));
    let flags = u32::from_str_radix(field("flags:")?.trim(), 8).ok()?;
    let is_writable = flags & ACCESS_MODE != 0 && flags & ONLY_A_PLACE == 0;
    is_writable.then_some(field("mnt_id:")?.trim().parse().ok()?)
}

/// More than a line of `/proc/PID/maps` takes before its path, which may be anything.
const MAP_BYTES: usize = 72;

/// The device and the range of a file whose map is shared, from a line such as
/// `7f0000000000-7f0000001000 rw-s 00000000 08:01 131 /file`.
fn shared_map(line: &str) -> Option<(u64, String)> {
    let mut fields = line.split_ascii_whitespace();
    let (range, rights) = (fields.next()?, fields.next()?);
    if !rights.ends_with('s') {
        return None;
    }
    let (major, minor) = fields.nth(1)?.split_once(':')?;
    let hexadecimal = |number| u32::from_str_radix(number, 16).ok();
    let device = super::stat::combine(hexadecimal(major)?, hexadecimal(minor)?);
    let (start, end) = range.split_once('-')?;
    // In the names of links there are no zeros in front.
    let plain = |number| u64::from_str_radix(number, 16).ok();
    Some((device, format!("{:x}-{:x}", plain(start)?, plain(end)?)))
}

/// The files behind loop devices, of those that lie on a device of which that holds, or may do so.
fn loop_images(is_wanted: impl Fn(u64) -> bool) -> io::Result<Vec<Image>> {
    let mut images = Vec::new();
    for device in fs::read_dir("/sys/block")? {
        let device = device?;
        match fs::read(device.path().join("loop/backing_file")) {
            Ok(mut path) => {
                let identity = match image_of(&Path::new("/dev").join(device.file_name())) {
                    Ok(None) => continue,
                    image => image.ok().flatten().map(|image| image.file),
                };
                path.pop_if(|last| *last == b'\n');
                if identity.is_none_or(|(device, _)| is_wanted(device)) {
                    images.push(Image { path: OsString::from_vec(path).into(), identity });
                }
            }
            Err(error) if has_ended(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(images)
}

/// Where overlays of this mount table keep what was written to them.
fn upper_directories(mounts: &Mounts) -> impl Iterator<Item = PathBuf> {
    let overlays = mounts.iter().filter(|mount| mount.file_system == b"overlay");
    let options = overlays.flat_map(|mount| mount.options.split(|&byte| byte == b','));
    let upper = options.filter_map(|option| option.strip_prefix(b"upperdir="));
    upper.map(|path| OsString::from_vec(path.to_vec()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn what_this_process_has_open_for_writing_is_found_until_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = fs::File::create(&path).unwrap();
        let found = |open: &OpenFile| fs::read_link(&open.link).is_ok_and(|to| to == path);
        let own = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        let open = OpenFiles::look(|_| true).unwrap();
        let found_one = open.files.iter().find(|open| found(open)).unwrap();
        assert_eq!(found_one.link, Path::new(&own));
        let device = found_one.device;
        assert!(!OpenFiles::look(|other| other != device).unwrap().files.iter().any(found));
        drop(file);
        let _reading = fs::File::open(&path).unwrap();
        assert!(!OpenFiles::look(|_| true).unwrap().files.iter().any(found));
    }

    #[test]
    fn only_shared_maps_count_whether_they_can_be_written_now_or_not() {
        let line = |rights| format!("00400000-00452000 {rights} 00000000 08:1f 173521 /usr/bin");
        let device = super::super::stat::combine(8, 31);
        for rights in ["rw-s", "r--s", "---s"] {
            assert_eq!(shared_map(&line(rights)), Some((device, "400000-452000".to_owned())));
        }
        for rights in ["rw-p", "---p"] {
            assert_eq!(shared_map(&line(rights)), None, "{rights}");
        }
        assert_eq!(shared_map(""), None);
    }

    #[test]
    fn only_descriptors_that_write_count() {
        let about = |flags| format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t29\nino:\t5\n");
        assert_eq!(writable_on(&about("0100002")), Some(29));
        assert_eq!(writable_on(&about("0100001")), Some(29));
        for flags in ["0100000", "012000002", ""] {
            assert_eq!(writable_on(&about(flags)), None, "{flags}");
        }
    }

    #[test]
    fn an_overlay_says_where_it_writes() {
        let line = br"36 35 0:50 / /merged rw - overlay overlay rw,lowerdir=/l,upperdir=/up\040per,workdir=/w";
        let upper: Vec<_> = upper_directories(&Mounts::parse(line)).collect();
        assert_eq!(upper, [Path::new("/up per")]);
    }
}
