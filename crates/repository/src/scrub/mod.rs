//! Scrub: reading everything that is stored again, and checking names and closure, without keys.
//!
//! One block is in memory at a time. Packs are read from their own footers, not by way of the index,
//! so what the index hides is found; closure is walked by way of the index, with the marks of a
//! commit, so a commit waits for that part.

mod rounds;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use holdall_format::{BlockName, Footer, PackName, RecordHash, RecordKind, RepositoryId};
use holdall_protocol::{RepositoryError, ScrubDamage, ScrubProgress, ScrubReport};

use crate::index::{Listing, State};
use crate::opening::clear_parts::ClearParts;
use crate::pack_file::read_footer;
use crate::parity;
use crate::reachability::closure::Descend;
use crate::records::entries::Records;
use crate::records::files;
use crate::storage::layout::Layout;
use crate::storage::publish::{Shown, damaged, failed, is_there};
use crate::storage::retry::split_process_errors;
use crate::storage::{ReadAt, Stored};
use crate::store::Store;
use crate::tails::tail::{Tail, read_whole};

/// Most missing objects that a report names; there is no use in more.
const MAX_DAMAGES: usize = 100_000;

struct Scrub<'a> {
    store: &'a Store,
    should_stop: &'a AtomicBool,
    report: ScrubReport,
    bytes_total: u64,
    progress: &'a mut dyn FnMut(ScrubProgress),
}

impl Store {
    /// Reads everything again and checks hashes and closure, without keys.
    ///
    /// # Errors
    /// Only what keeps it from running at all, as want of open files does; damage is in the report. Where some
    /// was found by then, [`RepositoryError::Damaged`] names the first of it.
    pub fn scrub(
        &self,
        should_stop: &AtomicBool,
        progress: &mut dyn FnMut(ScrubProgress),
    ) -> Result<ScrubReport, RepositoryError> {
        // In this order: a pack that is published between the two is not taken for lost.
        let state = self.index().state();
        let listing = Listing::read(self.layout())?;
        let tails: u64 = state.tails.iter().map(|tail| tail.payload_bytes()).sum();
        let bytes_total = listing.packs.values().sum::<u64>() + tails;
        let report = ScrubReport::default();
        let mut scrub = Scrub { store: self, should_stop, report, bytes_total, progress };
        scrub.check_all(&state, &listing).map_err(|error| or_damage(&scrub.report, error))?;
        scrub.advance_to(bytes_total);
        Ok(scrub.report)
    }
}

