//! Which places of the sources are to be read as a snapshot has them, and what is mounted over those.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use holdall_sys::mounts::{Mount, Mounts};
use holdall_sys::{btrfs, own_mounts};

use super::FsSnapshotError;
use crate::{FOLLOWED, Source, plain_path};

const BTRFS: &[u8] = b"btrfs";

/// Where a source really is.
#[derive(Debug)]
pub(super) struct Located {
    /// Its absolute path, without links on the way, if its folder is there.
    pub(super) real: Option<Vec<u8>>,
    pub(super) lies: Lies,
}

/// What a source lies on.
#[derive(Debug)]
pub(super) enum Lies {
    /// It is not there.
    Nowhere,
    /// It is on another file system.
    Elsewhere,
    /// It is on btrfs: what is to be put at which path around it.
    Within(Vec<u8>, Origin),
}

/// Which folder is seen at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    /// The device with its file system.
    pub(super) device: Vec<u8>,
    /// Its path from the top of that, with a slash before it.
    pub(super) root: Vec<u8>,
}

impl Origin {
    /// What is seen at `path`, which lies on this mount and not on one within it.
    fn of(mount: &Mount, path: &[u8]) -> Option<Self> {
        let rest = path.strip_prefix(mount.point.strip_suffix(b"/").unwrap_or(&mount.point))?;
        let root = plain_path(&[&mount.root, &b"/"[..], rest].concat());
        Some(Self { device: mount.source.clone(), root })
    }
}

impl Located {
    /// # Errors
    /// [`FsSnapshotError::ReadOnly`].
    pub(super) fn of(source: &Source, table: &Mounts) -> Result<Self, FsSnapshotError> {
        let real = real(&source.read_at);
        let lies = real.as_ref().map_or(Ok(Lies::Nowhere), |real| Lies::of(real, table))?;
        Ok(Self { real, lies })
    }
}

impl Lies {
    fn of(real: &[u8], table: &Mounts) -> Result<Self, FsSnapshotError> {
        let mut path = Path::new(OsStr::from_bytes(real));
        let Ok(there) = path.symlink_metadata() else { return Ok(Self::Nowhere) };
        if !there.is_dir() {
            path = path.parent().unwrap_or(path);
        }
        let mount = table.of_path(path).ok().flatten();
        let Some(mount) = mount.filter(|mount| mount.file_system == BTRFS) else {
            return Ok(Self::Elsewhere);
        };
        if mount.is_of_read_only_file_system() {
            return Err(FsSnapshotError::ReadOnly(mount.point.clone()));
        }
        let mut around = path.ancestors().map(|path| path.as_os_str().as_bytes());
        let path = around.find(|path| *path == mount.point || is_subvolume(path));
        let origin = path.and_then(|path| Some((path.to_vec(), Origin::of(mount, path)?)));
        Ok(origin.map_or(Self::Elsewhere, |(path, origin)| Self::Within(path, origin)))
    }
}

/// The path of a source without links on the way to it; nothing if its folder is not there.
fn real(read_at: &[u8]) -> Option<Vec<u8>> {
    let canonical = |path: &[u8]| {
        let path = Path::new(OsStr::from_bytes(path)).canonicalize().ok()?;
        Some(path.into_os_string().into_vec())
    };
    if let Some(link) = read_at.strip_suffix(FOLLOWED) {
        return canonical(link);
    }
    let path = Path::new(OsStr::from_bytes(read_at));
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return canonical(read_at);
    };
    let above = canonical(above.as_os_str().as_bytes())?;
    Some(below(&above, name.as_bytes()))
}

/// `rest`, which does not begin with a slash, below a path.
pub(super) fn below(path: &[u8], rest: &[u8]) -> Vec<u8> {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    [path, b"/", rest].concat()
}

