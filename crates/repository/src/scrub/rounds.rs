//! Scrubbing in rounds: a little every hour, so that everything is read again by a date that is known.
//!
//! A disk does not tell that it rots, it has to be asked. A round goes through the packs by name, as
//! many as the time that has passed asks for, with the parity of each, and ends with what is in no pack:
//! tails, records, the configuration and what opens it. Losing the file costs the round, nothing else; where it
//! cannot be written, the round goes on in memory.
//! Closure is not walked here: every prune does, and notes here what is missing.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use holdall_format::PackName;
use holdall_protocol::{RepositoryError, ScrubDamage, ScrubReport};

use super::{damaged_keys, damaged_records, is_named, is_of_keys, open_pack};
use crate::parity;
use crate::state_files::scrub_round::{IN_NO_PACK, ScrubRound};
use crate::storage::retry::split_process_errors;
use crate::store::Store;
use crate::tails::tail::read_whole;

/// Each damaged pack has a line.
const FILE_MAX_BYTES: u64 = 64 << 20;
/// The same for records and tombstones.
const RECORDS: &str = "records";
/// For the configuration and the wrappings.
const KEYS: &str = "keys";
/// For what snapshots need.
const SNAPSHOTS: &str = "snapshots";
const NO_PACKS: [&str; 4] = [IN_NO_PACK, RECORDS, KEYS, SNAPSHOTS];

