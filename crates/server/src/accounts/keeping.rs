//! What an administrator said about keeping: rules for each repository, and deletions that wait.
//!
//! Who breaks in as an administrator shall not be able to take backups away at once. So what was
//! asked to be deleted waits, and so do rules that keep less: until the delay is over, all is kept that
//! those before or those to come keep. That it is over, no clock is believed that somebody may have set:
//! who prunes knows how it went.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdall_repository::Supersession;
use serde::{Deserialize, Serialize};

use super::entries::{Deletion, Keeping, KeepingEntry, Removal};
use super::{Accounts, State};
use crate::ServerError;

/// The rules of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeepingRow {
    now: Keeping,
    /// What is to be in force from that time on, in nanoseconds since 1970 UTC.
    #[serde(default)]
    then: Option<(Keeping, i64)>,
    /// Whether that is the default from then on, whatever it is by then.
    #[serde(default)]
    follows: bool,
}

/// Under what the rules are kept of all repositories that have none of their own. No repository is called so.
pub(super) const DEFAULT: &str = "*";
/// Under what the settings have the next number for a deletion: none that was given is given again, since people note them.
const UNUSED_NUMBER: &str = "unused deletion number";

impl KeepingRow {
    const USUAL: Self = Self { now: Keeping::USUAL, then: None, follows: false };

    /// The same with what was to be in force, if the delay has passed since that was asked for.
    fn in_force(&self, has_passed: impl Fn(i64, i64) -> bool) -> Option<Self> {
        let (keeping, from_ns) = self.then.as_ref()?;
        let asked_ns = from_ns.saturating_sub(self.now.delay_ns);
        let is_over = has_passed(asked_ns, self.now.delay_ns);
        is_over.then(|| Self { now: keeping.clone(), then: None, follows: self.follows })
    }

    /// The same after a change was asked for.
    fn changed_to(&self, wanted: Keeping, now_ns: i64) -> Self {
        let now = self.now.and(&wanted);
        if now == self.now && self.then.as_ref().is_some_and(|(then, _)| *then == wanted) {
            // It waits already, and waits no longer for being said again.
            return Self { follows: false, ..self.clone() };
        }
        let from_ns = now_ns.saturating_add(now.delay_ns);
        let then = (now != wanted).then_some((wanted, from_ns));
        Self { now, then, follows: false }
    }

    /// The same after the default was asked for; `None` if that keeps as much, so that no own rules are needed any more.
    fn following(&self, default: &Keeping, now_ns: i64) -> Option<Self> {
        let row = self.changed_to(default.clone(), now_ns);
        row.then.is_some().then_some(Self { follows: true, ..row })
    }
}

/// The longest that a deletion may wait: a longer delay could not be taken back for as long.
const DELAY_MOST_NS: i64 = 366 * 24 * 3600 * 1_000_000_000;

fn check_rules(keeping: &Keeping) -> Result<(), ServerError> {
    let Keeping { policy, tags, delay_ns } = keeping;
    if policy.lock_ns < 0 || policy.within_ns.is_some_and(|within_ns| within_ns < 0) {
        return Err(ServerError::refused("a time of rules is not negative"));
    }
    if !(0..=DELAY_MOST_NS).contains(delay_ns) {
        return Err(ServerError::refused(
            "a deletion may wait for at most 366 days: a delay lasts until it is over",
        ));
    }
    if policy.is_empty() && tags.is_empty() {
        return Err(ServerError::refused(
            "those rules keep nothing; to keep the newest alone, keep 1 of the last",
        ));
    }
    Ok(())
}

/// So many deletions of a repository wait at most,
const MOST_DELETIONS: usize = 1000;
/// and all but the first name no more snapshots together.
const MOST_NAMED: usize = 16_384;

impl Accounts {
    /// What is kept of a repository, and what is to be.
    pub(crate) fn keeping(&self, repository: &str) -> KeepingEntry {
        self.state().keeping_entry(Some(repository))
    }

