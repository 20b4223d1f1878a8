//! Changes on whole file systems, as the kernel tells root of them (fanotify(7)), and files by their handles.
//!
//! One mark watches a file system whatever is mounted where. An event names the directory in which something changed by a
//! handle, which [`FileSystem::open`] makes a descriptor of, and [`fanotify_events`](super::fanotify_events) takes events apart.
//!
//! It needs `CAP_SYS_ADMIN`, handles `CAP_DAC_READ_SEARCH`, and all of it Linux 5.17. What is written through a mapping
//! is not told before that is closed.

#![allow(unsafe_code, reason = "the kernel is handed addresses")]

use std::ffi::{CString, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use super::fanotify_events::{EVENT_BYTES, FileSystemId, Handle};
use super::{proc_path, stat};
use crate::Stat;

/// What is told of.
const CHANGES: u64 = libc::FAN_CREATE
    | libc::FAN_DELETE
    | libc::FAN_RENAME
    | libc::FAN_MODIFY
    | libc::FAN_ATTRIB
    | libc::FAN_CLOSE_WRITE
    | libc::FAN_ONDIR;
/// The longest handle that the kernel gives (`MAX_HANDLE_SZ`).
const HANDLE_MAX_BYTES: usize = 128;
/// Where `open_by_handle_at` gives no descriptor: the file is gone.
const GONE: i32 = libc::ESTALE;

/// How many events wait for their reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// All, in the kernel's memory.
    Unbounded,
    /// As many as `/proc/sys/fs/fanotify/max_queued_events` says; more are lost, and that they are is told.
    Bounded,
}

/// Watches file systems, ready to be polled for.
#[derive(Debug)]
pub struct Fanotify {
    events: OwnedFd,
}

impl Fanotify {
    /// One that watches nothing.
    ///
    /// # Errors
    ///
    /// `EPERM` for who is not root, `EINVAL` before Linux 5.17, `ENOSYS` where the kernel has no such thing.
    pub fn new(queue: Queue) -> io::Result<Self> {
        let queue = if queue == Queue::Unbounded { libc::FAN_UNLIMITED_QUEUE } else { 0 };
        let flags =
            libc::FAN_CLOEXEC | libc::FAN_NONBLOCK | libc::FAN_REPORT_DFID_NAME_TARGET | queue;
        // SAFETY: it is handed numbers only.
        let events = unsafe { libc::fanotify_init(flags, libc::O_RDONLY as u32) };
        if events < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just made this descriptor for this call, and nothing else has it.
        Ok(Self { events: unsafe { OwnedFd::from_raw_fd(events) } })
    }

    /// Watches all of the file system that this path lies on, for as long as that is mounted anywhere.
    ///
    /// # Errors
    ///
    /// `EXDEV` of a subvolume of btrfs, `EOPNOTSUPP` and `ENODEV` of file systems whose files have no lasting handles, and what
    /// the system says of the path.
    pub fn watch(&self, path: &Path) -> io::Result<()> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM;
        // SAFETY: the path ends with a NUL, and lives through the call.
        let failed = unsafe {
            libc::fanotify_mark(
                self.events.as_raw_fd(),
                flags,
                CHANGES,
                libc::AT_FDCWD,
                path.as_ptr(),
            )
        } != 0;
        if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The devices of the file systems that are watched, in the form of [`Stat::device`]: one that was unmounted
    /// everywhere is not watched any more.
    ///
    /// # Errors
    ///
    /// What the system says where `/proc` is not mounted.
    pub fn watched(&self) -> io::Result<Vec<u64>> {
        let marks = fs::read_to_string(format!("/proc/self/fdinfo/{}", self.events.as_raw_fd()))?;
        Ok(marks.lines().filter_map(device_of_mark).collect())
    }

