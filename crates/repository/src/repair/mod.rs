//! Repair: what a scrub found damaged is repaired, as far as somebody without keys can.
//!
//! ```text
//! scrub     which packs are damaged
//! restore   a pack of whose shards few enough are lost, from its parity; also one that is gone, and missed
//! salvage   of any other: what is sound is stored again, what is lost counts as missing
//! scrub     what is left
//! ```
//!
//! Nothing is made worse. A restored pack replaces the damaged one only when every name in it is right,
//! and every damaged file is kept in `quarantine/`, from where only a person deletes it. What counts
//! as missing is sent again by the next backup that has it.

pub(crate) mod put_back;
mod restoring;
mod salvaging;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use holdall_format::{BlockName, PackName};
use holdall_protocol::{
    Repair, RepairReport, RepositoryError, ScrubDamage, ScrubProgress, ScrubReport,
};

use crate::opening::clear_parts::ClearParts;
use crate::parity;
use crate::storage::Stored;
use crate::storage::publish::is_there;
use crate::storage::retry::retry_until_some;
use crate::storage::set_aside::keep_as;
use crate::store::Store;

impl Store {
    /// Scrubs, repairs what can be repaired, and scrubs again if anything was.
    ///
    /// # Errors
    /// Only what keeps it from running; what was repaired until then is repaired.
    pub fn repair(
        &self,
        dry_run: bool,
        should_stop: &AtomicBool,
        progress: &mut dyn FnMut(ScrubProgress),
    ) -> Result<RepairReport, RepositoryError> {
        self.appender()?;
        let mut report = RepairReport { repairs: self.take_repaired(), ..RepairReport::default() };
        if !dry_run {
            report
                .repairs
                .extend(ClearParts::read(self.layout())?.repair(self.layout(), self.lease())?);
            report.quarantined = self.put_damaged_tombstones_aside()?;
        }
        let copies = report.repairs.len();
        let found = self.scrub(should_stop, progress)?;
        let generation = self.index().state().generation;
        let repaired = self.repair_found(&found, dry_run, should_stop, &mut report);
        let is_changed = self.index().state().generation != generation;
        let is_repaired = report.repairs.len() > copies;
        let found_anew = match !dry_run && (is_changed || is_repaired) {
            // Also where it could not go on: until then nothing is closed.
            true => self.find_anew(),
            false => Ok(()),
        };
        repaired.and(found_anew)?;
        report.scrub = match !dry_run && is_repaired {
            false => found,
            true => self.scrub(should_stop, progress)?,
        };
        Ok(report)
    }

    /// Repairs what a scrub found, as far as it can be.
    fn repair_found(
        &self,
        found: &ScrubReport,
        dry_run: bool,
        should_stop: &AtomicBool,
        report: &mut RepairReport,
    ) -> Result<(), RepositoryError> {
        let (packs, parities) = self.damaged_packs(found);
        // Nobody tells that one is gone which was gone when the repository was opened.
        let lost = self.lost_packs(found)?;
        let in_tails: BTreeSet<BlockName> = found.damaged.iter().filter_map(in_tail).collect();
        let mut hindered = None;
        if packs.iter().any(|pack| !self.is_known(pack)) {
            // One that could not be read when the repository was opened may be by now.
            self.find_anew()?;
        }
        for pack in &packs {
            stop_if(should_stop)?;
            let repaired = self.repair_pack(pack, dry_run, &mut report.quarantined);
            report.repairs.extend(unless_hindered(repaired, &mut hindered)?);
        }
        for pack in lost.difference(&packs) {
            stop_if(should_stop)?;
            let restored = retry_until_some(|| self.restore_lost(pack, dry_run));
            report.repairs.extend(unless_hindered(restored, &mut hindered)?);
        }
        for pack in &parities {
            stop_if(should_stop)?;
            let remade =
                self.remake_parity(pack, dry_run, &report.repairs, &mut report.quarantined)?;
            report.repairs.extend(remade);
        }
        report.repairs.extend(self.salvage_tail(&in_tails, dry_run, &mut report.quarantined)?);
        report.repairs.extend(self.put_unread_tails_aside(dry_run, &mut report.quarantined)?);
        hindered.map_or(Ok(()), Err)
    }

    /// Keeps so much parity from now on, and makes what is missing of it; says of how many packs. Where there is
    /// more, it stays.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`] over 100 per cent.
    pub fn keep_parity(
        &self,
        percent: u8,
        should_stop: &AtomicBool,
    ) -> Result<u64, RepositoryError> {
        self.appender()?;
        if percent > 100 {
            let reason = "parity is a share of each pack, from 0 to 100 per cent".into();
            return Err(RepositoryError::Refused { reason });
        }
        parity::set_percent(self.layout(), percent)?;
        self.make_missing_parity(should_stop)
    }

    /// Makes the parity that should be there and is not; says of how many packs.
    ///
    /// # Errors
    /// As far as it came, it is made.
    pub fn make_missing_parity(&self, should_stop: &AtomicBool) -> Result<u64, RepositoryError> {
        let percent = parity::percent(self.layout())?;
        if percent == 0 {
            return Ok(0);
        }
        let state = self.index().state();
        let mut made = 0;
        for pack in state.packs.iter().map(|pack| &pack.name) {
            stop_if(should_stop)?;
            let is_enough = parity::is_enough(self.layout(), pack, percent)?;
            // Of a pack that goes no parity is wanted, and of one that is damaged none is made of that.
            if !is_enough && !state.condemned.contains(pack) && self.is_sound(pack)? {
                parity::make(self.layout(), pack, percent)?;
                made += 1;
            }
        }
        Ok(made)
    }

