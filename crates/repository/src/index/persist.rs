//! Opening, saving and rebuilding the index.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use holdall_format::{PackName, RepositoryId};
use holdall_protocol::RepositoryError;
use holdall_sys::PathBeneath;

use super::bits::Bits;
use super::error::IndexError;
use super::manifest::{ClosedByArrival, ClosedInTails, KnownRun, Manifest, PackInfo};
use super::page_cache::PageCache;
use super::run::{Run, run_number};
use super::state::State;
use super::{Index, bit, lock, manifest_path, pack_info};
use crate::pack_file::read_footer;
use crate::storage::Stored;
use crate::storage::layout::{Layout, is_pack_folder};
use crate::storage::publish::{damaged, failed, names_in, read_limited, remove, replace};
use crate::storage::retry::{is_of_this_process, says_lost, split_process_errors};
use crate::tails::tail::Tail;

/// A manifest has at most one bit for each object, and 65 bytes for each pack.
const MANIFEST_MAX_BYTES: u64 = 1 << 30;
/// Why a pack is left out that may be as it should be.
const NOT_ADDED: &str = "the index could not be made anew so far";
/// The manifest is written anew once this many packs, and an eighth of all, are not in it.
const UNSAVED_PACKS: u64 = 16;

/// The packs in a repository's directory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listing {
    /// Length of each pack's file.
    pub(crate) packs: BTreeMap<PackName, u64>,
    /// Files that are no packs, and packs that cannot be read, with the reason.
    pub(crate) unreadable_files: Vec<(PathBuf, String)>,
    /// Packs that cannot be read, and folders that may hold some, so that what is there counts as lost.
    pub(crate) left_out: Vec<Stored>,
}

impl Listing {
    /// Lists all packs.
    pub(crate) fn read(layout: &Layout) -> Result<Self, RepositoryError> {
        let mut listing = Self::default();
        // What else lies there is somebody else's.
        let names = layout.packs().names()?.into_iter();
        for folder in names.filter(|name| name.to_str().is_some_and(is_pack_folder)) {
            let folder = layout.packs().join(folder);
            if let Err(error) = split_process_errors(listing.read_folder(layout, &folder))? {
                listing.leave_out(folder, error.to_string());
            }
        }
        Ok(listing)
    }

    /// Lists the packs in one folder of them.
    fn read_folder(&mut self, layout: &Layout, folder: &Stored) -> Result<(), RepositoryError> {
        for (name, stat) in folder.list()? {
            let path = folder.join(name);
            let name = path.file_name().and_then(|name| name.to_str()?.parse::<PackName>().ok());
            let Some(name) = name.filter(|name| layout.pack(name) == path) else {
                self.unreadable_files
                    .push((path.path().to_owned(), "not the name of a pack".into()));
                continue;
            };
            match stat {
                Ok(stat) if stat.is_file => {
                    self.packs.insert(name, stat.len_bytes);
                }
                Ok(_) => self.leave_out(path, "it is not a regular file".to_owned()),
                Err(error) => self.leave_out(path, error.to_string()),
            }
        }
        Ok(())
    }

    /// Whether a pack, or a folder that may hold some, was found that cannot be read.
    fn found_unreadable(&self) -> bool {
        let mut told = self.unreadable_files.iter().filter(|(_, reason)| reason != NOT_ADDED);
        told.any(|(path, _)| self.has_left_out(path))
    }

    /// Whether every pack is there of which anything counts.
    fn has_all_of(&self, state: &State) -> bool {
        let is_there = |pack: &PackInfo| self.packs.get(&pack.name) == Some(&pack.file_bytes);
        state.packs.iter().all(|pack| state.condemned.contains(&pack.name) || is_there(pack))
    }

    fn has_left_out(&self, path: &Path) -> bool {
        self.left_out.iter().any(|left_out| left_out.path() == path)
    }

    fn leave_out(&mut self, path: Stored, reason: String) {
        self.unreadable_files.push((path.path().to_owned(), reason));
        self.left_out.push(path);
    }
}

/// Held by a test that wants no footer to be read meanwhile.
#[cfg(test)]
pub(crate) static HALTED: Mutex<()> = Mutex::new(());

