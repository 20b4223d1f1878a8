//! Before rules let anything go: did somebody lose much lately, or make far more snapshots than is usual?
//!
//! Half the files gone, or all of them changed, may be a mistake or malware, and the older snapshots
//! are what brings them back. A flood of snapshots may be there to have rules let the older ones of the same
//! hour, day and week go. So rules stand still until an administrator says that it is all right.
//! What is asked for by name is deleted all the same.
//!
//! Rules thin snapshots one by one as these grow old. If they would delete most of a machine's at once, though nobody
//! changed them, something else is not as it should be: many came within one hour, day or week.
//!
//! Nor do rules let anything go of a repository that may have had others, since nobody knows which, nor
//! while more came than one look goes through.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use holdall_format::{MachineId, RepositoryId};
use holdall_repository::{Judged, Store};

use super::administration::Administration;
use crate::ServerError;
use crate::accounts::{Keeping, RetentionWatch};

/// Rules that delete fewer snapshots of a machine at once do what they are for, however few those leave.
const GOING_MIN: usize = 8;
/// So do rules that keep a few of many for less time than this.
const STAYED_NS: i64 = 24 * 3600 * 1_000_000_000;

/// What a look came to.
pub(super) struct Looked {
    /// Why rules may let nothing go until an administrator says that it is all right.
    pub(super) alarm: Option<String>,
    /// So many series have something new that nobody looked at yet; rules wait for that too.
    pub(super) left: usize,
}

impl Administration<'_> {
    /// Looks at what came since the last look, and says why rules may let nothing go.
    pub(super) fn alarm(
        &self,
        store: &Store,
        name: &str,
        dry_run: bool,
    ) -> Result<Looked, ServerError> {
        let before = self.accounts.retention_watch(name)?;
        let mut watched = before.clone();
        watched.meet(&store.repository());
        let left = match watched.alarm {
            Some(_) => 0,
            None => weigh(store, &mut watched, self.should_stop)?,
        };
        if !dry_run && watched != before && self.raise(name, &before, &watched)? {
            store.forget_forged_node();
        }
        if !dry_run && left > 0 {
            self.log(&format!(
                "{name}: {left} series have new snapshots that one look had no time for, so that rules let \
                 nothing go before the next one"
            ));
        }
        Ok(Looked { alarm: watched.alarm, left })
    }

    /// Says why rules may not delete what they do not keep of `judged`: it is most of what a machine has, and they
    /// are the ones that were applied before.
    pub(super) fn burst(
        &self,
        name: &str,
        keeping: &Keeping,
        judged: &[Judged],
        dry_run: bool,
    ) -> Result<Option<String>, ServerError> {
        let before = self.accounts.retention_watch(name)?;
        let mut watched = before.clone();
        if watched.applied.replace(keeping.clone()).as_ref() == Some(keeping) {
            watched.alarm = self.most_go(judged);
        }
        if !dry_run && watched != before {
            self.raise(name, &before, &watched)?;
        }
        Ok(watched.alarm)
    }

    /// Which machine would lose most of its snapshots, if one would, of those that stayed until now.
    fn most_go(&self, judged: &[Judged]) -> Option<String> {
        let mut machines: BTreeMap<MachineId, (usize, usize)> = BTreeMap::new();
        for one in judged {
            let goes = one.reasons.is_empty();
            let (going, all) = machines.entry(one.machine).or_default();
            *all += 1;
            *going += usize::from(goes && self.accounts.has_passed(one.received_ns, STAYED_NS));
        }
        let is_most = |going: usize, all: usize| going >= GOING_MIN && going * 2 > all;
        let mut losing = machines.into_iter().filter(|(_, (going, all))| is_most(*going, *all));
        losing.next().map(|(machine, (going, all))| {
            format!(
                "unchanged rules would delete {going} of the {all} snapshots of machine {machine} at once"
            )
        })
    }

    /// Remembers what was seen, and tells the log of an alarm that is new. Says whether there is one.
    fn raise(
        &self,
        name: &str,
        before: &RetentionWatch,
        watched: &RetentionWatch,
    ) -> Result<bool, ServerError> {
        let raised = watched.alarm.as_ref().filter(|_| watched.alarm != before.alarm);
        if let Some(alarm) = raised {
            self.log(&format!("alarm: {name}: {alarm}: automatic deletion is paused"));
        }
        self.accounts.put_retention_watch(name, watched)?;
        Ok(raised.is_some())
    }

    /// Why rules let nothing go, as far as that is known without a look.
    pub(super) fn known_alarm(&self, name: &str, repository: &RepositoryId) -> Option<String> {
        let mut watched = self.accounts.retention_watch(name).unwrap_or_default();
        watched.meet(repository);
        watched.alarm
    }

    /// Has rules let go again what they do not keep.
    pub(super) fn resume(&self, repository: &str) -> Result<Option<String>, ServerError> {
        self.check_name(repository)?;
        let mut watched = self.accounts.retention_watch(repository)?;
        // That its rules may not be its own is known before any look.
        if let Ok((id, _)) = self.stores.census(repository) {
            watched.meet(&id);
        }
        let alarm = watched.alarm;
        self.accounts.watch_anew(repository)?;
        self.log(&format!("rules of repository {repository} go on"));
        Ok(alarm)
    }
}

/// Looks at the newest snapshot of each series, and raises the alarm if one is unusual, or if somebody sent what no
/// honest machine does. Says how many are left for the next look.
fn weigh(
    store: &Store,
    watched: &mut RetentionWatch,
    should_stop: &AtomicBool,
) -> Result<usize, ServerError> {
    let look = store.weigh(&watched.weights, should_stop)?;
    for (series, one) in look.weighed {
        let before = watched.weights.get(&series);
        match before.and_then(|before| one.anomaly_since(before)) {
            Some(anomaly) => watched.alarm = Some(anomaly),
            None => drop(watched.weights.insert(series, one.now)),
        }
    }
    if let Some(node) = store.forged_node() {
        watched.alarm = Some(format!(
            "a machine sent node {node}, which is committed, with other references, as no honest one does"
        ));
    }
    Ok(look.left)
}
