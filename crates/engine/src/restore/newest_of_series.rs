//! The newest snapshot of each set of paths that a machine backs up, so that all of it can be restored.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::Snapshot;

/// The newest of each series among some snapshots, the newest of all first.
pub fn newest_of_each_series<'a>(
    snapshots: impl IntoIterator<Item = &'a Snapshot>,
) -> Vec<&'a Snapshot> {
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
    newest
}