    /// What is kept of all repositories that have no rules of their own.
    pub(crate) fn default_keeping(&self) -> KeepingEntry {
        self.state().keeping_entry(None)
    }

    /// What is in force of a repository: a change is whose delay has certainly passed, and is noted as such, unless
    /// this is a `dry_run`.
    pub(crate) fn in_force(&self, repository: &str, dry_run: bool) -> Result<Keeping, ServerError> {
        let has_passed = |asked_ns, delay_ns| self.has_passed(asked_ns, delay_ns);
        let mut state = self.state();
        let name = state.name_of_rules(repository);
        let row = state.keeping_row(&name);
        let Some(changed) = row.in_force(has_passed) else { return Ok(row.now) };
        let (keeping, follows) = (changed.now.clone(), changed.follows);
        if !dry_run {
            self.put_keeping(&mut state, &name, (!follows).then_some(changed))?;
        }
        drop(state);
        match follows {
            true => self.in_force(DEFAULT, dry_run),
            false => Ok(keeping),
        }
    }

    /// Changes what is kept of a repository, or of all that have no rules of their own.
    pub(crate) fn set_keeping(
        &self,
        repository: Option<&str>,
        wanted: Keeping,
    ) -> Result<KeepingEntry, ServerError> {
        check_rules(&wanted)?;
        let now_ns = self.set_now_ns()?;
        let mut state = self.state();
        let before = state.name_of_rules(repository.unwrap_or(DEFAULT));
        let row = state.keeping_row(&before).changed_to(wanted, now_ns);
        self.put_keeping(&mut state, repository.unwrap_or(DEFAULT), Some(row))?;
        self.rules_said(state, repository)
    }

    /// Has a repository have the rules of all that have none of their own.
    pub(crate) fn follow_default(&self, repository: &str) -> Result<KeepingEntry, ServerError> {
        let now_ns = self.set_now_ns()?;
        let mut state = self.state();
        if let Some(own) = state.keeping.get(repository) {
            let row = own.following(&state.keeping_row(DEFAULT).now, now_ns);
            self.put_keeping(&mut state, repository, row)?;
        }
        self.rules_said(state, Some(repository))
    }

    fn rules_said(
        &self,
        state: MutexGuard<'_, State>,
        repository: Option<&str>,
    ) -> Result<KeepingEntry, ServerError> {
        let entry = state.keeping_entry(repository);
        drop(state);
        repository.map_or(Ok(()), |name| self.rules_were_said(name))?;
        Ok(entry)
    }

    fn put_keeping(
        &self,
        state: &mut State,
        name: &str,
        row: Option<KeepingRow>,
    ) -> Result<(), ServerError> {
        self.database.change(|changes| match &row {
            Some(row) => changes.put_keeping(name, row),
            None => changes.drop_keeping(name),
        })?;
        match row {
            Some(row) => drop(state.keeping.insert(name.to_owned(), row)),
            None => drop(state.keeping.remove(name)),
        }
        Ok(())
    }

    /// Notes that snapshots, blocks that are superseded, or all that there is, are to be deleted once the repository's
    /// delay is over. Asking for the same again is no other deletion.
    pub(crate) fn ask_deletion(
        &self,
        repository: &str,
        snapshots: Vec<String>,
        superseded: Option<Supersession>,
        removes: Option<Removal>,
    ) -> Result<Deletion, ServerError> {
        let delay_ns = self.keeping(repository).now.delay_ns;
        let asked_ns = self.set_now_ns()?;
        let mut state = self.state();
        let same = |one: &&Deletion| {
            let is_all = removes.is_some();
            (one.repository.as_str(), &one.removes) == (repository, &removes)
                && (is_all || (&one.snapshots, one.superseded) == (&snapshots, superseded))
        };
        if let Some(waiting) = state.deletions.values().find(same) {
            return Ok(waiting.clone());
        }
        let named = if removes.is_none() { snapshots.len() } else { 0 };
        state.check_room_for_deletion(repository, named)?;
        let unused = self.database.setting(UNUSED_NUMBER)?.and_then(|number| number.parse().ok());
        let after_last = state.deletions.keys().next_back().map_or(1, |last| last + 1);
        let number = after_last.max(unused.unwrap_or(1));
        let due_ns = asked_ns.saturating_add(delay_ns);
        let repository = repository.to_owned();
        let deletion =
            Deletion { number, repository, snapshots, superseded, removes, asked_ns, due_ns };
        self.database.change(|changes| {
            changes.put_setting(UNUSED_NUMBER, &(number + 1).to_string())?;
            changes.put_deletion(number, &deletion)
        })?;
        state.deletions.insert(number, deletion.clone());
        Ok(deletion)
    }

