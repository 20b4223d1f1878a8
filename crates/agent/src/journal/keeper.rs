//! The journals of all sets, and what they learn of changes by.

use std::io;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use holdall_sys::fanotify::Queue;
use jiff::Timestamp;

use super::disk::give_all_up;
use super::file_systems::FileSystems;
use super::reason::Reason;
use super::set::{Committed, SetJournal, Walk, WatchedSet, WatchedSource};

/// The journals of all sets.
pub(super) struct Keeper {
    sets: Vec<SetJournal>,
    eyes: Eyes,
}

/// By what changes are seen.
enum Eyes {
    /// Whole file systems, as root.
    FileSystems(FileSystems),
    /// Nothing, and why.
    None(String),
}

impl Keeper {
    /// One that follows no set yet.
    pub(super) fn new(queue: Queue) -> Self {
        let eyes = match FileSystems::new(queue) {
            Ok(systems) => Eyes::FileSystems(systems),
            Err(error) => Eyes::None(why_not(&error)),
        };
        Self { sets: Vec::new(), eyes }
    }

    /// Follows these sets from now on; the names of those that are others than before.
    pub(super) fn follow(&mut self, sets: Vec<WatchedSet>) -> Vec<String> {
        let mut before = std::mem::take(&mut self.sets);
        let mut others = Vec::new();
        let journal = |set: WatchedSet| {
            let known = before.iter().position(|known| known.set.name == set.name);
            let reason = match known.map(|known| before.swap_remove(known)) {
                Some(known) if known.set == set => return known,
                Some(_) => Reason::Settings,
                None => Reason::BeganLater,
            };
            others.push(set.name.clone());
            SetJournal::new(set, reason)
        };
        self.sets = sets.into_iter().map(journal).collect();
        others
    }

    /// What to poll for changes, where the kernel tells of them.
    pub(super) fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.eyes {
            Eyes::FileSystems(systems) => Some(systems.watch().as_fd()),
            Eyes::None(_) => None,
        }
    }

    /// Takes in what changed.
    pub(super) fn take_in(&mut self) {
        let taken = match &mut self.eyes {
            Eyes::FileSystems(systems) => systems.take_in(&mut self.sets),
            Eyes::None(_) => Ok(()),
        };
        if let Err(error) = taken {
            give_all_up(&mut self.sets, &Reason::Doubt(error.to_string()));
        }
    }

    /// A run of a set is about to walk. `None` of a set that is not followed.
    pub(super) fn begin(&mut self, name: &str, now: Timestamp) -> Option<Walk> {
        let at = self.sets.iter().position(|known| known.set.name == name)?;
        let set = self.sets.get_mut(at)?;
        match set.set.unsuitable {
            Some(why) => set.give_up(Reason::Unsuitable(why)),
            None => find_sources(set),
        }
        match &mut self.eyes {
            Eyes::FileSystems(systems) => systems.bring_up(&mut self.sets, at),
            Eyes::None(why) => set.give_up(Reason::Unavailable(why.clone())),
        }
        Some(self.sets.get_mut(at)?.begin(now))
    }

    /// A run of a set has ended.
    pub(super) fn ended(&mut self, name: &str, committed: Committed) {
        if let Some(set) = self.sets.iter_mut().find(|known| known.set.name == name) {
            set.ended(committed);
        }
    }
}

/// Looks where the sources really lie.
fn find_sources(set: &mut SetJournal) {
    match set.set.sources.iter().map(real_place).collect() {
        Ok(real) => set.sources_lie_at(real),
        Err(error) => set.give_up(Reason::Doubt(error.to_string())),
    }
}

/// Where a source lies, without links in its path, but the one that it is itself if that is not followed.
fn real_place(source: &WatchedSource) -> io::Result<PathBuf> {
    match (source.path.parent(), source.path.file_name()) {
        (Some(parent), Some(name)) if !source.is_followed => Ok(parent.canonicalize()?.join(name)),
        _ => source.path.canonicalize(),
    }
}

/// Why changes are not told, from what the system said.
fn why_not(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "only root can watch them".to_owned(),
        io::ErrorKind::InvalidInput => "this needs Linux 5.17".to_owned(),
        _ => error.to_string(),
    }
}