fn is_within(path: &[u8], outer: &[u8]) -> bool {
    let outer = outer.strip_suffix(b"/").unwrap_or(outer);
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

pub(super) fn is_subvolume(path: &[u8]) -> bool {
    let stat = own_mounts::open_dir(path).and_then(|dir| dir.stat_self());
    stat.is_ok_and(|stat| btrfs::is_subvolume(&stat))
}

/// What is to be put where, what lies in others behind them.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// By path; what has no origin is shown as it is.
    waiting: BTreeMap<Vec<u8>, Option<Origin>>,
    sources: Vec<Vec<u8>>,
    /// What each source lies in, by path.
    around: BTreeSet<Vec<u8>>,
    /// Files of btrfs that are mounted on others.
    pub(super) files: BTreeSet<Vec<u8>>,
}

impl Places {
    /// What the sources lie in, and what is mounted in them.
    pub(super) fn of(sources: &[Located], table: &Mounts) -> Self {
        let mut places = Self::default();
        for source in sources {
            let (Some(real), Lies::Within(path, origin)) = (&source.real, &source.lies) else {
                continue;
            };
            places.sources.push(real.clone());
            for mount in table.iter().filter(|mount| is_within(&mount.point, real)) {
                places.add_mount(mount, table);
            }
            places.around.insert(path.clone());
            places.waiting.insert(path.clone(), Some(origin.clone()));
        }
        places
    }

    fn add_mount(&mut self, mount: &Mount, table: &Mounts) {
        let point = Path::new(OsStr::from_bytes(&mount.point));
        // Where nothing can be written, all is of one moment as it is.
        if mount.file_system != BTRFS || mount.is_of_read_only_file_system() {
            self.waiting.insert(mount.point.clone(), None);
            return;
        }
        let seen = table.of_path(point).ok().flatten();
        if seen.is_some_and(|seen| seen.id != mount.id) {
            // Another one lies over it. A subvolume there is found with those in that one.
            if !is_subvolume(&mount.point) {
                self.waiting.insert(mount.point.clone(), None);
            }
            return;
        }
        let is_folder = point.is_dir();
        let origin = if is_folder { Origin::of(mount, &mount.point) } else { None };
        self.waiting.insert(mount.point.clone(), origin);
        self.files.extend((!is_folder).then(|| mount.point.clone()));
    }

    /// Whether a source lies in what is put at a path, and not in something nested.
    pub(super) fn is_around_source(&self, path: &[u8]) -> bool {
        self.around.contains(path)
    }

    /// The next one.
    pub(super) fn next(&mut self) -> Option<(Vec<u8>, Option<Origin>)> {
        self.waiting.pop_first()
    }

    /// Adds a subvolume that lies in one of those before, if it lies in a source and can be seen there.
    pub(super) fn add_nested(&mut self, path: Vec<u8>, origin: Origin) {
        let is_wanted = self.sources.iter().any(|source| is_within(&path, source));
        // Where something else is mounted over it, it is not seen.
        if is_wanted && is_subvolume(&path) {
            self.waiting.entry(path).or_insert(Some(origin));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_below_a_mount_lies_below_its_root() {
        let origin = |line: &str, path: &str| {
            let table = Mounts::parse(line.as_bytes());
            let origin = Origin::of(table.iter().next().unwrap(), path.as_bytes())?;
            Some((origin.device, String::from_utf8(origin.root).unwrap()))
        };
        let seen = |root: &str| Some((b"/dev/a".to_vec(), root.to_owned()));
        let folder = "1 0 0:9 /@home/ada /mnt rw - btrfs /dev/a rw";
        assert_eq!(origin(folder, "/mnt"), seen("/@home/ada"));
        assert_eq!(origin(folder, "/mnt/b/c"), seen("/@home/ada/b/c"));
        assert_eq!(origin(folder, "/other"), None);
        let root = "1 0 0:9 / / rw - btrfs /dev/a rw";
        assert_eq!([origin(root, "/"), origin(root, "/a")], [seen("/"), seen("/a")]);
    }
}