    /// How many events wait at this moment.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn waiting(&self) -> io::Result<u64> {
        Ok(rustix::io::ioctl_fionread(&self.events)? / EVENT_BYTES as u64)
    }

    /// Reads as many events as there are and `buffer` has room for; nothing if none waits.
    ///
    /// # Errors
    ///
    /// What the system says, such as `EINVAL` of a buffer that one event does not fit in.
    pub fn read<'a>(&self, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
        match rustix::io::read(&self.events, &mut *buffer) {
            Ok(length) => Ok(buffer.get(..length).unwrap_or_default()),
            Err(rustix::io::Errno::AGAIN) => Ok(&[]),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Fanotify {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

/// A line such as `fanotify sdev:800010 mflags:0 mask:3b ignored_mask:0`; the device has 20 bits for its minor number.
fn device_of_mark(line: &str) -> Option<u64> {
    let device = line.strip_prefix("fanotify sdev:")?.split(' ').next()?;
    let device = u32::from_str_radix(device, 16).ok()?;
    Some(stat::combine(device >> 20, device & 0xf_ffff))
}

/// A file system, by the place where it is mounted.
#[derive(Debug)]
pub struct FileSystem {
    mount: OwnedFd,
    id: FileSystemId,
}

impl FileSystem {
    /// The one that this directory lies on.
    ///
    /// # Errors
    ///
    /// What the system says of the path.
    pub fn at(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mount = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        let id = id_of(mount.as_fd())?;
        Ok(Self { mount, id })
    }

    /// What events call it.
    #[must_use]
    pub fn id(&self) -> FileSystemId {
        self.id
    }

    /// Opens a file by its handle, to be looked at and not to be read; `None` if it is gone.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn open(&self, handle: &Handle<'_>) -> io::Result<Option<Found>> {
        let mut raw = RawHandle::of(handle).ok_or(io::ErrorKind::InvalidInput)?;
        let flags = libc::O_PATH | libc::O_CLOEXEC;
        // SAFETY: `raw` is laid out as the kernel's `struct file_handle`, has room for the length that it names, and lives
        // through the call.
        let opened = unsafe {
            libc::open_by_handle_at(self.mount.as_raw_fd(), (&raw mut raw).cast(), flags)
        };
        if opened >= 0 {
            // SAFETY: the kernel just made this descriptor for this call, and nothing else has it.
            return Ok(Some(Found { file: unsafe { OwnedFd::from_raw_fd(opened) } }));
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(GONE) { Ok(None) } else { Err(error) }
    }

    /// Where a file lies here that a link of `/proc` leads to, such as `/proc/PID/fd/3`, whatever its own process calls it; `None`
    /// if it is gone.
    ///
    /// # Errors
    ///
    /// What the system says, such as `EOPNOTSUPP` of what lies on no file system with handles.
    pub fn locate(&self, link: &Path) -> io::Result<Option<Found>> {
        let link = CString::new(link.as_os_str().as_bytes())?;
        let mut raw =
            RawHandle { length: HANDLE_MAX_BYTES as u32, kind: 0, bytes: [0; HANDLE_MAX_BYTES] };
        let mut mount = 0;
        // SAFETY: the path ends with a NUL; `raw` is laid out as the kernel's `struct file_handle` and has room for the
        // length that it names; all three live through the call.
        let failed = unsafe {
            libc::name_to_handle_at(
                libc::AT_FDCWD,
                link.as_ptr(),
                (&raw mut raw).cast(),
                &raw mut mount,
                libc::AT_SYMLINK_FOLLOW,
            )
        } != 0;
        if failed {
            return Err(io::Error::last_os_error());
        }
        let bytes = raw.bytes.get(..raw.length as usize).ok_or(io::ErrorKind::InvalidData)?;
        self.open(&Handle { file_system: self.id, kind: raw.kind, bytes })
    }
}

/// The kernel's `struct file_handle`, with the most room that it may need.
#[repr(C)]
struct RawHandle {
    length: u32,
    kind: i32,
    bytes: [u8; HANDLE_MAX_BYTES],
}

impl RawHandle {
    /// `None` of a handle that is too long.
    fn of(handle: &Handle<'_>) -> Option<Self> {
        let mut bytes = [0; HANDLE_MAX_BYTES];
        bytes.get_mut(..handle.bytes.len())?.copy_from_slice(handle.bytes);
        Some(Self { length: handle.bytes.len() as u32, kind: handle.kind, bytes })
    }
}

/// A file that was found by its handle.
#[derive(Debug)]
pub struct Found {
    file: OwnedFd,
}

impl Found {
    /// Its metadata.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn stat(&self) -> io::Result<Stat> {
        stat::at(self.file.as_fd(), b"", AtFlags::EMPTY_PATH)
    }

    /// Where it lies now, through the mount by which it was opened. Only [`Found::stat`] tells whether that has been removed.
    ///
    /// # Errors
    ///
    /// `ENAMETOOLONG` of a path that is longer than a page.
    pub fn path(&self) -> io::Result<PathBuf> {
        let path = rustix::fs::readlinkat(CWD, proc_path::of_fd(self.file.as_fd()), Vec::new())?;
        Ok(OsString::from_vec(path.into_bytes()).into())
    }
}

fn id_of(file: BorrowedFd<'_>) -> io::Result<FileSystemId> {
    // Two numbers of 32 bits, which it puts into one, the first one low.
    let both = rustix::fs::fstatvfs(file)?.f_fsid;
    let mut id = FileSystemId::default();
    id[..4].copy_from_slice(&(both as u32).to_ne_bytes());
    id[4..].copy_from_slice(&((both >> 32) as u32).to_ne_bytes());
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fanotify_events::events;

    /// What is told of a folder while `act` runs: names, and where their directories are now.
    fn told(act: impl FnOnce(&Path)) -> Option<Vec<(PathBuf, String)>> {
        let watch = match Fanotify::new(Queue::Unbounded) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => return None,
            watch => watch.unwrap(),
        };
        let folder = tempfile::tempdir().unwrap();
        let disk = FileSystem::at(folder.path()).unwrap();
        watch.watch(folder.path()).unwrap();
        act(folder.path());
        let mut buffer = vec![0; 1 << 16];
        let mut all = Vec::new();
        loop {
            let read = watch.read(&mut buffer).unwrap();
            if read.is_empty() {
                break;
            }
            for event in events(read).map(Result::unwrap) {
                for named in [event.at, event.from, event.to].into_iter().flatten() {
                    assert_eq!(named.directory.file_system, disk.id());
                    let Some(found) = disk.open(&named.directory).unwrap() else { continue };
                    let path = found.path().unwrap();
                    let Ok(below) = path.strip_prefix(folder.path()) else { continue };
                    all.push((below.to_owned(), String::from_utf8_lossy(named.name).into_owned()));
                }
            }
        }
        Some(all)
    }

    #[test]
    fn what_happens_in_folders_is_told_by_where_they_are_now() {
        let told = told(|folder| {
            fs::create_dir(folder.join("one")).unwrap();
            fs::write(folder.join("one/file"), b"x").unwrap();
            fs::rename(folder.join("one"), folder.join("two")).unwrap();
        });
        let Some(told) = told else { return };
        let has = |folder: &str, name: &str| told.contains(&(folder.into(), name.into()));
        assert!(has("", "one") && has("", "two") && has("two", "file"), "{told:?}");
        assert!(!has("one", "file"), "{told:?}");
    }

    #[test]
    fn a_file_is_found_by_its_handle_until_it_is_gone() {
        let Ok(watch) = Fanotify::new(Queue::Bounded) else { return };
        let folder = tempfile::tempdir().unwrap();
        let device = stat::at(CWD.as_fd(), folder.path().as_os_str().as_bytes(), AtFlags::empty());
        assert_eq!(watch.watched().unwrap(), []);
        watch.watch(folder.path()).unwrap();
        assert_eq!(watch.watched().unwrap(), [device.unwrap().device]);
        let disk = FileSystem::at(folder.path()).unwrap();
        let path = folder.path().join("file");
        let file = fs::File::create(&path).unwrap();
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        assert_eq!(disk.locate(Path::new(&link)).unwrap().unwrap().path().unwrap(), path);
        fs::remove_file(&path).unwrap();
        let found = disk.locate(Path::new(&link)).unwrap();
        assert!(found.is_none_or(|found| found.stat().unwrap().nlink == 0));
    }

    #[test]
    fn the_device_of_a_mark_is_read() {
        let line = "fanotify sdev:800010 mflags:0 mask:3b ignored_mask:0";
        assert_eq!(device_of_mark(line), Some(stat::combine(8, 16)));
        assert_eq!(device_of_mark("fanotify flags:1 event-flags:0"), None);
    }
}
