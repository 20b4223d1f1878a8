//! Packs that lie in other places than the repository's directory: on large, slow disks, while the directory is on a fast
//! one.
//!
//! Every pack is published in the directory. From there it is moved, later and one at a time, to a folder below a place,
//! and what says where it is stays in the directory: an empty file in `placed`, whose name has the place's id and the pack's
//! length. So lists are read from the fast disk alone, also while a place is not there, and a pack that is there is never
//! taken for one that is gone. At each moment of a move the pack is whole in one place that is said to have it:
//!
//! ```text
//! 1. copied to PLACE/REPOSITORY/tmp, synced    2. given its name there, synced
//! 3. named in `placed`, synced                 4. removed where it was, synced
//! ```
//!
//! What a crash leaves in a place without being named is overwritten by the next move of that pack, and otherwise lies there.

mod moving;
mod places;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdall_format::PackName;
use holdall_protocol::RepositoryError;
use holdall_sys::PathBeneath;

pub(crate) use self::places::Places;
pub use self::places::{PackPlace, make_place, place_id};
use super::{DirStorage, IsHeld, Key, Landed, ReadAt, Stat, Storage};
use crate::storage::publish::{Published, failed, is_hexadecimal, names_in, replace};
use crate::storage::set_aside;

const PLACED: &str = "placed";
const PLACES: &str = "places";
/// The packs of a repository, in its directory and in its places.
#[derive(Debug)]
pub(crate) struct PlacedPacks {
    dir: Arc<DirStorage>,
    root: PathBeneath,
    tmp: PathBeneath,
    /// Held by whatever moves, replaces, removes or lists packs.
    changing: Mutex<()>,
}

/// That a pack lies in a place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    pack: PackName,
    place: String,
    len_bytes: u64,
}

impl Entry {
    fn name(&self) -> String {
        format!("{}.{}.{:x}", self.pack, self.place, self.len_bytes)
    }

    fn of_name(name: &str) -> Option<Self> {
        let mut parts = name.split('.');
        let (pack, place, length) = (parts.next()?, parts.next()?, parts.next()?);
        let is_one = is_hexadecimal(pack) && places::is_id(place) && parts.next().is_none();
        let entry = Self {
            pack: is_one.then(|| pack.parse().ok()).flatten()?,
            place: place.to_owned(),
            len_bytes: u64::from_str_radix(length, 16).ok()?,
        };
        (entry.name() == name).then_some(entry)
    }

    fn stat(&self) -> Stat {
        Stat { is_file: true, is_folder: false, len_bytes: self.len_bytes, has_other_names: false }
    }
}

/// Whether a name in `placed/xx` is one of ours.
pub(crate) fn is_entry(name: &str, folder: &str) -> bool {
    Entry::of_name(name).is_some() && name.starts_with(folder)
}

impl PlacedPacks {
    /// Those of the repository in a folder, with a folder `tmp` on the same file system.
    pub(crate) fn new(dir: Arc<DirStorage>, root: &PathBeneath, tmp: PathBeneath) -> Self {
        Self { dir, root: root.clone(), tmp, changing: Mutex::default() }
    }

    /// Where its packs may lie beside the directory.
    pub(crate) fn places(&self) -> Result<Option<Places>, RepositoryError> {
        Places::read(&self.root.join(PLACES))
    }

    /// Says where they may lie from now on.
    pub(crate) fn set_places(&self, places: &Places) -> Result<(), RepositoryError> {
        replace(&self.tmp, &self.root.join(PLACES), &places.encode())
    }

    /// The packs that lie in the directory: few, where others have moved out of it.
    pub(crate) fn in_directory(&self) -> Result<BTreeSet<PackName>, RepositoryError> {
        let packs = self.root.join("packs");
        let mut all = BTreeSet::new();
        // Whatever else lies there is somebody else's.
        let is_of_packs = |name: &&OsString| {
            name.to_str().is_some_and(|name| name.len() == 2 && is_hexadecimal(name))
        };
        for folder in names_in(&packs)?.iter().filter(is_of_packs) {
            let names = names_in(&packs.join(folder))?.into_iter();
            all.extend(names.filter_map(|name| name.to_str()?.parse::<PackName>().ok()));
        }
        Ok(all)
    }

