//! A thinning that is offered when a repository is full: want of space deletes nothing by itself, a
//! person does.

use holdall_repository::Shortage;
use holdall_repository::retention::{ALL, Policy};

use super::administration::Administration;
use super::alarm::Looked;
use super::entries::{SnapshotEntry, Thinning};
use crate::ServerError;
use crate::accounts::Keeping;

/// What is left of a thinned repository: the last of 7 days, of 4 weeks, and of every month.
const THINNED: Policy = Policy { hourly: 0, daily: 7, weekly: 4, monthly: ALL, ..Policy::USUAL };

impl Administration<'_> {
    /// Says which snapshots could go beside those that the rules let go anyway, and, once that is
    /// confirmed, asks for their deletion, which waits as any other. The lock is that of the rules, and
    /// so are the tags.
    pub(super) fn thin(&self, name: &str, confirmed: bool) -> Result<Thinning, ServerError> {
        self.check_name(name)?;
        let store = self.stores.store(name)?;
        let Keeping { policy, tags, .. } = self.accounts.keeping(name).now;
        let judged = store.judge(&Policy { lock_ns: policy.lock_ns, ..THINNED }, &tags);
        let kept = judged.iter().filter(|one| !one.reasons.is_empty()).count() as u64;
        let goes: Vec<_> = judged.iter().filter(|one| one.reasons.is_empty()).collect();
        let snapshots: Vec<_> = goes.into_iter().map(SnapshotEntry::of).collect();
        if !confirmed || snapshots.is_empty() {
            return Ok(Thinning { snapshots, kept, deletion: None });
        }
        // A record that cannot be read may be what pins one of them, and what is older all that is left.
        store.check_needed()?;
        let Looked { alarm, left } = self.alarm(&store, name, false)?;
        if let Some(alarm) = alarm {
            let reason = format!(
                "{alarm}: nothing is deleted until you check it and run `holdall admin resume {name}`"
            );
            return Err(ServerError::refused(reason));
        }
        if left > 0 {
            let reason = format!("{left} series were not looked at yet: try again");
            return Err(ServerError::refused(reason));
        }
        let ids = snapshots.iter().map(|one| one.id.clone()).collect();
        let deletion = self.accounts.ask_deletion(name, ids, None, None)?;
        self.log(&format!("deletion {} of {name} was requested, to thin it", deletion.number));
        Ok(Thinning { snapshots, kept, deletion: Some(deletion) })
    }

    /// Tells the log of a repository that had no room for something since the last look.
    pub(super) fn tell_if_full(&self, name: &str) {
        let store = self.stores.store(name).ok();
        let (what, more) = match store.and_then(|store| store.take_refused_room()) {
            None => return,
            Some(Shortage::Quota) => {
                ("its quota was reached", "raise it with `holdall admin quota`")
            }
            Some(Shortage::Disk) => ("the disk was full", "make room there"),
        };
        self.log(&format!(
            "{name}: since the last look {what}, so new data was refused, and nothing was deleted for it: {more}, or \
             see what could go with `holdall admin thin {name}`"
        ));
    }
}
