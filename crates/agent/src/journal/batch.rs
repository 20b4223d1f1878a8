//! What was read of the kernel's events at once, turned into places. Directories and files are looked up once for all of it.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use holdall_sys::FileKind;
use holdall_sys::fanotify::FileSystem;
use holdall_sys::fanotify_events::{Event, FileSystemId, Handle, Named, events};

use super::disk::{Disk, ITSELF, Later, OwnHandle, give_all_up, is_at};
use super::reason::Reason;
use super::set::SetJournal;

pub(super) struct Batch<'a, 'b> {
    disks: &'a [Disk],
    retired: &'a HashSet<FileSystemId>,
    later: &'a mut Later,
    opened: HashMap<FileSystemId, FileSystem>,
    /// Where directories are; nowhere if they are gone.
    places: HashMap<Handle<'b>, Vec<PathBuf>>,
    /// Files that were looked at, and whether as ones that were written.
    looked_at: HashSet<(Handle<'b>, Option<Named<'b>>, bool)>,
}

impl<'a, 'b> Batch<'a, 'b> {
    pub(super) fn new(
        disks: &'a [Disk],
        retired: &'a HashSet<FileSystemId>,
        later: &'a mut Later,
    ) -> Self {
        Self {
            disks,
            retired,
            later,
            opened: HashMap::new(),
            places: HashMap::new(),
            looked_at: HashSet::new(),
        }
    }

    /// Notes all changes; says how many events there were.
    pub(super) fn take(&mut self, read: &'b [u8], sets: &mut [SetJournal]) -> u64 {
        let mut count = 0;
        for event in events(read) {
            count += 1;
            let taken = match event {
                Ok(event) if event.is_overflow() => {
                    give_all_up(sets, &Reason::Overflow);
                    Ok(())
                }
                Ok(event) => self.event(&event, sets),
                Err(error) => Err(io::Error::other(error)),
            };
            if let Err(error) = taken {
                give_all_up(sets, &Reason::Doubt(error.to_string()));
            }
        }
        count
    }

    fn event(&mut self, event: &Event<'b>, sets: &mut [SetJournal]) -> io::Result<()> {
        let named = [event.at, event.from, event.to];
        let place = event.to.or(event.at);
        if let Some(target) = event.target.filter(|_| !event.is_of_directory() || place.is_none()) {
            self.target(event, &target, place, sets)?;
        }
        for (named, may_be_new) in named.into_iter().zip([true, false, true]) {
            let Some(Named { directory, name }) = named else { continue };
            // A new directory may have come with all that is in it, under a name and a number that another one had.
            let is_new = may_be_new && event.is_of_directory() && !matches!(name, b"" | ITSELF);
            for place in self.places(&directory)? {
                sets.iter_mut().for_each(|set| set.changed(&place, name, false));
                if is_new {
                    let new = place.join(OsStr::from_bytes(name));
                    sets.iter_mut().for_each(|set| set.changed(&new, ITSELF, true));
                }
            }
        }
        Ok(())
    }

    /// Looks at the file that an event is about: it may have other names, and an event may know none of them, as the one
    /// that tells that a name was removed, or one that it has no more, as the one of a file that was open under that.
    fn target(
        &mut self,
        event: &Event<'b>,
        target: &Handle<'b>,
        place: Option<Named<'b>>,
        sets: &mut [SetJournal],
    ) -> io::Result<()> {
        if event.is_close() {
            self.later.open.remove(&OwnHandle::of(target));
        } else if event.is_write() {
            self.later.add(target, |later| &mut later.open, sets);
        }
        let is_written = event.is_write() || event.is_close();
        if !self.looked_at.insert((*target, place, is_written)) {
            return Ok(());
        }
        let Some(disk) = self.disk(target.file_system)? else { return Ok(()) };
        let Some(found) = self.opened(disk)?.open(target)? else { return Ok(()) };
        let stat = found.stat()?;
        let has_more_names = stat.nlink > 1 && stat.kind != FileKind::Dir;
        if has_more_names && is_written {
            disk.give_up(sets, &Reason::SeveralNames);
        }
        if has_more_names && place.is_none() {
            self.later.add(target, |later| &mut later.new_names, sets);
            return Ok(());
        }
        let path = match place {
            Some(Named { directory, name }) => {
                let directory = self.places(&directory)?.into_iter().next();
                directory.map(|directory| directory.join(OsStr::from_bytes(name)))
            }
            None => None,
        };
        if path.is_none_or(|path| !is_at(&path, stat.inode)) {
            disk.note(&found, sets);
        }
        Ok(())
    }

    fn places(&mut self, directory: &Handle<'b>) -> io::Result<Vec<PathBuf>> {
        if let Some(known) = self.places.get(directory) {
            return Ok(known.clone());
        }
        let mut places = Vec::new();
        if let Some(disk) = self.disk(directory.file_system)?
            && let Some(found) = self.opened(disk)?.open(directory)?
            && found.stat()?.nlink > 0
        {
            places = disk.places(&found.path()?);
        }
        self.places.insert(*directory, places.clone());
        Ok(places)
    }

    /// `None` of one that is not watched any more.
    fn disk(&self, id: FileSystemId) -> io::Result<Option<&'a Disk>> {
        match self.disks.iter().find(|disk| disk.id == id) {
            None if !self.retired.contains(&id) => {
                Err(io::Error::other("on an unknown file system"))
            }
            disk => Ok(disk),
        }
    }

    fn opened(&mut self, disk: &Disk) -> io::Result<&FileSystem> {
        match self.opened.entry(disk.id) {
            Entry::Occupied(opened) => Ok(opened.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(disk.open()?)),
        }
    }
}
