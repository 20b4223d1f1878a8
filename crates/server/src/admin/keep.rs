//! Keeping and letting go: rules, deletions that wait, prune and scrub.
//!
//! The same is done by commands and, once an hour, by the server itself. Nobody has keys here: rules
//! go by the times of receipts, and what nothing needs is known from references in clear.

use std::sync::atomic::Ordering;
use std::time::Duration;

use holdall_format::{RecordHash, TombstoneReason};
use holdall_protocol::{PruneReport, ScrubDamage, ScrubProgress};
use holdall_repository::{Judged, PruneOptions, ScrubRound, Store};

use super::administration::Administration;
use super::alarm::Looked;
use super::commands::WantedKeeping;
use super::entries::{
    AlsoRepair, JudgedEntry, Judgement, PrunedEntry, ScrubbedEntry, SnapshotEntry,
};
use crate::ServerError;
use crate::accounts::{Deletion, Keeping, KeepingEntry, Upkeep};

/// How long condemned packs stay: whoever reads when a snapshot is forgotten reads to the end.
const GRACE: Duration = Duration::from_secs(24 * 3600);
/// Once a quarter of a pack is not needed, the rest is copied and the pack goes.
const SPARSE_PART: u64 = 4;

impl Administration<'_> {
    /// Tells what is kept of a repository, or of all that have no rules of their own, after changing that where
    /// something is wanted.
    pub(super) fn keeping(
        &self,
        repository: Option<&str>,
        wanted: Option<WantedKeeping>,
    ) -> Result<KeepingEntry, ServerError> {
        repository.map_or(Ok(()), |name| self.check_name(name))?;
        let entry = match (wanted, repository) {
            (None, Some(name)) => return Ok(self.accounts.keeping(name)),
            (None, None) => return Ok(self.accounts.default_keeping()),
            (Some(WantedKeeping::Rules(rules)), _) => {
                self.accounts.set_keeping(repository, rules)?
            }
            (Some(WantedKeeping::Default), Some(name)) => self.accounts.follow_default(name)?,
            (Some(WantedKeeping::Default), None) => {
                return Err(ServerError::refused(
                    "name the repository that is to have the default",
                ));
            }
        };
        self.log(&match repository {
            Some(name) => format!("changed the retention rules of repository {name}"),
            None => "changed the default of retention rules".to_owned(),
        });
        Ok(entry)
    }

    /// What is kept by default, then of each repository, by name.
    pub(super) fn keepings(&self) -> Result<Vec<KeepingEntry>, ServerError> {
        let names = self.names()?;
        let each = names.iter().map(|name| self.accounts.keeping(name));
        Ok(std::iter::once(self.accounts.default_keeping()).chain(each).collect())
    }

    /// Says of each snapshot of a repository why it is kept.
    pub(super) fn judge(&self, store: &Store, name: &str) -> Vec<Judged> {
        let Keeping { policy, tags, .. } = self.accounts.keeping(name).now;
        store.judge(&policy, &tags)
    }

    /// Says the same by rules that may not be in force.
    pub(super) fn judgement(
        &self,
        name: &str,
        rules: Option<&Keeping>,
    ) -> Result<Judgement, ServerError> {
        self.check_name(name)?;
        let in_force = || self.accounts.keeping(name).now;
        let Keeping { policy, tags, .. } = rules.cloned().unwrap_or_else(in_force);
        let judged = self.stores.store(name)?.judge(&policy, &tags);
        let entries = judged.iter().map(|one| JudgedEntry {
            snapshot: SnapshotEntry::of(one),
            reasons: one.reasons.iter().map(ToString::to_string).collect(),
        });
        Ok(Judgement { snapshots: entries.collect() })
    }

    /// Asks for snapshots to be deleted, named by their ids or the beginnings of those.
    pub(super) fn forget(&self, name: &str, wanted: &[String]) -> Result<Deletion, ServerError> {
        self.check_name(name)?;
        if wanted.is_empty() {
            return Err(ServerError::refused("no snapshot is named"));
        }
        let store = self.stores.store(name)?;
        let snapshots = self.judge(&store, name);
        let mut lost = store.lost();
        lost.extend(self.lost_newest(&store)?);
        let id = |wanted: &String| match wanted.parse() {
            Ok(id) if lost.contains(&id) => Ok(id),
            _ => find(&snapshots, wanted),
        };
        let ids = wanted.iter().map(|wanted| id(wanted).map(|id| id.to_string()));
        let deletion =
            self.accounts.ask_deletion(name, ids.collect::<Result<_, _>>()?, None, None)?;
        self.log(&format!("deletion {} of {name} was requested", deletion.number));
        Ok(deletion)
    }

    /// Takes a deletion back.
    pub(super) fn cancel(&self, number: u64) -> Result<Deletion, ServerError> {
        let deletion = self.accounts.deletion(number)?;
        let asking = self.accounts.asking(&deletion.repository);
        let _asking = asking.hold();
        self.accounts.drop_deletion(&deletion)?;
        self.log(&format!("deletion {number} of {} was cancelled", deletion.repository));
        Ok(deletion)
    }

    /// Has rules and deletions that are due be applied, and prunes: one repository, or all of them.
    pub(super) fn prune(
        &self,
        repository: Option<&str>,
        dry_run: bool,
    ) -> Result<Vec<PrunedEntry>, ServerError> {
        let names = self.chosen(repository)?;
        let pruned = names.iter().map(|name| {
            let pruned = self.prune_one(name, dry_run);
            self.log(&pruned.line());
            self.found(pruned.problem.as_ref().or(pruned.alarm.as_ref()), name);
            pruned
        });
        Ok(pruned.collect())
    }

    /// One repository that is there, or all of them.
    fn chosen(&self, repository: Option<&str>) -> Result<Vec<String>, ServerError> {
        let Some(name) = repository else { return self.looked_after() };
        self.check_name(name)?;
        Ok(vec![name.to_owned()])
    }

    /// Changes when the same is done by the server itself.
    pub(super) fn set_upkeep(&self, upkeep: &Upkeep) -> Result<Upkeep, ServerError> {
        self.accounts.set_upkeep(upkeep)?;
        self.log(&format!("the server keeps house {upkeep}"));
        Ok(upkeep.clone())
    }

    /// Does the same for all repositories, if it is the hour for it, and tells the log. Ends early once the server ends.
    pub(crate) fn keep_house(&self) {
        self.note_room();
        if let Err(error) = self.tell_absent() {
            self.log(&format!("who is away: {error}"));
        }
        let found = self.accounts.upkeep().and_then(|upkeep| Ok((upkeep, self.looked_after()?)));
        let (upkeep, names) = match found {
            Ok(found) => found,
            Err(error) => return self.log(&format!("no repository is looked after: {error}")),
        };
        let is_due = upkeep.is_due(self.stores.now_ns());
        if !is_due {
            self.log(&format!(
                "nothing is pruned or read again now: the server keeps house {upkeep}"
            ));
        }
        for name in names {
            if self.should_stop.load(Ordering::Acquire) {
                return;
            }
            if is_due {
                self.look_after(&name, upkeep.scrub_round_ns());
            }
            if self.stores.is_stored(&name) {
                self.tell_if_full(&name);
            }
        }
    }

    fn look_after(&self, name: &str, scrub_round_ns: i64) {
        if !self.settle(name) {
            // What is let go of may be what is safest.
            return self
                .log(&format!("{name}: nothing is let go of while packs wait for their place"));
        }
        let pruned = self.prune_one(name, false);
        self.log(&pruned.line());
        if !pruned.removed && self.stores.is_stored(name) {
            self.scrub_on(name, scrub_round_ns);
        }
    }

    /// Reads as much again as is due, and tells the log of damage for as long as there is any.
    fn scrub_on(&self, name: &str, round_ns: i64) {
        let could_not = |error| self.log(&format!("{name} could not be scrubbed: {error}"));
        let store = match self.stores.store(name) {
            Ok(store) => store,
            Err(error) => return could_not(error),
        };
        // What a crash kept from being made.
        if let Err(error) = store.make_missing_parity(self.should_stop) {
            self.log(&format!("parity of {name} could not be made: {error}"));
        }
        // What it found until then is known all the same.
        let scrubbed = store.scrub_on(round_ns, self.should_stop).map(drop);
        scrubbed.unwrap_or_else(could_not);
        match store.scrub_round() {
            Ok(round) => self.tell_damage(name, &round.unwrap_or_default()),
            Err(error) => could_not(error),
        }
    }

    fn tell_damage(&self, name: &str, round: &ScrubRound) {
        for (what, reason) in &round.damaged {
            let hint = match ScrubRound::is_for_repair(what) {
                true => format!("; `holdall admin scrub {name} --repair`"),
                false => String::new(),
            };
            self.log(&format!("{name}: damaged: {what}: {reason}{hint}"));
        }
    }

    fn prune_one(&self, name: &str, dry_run: bool) -> PrunedEntry {
        let mut entry = PrunedEntry { repository: name.to_owned(), dry_run, ..Default::default() };
        let pruned = match self.remove_due(name, dry_run, &mut entry) {
            Ok(false) => self.try_prune(name, dry_run, &mut entry).map(drop),
            done => done.map(drop),
        };
        entry.problem = pruned.err().map(|error| error.to_string());
        entry
    }

    /// `None` while nothing is let go, since the clock is not believed.
    pub(super) fn try_prune(
        &self,
        name: &str,
        dry_run: bool,
        entry: &mut PrunedEntry,
    ) -> Result<Option<PruneReport>, ServerError> {
        let store = self.stores.store(name)?;
        if !dry_run {
            self.take_back_cancelled(&store, name)?;
        }
        let noted = self.accounts.watch_clock()?;
        if !noted.is_believed() {
            entry.frozen_until_ns = Some(noted.believed_from_ns());
            return Ok(None);
        }
        let keeping = self.accounts.in_force(name, dry_run)?;
        self.delete_due(&store, dry_run, entry)?;
        if let Some(record) = self.lost_newest(&store)? {
            return Err(ServerError::refused(format!(
                "{}; nothing is deleted while it is so",
                newest_is_gone(&record)
            )));
        }
        let looked = self.alarm(&store, name, dry_run)?;
        entry.alarm = match looked {
            Looked { alarm: None, left: 0 } => {
                self.apply_rules(&store, &keeping, dry_run, entry)?
            }
            Looked { alarm, .. } => {
                entry.snapshots_kept = store.census().snapshots;
                alarm
            }
        };
        let options = PruneOptions { grace: GRACE, sparse_part: SPARSE_PART };
        let report = match dry_run {
            true => store.foresee_prune(&options, &entry.forgotten_ids())?,
            false => store.prune(&options, self.should_stop)?,
        };
        entry.add(&report);
        Ok(Some(report))
    }

    fn delete_due(
        &self,
        store: &Store,
        dry_run: bool,
        entry: &mut PrunedEntry,
    ) -> Result<(), ServerError> {
        let asking = self.accounts.asking(&entry.repository);
        let deletions = self.accounts.deletions().into_iter();
        let due = |one: &Deletion| {
            let delay_ns = one.due_ns.saturating_sub(one.asked_ns);
            one.repository == entry.repository
                && one.removes.is_none()
                && self.accounts.has_passed(one.asked_ns, delay_ns)
        };
        for deletion in deletions.filter(due) {
            // Until it is carried out it can be cancelled, and is not carried out then.
            let _asking = asking.hold();
            if !self.accounts.deletions().contains(&deletion) {
                continue;
            }
            let there = self.judge(store, &deletion.repository);
            let asked = |id: &RecordHash| deletion.snapshots.contains(&id.to_string());
            let chosen: Vec<_> = there.iter().filter(|one| asked(&one.id)).collect();
            if !dry_run {
                let lost = store.lost().into_iter().filter(asked);
                let ids: Vec<RecordHash> = chosen.iter().map(|one| one.id).chain(lost).collect();
                store.forget(&ids, TombstoneReason::Request)?;
                let newest = self.lost_newest(store)?.filter(asked);
                newest.iter().try_for_each(|newest| store.give_up_lacking(newest))?;
                if self.is_forgotten(store, &deletion) && self.let_go(store, &deletion)? {
                    self.accounts.drop_deletion(&deletion)?;
                }
            }
            entry.forgotten.extend(chosen.into_iter().map(SnapshotEntry::of));
        }
        Ok(())
    }

    /// Whether all snapshots of a deletion are forgotten. One whose record cannot be read waits until it can.
    fn is_forgotten(&self, store: &Store, deletion: &Deletion) -> bool {
        let is_there = |id: &&String| !id.parse().is_ok_and(|id| store.is_forgotten(&id));
        let waiting = deletion.snapshots.iter().find(is_there);
        if let Some(id) = waiting {
            self.log(&format!(
                "{name}: the record of snapshot {id} cannot be read, so that deletion {number} waits until it \
                 can, or is cancelled: `holdall admin scrub {name}`, `holdall admin cancel {number}`",
                name = deletion.repository,
                number = deletion.number
            ));
        }
        waiting.is_none()
    }

    /// Lets blocks go that gave way, unless something needed of them is not sound elsewhere any more.
    fn let_go(&self, store: &Store, deletion: &Deletion) -> Result<bool, ServerError> {
        let Some(superseded) = deletion.superseded else { return Ok(true) };
        let may_go = store.let_superseded_go(superseded.number)?;
        if !may_go {
            self.log(&format!(
                "{}: what blocks gave way to is damaged, so that they stay: `holdall admin scrub`, then \
                 `holdall admin cancel {}`",
                deletion.repository, deletion.number
            ));
        }
        Ok(may_go)
    }

    /// Has blocks count first again that gave way for a deletion which does not wait any more.
    fn take_back_cancelled(&self, store: &Store, name: &str) -> Result<(), ServerError> {
        let asking = self.accounts.asking(name);
        let _asking = asking.hold();
        let held = store.held_supersessions()?;
        let deletions = self.accounts.deletions().into_iter();
        let of_this = deletions.filter(|one| one.repository == name);
        let waiting: Vec<u64> =
            of_this.filter_map(|one| one.superseded).map(|one| one.number).collect();
        let mut cancelled = held.iter().filter(|number| !waiting.contains(number));
        cancelled.try_for_each(|number| Ok(store.take_superseded_back(*number)?))
    }

    /// Says why nothing was let go, if most of what a machine has would have been.
    fn apply_rules(
        &self,
        store: &Store,
        keeping: &Keeping,
        dry_run: bool,
        entry: &mut PrunedEntry,
    ) -> Result<Option<String>, ServerError> {
        let judged = store.judge(&keeping.policy, &keeping.tags);
        let all = judged.len();
        let burst = self.burst(&entry.repository, keeping, &judged, dry_run)?;
        if burst.is_some() {
            entry.snapshots_kept = all as u64;
            return Ok(burst);
        }
        let mut goes: Vec<_> = judged.into_iter().filter(|one| one.reasons.is_empty()).collect();
        if !dry_run && !goes.is_empty() {
            store.check_needed()?;
            let ids: Vec<RecordHash> = goes.iter().map(|one| one.id).collect();
            let gone = store.forget_by_rules(&ids, &keeping.policy, &keeping.tags)?;
            goes.retain(|one| gone.contains(&one.id));
        }
        entry.snapshots_kept = (all - goes.len()) as u64;
        let goes: Vec<_> = goes.iter().map(SnapshotEntry::of).collect();
        // A dry run left what was asked for where it was.
        let more = goes.into_iter().filter(|one| !entry.forgotten.contains(one));
        let more: Vec<_> = more.collect();
        entry.forgotten.extend(more);
        Ok(None)
    }

    /// Reads everything of a repository again, or of all of them, and repairs what is to be repaired.
    pub(super) fn scrub(
        &self,
        repository: Option<&str>,
        also: AlsoRepair,
    ) -> Result<Vec<ScrubbedEntry>, ServerError> {
        let names = self.chosen(repository)?;
        let scrubbed = names.iter().map(|name| {
            let scrubbed = self.scrub_one(name, also);
            self.log(&scrubbed.line());
            self.found(scrubbed.problem.as_ref().or(scrubbed.damaged.first()), name);
            scrubbed
        });
        Ok(scrubbed.collect())
    }

    /// The newest record that was acknowledged for a repository, if it is gone from there.
    fn lost_newest(&self, store: &Store) -> Result<Option<RecordHash>, ServerError> {
        let newest = self.accounts.newest(store.repository())?;
        Ok(newest.filter(|newest| store.lacks(newest)))
    }

    /// Notes in the job what is not well of a repository.
    pub(super) fn found(&self, what: Option<&String>, name: &str) {
        if let (Some(job), Some(what)) = (self.job, what) {
            job.found(&format!("{name}: {what}"));
        }
    }

    fn note_progress(&self, progress: ScrubProgress) {
        if let Some(job) = self.job {
            job.note_progress(progress, self.stores.now_ns());
        }
    }

    fn scrub_one(&self, name: &str, also: AlsoRepair) -> ScrubbedEntry {
        let mut entry = ScrubbedEntry { repository: name.to_owned(), ..Default::default() };
        if let Err(error) = self.try_scrub(name, also, &mut entry) {
            entry.problem = Some(error.to_string());
        }
        entry
    }

    fn try_scrub(
        &self,
        name: &str,
        also: AlsoRepair,
        entry: &mut ScrubbedEntry,
    ) -> Result<(), ServerError> {
        let store = self.stores.store(name)?;
        if let Some(percent) = also.parity {
            entry.parity_made = store.keep_parity(percent, self.should_stop)?;
            self.log(&format!("{percent} % of each pack of {name} is kept as parity"));
        }
        let begun_ns = self.stores.now_ns();
        let report = match also.repair {
            false => store.scrub(self.should_stop, &mut |now| self.note_progress(now))?,
            true => {
                let progress = &mut |now| self.note_progress(now);
                let repaired = store.repair(also.dry_run, self.should_stop, progress)?;
                let sentences = repaired.repairs.iter().map(|one| one.sentence(also.dry_run));
                entry.repaired = sentences.collect();
                entry.repaired.iter().for_each(|one| self.log(&format!("{name}: {one}")));
                entry.quarantined = repaired.quarantined;
                repaired.scrub
            }
        };
        entry.packs = report.packs;
        entry.blocks = report.blocks;
        entry.objects = report.objects;
        entry.snapshots = report.snapshots;
        entry.bytes = report.bytes;
        entry.damaged = report.damaged.iter().map(damage).collect();
        entry.damaged.extend(self.lost_newest(&store)?.as_ref().map(newest_is_gone));
        if !also.dry_run {
            store.note_scrubbed(begun_ns, &report)?;
        }
        Ok(())
    }
}

