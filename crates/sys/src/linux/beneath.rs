//! Folders that somebody else may have written to: whatever lies in one, nothing outside it is touched.
//!
//! A repository on a stick or a share is such a folder, and backups often run as root. A link in it could lead any
//! read, write or removal to any other file. So the folder is opened once, and everything in it is reached from
//! there, without following a link:
//!
//! ```text
//! Root ── openat2(BENEATH, NO_SYMLINKS) ──> folders, regular files     never links, pipes, sockets, devices
//! ```
//!
//! The root itself is the path that its user chose, links on it included, but for a guarded one ([`Root::guarded`]). A
//! file system that is mounted below it is a part of it. What root makes in another user's folder belongs to that user.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

use super::heir::Heir;
use super::unfit::{Unfit, told};
use super::{dir::Dir, own_links, removal, stat, target::TargetDir};
use crate::{FileKind, Name, Stat};

const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);
const ON_THE_WAY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Nothing waits for the other end of a pipe, and no terminal becomes this process's own.
const FILE: OFlags =
    OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A folder, opened when it is first used and then kept open.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    open: fn(&Path) -> io::Result<OwnedFd>,
    opened: OnceLock<OwnedFd>,
    heir: OnceLock<Option<Heir>>,
}

impl Root {
    /// The folder at `path`, as a place to go on from.
    #[must_use]
    pub fn at(path: &Path) -> PathBeneath {
        Self::opened_by(path, |path| Ok(rustix::fs::openat(CWD, path, ON_THE_WAY, Mode::empty())?))
    }

    /// The same for a folder of what this program keeps: root follows no link there that another user can have made.
    #[must_use]
    pub fn guarded(path: &Path) -> PathBeneath {
        Self::opened_by(path, |path| own_links::open(path, ON_THE_WAY))
    }

    fn opened_by(path: &Path, open: fn(&Path) -> io::Result<OwnedFd>) -> PathBeneath {
        let (opened, heir) = (OnceLock::new(), OnceLock::new());
        let root = Self { path: path.to_owned(), open, opened, heir };
        PathBeneath { root: Arc::new(root), path: path.to_owned(), below: PathBuf::new() }
    }

    fn folder(&self) -> io::Result<BorrowedFd<'_>> {
        if self.opened.get().is_none() {
            // Another thread may have been faster; then its folder is used.
            let _ = self.opened.set((self.open)(&self.path)?);
        }
        self.opened.get().map(AsFd::as_fd).ok_or_else(|| Errno::BADF.into())
    }

    /// Who gets what is made in it.
    fn heir(&self) -> io::Result<Option<Heir>> {
        let folder = self.folder()?;
        Ok(*self.heir.get_or_init(|| Heir::of(folder)))
    }
}

/// A path at or below a [`Root`]. Only its own calls get at what is there, so that no link is followed. Two are the
/// same if they are shown as the same.
#[derive(Debug, Clone)]
pub struct PathBeneath {
    root: Arc<Root>,
    /// As it is shown to people.
    path: PathBuf,
    /// From the root on; empty for the root itself.
    below: PathBuf,
}

impl PartialEq for PathBeneath {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for PathBeneath {}

impl PartialOrd for PathBeneath {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PathBeneath {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.path.cmp(&other.path)
    }
}

impl PathBeneath {
    /// The whole path, for messages and comparisons. Opening it would follow links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The whole path for a message.
    pub fn display(&self) -> std::path::Display<'_> {
        self.path.display()
    }

    /// Whether it is that folder, or lies in it.
    #[must_use]
    pub fn starts_with(&self, folder: &Self) -> bool {
        self.path.starts_with(&folder.path)
    }