    /// Whether a pack lies in the directory.
    pub(crate) fn is_in_directory(&self, pack: &PackName) -> bool {
        self.in_dir(pack).exists()
    }

    /// Whether any pack lies elsewhere.
    pub(crate) fn has_any_placed(&self) -> Result<bool, RepositoryError> {
        let placed = self.root.join(PLACED);
        for folder in names_in(&placed)? {
            if !self.entries_in(&placed.join(folder))?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The packs that lie in a place, in order.
    pub(crate) fn in_place(&self, id: &str) -> Result<Vec<PackName>, RepositoryError> {
        let placed = self.root.join(PLACED);
        let mut all = Vec::new();
        for folder in names_in(&placed)? {
            let entries = self.entries_in(&placed.join(folder))?.into_iter();
            all.extend(entries.filter(|entry| entry.place == id).map(|entry| entry.pack));
        }
        Ok(all)
    }

    /// The repository's folder in the place of an entry, to read there.
    fn folder_of(&self, entry: &Entry) -> Result<PathBeneath, RepositoryError> {
        let places = self.known_places()?;
        let place = places.all.iter().find(|place| place.id == entry.place);
        let unknown = || RepositoryError::Refused {
            reason: format!("the storage place {} is not among the repository's", entry.place),
        };
        let place = place.ok_or_else(unknown)?;
        Ok(place.open().map_err(failed("opening", &*place.folder))?.join(places.folder.to_string()))
    }

    fn known_places(&self) -> Result<Places, RepositoryError> {
        let none =
            || RepositoryError::Refused { reason: "the repository has no storage places".into() };
        self.places()?.ok_or_else(none)
    }

    /// Where a pack lies that is not in the directory.
    fn entries_of(&self, pack: &PackName) -> Result<Vec<Entry>, RepositoryError> {
        let folder = self.root.join(PLACED).join(folder_of(pack));
        Ok(self.entries_in(&folder)?.into_iter().filter(|entry| entry.pack == *pack).collect())
    }

    fn entries_in(&self, folder: &PathBeneath) -> Result<Vec<Entry>, RepositoryError> {
        let names = names_in(folder)?.into_iter();
        Ok(names.filter_map(|name| Entry::of_name(name.to_str()?)).collect())
    }

    /// The same for a key, which may be of no pack.
    fn entries_at(&self, key: &Key) -> io::Result<Vec<Entry>> {
        pack_of(key).map_or(Ok(Vec::new()), |pack| self.entries_of(&pack).map_err(io::Error::other))
    }

    /// The path at which a pack can be read.
    fn path_of(&self, key: &Key) -> io::Result<PathBeneath> {
        let path = self.root.join(key.below());
        if path.try_exists()? {
            return Ok(path);
        }
        match self.entries_at(key)?.first() {
            Some(entry) => {
                let folder = self.folder_of(entry).map_err(|error| match error {
                    RepositoryError::Io { source, .. } => source,
                    error => io::Error::other(error),
                })?;
                Ok(below(&folder, &entry.pack))
            }
            None => Ok(path),
        }
    }

    fn in_dir(&self, pack: &PackName) -> PathBeneath {
        below(&self.root.join("packs"), pack)
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Storage for PlacedPacks {
    fn put_new(
        &self,
        key: &Key,
        bytes: &[u8],
        is_held: IsHeld<'_>,
    ) -> Result<Published, RepositoryError> {
        self.dir.put_new(key, bytes, is_held)
    }

    fn put_file(&self, from: &Landed, key: &Key) -> Result<Published, RepositoryError> {
        self.dir.put_file(from, key)
    }

    fn put_name(&self, key: &Key) -> Result<(), RepositoryError> {
        self.dir.put_name(key)
    }

    fn replace(&self, key: &Key, bytes: &[u8]) -> Result<(), RepositoryError> {
        let _changing = self.lock();
        self.dir.replace(key, bytes)?;
        let entries = self.entries_at(key).map_err(failed("looking at", key))?;
        entries.iter().try_for_each(|entry| self.remove_entry(entry))
    }

    fn keep_as(&self, key: &Key, aside: &Key) -> Result<(), RepositoryError> {
        let path = self.path_of(key).map_err(failed("looking at", key))?;
        set_aside::keep_as(&path, &self.root.join(aside.below()))
    }

    fn rename(&self, key: &Key, to: &Key) -> Result<(), RepositoryError> {
        if self.root.join(key.below()).exists() {
            return self.dir.rename(key, to);
        }
        match self.keep_as(key, to) {
            // It is gone from its place.
            Err(RepositoryError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            }
            kept => kept?,
        }
        self.remove(key)
    }

    fn open(&self, key: &Key) -> io::Result<Box<dyn ReadAt>> {
        let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let opened = match self.dir.open(key) {
            Err(error) if is_gone(&error) => self.path_of(key)?.open(),
            opened => return opened,
        };
        match opened {
            // It may have been moved at this very moment.
            Err(error) if is_gone(&error) => {
                let _changing = self.lock();
                Ok(Box::new(self.path_of(key)?.open()?))
            }
            opened => Ok(Box::new(opened?)),
        }
    }

    fn stat(&self, key: &Key) -> io::Result<Option<Stat>> {
        let find = || match self.dir.stat(key)? {
            Some(stat) => Ok(Some(stat)),
            None => Ok(self.entries_at(key)?.first().map(Entry::stat)),
        };
        match find()? {
            Some(stat) => Ok(Some(stat)),
            None => {
                let _changing = self.lock();
                find()
            }
        }
    }

    fn names(&self, folder: &Key) -> Result<Vec<OsString>, RepositoryError> {
        let _changing = self.lock();
        let mut names = self.dir.names(folder)?;
        match placed_folder(folder) {
            Some(below) if below.as_os_str().is_empty() => {
                names.extend(names_in(&self.root.join(PLACED))?);
            }
            Some(below) => {
                let entries = self.entries_in(&self.root.join(PLACED).join(below))?;
                names.extend(entries.iter().map(|entry| entry.pack.to_string().into()));
            }
            None => {}
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    fn list(&self, folder: &Key) -> Result<Vec<(OsString, io::Result<Stat>)>, RepositoryError> {
        let _changing = self.lock();
        let below = placed_folder(folder).map(|below| self.root.join(PLACED).join(below));
        let entries = below.map_or(Ok(Vec::new()), |below| self.entries_in(&below))?;
        let in_dir = match self.root.join(folder.below()).exists() || entries.is_empty() {
            true => self.dir.list(folder)?,
            false => Vec::new(),
        };
        let placed = entries.iter().map(|entry| (entry.pack.to_string().into(), Ok(entry.stat())));
        let mut all: BTreeMap<OsString, io::Result<Stat>> = placed.collect();
        all.extend(in_dir);
        Ok(all.into_iter().collect())
    }

    fn remove(&self, key: &Key) -> Result<(), RepositoryError> {
        let _changing = self.lock();
        self.dir.remove(key)?;
        let entries = self.entries_at(key).map_err(failed("looking at", key))?;
        entries.iter().try_for_each(|entry| self.remove_entry(entry))
    }

    fn sync(&self, folder: &Key) -> Result<(), RepositoryError> {
        match self.root.join(folder.below()).exists() {
            true => self.dir.sync(folder),
            // All packs of that folder are in places, whose names are durable.
            false => Ok(()),
        }
    }

    fn make_folder(&self, folder: &Key) -> Result<(), RepositoryError> {
        self.dir.make_folder(folder)
    }

    fn file(&self, key: &Key) -> Option<PathBeneath> {
        self.path_of(key).ok()
    }
}

fn folder_of(pack: &PackName) -> String {
    pack.to_string().get(..2).unwrap_or_default().to_owned()
}

fn below(folder: &PathBeneath, pack: &PackName) -> PathBeneath {
    folder.join(folder_of(pack)).join(pack.to_string())
}

fn below_entry(folder: &PathBeneath, entry: &Entry) -> PathBeneath {
    folder.join(folder_of(&entry.pack)).join(entry.name())
}

/// Which folder of `placed` is that of a folder of packs.
fn placed_folder(folder: &Key) -> Option<&Path> {
    folder.below().strip_prefix("packs").ok()
}

fn pack_of(key: &Key) -> Option<PackName> {
    key.below().file_name()?.to_str()?.parse().ok()
}