impl Scrub<'_> {
    fn check_all(&mut self, state: &State, listing: &Listing) -> Result<(), RepositoryError> {
        self.check_files(listing);
        self.check_unlisted(state, listing)?;
        let there = listing.packs.iter().filter(|(name, _)| !state.condemned.contains(name));
        for (name, &file_bytes) in there {
            let before = self.report.bytes;
            self.check_pack(name)?;
            self.go_on()?;
            self.advance_to(before + file_bytes);
        }
        self.check_parity()?;
        for tail in &state.tails {
            self.check_tail(tail);
            self.go_on()?;
        }
        self.check_records()?;
        self.check_keys()?;
        self.check_parity_share()?;
        self.check_closure()
    }

    fn go_on(&self) -> Result<(), RepositoryError> {
        if is_set(self.should_stop) { Err(RepositoryError::Interrupted) } else { Ok(()) }
    }

    fn tell(&mut self) {
        let (bytes_done, bytes_total) = (self.report.bytes, self.bytes_total);
        (self.progress)(ScrubProgress { bytes_done, bytes_total });
    }

    fn advance_to(&mut self, bytes: u64) {
        self.report.bytes = bytes.min(self.bytes_total);
        self.tell();
    }

    fn pack_damage(&mut self, pack: String, reason: impl ToString) {
        self.report.damaged.push(ScrubDamage::Pack { pack, reason: reason.to_string() });
    }

    /// How much parity is wanted, without which a pack gets none any more.
    fn check_parity_share(&mut self) -> Result<(), RepositoryError> {
        let (layout, file) = (self.store.layout(), self.store.layout().parity_share());
        let is_lost = || -> Result<bool, RepositoryError> {
            Ok(!is_there(&file)? && !parity::packs(layout)?.is_empty())
        };
        let reason = match split_process_errors(parity::percent(layout))? {
            Err(error) => error.to_string(),
            Ok(0) if is_lost()? => "it is missing, and no new pack gets parity".to_owned(),
            Ok(_) => return Ok(()),
        };
        let reason = format!("{reason}; `holdall check --parity PERCENT` writes it anew");
        self.pack_damage(file.display().to_string(), reason);
        Ok(())
    }

    /// Files that are no packs, and tails and records that could not be read at the start.
    fn check_files(&mut self, listing: &Listing) {
        let layout = self.store.layout();
        let records = [layout.records(), layout.tombstones()];
        for (path, reason) in &self.store.unreadable_files() {
            let is_listed = listing.packs.keys().any(|name| layout.pack(name).path() == path);
            // Packs, records and tombstones are read again below.
            if !is_listed && !records.iter().any(|folder| path.starts_with(folder.path())) {
                self.pack_damage(path.display().to_string(), reason);
            }
        }
    }

    /// Packs that the index knows and that were not listed: they are gone, or their folder could not be read.
    fn check_unlisted(&mut self, state: &State, listing: &Listing) -> Result<(), RepositoryError> {
        // What was condemned, and perhaps deleted meanwhile, nobody misses.
        let now = self.store.index().state();
        let known: BTreeSet<PackName> = now.packs.iter().map(|pack| pack.name).collect();
        let is_missed = |pack: &PackName| {
            let is_listed = listing.packs.contains_key(pack);
            !is_listed && known.contains(pack) && !now.condemned.contains(pack)
        };
        for pack in state.packs.iter().filter(|pack| is_missed(&pack.name)) {
            match self.store.layout().pack(&pack.name).is_there() {
                Ok(true) => self.check_pack(&pack.name)?,
                Ok(false) => self.pack_damage(pack.name.to_string(), "its file is gone"),
                Err(error) => self.pack_damage(pack.name.to_string(), error),
            }
        }
        Ok(())
    }

    fn check_pack(&mut self, name: &PackName) -> Result<(), RepositoryError> {
        self.report.packs += 1;
        let path = self.store.layout().pack(name);
        match split_process_errors(open_pack(&path, path.open(), name, &self.store.repository()))? {
            Ok((file, footer)) => {
                self.tell_if_left_out(name, path.path());
                self.check_blocks(&file, &footer, name);
            }
            // Deleted since it was listed.
            Err(_) if self.store.index().state().condemned.contains(name) => {}
            Err(_) if path.is_there().is_ok_and(|is_there| !is_there) => {}
            Err(error) => self.pack_damage(name.to_string(), error),
        }
        Ok(())
    }

    /// What the disk did not give when the index was made is missing in it, though it gives it now.
    fn tell_if_left_out(&mut self, name: &PackName, path: &Path) {
        let unreadable_files = self.store.unreadable_files();
        if let Some((_, reason)) =
            unreadable_files.iter().find(|(unreadable_files, _)| unreadable_files == path)
        {
            let reason =
                format!("it can be read now, but not when the repository was opened: {reason}");
            self.pack_damage(name.to_string(), reason);
        }
    }

    fn check_blocks(&mut self, file: &impl ReadAt, footer: &Footer, name: &PackName) {
        let should_stop = self.should_stop;
        for block in footer.blocks.iter().take_while(|_| !is_set(should_stop)) {
            self.report.blocks += 1;
            match block.table() {
                Ok(table) => self.report.objects += table.entries.len() as u64,
                Err(error) => self.block_damage(block.name, Some(*name), error),
            }
            match read_whole(file, block) {
                Ok(bytes) if is_named(&bytes, &block.name) => {}
                Ok(_) => {
                    self.block_damage(block.name, Some(*name), "its bytes do not have its hash");
                }
                Err(error) => self.block_damage(block.name, Some(*name), error),
            }
            self.advance_to(self.report.bytes + u64::from(block.header.payload_bytes));
        }
    }

    /// Reads all parity again: it is needed on the day on which its pack is damaged.
    fn check_parity(&mut self) -> Result<(), RepositoryError> {
        let layout = self.store.layout();
        for pack in parity::packs(layout)? {
            self.go_on()?;
            if !parity::is_sound(layout, &pack)? {
                let path = layout.pack_parity(&pack).display().to_string();
                self.pack_damage(path, "its parity is damaged; the pack itself is checked apart");
            }
        }
        Ok(())
    }

    fn check_tail(&mut self, tail: &Tail) {
        self.report.packs += 1;
        let (blocks, should_stop) = (tail.all_clear(), self.should_stop);
        let durable = blocks.iter().take(tail.durable_blocks());
        for block in durable.take_while(|_| !is_set(should_stop)) {
            self.report.blocks += 1;
            if let Ok(table) = block.table() {
                self.report.objects += table.entries.len() as u64;
            }
            match tail.read_block(block) {
                Ok(bytes) if is_named(&bytes, &block.name) => {}
                Ok(_) => self.block_damage(block.name, None, "its bytes do not have its hash"),
                Err(error) => self.block_damage(block.name, None, error),
            }
            self.advance_to(self.report.bytes + u64::from(block.header.payload_bytes));
        }
    }

    fn block_damage(&mut self, block: BlockName, pack: Option<PackName>, reason: impl ToString) {
        let reason = reason.to_string();
        self.report.damaged.push(ScrubDamage::Block { block, pack, reason });
    }

    fn check_records(&mut self) -> Result<(), RepositoryError> {
        for (path, reason) in damaged_records(self.store)? {
            let record = path.display().to_string();
            self.report.damaged.push(ScrubDamage::Record { record, reason });
        }
        Ok(())
    }

    /// Reads again what nobody opens the repository without.
    fn check_keys(&mut self) -> Result<(), RepositoryError> {
        for (path, reason) in damaged_keys(self.store)? {
            self.pack_damage(path, reason);
        }
        Ok(())
    }

    /// Walks everything that snapshots reach, whatever was known to be closed.
    fn check_closure(&mut self) -> Result<(), RepositoryError> {
        let commit = self.store.lock_commit();
        for entry in self.store.records().after(0) {
            let read = || split_process_errors(files::read(self.store.layout(), entry.position));
            if entry.kind != RecordKind::Snapshot || read()?.is_err() {
                continue;
            }
            self.go_on()?;
            self.report.snapshots += 1;
            let missing = self.store.descend(&commit, entry.root, Descend::Everything);
            match missing {
                Ok(missing) => self.missing(&missing, entry.hash),
                Err(error) => {
                    self.store.index().drop_tentative();
                    return Err(error);
                }
            }
        }
        self.store.index().drop_tentative();
        Ok(())
    }

    fn missing(&mut self, objects: &[holdall_format::ObjectId], record: RecordHash) {
        let room = MAX_DAMAGES.saturating_sub(self.report.damaged.len());
        let named = objects.iter().take(room);
        self.report.damaged.extend(named.map(|&object| ScrubDamage::Missing { object, record }));
    }
}