    /// What `name` is in this folder. A name that is more than one plain component is refused when it is used.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> Self {
        let name = name.as_ref();
        Self { root: self.root.clone(), path: self.path.join(name), below: self.below.join(name) }
    }

    /// The folder that it lies in; `None` of the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let (path, below) = (self.path.parent()?.to_owned(), self.below.parent()?.to_owned());
        Some(Self { root: self.root.clone(), path, below })
    }

    /// Its last component; `None` of the root.
    #[must_use]
    pub fn file_name(&self) -> Option<&OsStr> {
        self.below.file_name()
    }

    /// What `name` is in the folder that it lies in.
    #[must_use]
    pub fn with_file_name(&self, name: impl AsRef<OsStr>) -> Self {
        let name = name.as_ref();
        let (path, below) = (self.path.with_file_name(name), self.below.with_file_name(name));
        Self { root: self.root.clone(), path, below }
    }

    /// Opens the regular file to read.
    ///
    /// # Errors
    ///
    /// [`Unfit`] if a link is there or on the way, or it is no regular file; `EISDIR` for a folder; else what the
    /// system says.
    pub fn open(&self) -> io::Result<File> {
        regular(self.open_with(OFlags::RDONLY.union(FILE), Mode::empty())?).map(|(file, _)| file)
    }

    /// Opens the regular file to read and to change.
    ///
    /// # Errors
    ///
    /// As for [`PathBeneath::open`], and [`Unfit::ManyNames`].
    pub fn open_to_change(&self) -> io::Result<File> {
        self.open_changing(OFlags::RDWR)
    }

    /// The same to read and to write behind its end, wherever that is by then.
    ///
    /// # Errors
    ///
    /// As for [`PathBeneath::open_to_change`].
    pub fn open_to_append(&self) -> io::Result<File> {
        self.open_changing(OFlags::RDWR.union(OFlags::APPEND))
    }

    fn open_changing(&self, flags: OFlags) -> io::Result<File> {
        let (file, stat) = regular(self.open_with(flags.union(FILE), Mode::empty())?)?;
        if stat.nlink > 1 { Err(Unfit::ManyNames.into()) } else { Ok(file) }
    }

    /// Opens the regular file to lock it, and makes it with at most the permission bits `mode` if it is not there.
    /// Nobody writes to it.
    ///
    /// # Errors
    ///
    /// As for [`PathBeneath::open`].
    pub fn open_or_create(&self, mode: u32) -> io::Result<File> {
        if self.root.heir()?.is_some() {
            // Only what nobody else can have made is given away.
            let _ = self.create_new(mode);
        }
        let flags = OFlags::RDWR.union(OFlags::CREATE).union(FILE);
        regular(self.open_with(flags, Mode::from_raw_mode(mode & 0o777))?).map(|(file, _)| file)
    }

    /// Makes the file, with at most the permission bits `mode`, and opens it to read and to write.
    ///
    /// # Errors
    ///
    /// `EEXIST` if anything is there, a dangling link too; else what the system says.
    pub fn create_new(&self, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR.union(OFlags::CREATE).union(OFlags::EXCL).union(FILE);
        let made = self.open_with(flags, Mode::from_raw_mode(mode & 0o777))?;
        if let Some(heir) = self.root.heir()? {
            heir.takes(&made);
        }
        Ok(made.into())
    }

    /// Opens the folder to list it, or to look at what is right in it.
    ///
    /// # Errors
    ///
    /// [`Unfit::Link`]; `ENOTDIR` for anything else that is no folder; else what the system says.
    pub fn open_dir(&self) -> io::Result<Dir> {
        self.open_with(FOLDER, Mode::empty()).map(Dir::from)
    }

    /// Makes the folder with at most the permission bits `mode`.
    ///
    /// # Errors
    ///
    /// `EEXIST` if anything is there; else what the system says.
    pub fn create_dir(&self, mode: u32) -> io::Result<()> {
        let mode = Mode::from_raw_mode(mode & 0o777);
        let heir = self.root.heir()?;
        self.in_folder(|folder, name| {
            rustix::fs::mkdirat(folder, name.as_bytes(), mode)?;
            heir.inspect(|heir| heir.takes_folder(folder, name));
            Ok(())
        })
    }

    /// The names in the folder, sorted by their bytes.
    ///
    /// # Errors
    ///
    /// As for [`PathBeneath::open_dir`].
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let listing = self.open_dir()?.entries()?;
        Ok(listing
            .iter()
            .map(|entry| OsString::from_vec(entry.name().as_bytes().to_vec()))
            .collect())
    }

    /// Looks at what is there, at a link itself if it is one.
    ///
    /// # Errors
    ///
    /// What the system says; [`Unfit::Link`] if one is on the way.
    pub fn stat(&self) -> io::Result<Stat> {
        self.in_folder(|folder, name| stat::at(folder, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW))
    }

    /// Whether anything is there, a link too.
    ///
    /// # Errors
    ///
    /// As for [`PathBeneath::stat`]: that it cannot be told is not the same as no.
    pub fn try_exists(&self) -> io::Result<bool> {
        match self.stat() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            found => found.map(|_| true),
        }
    }

    /// Whether anything is known to be there, a link too.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.stat().is_ok()
    }

    /// Whether a folder is known to be there, itself and not by a link.
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.stat().is_ok_and(|found| found.kind == FileKind::Dir)
    }

    /// Removes what is there, unless it is a folder.
    ///
    /// # Errors
    ///
    /// What the system says; [`Unfit::Link`] if one is on the way.
    pub fn remove_file(&self) -> io::Result<()> {
        self.in_folder(|folder, name| {
            Ok(rustix::fs::unlinkat(folder, name.as_bytes(), AtFlags::empty())?)
        })
    }

    /// Removes the empty folder.
    ///
    /// # Errors
    ///
    /// `ENOTEMPTY` or `ENOTDIR`; else as for [`PathBeneath::remove_file`].
    pub fn remove_dir(&self) -> io::Result<()> {
        self.in_folder(|folder, name| {
            Ok(rustix::fs::unlinkat(folder, name.as_bytes(), AtFlags::REMOVEDIR)?)
        })
    }

    /// Removes the folder with everything in it.
    ///
    /// # Errors
    ///
    /// As for [`PathBeneath::open_dir`]; what is left stays.
    pub fn remove_tree(&self) -> io::Result<()> {
        removal::remove_content(&TargetDir::from(self.open_with(FOLDER, Mode::empty())?))?;
        self.in_folder(|folder, name| {
            Ok(rustix::fs::unlinkat(folder, name.as_bytes(), AtFlags::REMOVEDIR)?)
        })
    }

    /// Gives what is there the name `to`, in the place of what has it.
    ///
    /// # Errors
    ///
    /// What the system says; [`Unfit::Link`] if one is on the way to either.
    pub fn rename(&self, to: &Self) -> io::Result<()> {
        self.with_both(to, |(from, name), (to, new_name)| {
            Ok(rustix::fs::renameat(from, name.as_bytes(), to, new_name.as_bytes())?)
        })
    }

    /// The same, if nothing has that name.
    ///
    /// # Errors
    ///
    /// `EEXIST`; `EINVAL` on a file system that cannot promise it, `ENOSYS` where the system or a sandbox
    /// has no such call; else as for [`PathBeneath::rename`].
    pub fn rename_new(&self, to: &Self) -> io::Result<()> {
        let flags = RenameFlags::NOREPLACE;
        self.with_both(to, |(from, name), (to, new_name)| {
            let (name, new_name) = (name.as_bytes(), new_name.as_bytes());
            match rustix::fs::renameat_with(from, name, to, new_name, flags) {
                // A sandbox says so of a call that it hides. Where it is meant, other calls hear it, too.
                Err(Errno::PERM) => Err(Errno::NOSYS.into()),
                renamed => Ok(renamed?),
            }
        })
    }

    /// Gives what is there one more name.
    ///
    /// # Errors
    ///
    /// `EEXIST` if anything has it; else as for [`PathBeneath::rename`].
    pub fn hard_link(&self, to: &Self) -> io::Result<()> {
        self.with_both(to, |(from, name), (to, new_name)| {
            let (name, new_name) = (name.as_bytes(), new_name.as_bytes());
            Ok(rustix::fs::linkat(from, name, to, new_name, AtFlags::empty())?)
        })
    }

    /// Waits until the names in the folder are on the disk.
    ///
    /// # Errors
    ///
    /// As for [`PathBeneath::open_dir`].
    pub fn sync_dir(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(self.open_dir()?)?)
    }

    /// Calls with the folder that it lies in, and its name there.
    fn in_folder<T>(
        &self,
        call: impl FnOnce(BorrowedFd<'_>, Name<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        let root = self.root.folder()?;
        let name = self.file_name().unwrap_or_default();
        let name = Name::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
        match self.below.parent().filter(|above| !above.as_os_str().is_empty()) {
            None => call(root, name),
            Some(above) => {
                call(open_beneath(root, above, ON_THE_WAY, Mode::empty())?.as_fd(), name)
            }
        }
    }

    fn with_both<T>(
        &self,
        to: &Self,
        call: impl FnOnce((BorrowedFd<'_>, Name<'_>), (BorrowedFd<'_>, Name<'_>)) -> io::Result<T>,
    ) -> io::Result<T> {
        self.in_folder(|from, name| {
            to.in_folder(|folder, new_name| call((from, name), (folder, new_name)))
        })
    }

    fn open_with(&self, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        open_beneath(self.root.folder()?, &self.below, flags, mode)
    }
}

