//! Opening a repository directory: what packs and tails hold, and what a writer needs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdall_format::RepositoryId;
use holdall_protocol::RepositoryError;
use holdall_sys::Root;

use crate::index::{ClosedInTails, Index, IndexError, Listing};
use crate::log::Log;
use crate::opening::lease::{Access, Lease};
use crate::opening::probe::probe;
use crate::opening::recovery::Recovered;
use crate::opening::session::Sessions;
use crate::state_files::condemned;
use crate::state_files::high_water_mark;
use crate::state_files::superseded;
use crate::storage::Stored;
use crate::storage::layout::Layout;
use crate::storage::publish::{
    OWN_DIR_MODE, PRIVATE_DIR_MODE, failed, is_beside, make_name, names_in, remove, sync_folder,
};
use crate::tails::tail::Tail;

/// The folder in `tmp` of an index that is made for one time.
const INDEX: &str = "index";
/// More positions than one writer gives out: a tail holds 65,536 blocks at most.
const SET_ASIDE: u64 = 1 << 32;

/// The log of a store that is opened: it goes on behind all positions that are known, and behind those that earlier
/// writers set aside. Some may have been given that nobody here can tell: to blocks in files that could not be read now
/// and may be the next time, or by a writer who slept and writes on. A position that two blocks have would have what is
/// closed in one of them closed in the other. So the log goes on far behind then, and says so durably before anything has
/// such a position: the next to open may read other files than these.
pub(crate) fn go_on(
    layout: &Layout,
    access: Access,
    lease: &Lease,
    next_known: u64,
    is_whole: bool,
) -> Result<Log, RepositoryError> {
    let mut next = next_known.max(high_water_mark::read(&layout.positions())?);
    let are_all_known = is_whole && !lease.has_taken_over();
    if !are_all_known && access == Access::Write {
        next = next.saturating_add(SET_ASIDE);
        raise_to(layout, next)?;
        // Whoever took over meanwhile may go on from the same position.
        lease.renew()?;
    }
    Ok(Log::going_on_at(next))
}

/// Sets positions aside for this writer before it gives one to a record, durably: the next writer goes on behind them.
/// Should the record be lost, no other one gets its position, and it can be put back.
pub(crate) fn set_aside(layout: &Layout, log: &Log) -> Result<(), RepositoryError> {
    if !log.is_set_aside() {
        raise_to(layout, log.next().saturating_add(SET_ASIDE))?;
        log.note_set_aside();
    }
    Ok(())
}

fn raise_to(layout: &Layout, position: u64) -> Result<(), RepositoryError> {
    high_water_mark::advance(&layout.positions(), position, b"holdall positions, version 1\n")
}

/// The first log position that nothing is known to have.
pub(crate) fn next_known(
    found: &PacksAndTails,
    recovered: &Recovered,
    next_position: u64,
    sessions: &Sessions,
) -> u64 {
    let state = found.index.state();
    let packs = state.packs.iter().map(|pack| pack.last_arrival.saturating_add(1)).max();
    let behind_prune = state.pruned.saturating_add(1);
    let behind_others =
        [recovered.next_arrival, next_position, sessions.latest_start(), behind_prune];
    behind_others.into_iter().chain(packs).max().unwrap_or_default()
}

/// What packs and tails hold, when a store is opened.
pub(crate) struct PacksAndTails {
    pub(crate) index: Arc<Index>,
    pub(crate) tails: Vec<Arc<Tail>>,
    /// Files that cannot be used, and why.
    pub(crate) unreadable_files: Vec<(PathBuf, String)>,
    /// Packs, and folders of packs, that could not be read.
    pub(crate) left_out: Vec<Stored>,
    /// Whether all packs and tails could be read.
    pub(crate) is_whole: bool,
}

impl PacksAndTails {
    /// Takes the tails and the damaged files out of `recovered`.
    pub(crate) fn read(
        layout: &Layout,
        cache_dir: &Path,
        access: Access,
        repository: &RepositoryId,
        recovered: &mut Recovered,
    ) -> Result<Self, RepositoryError> {
        let mut listing = Listing::read(layout)?;
        let (index, mut closed) = open_index(cache_dir, access, repository, layout, &mut listing)?;
        let tails: Vec<_> =
            std::mem::take(&mut recovered.tails).into_iter().map(Arc::new).collect();
        for tail in &tails {
            index.add_old_tail(tail.clone(), &mut closed);
        }
        let condemned = condemned::read_all(layout)?.into_keys().collect();
        let superseded = superseded::read_all(layout)?;
        let pruned = condemned::last_prune(layout)?.max(superseded.newest);
        index.learn_superseded(superseded);
        index.learn_pruned(condemned, pruned);
        let is_whole = listing.left_out.is_empty() && recovered.damaged.is_empty();
        if !is_whole || !recovered.salvaged.is_empty() || !closed.are_all_there() {
            // What is lost, or moves, may have been reached by what was closed: it is found again
            // from records.
            index.forget_closed();
        }
        let mut unreadable_files = listing.unreadable_files;
        unreadable_files.append(&mut recovered.damaged);
        let left_out = listing.left_out;
        Ok(Self { index: Arc::new(index), tails, unreadable_files, left_out, is_whole })
    }
}

