//! Where a walk looks that was told what may have changed, and the way there.
//!
//! Beside the places that were handed over there are those that need a look in every run, which no
//! journal has to know of: where something is mounted, where the parent has what was not settled when
//! it was read, and where it has files with several names. Such a file can be changed by way of a name
//! that lies outside of the sources.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use holdall_sys::Dir;
use holdall_tree::PathKey;

use super::changes::Changes;
use super::describe::{Lasting, Mounts};
use super::options::{BackupOptions, FOLLOWED, Source};
use super::scan::inner;
use super::walked::FullWalk;
use crate::records::record::PROGRAM;
use crate::records::snapshot::Snapshot;

/// How much of a directory is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// All that is in it and below.
    All,
    /// What lies directly in it.
    Direct,
    /// Only what leads to a place.
    Through,
}

/// The places, by their keys, and whether all below each is looked at.
#[derive(Debug, Default)]
pub(super) struct Places(BTreeMap<Vec<u8>, bool>);

impl Places {
    /// Those that were handed over.
    ///
    /// # Errors
    /// Why they do not do for this run.
    pub(super) fn new(changes: &Changes, sources: &[Source]) -> Result<Self, FullWalk> {
        let mut places = Self::default();
        for place in &changes.places {
            let directory = PathKey::from_absolute(place.directory.as_os_str().as_bytes());
            let directory = directory.map_err(|_| FullWalk::Unfit)?;
            if place.is_deep {
                places.add_sources_below(&directory, sources);
            }
            places.add(&directory, place.is_deep);
        }
        Ok(places)
    }

    /// Adds a place.
    pub(super) fn add(&mut self, directory: &PathKey, is_deep: bool) {
        *self.0.entry(directory.as_bytes().to_vec()).or_default() |= is_deep;
    }

    /// The walk begins at the sources, and meets no place above them.
    fn add_sources_below(&mut self, directory: &PathKey, sources: &[Source]) {
        let keys = sources.iter().filter_map(|source| PathKey::from_absolute(&source.path).ok());
        keys.filter(|key| directory.is_ancestor_of(key)).for_each(|key| self.add(&key, true));
    }

    /// Adds the folders in which something is mounted: what is mounted there, no journal of the file
    /// system around it knows.
    ///
    /// # Errors
    /// A source lies where metadata do not show what changed.
    pub(super) fn add_mounts(
        &mut self,
        mounts: &Mounts,
        sources: &[Source],
    ) -> Result<(), FullWalk> {
        for source in sources.iter().filter(|source| !source.read_at.is_empty()) {
            let read_at = source.read_at.strip_suffix(FOLLOWED).unwrap_or(&source.read_at);
            // Of what cannot be looked at, the plan tells.
            let Ok(real) = fs::canonicalize(Path::new(OsStr::from_bytes(read_at))) else {
                continue;
            };
            let real = real.into_os_string().into_vec();
            let Ok(stat) = Dir::on_the_way(&real).and_then(|dir| dir.stat_self()) else { continue };
            if mounts.lasting(&stat) != Lasting::ALL {
                return Err(FullWalk::FileSystem);
            }
            for below in mounts.below(&real) {
                let point =
                    [source.path.strip_suffix(b"/").unwrap_or(&source.path), below].concat();
                let point = PathKey::from_absolute(&point).map_err(|_| FullWalk::Unfit)?;
                point.parent().iter().for_each(|above| self.add(above, false));
            }
        }
        Ok(())
    }

    /// What is looked at of a directory, within one of which not all is; nothing if there is no place in it.
    pub(super) fn scope_of(&self, directory: &PathKey) -> Option<Scope> {
        match self.0.get(directory.as_bytes()) {
            Some(true) => Some(Scope::All),
            Some(false) => Some(Scope::Direct),
            None => self.next_below(directory, &[]).map(|_| Scope::Through),
        }
    }

    /// The first of what lies directly in a directory, at or behind the key `from`, that is a place or leads to one.
    pub(super) fn next_below(&self, directory: &PathKey, from: &[u8]) -> Option<PathKey> {
        let from = from.max(&directory.before_children()).to_vec();
        let (place, _) = self.0.range(from..).next()?;
        let place = PathKey::from_bytes(place.clone()).ok()?;
        if !directory.is_ancestor_of(&place) {
            return None;
        }
        let depth = directory.components().count();
        directory.child(place.components().nth(depth)?).ok()
    }
}

/// Whether a run that builds on these snapshots can go by places.
///
/// # Errors
/// Why it cannot.
pub(super) fn check(
    changes: &Changes,
    options: &BackupOptions,
    parents: &[Snapshot],
    tells_taken: bool,
) -> Result<(), FullWalk> {
    let newest = parents.first().ok_or(FullWalk::OtherSnapshot)?;
    let secret = &newest.secret;
    let paths = options.sources.iter().map(|source| &source.path);
    let doubts = [
        (options.read_all || tells_taken, FullWalk::WantsAll),
        (!inner(&options.sources).is_empty(), FullWalk::NestedSources),
        (newest.checkpoint, FullWalk::Interrupted),
        (newest.id != changes.since, FullWalk::OtherSnapshot),
        (secret.program != PROGRAM, FullWalk::OtherVersion),
        (!secret.paths.iter().eq(paths), FullWalk::OtherOptions),
        (secret.excludes != options.exclude_patterns, FullWalk::OtherOptions),
        (secret.unreadable > 0, FullWalk::Problems),
    ];
    match doubts.into_iter().find(|(is_so, _)| *is_so) {
        Some((_, why)) => Err(why),
        None => Ok(()),
    }
}