/// The file behind a descriptor if it is a regular one, and what it is.
pub(super) fn regular(opened: OwnedFd) -> io::Result<(File, Stat)> {
    let stat = stat::of_fd(&opened)?;
    match stat.kind {
        FileKind::File => Ok((opened.into(), stat)),
        FileKind::Dir => Err(Errno::ISDIR.into()),
        _ => Err(Unfit::Special.into()),
    }
}

fn open_beneath(
    root: BorrowedFd<'_>,
    below: &Path,
    flags: OFlags,
    mode: Mode,
) -> io::Result<OwnedFd> {
    let path = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    match rustix::fs::openat2(root, path, flags, mode, BENEATH) {
        // Before Linux 5.6, or where a sandbox hides it.
        Err(Errno::NOSYS | Errno::PERM) => open_by_steps(root, path, flags, mode),
        opened => opened.map_err(told),
    }
}

/// The same, one folder at a time: a single component that is no link cannot lead out.
fn open_by_steps(
    root: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> io::Result<OwnedFd> {
    let mut above: Option<OwnedFd> = None;
    let mut components = path.components().peekable();
    while let Some(component) = components.next() {
        if !matches!(component, Component::Normal(_) | Component::CurDir) {
            return Err(Errno::XDEV.into());
        }
        let at = above.as_ref().map_or(root, AsFd::as_fd);
        let is_last = components.peek().is_none();
        let flags = if is_last { flags } else { ON_THE_WAY }.union(OFlags::NOFOLLOW);
        let opened = rustix::fs::openat(at, component.as_os_str(), flags, mode);
        let is_folder = flags.contains(OFlags::DIRECTORY);
        above = Some(opened.map_err(|error| match error {
            // What the system says of a link where a folder was wanted.
            Errno::NOTDIR if is_folder && is_link(at, component.as_os_str()) => told(Errno::LOOP),
            error => told(error),
        })?);
    }
    above.ok_or_else(|| Errno::NOENT.into())
}

fn is_link(folder: BorrowedFd<'_>, name: &OsStr) -> bool {
    let found = stat::at(folder, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|found| found.kind == FileKind::Symlink)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    type Call = fn(&PathBeneath, &PathBeneath) -> io::Result<()>;

    /// Every call that takes a path, with another path beside it.
    const CALLS: [(&str, Call); 13] = [
        ("open", |path, _| path.open().map(drop)),
        ("open_to_change", |path, _| path.open_to_change().map(drop)),
        ("open_to_append", |path, _| path.open_to_append().map(drop)),
        ("open_or_create", |path, _| path.open_or_create(0o600).map(drop)),
        ("create_new", |path, _| path.create_new(0o600).map(drop)),
        ("open_dir", |path, _| path.open_dir().map(drop)),
        ("create_dir", |path, _| path.create_dir(0o700)),
        ("names", |path, _| path.names().map(drop)),
        ("remove_tree", |path, _| path.remove_tree()),
        ("rename", |path, other| other.rename(path)),
        ("rename_new", |path, other| other.rename_new(path)),
        ("hard_link", |path, other| other.hard_link(path)),
        ("sync_dir", |path, _| path.sync_dir()),
    ];

    /// What a folder holds, as far as these tests change it.
    fn content(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut content: Vec<_> =
            files.map(|file| (file.clone(), fs::read(&file).unwrap_or_default())).collect();
        content.sort();
        content
    }

    #[test]
    fn nothing_behind_a_link_is_reached() {
        for (name, call) in CALLS {
            for is_on_the_way in [true, false] {
                let folder = tempfile::tempdir().unwrap();
                let (root, outside) = (folder.path().join("root"), folder.path().join("outside"));
                [&root, &outside].iter().for_each(|dir| fs::create_dir(dir).unwrap());
                fs::write(outside.join("file"), "theirs").unwrap();
                fs::write(root.join("other"), "ours").unwrap();
                symlink(&outside, root.join("folder")).unwrap();
                symlink(outside.join("file"), root.join("file")).unwrap();
                let before = content(&outside);
                let root = Root::at(&root);
                let other = root.join("other");
                if is_on_the_way {
                    let error = call(&root.join("folder").join("file"), &other).unwrap_err();
                    assert_eq!(Unfit::of(&error), Some(Unfit::Link), "{name}: {error}");
                } else {
                    // What renames or makes anew has nothing to do with what the link stands for.
                    for path in ["folder", "file"] {
                        let called = call(&root.join(path), &other);
                        assert!(called.is_err() || name == "rename", "{name} {path}");
                    }
                }
                assert_eq!(content(&outside), before, "{name}");
            }
        }
    }

    #[test]
    fn the_root_may_be_a_link_and_what_lies_above_it_is_not_reached() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("root/below")).unwrap();
        fs::write(folder.path().join("above"), "x").unwrap();
        symlink("root", folder.path().join("link")).unwrap();
        let root = Root::at(&folder.path().join("link"));
        assert_eq!(root.names().unwrap(), ["below"]);
        assert!(root.parent().is_none());
        for path in ["../above", "below/../../above", "/etc/passwd"] {
            assert!(root.join(path).open().is_err(), "{path}");
            let by_steps = root.root.folder().and_then(|root| {
                open_by_steps(root, Path::new(path), OFlags::RDONLY.union(FILE), Mode::empty())
            });
            assert!(by_steps.is_err(), "{path}");
        }
        assert!(root.join("..").stat().is_err() && root.join("").remove_file().is_err());
    }

    #[test]
    fn a_link_is_known_for_one_without_openat2_too() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("real")).unwrap();
        fs::write(folder.path().join("real/file"), "x").unwrap();
        symlink("real", folder.path().join("folder")).unwrap();
        symlink("real/file", folder.path().join("file")).unwrap();
        let root = Root::at(folder.path());
        let open = |path: &str, flags| {
            let root = root.root.folder().unwrap();
            [open_beneath, open_by_steps]
                .map(|open| open(root, Path::new(path), flags, Mode::empty()).map(drop))
        };
        let to_read = OFlags::RDONLY.union(FILE);
        for (path, flags) in [("folder/file", to_read), ("file", to_read), ("folder", FOLDER)] {
            for opened in open(path, flags) {
                assert_eq!(Unfit::of(&opened.unwrap_err()), Some(Unfit::Link), "{path}");
            }
        }
        for (path, flags) in [("real/file", to_read), ("real", FOLDER), (".", FOLDER)] {
            open(path, flags).into_iter().for_each(|opened| opened.unwrap());
        }
    }

    #[test]
    fn only_regular_files_are_opened_and_only_those_with_one_name_are_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "x").unwrap();
        fs::hard_link(path("file"), path("twin")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        let pipe = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(CWD, path("pipe"), rustix::fs::FileType::Fifo, pipe, 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        let root = Root::at(folder.path());
        root.join("file").open().unwrap();
        let open_or_create = |path: &PathBeneath| path.open_or_create(0o600);
        for open in [PathBeneath::open, PathBeneath::open_to_change, open_or_create] {
            for special in ["pipe", "socket"] {
                let refused = open(&root.join(special)).unwrap_err();
                assert_eq!(Unfit::of(&refused), Some(Unfit::Special), "{refused}");
            }
            let folder = open(&root.join("folder")).unwrap_err();
            assert_eq!(folder.raw_os_error(), Some(Errno::ISDIR.raw_os_error()));
        }
        let refused = root.join("file").open_to_change().unwrap_err();
        assert_eq!(Unfit::of(&refused), Some(Unfit::ManyNames));
        root.join("twin").remove_file().unwrap();
        root.join("file").open_to_change().unwrap();
    }
}