impl Index {
    /// Opens the index in `dir`, or makes it: stored runs as far as they are whole and of these
    /// packs, and new ones for all other packs. Tails are added by the caller. Packs that cannot
    /// be read are left out and named in the listing.
    pub(crate) fn open(
        dir: &PathBeneath,
        repository: &RepositoryId,
        layout: &Layout,
        listing: &mut Listing,
    ) -> Result<(Self, ClosedInTails), IndexError> {
        clear_folders(dir)?;
        let loaded = match load(dir, repository, listing) {
            Err(IndexError::Damaged { .. }) => None,
            loaded => loaded?,
        };
        if let Some(loaded) = loaded {
            match Self::complete(dir, repository, layout, listing, loaded) {
                // Merging reads pages that opening does not look at.
                Err(IndexError::Damaged { .. }) => {}
                completed => return completed,
            }
        }
        Self::complete(dir, repository, layout, listing, Loaded::default())
    }

    /// The index with what was loaded, and new runs for all packs that are not in it.
    fn complete(
        dir: &PathBeneath,
        repository: &RepositoryId,
        layout: &Layout,
        listing: &mut Listing,
        (state, closed_position, mut closed): Loaded,
    ) -> Result<(Self, ClosedInTails), IndexError> {
        let index = Self::of_state(dir, repository, state, closed_position);
        index.sweep()?;
        index.add_all(layout, listing, &mut closed)?;
        Ok((index, closed))
    }

    fn of_state(
        dir: &PathBeneath,
        repository: &RepositoryId,
        state: State,
        closed_position: u64,
    ) -> Self {
        Self {
            dir: dir.to_owned(),
            repository: *repository,
            cache: PageCache::default(),
            state: Mutex::new(Arc::new(state)),
            changing: Mutex::new(()),
            marks: Mutex::new(()),
            closed_position: AtomicU64::new(closed_position),
            unsaved_closed: AtomicU64::new(0),
            unsaved_packs: AtomicU64::new(0),
            should_stop: AtomicBool::new(false),
            obsolete: Mutex::new(Vec::new()),
        }
    }

    /// Makes everything anew from footers, beside what there is: until it is whole, questions are answered with
    /// that, and with what of it is closed; then nothing is. It stays where this ends before it came to all, unless
    /// a pack of it is gone: what lay there counts as missing. What is closed stays then too, unless a pack was met
    /// that cannot be read. Says what there is and what of it could not be added, and with what error it ended.
    ///
    /// Whoever calls holds the commit lock, so nobody closes anything meanwhile.
    pub(crate) fn rebuild(
        &self,
        layout: &Layout,
    ) -> Result<(Listing, Result<(), IndexError>), IndexError> {
        let _changing = lock(&self.changing);
        let mut listing = Listing::read(layout)?;
        // Whoever waits for this because of the same damage does not try it once more.
        self.change_state(|state| state.generation += 1);
        self.drop_tentative();
        let anew = Self::of_state(&self.dir, &self.repository, State::default(), 0);
        let ended = anew.add_all(layout, &mut listing, &mut ClosedInTails::default());
        if ended.is_ok() || !listing.has_all_of(&self.state()) {
            self.go_on_with(&anew);
        } else {
            anew.remove_runs();
            if listing.found_unreadable() {
                self.forget_closed();
            }
        }
        Ok((listing, ended))
    }

    /// Has the packs and runs of an index in the same folder take the place of its own. Of the tails, too, nothing
    /// is closed then: what it reached may be lost.
    fn go_on_with(&self, anew: &Self) {
        let marks = self.marks();
        let made = anew.state();
        self.change_state(|state| {
            let before = std::mem::replace(&mut state.runs, made.runs.clone());
            lock(&self.obsolete).extend(before.iter().map(|run| run.path().clone()));
            state.packs = made.packs.clone();
            state.in_packs = made.in_packs;
            state.set_condemned(BTreeSet::clone(&state.condemned));
        });
        // Whoever met what was damaged finds by the generation that it is repaired.
        self.forget_closed_holding(&marks);
        lock(&self.obsolete).append(&mut lock(&anew.obsolete));
        let packs = anew.unsaved_packs.load(Ordering::Acquire);
        self.unsaved_packs.fetch_add(packs, Ordering::AcqRel);
    }

    /// Removes the files of an index that nobody goes on with: the disk may be full.
    fn remove_runs(&self) {
        let state = self.state();
        let runs = state.runs.iter().map(|run| run.path().clone());
        for path in runs.chain(std::mem::take(&mut *lock(&self.obsolete))) {
            // What stays is swept at the next open.
            let _ = remove(&path);
        }
    }