/// Opens the index in the cache folder. Where that fails, a writer makes one for this time beside
/// the repository: a cache is no reason not to back up.
fn open_index(
    cache_dir: &Path,
    access: Access,
    repository: &RepositoryId,
    layout: &Layout,
    listing: &mut Listing,
) -> Result<(Index, ClosedInTails), RepositoryError> {
    let mut untouched = listing.clone();
    let made =
        holdall_sys::make_folders(cache_dir, OWN_DIR_MODE).map_err(failed("making", cache_dir));
    let opened = made
        .map_err(IndexError::from)
        .and_then(|()| Index::open(&Root::guarded(cache_dir), repository, layout, listing));
    if opened.is_ok() || access == Access::Read {
        return Ok(opened?);
    }
    let beside = layout.tmp().join(INDEX);
    make_name(&beside, PRIVATE_DIR_MODE)?;
    let opened = Index::open(&beside, repository, layout, &mut untouched)?;
    *listing = untouched;
    Ok(opened)
}

/// Makes the folders that are not there, and their names durable.
pub(crate) fn make_folders(layout: &Layout) -> Result<(), RepositoryError> {
    let of_keys = [layout.wrappings().file(), layout.spares().file()];
    for folder in layout.folders() {
        let mode = if of_keys.iter().flatten().any(|of_keys| *of_keys == folder) {
            OWN_DIR_MODE
        } else {
            PRIVATE_DIR_MODE
        };
        make_name(&folder, mode)?;
    }
    sync_folder(layout.root())
}

/// Makes what a writer needs, and takes away what an earlier one left half-done.
pub(crate) fn make_ready(layout: &Layout, lease: &Lease) -> Result<(), RepositoryError> {
    make_folders(layout)?;
    sweep_tmp(layout, lease)?;
    probe(layout)
}

fn sweep_tmp(layout: &Layout, lease: &Lease) -> Result<(), RepositoryError> {
    let names = names_in(&layout.tmp())?;
    if !names.is_empty() {
        // Were it lost by now, some of these could be what whoever took it is about to publish.
        lease.renew()?;
    }
    // Other names are somebody else's.
    for name in names.iter().filter_map(|name| name.to_str()) {
        let path = layout.tmp().join(name);
        if name == INDEX && path.is_dir() {
            path.remove_tree().map_err(failed("removing", &path))?;
        } else if is_beside(name) && !path.is_dir() {
            remove(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::storage::layout::number_of;
    use crate::storage::publish::make_dir;

    /// Whoever took over went on from the same positions, unless it found what this one raised.
    #[test]
    fn no_log_goes_on_where_nothing_is_known_without_the_lease() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        make_dir(&layout.lease()).unwrap();
        let released = "holdall lease, version 1\nreleased\n";
        fs::write(layout.lease_file(1).path(), released).unwrap();
        layout.folders().iter().for_each(|folder| make_dir(folder).unwrap());
        let lease = Lease::take(&layout, Access::Write).unwrap();
        let next =
            |is_whole| go_on(&layout, Access::Write, &lease, 7, is_whole).map(|log| log.next());
        assert_eq!(next(true).unwrap(), 7);
        assert_eq!(next(false).unwrap(), 7 + SET_ASIDE);
        assert_eq!(next(true).unwrap(), 7 + SET_ASIDE);

        let newest = names_in(&layout.lease()).unwrap().pop().unwrap();
        let newest = number_of(newest.to_str().unwrap()).unwrap();
        fs::write(layout.lease_file(newest + 2).path(), b"theirs").unwrap();
        let lost = next(false).unwrap_err();
        assert!(matches!(lost, RepositoryError::InUse { .. }), "{lost}");
    }

    #[test]
    fn the_next_writer_goes_on_behind_all_that_this_one_may_have_given_to_records() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        layout.folders().iter().for_each(|folder| make_dir(folder).unwrap());
        let lease = Lease::take(&layout, Access::Write).unwrap();
        let go_on = || go_on(&layout, Access::Write, &lease, 7, true).unwrap();
        let log = go_on();
        for _ in 0..2 {
            log.take();
            set_aside(&layout, &log).unwrap();
        }
        assert_eq!(go_on().next(), 8 + SET_ASIDE);
        // Who gives none to a record sets none aside.
        assert_eq!(go_on().next(), 8 + SET_ASIDE);
    }
}
