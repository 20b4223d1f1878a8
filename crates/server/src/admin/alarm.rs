//! Before rules let anything go: did somebody lose much lately, or make far more snapshots than is usual?
//!
//! Half the files gone, or all of them changed, may be a mistake or malware, and the older snapshots
//! are what brings them back. A flood of snapshots may be there to have rules let the older ones of the same
//! hour, day and week go. So rules stand still until an administrator says that it is all right.
//! What is asked for by name is deleted all the same.
//!
//! Nor do rules let anything go of a repository that may have had others, since nobody knows which, nor
//! while more came than one look goes through.

use std::sync::atomic::AtomicBool;

use holdall_format::RepositoryId;
use holdall_repository::Store;

use super::carry_out::Administration;
use super::command::Reply;
use crate::ServerError;
use crate::accounts::Watched;

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
        let before = self.accounts.watched(name)?;
        let mut watched = before.clone();
        watched.meet(&store.repository());
        let left = match watched.alarm {
            Some(_) => 0,
            None => weigh(store, &mut watched, self.should_stop)?,
        };
        if !dry_run && watched != before {
            let raised = watched.alarm.as_ref().filter(|_| watched.alarm != before.alarm);
            if let Some(alarm) = raised {
                self.log(&format!("alarm: {name}: {alarm}: rules let nothing go"));
            }
            self.accounts.put_watched(name, &watched)?;
            if raised.is_some() {
                store.forget_forged_node();
            }
        }
        if !dry_run && left > 0 {
            self.log(&format!(
                "{name}: {left} series have new snapshots that one look had no time for, so that rules let \
                 nothing go before the next one"
            ));
        }
        Ok(Looked { alarm: watched.alarm, left })
    }

    /// Why rules let nothing go, as far as that is known without a look.
    pub(super) fn known_alarm(&self, name: &str, repository: &RepositoryId) -> Option<String> {
        let mut watched = self.accounts.watched(name).unwrap_or_default();
        watched.meet(repository);
        watched.alarm
    }

    /// Has rules let go again what they do not keep.
    pub(super) fn resume(&self, repository: &str) -> Result<Reply, ServerError> {
        self.check_name(repository)?;
        let mut watched = self.accounts.watched(repository)?;
        // That its rules may not be its own is known before any look.
        if let Ok((id, _)) = self.stores.census(repository) {
            watched.meet(&id);
        }
        let alarm = watched.alarm;
        self.accounts.watch_anew(repository)?;
        self.log(&format!("rules of repository {repository} go on"));
        Ok(Reply::Resumed { alarm })
    }
}

/// Looks at the newest snapshot of each series, and raises the alarm if one is unusual, or if somebody sent what no
/// honest machine does. Says how many are left for the next look.
fn weigh(
    store: &Store,
    watched: &mut Watched,
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