    /// Checks that one more deletion may wait that names no snapshots.
    ///
    /// # Errors
    /// [`ServerError::Refused`].
    pub(crate) fn check_room_for_deletion(&self, repository: &str) -> Result<(), ServerError> {
        self.state().check_room_for_deletion(repository, 0)
    }

    /// What is held while blocks of a repository give way and their deletion is noted, while it is looked
    /// which of them are noted, and while a deletion is carried out or cancelled.
    pub(crate) fn asking(&self, repository: &str) -> Arc<Asking> {
        let mut all = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(repository.to_owned()).or_default())
    }

    /// All deletions that wait, in the order in which they were asked for.
    pub(crate) fn deletions(&self) -> Vec<Deletion> {
        self.state().deletions.values().cloned().collect()
    }

    /// The deletion that waits under that number.
    ///
    /// # Errors
    /// [`ServerError::Refused`] if none has it.
    pub(crate) fn deletion(&self, number: u64) -> Result<Deletion, ServerError> {
        self.state().deletions.get(&number).cloned().ok_or_else(|| no_deletion(number))
    }

    /// Takes a deletion from those that wait: it was carried out, or is not to be.
    ///
    /// # Errors
    /// [`ServerError::Refused`] if it does not wait any more.
    pub(crate) fn drop_deletion(&self, deletion: &Deletion) -> Result<(), ServerError> {
        let mut state = self.state();
        let number = deletion.number;
        if state.deletions.get(&number) != Some(deletion) {
            return Err(no_deletion(number));
        }
        self.database.change(|changes| changes.drop_deletion(number))?;
        state.deletions.remove(&number);
        Ok(())
    }
}

fn no_deletion(number: u64) -> ServerError {
    ServerError::refused(format!(
        "no deletion has the number {number}; `holdall admin pending` lists them"
    ))
}

/// What of a repository's deletions excludes each other.
#[derive(Default)]
pub(crate) struct Asking(Mutex<()>);

impl Asking {
    /// Waits until nobody else holds it.
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Under what the rules of a repository are kept.
    fn name_of_rules(&self, repository: &str) -> String {
        let has_own = self.keeping.contains_key(repository);
        if has_own { repository.to_owned() } else { DEFAULT.to_owned() }
    }

    fn keeping_row(&self, name: &str) -> KeepingRow {
        self.keeping.get(name).cloned().unwrap_or(KeepingRow::USUAL)
    }

    fn keeping_entry(&self, repository: Option<&str>) -> KeepingEntry {
        let name = self.name_of_rules(repository.unwrap_or(DEFAULT));
        let KeepingRow { now, then, .. } = self.keeping_row(&name);
        KeepingEntry {
            repository: repository.map(str::to_owned),
            is_default: name == DEFAULT,
            now,
            then,
        }
    }

