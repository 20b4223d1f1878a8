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
use super::parents::Parents;
use super::scan::inner;
use crate::records::record::PROGRAM;
use crate::records::snapshot::Snapshot;
use crate::walked::FullWalk;

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
    /// Those of a run that builds on these parents: what was handed over, and what needs a look in any case.
    ///
    /// # Errors
    /// Why it cannot go by places.
    pub(super) fn of_run(
        changes: &Changes,
        sources: &[Source],
        parents: &Parents<'_>,
        mounts: &Mounts,
    ) -> Result<Self, FullWalk> {
        if !parents.knows_leaves() {
            return Err(FullWalk::NothingRemembered);
        }
        let mut places = Self::handed_over(changes, sources)?;
        places.add_mounts(mounts, sources)?;
        let need_a_look = parents.need_a_look().ok_or(FullWalk::TooMany)?;
        need_a_look.iter().for_each(|directory| places.add(directory, false));
        Ok(places)
    }

    fn handed_over(changes: &Changes, sources: &[Source]) -> Result<Self, FullWalk> {
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

    fn add(&mut self, directory: &PathKey, is_deep: bool) {
        *self.0.entry(directory.as_bytes().to_vec()).or_default() |= is_deep;
    }

    /// The walk begins at the sources, and meets no place above them.
    fn add_sources_below(&mut self, directory: &PathKey, sources: &[Source]) {
        let keys = sources.iter().filter_map(|source| PathKey::from_absolute(&source.path).ok());
        keys.filter(|key| directory.is_ancestor_of(key)).for_each(|key| self.add(&key, true));
    }

    /// Adds the folders in which something is mounted: what is mounted there, no journal of the file
    /// system around it knows. Refuses a source that lies where metadata do not show what changed.
    fn add_mounts(&mut self, mounts: &Mounts, sources: &[Source]) -> Result<(), FullWalk> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::changes::Place;
    use holdall_format::RecordHash;

    fn places(named: &[(&str, bool)]) -> Places {
        let place = |(directory, is_deep): &(&str, bool)| Place {
            directory: directory.into(),
            is_deep: *is_deep,
        };
        let places = named.iter().map(place).collect();
        let changes = Changes { since: RecordHash::from_bytes([1; 32]), places };
        let source = Source { path: b"/home/ann".to_vec(), read_at: b"/home/ann".to_vec() };
        Places::handed_over(&changes, &[source]).unwrap()
    }

    fn key(path: &str) -> PathKey {
        PathKey::from_absolute(path.as_bytes()).unwrap_or_default()
    }

    #[test]
    fn each_directory_is_a_place_or_leads_to_one_or_is_passed() {
        let places = places(&[("/home/ann/a", true), ("/home/ann/b/c", false), ("/home", false)]);
        let scope = |path| places.scope_of(&key(path));
        assert_eq!(scope("/home/ann/a"), Some(Scope::All));
        assert_eq!(
            (scope("/home/ann/b/c"), scope("/home")),
            (Some(Scope::Direct), Some(Scope::Direct))
        );
        assert_eq!(
            (scope("/home/ann"), scope("/home/ann/b")),
            (Some(Scope::Through), Some(Scope::Through))
        );
        assert_eq!(
            (scope("/home/ann/a.txt"), scope("/home/ann/b/cc"), scope("/home/bob")),
            (None, None, None)
        );
    }

    #[test]
    fn what_lies_directly_in_a_directory_and_leads_to_places_comes_in_order() {
        let places =
            places(&[("/x/a/b", false), ("/x/a.txt/c", false), ("/x/a", false), ("/xx", false)]);
        let next = |from: &[u8]| places.next_below(&key("/x"), from);
        let first = next(&[]).unwrap();
        assert_eq!(first, key("/x/a"));
        let second = next(&first.after_subtree().unwrap()).unwrap();
        assert_eq!(second, key("/x/a.txt"));
        assert_eq!(next(&second.after_subtree().unwrap()), None);
        assert_eq!(places.next_below(&PathKey::root(), &[]), Some(key("/x")));
    }

    #[test]
    fn a_deep_place_above_a_source_is_one_there() {
        assert_eq!(places(&[("/home", true)]).scope_of(&key("/home/ann")), Some(Scope::All));
        assert_eq!(places(&[("/", true)]).scope_of(&key("/home/ann")), Some(Scope::All));
        assert_eq!(places(&[("/home", false)]).scope_of(&key("/home/ann")), None);
    }
}
