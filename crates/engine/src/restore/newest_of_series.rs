//! The newest snapshot of each set of paths that a machine backs up, so that all of it can be restored.
//!
//! Each path is to come from one snapshot, the newest that is of it: else what was deleted since would come back from an
//! older one of another set.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{Selected, Selection};
use crate::Snapshot;
use crate::records::snapshots::within;

/// The newest snapshot of a series, and which of the paths below or above its own newer ones are of.
#[derive(Debug)]
pub struct NewestOfSeries<'a> {
    /// The snapshot.
    pub snapshot: &'a Snapshot,
    /// Such paths, absolute, each with the snapshot that is of it.
    pub newer: Vec<(&'a [u8], &'a Snapshot)>,
}

impl NewestOfSeries<'_> {
    /// Whether newer ones are of all that it is of.
    pub fn is_superseded(&self) -> bool {
        let is_newer = |path: &Vec<u8>| self.newer.iter().any(|(newer, _)| within(path, newer));
        self.snapshot.secret.paths.iter().all(is_newer)
    }

    /// Chooses what of it no newer one is of, and what of that `rest` wants.
    pub fn selection(
        &self,
        rest: impl Fn(&[u8], bool) -> Selected + Send + Sync + 'static,
    ) -> Selection {
        let newer: Vec<_> = self.newer.iter().map(|(path, _)| path.to_vec()).collect();
        Box::new(move |path, is_dir| match newer.iter().any(|newer| within(path, newer)) {
            true => Selected::No,
            false => rest(path, is_dir),
        })
    }
}

/// The newest of each series among some snapshots, the newest of all first.
pub fn newest_of_each_series<'a>(
    snapshots: impl IntoIterator<Item = &'a Snapshot>,
) -> Vec<NewestOfSeries<'a>> {
    let age = |one: &Snapshot| Reverse((one.taken_ns(), one.log_position));
    let mut newest: HashMap<_, &Snapshot> = HashMap::new();
    for one in snapshots {
        let known = newest.entry(one.series).or_insert(one);
        if age(one) < age(known) {
            *known = one;
        }
    }
    let mut newest: Vec<_> = newest.into_values().collect();
    newest.sort_by_key(|one| age(one));
    let mut found: Vec<NewestOfSeries<'_>> = Vec::new();
    for snapshot in newest {
        let earlier = found.iter().map(|one| one.snapshot);
        let of = earlier.flat_map(|one| one.secret.paths.iter().map(move |path| (&path[..], one)));
        let newer = of.filter(|(path, _)| snapshot.holds(path)).collect();
        found.push(NewestOfSeries { snapshot, newer });
    }
    found
}