    /// All that wait are in memory, and are told to whoever backs up.
    fn check_room_for_deletion(
        &self,
        repository: &str,
        snapshots: usize,
    ) -> Result<(), ServerError> {
        let waiting = || self.deletions.values().filter(|one| one.repository == repository);
        let waiting_named = waiting().filter(|one| one.removes.is_none());
        let named: usize = waiting_named.map(|one| one.snapshots.len()).sum();
        if waiting().count() < MOST_DELETIONS && (named == 0 || named + snapshots <= MOST_NAMED) {
            return Ok(());
        }
        Err(ServerError::refused(format!(
            "{} deletions of {named} snapshots of {repository} wait already; once they are carried out or \
             cancelled (`holdall admin cancel`), there is room for more",
            waiting().count()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_format::TagToken;
    use holdall_repository::retention::Policy;

    const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;

    #[test]
    fn only_so_many_deletions_of_a_repository_wait() {
        let deletion = |number: u64, repository: &str, snapshots: usize| {
            let (repository, snapshots) = (repository.to_owned(), vec![String::new(); snapshots]);
            Deletion {
                number,
                repository,
                snapshots,
                superseded: None,
                removes: None,
                asked_ns: 0,
                due_ns: 0,
            }
        };
        let of = |deletions: Vec<Deletion>| {
            let numbered = deletions.into_iter().map(|one| (one.number, one));
            State { deletions: numbered.collect(), ..State::default() }
        };
        let room = |state: &State, more| state.check_room_for_deletion("a", more).is_ok();
        assert!(room(&of(vec![]), MOST_NAMED + 1), "one alone");
        let named = of(vec![deletion(1, "a", MOST_NAMED - 1)]);
        assert!(room(&named, 1) && !room(&named, 2));
        let many = |repository| (0..1000).map(|number| deletion(number, repository, 0)).collect();
        assert!(!room(&of(many("a")), 0) && room(&of(many("b")), 0));
    }

    #[test]
    fn what_keeps_less_comes_into_force_when_the_delay_is_over() {
        let usual = KeepingRow::USUAL;
        let strict = Keeping { delay_ns: 30 * DAY_NS, ..Keeping::USUAL };
        assert_eq!(usual.changed_to(strict.clone(), 5).now, strict, "longer at once");
        // As a clock says that never went unevenly.
        let at = |row: &KeepingRow, now: i64| {
            row.in_force(|asked, delay| now - asked >= delay).unwrap_or_else(|| row.clone()).now
        };
        let mut unlocked = Keeping::USUAL;
        unlocked.policy.lock_ns = 0;
        let hasty = Keeping { delay_ns: 0, ..Keeping::USUAL };
        let mut sparse = Keeping::USUAL;
        sparse.policy.daily = 1;
        for wanted in [unlocked, hasty, sparse] {
            let row = usual.changed_to(wanted.clone(), 5);
            assert_eq!(at(&row, 5), Keeping::USUAL);
            assert_eq!(at(&row, 5 + 7 * DAY_NS - 1), Keeping::USUAL);
            assert_eq!(at(&row, 5 + 7 * DAY_NS), wanted);
            // Asking again makes it neither sooner nor later, and thinking better of it does.
            let again = row.changed_to(wanted.clone(), 6 * DAY_NS);
            assert_eq!(again, row);
            assert_eq!(at(&row.changed_to(Keeping::USUAL, DAY_NS), 9 * DAY_NS), Keeping::USUAL);
        }
    }

    #[test]
    fn until_then_all_is_kept_that_either_keeps() {
        let tagged = |byte| TagToken::from_bytes([byte; 16]);
        let before = Keeping { tags: vec![tagged(1)], ..Keeping::USUAL };
        let mut wanted = Keeping { tags: vec![tagged(2)], ..Keeping::USUAL };
        (wanted.policy.hourly, wanted.policy.monthly) = (48, 12);
        wanted.policy.weekly = 0;
        let row =
            KeepingRow { now: before, then: None, follows: false }.changed_to(wanted.clone(), 5);
        let Policy { hourly, daily, weekly, monthly, .. } = row.now.policy;
        assert_eq!((hourly, daily, weekly, monthly), (48, 30, u32::MAX, 12));
        assert_eq!(row.now.tags, [tagged(2), tagged(1)]);
        assert_eq!(row.then, Some((wanted, 5 + 7 * DAY_NS)));
    }
}
