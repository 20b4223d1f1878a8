//! Where snapshots are kept while they are read: in a subvolume at the top of their file system.
//!
//! Each run has a subvolume of its own in there, which it holds a lock on, and which others cannot look into. One that nobody
//! holds is what is left of a run that was killed, and is removed. Whoever uses the same place for something else is not to
//! lose it: a run's subvolume is known by its name, and by having nothing in it but what a run makes.
//!
//! ```text
//! .holdall-snapshots/run-8c1f0a6b7d2e4935/0    a snapshot that nobody can write to
//! ```

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;

use holdall_crypto::{Entropy, SystemEntropy};
use holdall_sys::{Dir, Name, btrfs, lock};

use crate::backup::snapshots_place::ALL;

/// How the name of a run's subvolume begins. Random digits follow.
const RUN: &str = "run-";
const RUN_DIGITS: usize = 16;
/// How often a run begins anew, if others that end take away what it has just opened.
const ATTEMPTS: usize = 1000;

/// The snapshots of each device.
#[derive(Debug, Default)]
pub(super) struct Stores(BTreeMap<Vec<u8>, Store>);

impl Stores {
    /// What is kept on a device. The first time, what killed runs left there is removed.
    pub(super) fn on(&mut self, device: &[u8]) -> io::Result<&mut Store> {
        match self.0.entry(device.to_vec()) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => Ok(entry.insert(Store::open(device)?)),
        }
    }

    /// Where something lies among the snapshots that is of no run, by device, and the names of it.
    pub(super) fn foreign(&self) -> impl Iterator<Item = (&[u8], &[Vec<u8>])> {
        let all = self.0.iter().map(|(device, store)| (&device[..], &store.foreign[..]));
        all.filter(|(_, names)| !names.is_empty())
    }
}

/// A folder, seen from the subvolume that it lies in.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) subvolume: Dir,
    /// Its path from there, without a slash before it.
    pub(super) rest: Vec<u8>,
}

impl Found {
    /// The subvolumes directly within its own that lie in the folder, by their paths from there.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn nested(&self) -> io::Result<Vec<Vec<u8>>> {
        let within = |path: Vec<u8>| match &self.rest[..] {
            [] => Some(path),
            rest => Some(path.strip_prefix(rest)?.strip_prefix(b"/")?.to_vec()),
        };
        Ok(btrfs::nested(&self.subvolume)?.into_iter().filter_map(within).collect())
    }
}

/// What a run keeps on one file system. It removes it at its end.
#[derive(Debug)]
pub(super) struct Store {
    device: Vec<u8>,
    top: Dir,
    all: Dir,
    /// The name of this run's subvolume.
    name: String,
    /// It is this run's as long as it is locked.
    own: Dir,
    _lock: lock::Held,
    count: usize,
    /// The names of what lies beside it and is of no run.
    foreign: Vec<Vec<u8>>,
}

impl Store {
    fn open(device: &[u8]) -> io::Result<Self> {
        for _ in 1..ATTEMPTS {
            match Self::begin(device) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                begun => return begun,
            }
        }
        Self::begin(device)
    }

    /// # Errors
    /// `NotFound` if another run took it for one that was killed, or removed the subvolume around it; else what the
    /// system says.
    fn begin(device: &[u8]) -> io::Result<Self> {
        let top = btrfs::open_top(device)?;
        let all = all_of(&top)?;
        let foreign = sweep(&all)?;
        let name = run_name();
        btrfs::create(&all, Name::new(name.as_bytes())?)?;
        let (own, lock) = locked(&all, name.as_bytes())?.ok_or(io::ErrorKind::NotFound)?;
        file(&own)?.set_permissions(Permissions::from_mode(0o700))?;
        let device = device.to_vec();
        Ok(Self { device, top, all, name, own, _lock: lock, count: 0, foreign })
    }

    /// The folder at a path from the top of the file system.
    ///
    /// # Errors
    /// What the system says: `ENOENT` or `ENOTDIR` if no folder is there.
    pub(super) fn find(&self, root: &[u8]) -> io::Result<Found> {
        let top = self.top.as_fd().try_clone_to_owned()?;
        let mut found = Found { subvolume: Dir::from(top), rest: Vec::new() };
        let mut folder: Option<Dir> = None;
        for name in root.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
            let above = folder.as_ref().unwrap_or(&found.subvolume);
            let dir = above.open_child(Name::new(name)?)?;
            if btrfs::is_subvolume(&dir.stat_self()?) {
                found = Found { subvolume: dir, rest: Vec::new() };
                folder = None;
                continue;
            }
            let slash: &[u8] = if found.rest.is_empty() { b"" } else { b"/" };
            found.rest.extend_from_slice(&[slash, name].concat());
            folder = Some(dir);
        }
        Ok(found)
    }

    /// Takes a snapshot of a subvolume, and says by which name it is kept.
    ///
    /// # Errors
    /// `NotFound` if the subvolume was deleted, `ETXTBSY` if a file in it is swapped to; else what the system says.
    pub(super) fn snapshot(&mut self, subvolume: &Dir) -> io::Result<String> {
        let name = self.count.to_string();
        btrfs::snapshot(subvolume, &self.own, Name::new(name.as_bytes())?)?;
        self.count += 1;
        Ok(name)
    }

    /// A mount of the snapshot of that name, which is nowhere yet.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn mount_of(&self, snapshot: &str) -> io::Result<OwnedFd> {
        btrfs::mount_of(&self.device, &format!("{ALL}/{}/{snapshot}", self.name))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // What cannot be removed now, the next run removes.
        let _ = remove(&self.all, &self.own, self.name.as_bytes());
        let _ = Name::new(ALL.as_bytes()).map(|all| btrfs::remove_empty(&self.top, all));
    }
}