/// What kept a scrub from going on, or what it had found by then, which nobody would be told else.
fn or_damage(report: &ScrubReport, error: RepositoryError) -> RepositoryError {
    let (what, reason) = match report.damaged.first() {
        Some(_) if matches!(error, RepositoryError::Interrupted) => return error,
        Some(ScrubDamage::Pack { pack, reason }) => (pack.clone(), reason.clone()),
        Some(ScrubDamage::Block { block, reason, .. }) => (block.to_string(), reason.clone()),
        Some(ScrubDamage::Record { record, reason }) => (record.clone(), reason.clone()),
        Some(ScrubDamage::Missing { object, .. }) => (object.to_string(), "it is missing".into()),
        None => return error,
    };
    let found = report.damaged.len();
    let reason = format!("{reason}; {found} found when the rest could not be read: {error}");
    RepositoryError::Damaged { what, reason }
}

/// Reads all records again, and compares them with those that this process knows.
///
/// # Errors
/// Those that say nothing of any file.
fn damaged_records(store: &Store) -> Result<Vec<(PathBuf, String)>, RepositoryError> {
    let layout = store.layout();
    let loaded = Records::load(layout).map(|loaded| loaded.damaged);
    let mut damaged = match split_process_errors(loaded)? {
        Ok(damaged) => damaged,
        Err(error) => return Ok(vec![(layout.records().path().to_owned(), error.to_string())]),
    };
    damaged.extend(store.lost_records());
    for known in store.records().after(0) {
        let path = layout.record(known.position);
        if !path.exists() && !files::is_forgotten(layout, known.position)? {
            damaged.push((path.path().to_owned(), "its file is gone".to_owned()));
        }
    }
    Ok(damaged)
}

