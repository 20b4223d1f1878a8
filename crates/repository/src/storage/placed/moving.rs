//! Moving packs between the directory and its places, and removing them there.

use std::fs::File;
use std::io::{self, Read, Write};

use holdall_format::PackName;
use holdall_protocol::RepositoryError;
use holdall_sys::PathBeneath;

use super::{Entry, PLACED, PackPlace, PlacedPacks, Places, below, below_entry};
use crate::storage::publish::{
    FILE_MODE, failed, make_dir, make_empty, publish_file, read_limited, remove, replace_by_file,
    sync_folder,
};

const COPY_BYTES: usize = 1 << 20;
/// Says whose folder it is that a repository has in a place.
const OWNER: &str = "owner";
const OWNER_MAX_BYTES: u64 = 1 << 16;

impl PlacedPacks {
    /// Moves a pack to a place from wherever it is; how many bytes that were. Nothing where it is there already, or gone.
    pub(crate) fn move_to(&self, pack: &PackName, to: &PackPlace) -> Result<u64, RepositoryError> {
        let _changing = self.lock();
        let (before, places) = (self.entries_of(pack)?, self.known_places()?);
        // One in the directory is copied once more, whatever is said to lie there: it may be the only good one.
        if before.iter().any(|entry| entry.place == to.id) && !self.is_in_directory(pack) {
            return self.remove_others(pack, &before, &to.id).map(|()| 0);
        }
        let Some(mut from) = self.opened_to_copy(pack, &before)? else { return Ok(0) };
        let root = self.own_folder(&places, to)?;
        let (tmp, target) = (root.join("tmp"), below(&root, pack));
        [&root, &tmp].into_iter().chain(&target.parent()).try_for_each(make_dir)?;
        let copy = tmp.join(pack.to_string());
        // What an earlier move left.
        remove(&copy)?;
        let len_bytes = copied(&mut from, &copy)?;
        replace_by_file(&copy, &target)?;
        let entry = Entry { pack: *pack, place: to.id.clone(), len_bytes };
        let placed = self.root.join(PLACED);
        let named = below_entry(&placed, &entry);
        [placed].iter().chain(&named.parent()).try_for_each(make_dir)?;
        make_empty(&named)?;
        // Of another length there was another file.
        let former = before.iter().filter(|former| former.place == to.id && **former != entry);
        former
            .map(|former| below_entry(&self.root.join(PLACED), former))
            .try_for_each(|name| remove(&name))?;
        self.remove_others(pack, &before, &to.id)?;
        Ok(len_bytes)
    }

    /// Puts a durable file of the same file system as the directory in the place of a pack, wherever that is.
    pub(crate) fn put_anew(
        &self,
        file: &PathBeneath,
        pack: &PackName,
    ) -> Result<(), RepositoryError> {
        let _changing = self.lock();
        let target = self.in_dir(pack);
        target.parent().iter().try_for_each(make_dir)?;
        replace_by_file(file, &target)?;
        self.entries_of(pack)?.iter().try_for_each(|entry| self.remove_entry(entry))
    }

    /// Moves a pack back into the directory; how many bytes that were.
    pub(crate) fn move_back(&self, pack: &PackName) -> Result<u64, RepositoryError> {
        let _changing = self.lock();
        let (before, target) = (self.entries_of(pack)?, self.in_dir(pack));
        let Some(mut from) = self.opened_to_copy(pack, &before)? else { return Ok(0) };
        let mut len_bytes = 0;
        if !target.exists() {
            let copy = self.tmp.join(pack.to_string());
            remove(&copy)?;
            len_bytes = copied(&mut from, &copy)?;
            make_dir(&target.parent().unwrap_or_else(|| self.root.clone()))?;
            publish_file(&copy, &target)?;
        }
        before.iter().try_for_each(|entry| self.remove_entry(entry))?;
        Ok(len_bytes)
    }

    /// Removes the repository's folder from all places that are there, for good; the others.
    pub(crate) fn clear(&self) -> Result<Vec<PackPlace>, RepositoryError> {
        let Some(places) = self.places()? else { return Ok(Vec::new()) };
        let mut left = Vec::new();
        for place in &places.all {
            let Ok(folder) = self.own_folder(&places, place) else {
                left.push(place.clone());
                continue;
            };
            folder.remove_tree().map_err(failed("removing", &folder))?;
        }
        Ok(left)
    }