fn run_name() -> String {
    let mut random = [0; RUN_DIGITS / 2];
    SystemEntropy.fill(&mut random);
    format!("{RUN}{:0RUN_DIGITS$x}", u64::from_be_bytes(random))
}

fn is_run_name(name: &[u8]) -> bool {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let digits = name.strip_prefix(RUN.as_bytes());
    digits.is_some_and(|digits| digits.len() == RUN_DIGITS && digits.iter().all(is_digit))
}

/// The subvolume with all snapshots.
fn all_of(top: &Dir) -> io::Result<Dir> {
    let name = Name::new(ALL.as_bytes())?;
    let is_new = match btrfs::create(top, name) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        created => created.is_ok(),
    };
    let refused = || io::Error::other(format!("{ALL} at its top is not what root made: rename it"));
    let all = match top.open_child(name) {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Err(refused()),
        all => all?,
    };
    let stat = all.stat_self()?;
    if !btrfs::is_subvolume(&stat) || stat.uid != 0 {
        return Err(refused());
    }
    if is_new {
        file(&all)?.set_permissions(Permissions::from_mode(0o700))?;
    }
    Ok(all)
}

/// Removes what runs left that were killed; says what is of no run.
fn sweep(all: &Dir) -> io::Result<Vec<Vec<u8>>> {
    let mut foreign = Vec::new();
    for entry in all.entries()?.iter() {
        let name = entry.name().as_bytes();
        let is_foreign = match is_run_name(name) {
            true => match locked(all, name)? {
                Some((left, _lock)) => !remove(all, &left, name)?,
                None => false,
            },
            false => true,
        };
        foreign.extend(is_foreign.then(|| name.to_vec()));
    }
    Ok(foreign)
}

/// A run's subvolume, locked; nothing if another holds it, or removed it meanwhile.
fn locked(all: &Dir, name: &[u8]) -> io::Result<Option<(Dir, lock::Held)>> {
    let name = Name::new(name)?;
    let Ok(dir) = all.open_child(name) else { return Ok(None) };
    let Some(lock) = lock::Held::exclusive(file(&dir)?)? else { return Ok(None) };
    let is_there = all
        .stat(name)
        .is_ok_and(|now| dir.stat_self().is_ok_and(|opened| opened.device == now.device));
    Ok(is_there.then_some((dir, lock)))
}

/// Removes a run's subvolume with the snapshots in it. Whether it was one: else it stays as it is.
fn remove(all: &Dir, own: &Dir, name: &[u8]) -> io::Result<bool> {
    let entries = own.entries()?;
    let is_run = btrfs::is_subvolume(&own.stat_self()?)
        && entries.iter().all(|entry| is_snapshot(own, entry.name()));
    if !is_run {
        return Ok(false);
    }
    for entry in entries.iter() {
        btrfs::destroy(own, entry.name())?;
    }
    btrfs::remove_empty(all, Name::new(name)?)?;
    Ok(true)
}

/// Whether this is what a run makes: a snapshot with a number for its name, which nobody can write to.
fn is_snapshot(own: &Dir, name: Name<'_>) -> bool {
    let is_read_only = |dir: Dir| {
        Ok::<_, io::Error>(btrfs::is_subvolume(&dir.stat_self()?) && btrfs::is_read_only(&dir)?)
    };
    name.as_bytes().iter().all(u8::is_ascii_digit)
        && own.open_child(name).and_then(is_read_only).unwrap_or(false)
}

fn file(dir: &Dir) -> io::Result<File> {
    Ok(dir.as_fd().try_clone_to_owned()?.into())
}