/// The snapshot of that id, or the only one whose id begins so.
fn find(snapshots: &[Judged], wanted: &str) -> Result<RecordHash, ServerError> {
    let begins = |one: &&Judged| !wanted.is_empty() && one.id.to_string().starts_with(wanted);
    let mut found = snapshots.iter().filter(begins);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one.id),
        (None, _) => Err(ServerError::refused(format!("there is no snapshot {wanted:?}"))),
        _ => Err(ServerError::refused(format!(
            "the ids of several snapshots begin with {wanted:?}; give more digits"
        ))),
    }
}

fn newest_is_gone(record: &RecordHash) -> String {
    format!(
        "record {record} is gone, the newest that this server acknowledged for it: put its file back into `records`, or have \
         the machine that made it run `holdall backup`, which puts it back or goes on without it; `holdall admin forget` \
         with that id gives it up"
    )
}

fn damage(damage: &ScrubDamage) -> String {
    match damage {
        ScrubDamage::Pack { pack, reason } => format!("pack {pack}: {reason}"),
        ScrubDamage::Block { block, reason, .. } => format!("block {block}: {reason}"),
        ScrubDamage::Record { record, reason } => format!("{record}: {reason}"),
        ScrubDamage::Missing { object, record } => {
            format!("object {object} is missing, which snapshot {record} needs")
        }
    }
}

#[cfg(test)]
mod tests;