    /// Removes a pack from the directory, and from all places but one.
    fn remove_others(
        &self,
        pack: &PackName,
        entries: &[Entry],
        but: &str,
    ) -> Result<(), RepositoryError> {
        let path = self.in_dir(pack);
        remove(&path)?;
        entries
            .iter()
            .filter(|entry| entry.place != but)
            .try_for_each(|entry| self.remove_entry(entry))?;
        match path.parent().filter(PathBeneath::exists) {
            Some(folder) => sync_folder(&folder),
            None => Ok(()),
        }
    }

    /// Forgets that a pack lies in a place, and removes it there if the place is there. Else it stays there, and is in nobody's
    /// way.
    pub(super) fn remove_entry(&self, entry: &Entry) -> Result<(), RepositoryError> {
        let named = below_entry(&self.root.join(PLACED), entry);
        remove(&named)?;
        named.parent().iter().try_for_each(sync_folder)?;
        let places = self.known_places()?;
        let Some(place) = places.all.iter().find(|place| place.id == entry.place) else {
            return Ok(());
        };
        match self.own_folder(&places, place) {
            Ok(folder) => remove(&below(&folder, &entry.pack)),
            // It lies there, in nobody's way.
            Err(_) => Ok(()),
        }
    }

    /// The pack, to copy it; `None` if it is gone.
    fn opened_to_copy(
        &self,
        pack: &PackName,
        entries: &[Entry],
    ) -> Result<Option<File>, RepositoryError> {
        let path = self.in_dir(pack);
        match path.open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened.map(Some).map_err(failed("opening", &path)),
        }
        let Some(entry) = entries.first() else { return Ok(None) };
        let path = below(&self.folder_of(entry)?, pack);
        path.open().map(Some).map_err(failed("opening", &path))
    }

    /// The repository's folder in a place, to change something there: made if it is not there, and this directory's own. A copy of the directory that is
    /// in use elsewhere has the same names, and would take away what the first one knows to be there.
    fn own_folder(
        &self,
        places: &Places,
        place: &PackPlace,
    ) -> Result<PathBeneath, RepositoryError> {
        let root = place.open().map_err(failed("opening", &*place.folder))?;
        let folder = root.join(places.folder.to_string());
        make_dir(&folder)?;
        let owner = folder.join(OWNER);
        let own = self.root.open_dir().and_then(|dir| dir.stat_self());
        let own = own.map_err(failed("looking at", &self.root))?.inode;
        let text = format!("inode {own} of the folder {}\n", self.root.display());
        match read_limited(&owner, OWNER_MAX_BYTES)? {
            None => replace_by_new(&owner, text.as_bytes())?,
            Some(other) if inode_in(&other) == Some(own) => {}
            Some(other) => {
                let other = String::from_utf8_lossy(&other);
                let reason = format!(
                    "{} is used by another copy of this repository ({}), and two would take away each other's packs; if that copy is \
                     gone for good, remove {}",
                    folder.display(),
                    other.trim_end(),
                    owner.display()
                );
                return Err(RepositoryError::Refused { reason });
            }
        }
        Ok(folder)
    }
}

/// Copies a file durably to a new one; how many bytes. Nothing is left of one that could not be copied whole.
fn copied(from: &mut File, to: &PathBeneath) -> Result<u64, RepositoryError> {
    copied_whole(from, to).inspect_err(|_| drop(to.remove_file()))
}

fn copied_whole(from: &mut File, to: &PathBeneath) -> Result<u64, RepositoryError> {
    let mut file = to.create_new(FILE_MODE).map_err(failed("making", to))?;
    let (mut buffer, mut len_bytes) = (vec![0; COPY_BYTES], 0);
    loop {
        let read = from.read(&mut buffer).map_err(failed("reading what goes to", to))?;
        if read == 0 {
            break;
        }
        file.write_all(buffer.get(..read).unwrap_or_default()).map_err(failed("writing", to))?;
        len_bytes += read as u64;
    }
    file.sync_all().map_err(failed("syncing", to))?;
    Ok(len_bytes)
}

/// Whose folder a place has, from its file `owner`.
fn inode_in(owner: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(owner).ok()?.strip_prefix("inode ")?;
    text.split(' ').next()?.parse().ok()
}

/// Makes a small file durably, beside which there is nothing of the same name.
fn replace_by_new(path: &PathBeneath, bytes: &[u8]) -> Result<(), RepositoryError> {
    let mut file = path.create_new(FILE_MODE).map_err(failed("making", path))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed("writing", path))?;
    path.parent().map_or(Ok(()), |folder| sync_folder(&folder))
}