/// The copies of marker, configuration and wrappings that differ from what was stored, and why.
///
/// # Errors
/// Those that say nothing of any file.
fn damaged_keys(store: &Store) -> Result<Vec<(String, String)>, RepositoryError> {
    let (layout, generation) = (store.layout(), store.wrappings().generation());
    let shown = |path: Stored| path.display().to_string();
    Ok(match split_process_errors(ClearParts::read(layout))? {
        Ok(found) if found.config_bytes != store.config_bytes() => {
            vec![(shown(layout.config()), "it is not the one that was opened".to_owned())]
        }
        Ok(found) if found.wrappings.set.generation < generation => {
            vec![(shown(layout.wrappings_of(generation)), "its file is gone".to_owned())]
        }
        Ok(found) => {
            let amiss = found.amiss.into_iter();
            amiss.filter_map(|one| Some((shown(one.path), one.reason?))).collect()
        }
        Err(RepositoryError::Damaged { what, reason }) => vec![(what, reason)],
        Err(error) => vec![(shown(layout.config()), error.to_string())],
    })
}

/// Whether a file is one of those that [`damaged_keys`] reads.
fn is_of_keys(layout: &Layout, path: &Path) -> bool {
    let files = [layout.config(), layout.marker()];
    files.iter().any(|file| file.path() == path)
        || [layout.wrappings(), layout.spares()].iter().any(|dir| path.starts_with(dir.path()))
}

fn open_pack<F: ReadAt>(
    path: &impl Shown,
    opened: io::Result<F>,
    name: &PackName,
    repository: &RepositoryId,
) -> Result<(F, Footer), RepositoryError> {
    let file = opened.map_err(failed("opening", path))?;
    let (trailer, footer) = read_footer(path, &file, repository)?;
    if trailer.name != *name {
        return Err(damaged(path, format!("it is the pack {}", trailer.name)));
    }
    Ok((file, footer))
}

/// Whether a file that was opened is that pack, with every block as it was stored.
///
/// # Errors
/// Those that say nothing of the file.
pub(crate) fn is_sound_pack(
    path: &impl Shown,
    opened: io::Result<impl ReadAt>,
    name: &PackName,
    repository: &RepositoryId,
) -> Result<bool, RepositoryError> {
    let Ok((file, footer)) = split_process_errors(open_pack(path, opened, name, repository))?
    else {
        return Ok(false);
    };
    let sound = |block| read_whole(&file, block).is_ok_and(|bytes| is_named(&bytes, &block.name));
    Ok(footer.blocks.iter().all(sound))
}

fn is_set(flag: &AtomicBool) -> bool {
    flag.load(Ordering::Acquire)
}

fn is_named(bytes: &[u8], name: &BlockName) -> bool {
    blake3::hash(bytes).as_bytes() == name.as_bytes()
}