    /// Adds runs for all packs of the listing that are not in the catalogue. Those that it could not add, or did not
    /// come to, it leaves out.
    fn add_all(
        &self,
        layout: &Layout,
        listing: &mut Listing,
        closed: &mut ClosedInTails,
    ) -> Result<(), IndexError> {
        let known: BTreeSet<PackName> = self.state().packs.iter().map(|pack| pack.name).collect();
        let (mut left_out, mut ended) = (Vec::new(), Ok(()));
        for (name, &file_bytes) in &listing.packs {
            if known.contains(name) {
                continue;
            }
            if ended.is_err() {
                left_out.push((layout.pack(name), NOT_ADDED.to_owned()));
                continue;
            }
            match self.add_from_footer(layout, name, file_bytes, closed) {
                Ok(()) => ended = self.merge_all(),
                Err(IndexError::Failed(error)) if is_about_pack(&error) => {
                    left_out.push((layout.pack(name), reason_of(error)));
                }
                Err(error) => {
                    left_out.push((layout.pack(name), NOT_ADDED.to_owned()));
                    ended = Err(error);
                }
            }
        }
        left_out.into_iter().for_each(|(path, reason)| listing.leave_out(path, reason));
        ended
    }

    fn merge_all(&self) -> Result<(), IndexError> {
        while self.merge_some()? {}
        Ok(())
    }

    fn add_from_footer(
        &self,
        layout: &Layout,
        name: &PackName,
        file_bytes: u64,
        closed: &mut ClosedInTails,
    ) -> Result<(), IndexError> {
        #[cfg(test)]
        drop(lock(&HALTED));
        let path = layout.pack(name);
        // Not to be taken for an error of the index's own files.
        let about_pack = |error| match error {
            error if is_of_this_process(&error) => error,
            RepositoryError::Io { .. } => damaged(&path, error),
            error => error,
        };
        let file = path.open().map_err(failed("opening", &path)).map_err(about_pack)?;
        let (trailer, footer) = read_footer(&path, &file, &self.repository).map_err(about_pack)?;
        if trailer.name != *name {
            return Err(damaged(&path, format!("it is the pack {}", trailer.name)).into());
        }
        self.add_pack(pack_info(*name, &footer, file_bytes), &footer, closed)
    }

    /// Removes files of the index that it does not use.
    fn sweep(&self) -> Result<(), RepositoryError> {
        let used: BTreeSet<u64> = self.state().runs.iter().map(|run| run.number()).collect();
        for name in names_in(&self.dir)? {
            let number = name.to_str().and_then(run_number);
            if number.is_some_and(|number| !used.contains(&number)) {
                remove(&self.dir.join(name))?;
            }
        }
        Ok(())
    }

    /// Writes the manifest if enough changed.
    pub(crate) fn save_if_due(&self) -> Result<(), RepositoryError> {
        let state = self.state();
        let packs = self.unsaved_packs.load(Ordering::Acquire);
        let closed = self.unsaved_closed.load(Ordering::Acquire);
        let is_due = packs >= UNSAVED_PACKS.max(state.packs.len() as u64 / 8)
            || closed > state.entries() / 8 + 4096;
        if is_due { self.save() } else { Ok(()) }
    }

    /// Writes the manifest if anything changed.
    pub(crate) fn save_changes(&self) -> Result<(), RepositoryError> {
        let unsaved = [&self.unsaved_packs, &self.unsaved_closed];
        if unsaved.iter().any(|count| count.load(Ordering::Acquire) > 0) {
            self.save()
        } else {
            Ok(())
        }
    }

    /// Writes the manifest.
    pub(crate) fn save(&self) -> Result<(), RepositoryError> {
        let _changing = lock(&self.changing);
        let packs = self.unsaved_packs.load(Ordering::Acquire);
        let closed = self.unsaved_closed.load(Ordering::Acquire);
        let obsolete = std::mem::take(&mut *lock(&self.obsolete));
        let manifest = {
            let _marks = self.marks();
            manifest_of(&self.state(), self.closed_position())
        };
        let saved =
            replace(&self.dir, &manifest_path(&self.dir), &manifest.encode(&self.repository));
        if saved.is_err() {
            // The old manifest may still need them.
            lock(&self.obsolete).extend(obsolete);
            return saved;
        }
        self.unsaved_packs.fetch_sub(packs, Ordering::AcqRel);
        self.unsaved_closed.fetch_sub(closed, Ordering::AcqRel);
        obsolete.iter().try_for_each(remove)
    }
}