impl Store {
    /// How far the round has come; `None` if none began yet.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn scrub_round(&self) -> Result<Option<ScrubRound>, RepositoryError> {
        if let Some(unwritten) = &*self.unwritten_round() {
            return Ok(Some(unwritten.clone()));
        }
        let bytes = self.layout().scrubbed().read_limited(FILE_MAX_BYTES)?;
        Ok(bytes.and_then(|bytes| ScrubRound::decode(&String::from_utf8_lossy(&bytes))))
    }

    /// Reads as much again as a round of that length asks for by now, and says how far it is.
    ///
    /// # Errors
    /// What keeps it from going on, or from being written. What it found until then is in
    /// [`Store::scrub_round`].
    pub fn scrub_on(
        &self,
        round_ns: i64,
        should_stop: &AtomicBool,
    ) -> Result<ScrubRound, RepositoryError> {
        let now_ns = self.now_ns();
        let known = self.scrub_round()?.unwrap_or_else(|| ScrubRound::begin(now_ns));
        let mut round = match known.begun_ns <= now_ns {
            true => known,
            // A clock that was set back begins anew, and makes nothing whole.
            false => ScrubRound { damaged: known.damaged, ..ScrubRound::begin(now_ns) },
        };
        let passed_ns = now_ns.saturating_sub(round.begun_ns);
        let is_over = passed_ns >= round_ns;
        let packs = self.packs_by_name();
        let due = match is_over {
            true => packs.len(),
            false => due_by(passed_ns, round_ns, packs.len()),
        };
        let from = round.read.map_or(0, |read| packs.partition_point(|pack| *pack <= read));
        for pack in packs.get(from..due).unwrap_or_default() {
            if should_stop.load(Ordering::Acquire) {
                return self.note(round);
            }
            let read = self.read_pack(pack, &mut round);
            self.or_note(&round, read)?;
            round.read = Some(*pack);
        }
        // What was found damaged is looked at every time: somebody may have repaired it.
        let is_due = |round: &ScrubRound, what| is_over || round.damaged.contains_key(what);
        if is_due(&round, IN_NO_PACK) {
            self.read_tails(&mut round);
        }
        if is_due(&round, RECORDS) {
            let damaged = self.or_note(&round, damaged_records(self))?;
            let damaged = damaged.into_iter();
            let damaged = damaged.map(|(path, reason)| (path.display().to_string(), reason));
            tell(&mut round, RECORDS, of_many(damaged));
        }
        if is_due(&round, KEYS) {
            let damaged = self.or_note(&round, damaged_keys(self))?;
            tell(&mut round, KEYS, of_many(damaged));
        }
        if is_over {
            let is_there = |what: &String| {
                NO_PACKS.contains(&what.as_str())
                    || packs.iter().any(|pack| pack.to_string() == *what)
            };
            round.damaged.retain(|what, _| is_there(what));
            round = round.next(now_ns);
        }
        self.note(round)
    }

    /// Notes that everything was read that was stored at `begun_ns`, in nanoseconds since 1970 UTC, which is as
    /// good as a round.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn note_scrubbed(
        &self,
        begun_ns: i64,
        report: &ScrubReport,
    ) -> Result<(), RepositoryError> {
        let mut round = ScrubRound::begin(begun_ns).next(self.now_ns());
        for damage in &report.damaged {
            match damage {
                ScrubDamage::Pack { pack, reason } => {
                    round.damaged.insert(self.what_is(Path::new(pack)), reason.clone())
                }
                ScrubDamage::Block { pack, reason, .. } => {
                    let pack = pack.map_or_else(|| IN_NO_PACK.to_owned(), |pack| pack.to_string());
                    round.damaged.insert(pack, reason.clone())
                }
                ScrubDamage::Record { record, reason } => {
                    round.damaged.insert(RECORDS.to_owned(), format!("{record}: {reason}"))
                }
                ScrubDamage::Missing { object, record } => {
                    let reason = format!("{object} is missing, which snapshot {record} needs");
                    round.damaged.insert(SNAPSHOTS.to_owned(), reason)
                }
            };
        }
        self.note(round).map(drop)
    }

    /// What a round calls the file of that path, or the pack of that name.
    fn what_is(&self, path: &Path) -> String {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match name.parse::<PackName>() {
            Ok(pack) => pack.to_string(),
            Err(_) if is_of_keys(self.layout(), path) => KEYS.to_owned(),
            Err(_) => path.display().to_string().replace(' ', "_"),
        }
    }

    /// Has what a mark found missing, or could not walk, be told with what is damaged, until a mark finds all there.
    pub(crate) fn note_marked<T>(&self, marked: &Result<T, RepositoryError>) {
        let missing = match marked {
            Ok(_) => None,
            Err(error @ (RepositoryError::Damaged { .. } | RepositoryError::Refused { .. })) => {
                Some(error.to_string())
            }
            Err(_) => return,
        };
        let Ok(round) = self.scrub_round() else { return };
        let mut round = round.unwrap_or_else(|| ScrubRound::begin(self.now_ns()));
        if round.damaged.get(SNAPSHOTS) != missing.as_ref() {
            tell(&mut round, SNAPSHOTS, missing);
            // Whoever asked for the mark is told in any case.
            let _ = self.note(round);
        }
    }

    /// Notes how far the round has come where it cannot go on.
    fn or_note<T>(
        &self,
        round: &ScrubRound,
        read: Result<T, RepositoryError>,
    ) -> Result<T, RepositoryError> {
        if read.is_err() {
            // Why it cannot go on is more to the point than why that cannot be written.
            let _ = self.note(round.clone());
        }
        read
    }

    /// Writes the round down. Where that cannot be done, as on a full disk, it is known as long as the repository
    /// is open.
    fn note(&self, round: ScrubRound) -> Result<ScrubRound, RepositoryError> {
        let mut unwritten = self.unwritten_round();
        let written = self.layout().scrubbed().replace(round.encode().as_bytes());
        *unwritten = written.is_err().then(|| round.clone());
        written.map(|()| round)
    }

    fn packs_by_name(&self) -> Vec<PackName> {
        let state = self.index().state();
        let there = state.packs.iter().filter(|pack| !state.condemned.contains(&pack.name));
        let mut names: Vec<PackName> = there.map(|pack| pack.name).collect();
        names.sort_unstable();
        names
    }

    fn read_pack(&self, name: &PackName, round: &mut ScrubRound) -> Result<(), RepositoryError> {
        let path = self.layout().pack(name);
        let opened = split_process_errors(open_pack(&path, path.open(), name, &self.repository()))?;
        let wrong = opened.map(|(file, footer)| {
            let sound =
                |block| read_whole(&file, block).is_ok_and(|bytes| is_named(&bytes, &block.name));
            footer.blocks.iter().filter(|block| !sound(block)).count()
        });
        let reason = match wrong {
            Ok(0) if !parity::is_sound(self.layout(), name)? => {
                Some("it is whole, its parity is damaged".to_owned())
            }
            Ok(0) => None,
            Ok(blocks) => Some(format!("{blocks} of its blocks differ from what was stored")),
            // Deleted since the list was made.
            Err(_) if self.index().state().condemned.contains(name) => None,
            Err(error) => Some(error.to_string()),
        };
        tell(round, &name.to_string(), reason);
        Ok(())
    }

    fn read_tails(&self, round: &mut ScrubRound) {
        let mut wrong = 0;
        for tail in &self.index().state().tails {
            let blocks = tail.all_clear();
            let durable = blocks.iter().take(tail.durable_blocks());
            let sound =
                |block| tail.read_block(block).is_ok_and(|bytes| is_named(&bytes, &block.name));
            wrong += durable.filter(|block| !sound(block)).count();
        }
        let reason = (wrong > 0).then(|| format!("{wrong} blocks differ from what was stored"));
        tell(round, IN_NO_PACK, reason);
    }
}

fn tell(round: &mut ScrubRound, what: &str, reason: Option<String>) {
    match reason {
        Some(reason) => drop(round.damaged.insert(what.to_owned(), reason)),
        None => drop(round.damaged.remove(what)),
    }
}

/// The first of several damages, and how many there are besides.
fn of_many(damaged: impl IntoIterator<Item = (String, String)>) -> Option<String> {
    let mut damaged = damaged.into_iter();
    let (path, reason) = damaged.next()?;
    let first = format!("{path}: {reason}");
    Some(match damaged.count() {
        0 => first,
        more => format!("{first}; and {more} more"),
    })
}

/// How many of so many packs are to be read when that much of a round has passed. One is ahead of its
/// time rather than late.
fn due_by(passed_ns: i64, round_ns: i64, packs: usize) -> usize {
    let share = passed_ns.max(0) as f64 / round_ns.max(1) as f64;
    ((share * packs as f64).ceil() as usize).min(packs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_reads_all_it_should_by_its_end_and_not_all_at_once() {
        assert_eq!(
            [0, 1, 50, 99, 100, 200].map(|passed| due_by(passed, 100, 10)),
            [0, 1, 5, 10, 10, 10]
        );
        assert_eq!((due_by(-5, 100, 10), due_by(5, 0, 10), due_by(5, 100, 0)), (0, 10, 0));
    }
}
