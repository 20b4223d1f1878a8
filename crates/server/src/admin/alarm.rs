//! Before rules let anything go: did somebody lose much lately, or make far more snapshots than is usual?
//!
//! Half the files gone, or all of them changed, may be a mistake or malware, and the older snapshots
//! are what brings them back. A flood of snapshots may be there to have rules let the older ones of the same
//! hour, day and week go. So rules stand still until an administrator says that it is all right.
//! What is asked for by name is deleted all the same.
//!
//! Nor do rules let anything go of a repository that may have had others, since nobody knows which.

use holdall_format::RepositoryId;
use holdall_repository::Store;

use super::carry_out::Administration;
use super::command::Reply;
use crate::ServerError;
use crate::accounts::Watched;

impl Administration<'_> {
    /// Looks at what came since the last look, and says why rules may let nothing go.
    pub(super) fn alarm(
        &self,
        store: &Store,
        name: &str,
        dry_run: bool,
    ) -> Result<Option<String>, ServerError> {
        let before = self.accounts.watched(name)?;
        let mut watched = before.clone();
        watched.meet(&store.repository());
        if watched.alarm.is_none() {
            weigh(store, &mut watched)?;
        }
        if !dry_run && watched != before {
            if let Some(alarm) = watched.alarm.as_ref().filter(|_| watched.alarm != before.alarm) {
                self.log(&format!("alarm: {name}: {alarm}: rules let nothing go"));
            }
            self.accounts.put_watched(name, &watched)?;
        }
        Ok(watched.alarm)
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
        let alarm = self.accounts.watched(repository)?.alarm;
        self.accounts.watch_anew(repository)?;
        self.log(&format!("rules of repository {repository} go on"));
        Ok(Reply::Resumed { alarm })
    }
}

/// Looks at the newest snapshot of each series, and raises the alarm if one is unusual.
fn weigh(store: &Store, watched: &mut Watched) -> Result<(), ServerError> {
    for (series, one) in store.weigh(&watched.weights)? {
        let before = watched.weights.get(&series);
        match before.and_then(|before| one.anomaly_since(before)) {
            Some(anomaly) => watched.alarm = Some(anomaly),
            None => drop(watched.weights.insert(series, one.now)),
        }
    }
    Ok(())
}