    /// Restores a damaged pack, or takes out of it what is sound.
    fn repair_pack(
        &self,
        pack: &PackName,
        dry_run: bool,
        quarantined: &mut Vec<String>,
    ) -> Result<Option<Repair>, RepositoryError> {
        match retry_until_some(|| self.restore_pack(pack, dry_run, quarantined))? {
            Some(repair) => Ok(Some(repair)),
            None => self.salvage_pack(pack, dry_run, quarantined),
        }
    }

    fn is_known(&self, pack: &PackName) -> bool {
        self.index().state().packs.iter().any(|known| known.name == *pack)
    }

    fn is_sound(&self, pack: &PackName) -> Result<bool, RepositoryError> {
        let path = self.layout().pack(pack);
        crate::scrub::is_sound_pack(&path, path.open(), pack, &self.repository())
    }

    /// The packs that are damaged, and those whose parity is.
    fn damaged_packs(&self, found: &ScrubReport) -> (BTreeSet<PackName>, BTreeSet<PackName>) {
        let (mut packs, mut parities) = (BTreeSet::new(), BTreeSet::new());
        for damage in &found.damaged {
            match damage {
                ScrubDamage::Block { pack: Some(pack), .. } => drop(packs.insert(*pack)),
                ScrubDamage::Pack { pack, .. } => {
                    let Some(name) = pack_of(pack) else { continue };
                    let is_parity = Path::new(pack) == self.layout().pack_parity(&name).path();
                    if is_parity {
                        parities.insert(name)
                    } else {
                        packs.insert(name)
                    };
                }
                _ => {}
            }
        }
        (packs, parities)
    }

    /// Makes the parity of a pack anew, if the pack is sound, or a dry run would have made it so before. That of a
    /// pack that is not stays, and that of one that is gone is put aside: it may be what something is taken out of.
    fn remake_parity(
        &self,
        pack: &PackName,
        dry_run: bool,
        before: &[Repair],
        quarantined: &mut Vec<String>,
    ) -> Result<Option<Repair>, RepositoryError> {
        let percent = parity::percent(self.layout())?;
        let has_file = self.layout().pack(pack).exists();
        let will_be_sound = dry_run && is_restored(pack, before);
        if has_file && !will_be_sound && !self.is_sound(pack)? {
            return Ok(None);
        }
        if !dry_run {
            if has_file {
                // It holds nothing that the pack does not.
                parity::remove_of(self.layout(), [pack].into_iter())?;
            } else {
                quarantined.extend(self.put_parity_aside(pack, &self.quarantine(pack)?)?);
            }
            if has_file && percent > 0 {
                parity::make(self.layout(), pack, percent)?;
            }
        }
        Ok(Some(Repair::Parity { pack: *pack }))
    }

    /// Puts the parity of a pack, if there is any, beside where the pack itself is put aside; says where.
    fn put_parity_aside(
        &self,
        pack: &PackName,
        aside: &Stored,
    ) -> Result<Option<String>, RepositoryError> {
        let parity = self.layout().pack_parity(pack);
        if !is_there(&parity)? {
            return Ok(None);
        }
        let mut name = aside.file_name().unwrap_or_default().to_owned();
        name.push(".parity");
        let aside = self.layout().quarantined_parity(name);
        keep_as(&parity, &aside)?;
        parity::remove_of(self.layout(), [pack].into_iter())?;
        Ok(Some(aside.display().to_string()))
    }

    /// Finds all packs, and what is closed, as they are now.
    fn find_anew(&self) -> Result<(), RepositoryError> {
        let commit = self.lock_commit();
        let generation = self.index().state().generation;
        self.rebuild_index(&commit, generation)
    }

    /// Where a damaged file is kept, under a name that nothing has.
    fn quarantine(&self, pack: &PackName) -> Result<Stored, RepositoryError> {
        let number = u32::from_le_bytes(crate::storage::publish::random()?);
        Ok(self.layout().quarantine().join(format!("{pack}.{number:08x}")))
    }
}

/// Whether one of these made a pack what it was.
fn is_restored(pack: &PackName, repairs: &[Repair]) -> bool {
    repairs.iter().any(|repair| matches!(repair, Repair::Restored { pack: of, .. } if of == pack))
}

/// What came of repairing one pack. What hindered it is noted, if it is the first: it says nothing about the others.
fn unless_hindered(
    repaired: Result<Option<Repair>, RepositoryError>,
    hindered: &mut Option<RepositoryError>,
) -> Result<Option<Repair>, RepositoryError> {
    match repaired {
        Err(error @ RepositoryError::Io { .. }) => {
            hindered.get_or_insert(error);
            Ok(None)
        }
        repaired => repaired,
    }
}

/// The block of a tail that is damaged.
fn in_tail(damage: &ScrubDamage) -> Option<BlockName> {
    match damage {
        ScrubDamage::Block { block, pack: None, .. } => Some(*block),
        _ => None,
    }
}

/// The pack that a name, or the path of a file, names.
fn pack_of(name: &str) -> Option<PackName> {
    Path::new(name).file_name()?.to_str()?.parse().ok()
}

fn stop_if(flag: &AtomicBool) -> Result<(), RepositoryError> {
    if flag.load(Ordering::Acquire) { Err(RepositoryError::Interrupted) } else { Ok(()) }
}