/// Removes folders: none of them is the index's, and they may be where its files belong.
fn clear_folders(dir: &PathBeneath) -> Result<(), RepositoryError> {
    for name in names_in(dir)? {
        let path = dir.join(name);
        if path.is_dir() {
            path.remove_tree().map_err(failed("removing", &path))?;
        }
    }
    Ok(())
}

fn reason_of(error: RepositoryError) -> String {
    match error {
        RepositoryError::Damaged { reason, .. } => reason,
        error => error.to_string(),
    }
}

/// Whether an error is about one pack alone, so that the others can be used.
fn is_about_pack(error: &RepositoryError) -> bool {
    matches!(error, RepositoryError::Damaged { .. } | RepositoryError::Refused { .. })
}

type Loaded = (State, u64, ClosedInTails);

/// Reads the manifest and opens its runs; `None` if there is none or it is of other packs.
fn load(
    dir: &PathBeneath,
    repository: &RepositoryId,
    listing: &Listing,
) -> Result<Option<Loaded>, IndexError> {
    let path = manifest_path(dir);
    let bytes = match read_limited(&path, MANIFEST_MAX_BYTES) {
        Err(error) if says_lost(&error) => return Err(IndexError::damaged(&path, error)),
        read => read?,
    };
    let Some(bytes) = bytes else { return Ok(None) };
    let manifest =
        Manifest::decode(&bytes, repository).map_err(|error| IndexError::damaged(&path, error))?;
    let is_there = |pack: &PackInfo| listing.packs.get(&pack.name) == Some(&pack.file_bytes);
    if !manifest.packs.iter().all(is_there) {
        return Ok(None);
    }
    let mut state = State { pruned: manifest.pruned, ..State::default() };
    manifest.packs.into_iter().for_each(|pack| state.add_pack(pack));
    for known in manifest.runs {
        let run = Run::open(dir, known.number, repository)?;
        if run.shape().entries != known.entries {
            return Err(IndexError::damaged(run.path(), "another number of entries"));
        }
        let closed = Bits::from_words(known.closed, known.entries)
            .ok_or_else(|| IndexError::damaged(&path, "another number of bits"))?;
        state.runs.push(Arc::new(run.with_closed(closed)));
    }
    Ok(Some((state, manifest.closed_position, manifest.closed_in_tails.into())))
}

fn manifest_of(state: &State, closed_position: u64) -> Manifest {
    let run = |run: &Arc<Run>| KnownRun {
        number: run.number(),
        entries: run.shape().entries,
        closed: run.closed.words().collect(),
    };
    Manifest {
        closed_position,
        packs: state.packs.iter().map(|pack| PackInfo::clone(pack)).collect(),
        runs: state.runs.iter().map(run).collect(),
        closed_in_tails: state.tails.iter().flat_map(|tail| closed_in(tail)).collect(),
        pruned: state.pruned,
    }
}

/// What is closed in a tail, for blocks in which anything is.
fn closed_in(tail: &Tail) -> ClosedByArrival {
    let mut places: BTreeMap<u64, usize> = BTreeMap::new();
    let mut closed = ClosedByArrival::new();
    let objects = tail.objects();
    for (id, arrival) in objects.ascending() {
        let place = places.entry(arrival).or_default();
        if objects.get(&id, arrival).is_some_and(|object| object.closed) {
            let bits = closed.entry(arrival).or_default();
            bits.resize(bits.len().max(*place / 8 + 1), 0);
            if let Some(byte) = bits.get_mut(*place / 8) {
                *byte |= 1 << (*place % 8);
            }
        }
        *place += 1;
    }
    closed
}

/// Marks what is known to be closed in a tail that was just opened.
fn mark_tail(tail: &Tail, closed: &mut ClosedInTails) {
    let mut places: BTreeMap<u64, usize> = BTreeMap::new();
    let mut objects = tail.objects();
    for (id, arrival) in objects.ascending() {
        let Some(bits) = closed.meet(arrival) else { continue };
        let place = places.entry(arrival).or_default();
        if let Some(object) = objects.get_mut(&id, arrival) {
            object.closed = bit(bits, *place);
        }
        *place += 1;
    }
}

impl Index {
    /// Makes a tail known that was there before, with what was closed in it.
    pub(crate) fn add_old_tail(&self, tail: Arc<Tail>, closed: &mut ClosedInTails) {
        mark_tail(&tail, closed);
        self.add_tail(tail);
    }
}
