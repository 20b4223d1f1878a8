//! Before rules let anything go: did somebody lose much lately, or make far more snapshots than is usual?
//!
//! Half the files gone, or all of them changed, may be a mistake or malware, and the older snapshots
//! are what brings them back. A flood of snapshots may be there to have rules let the older ones of the same
//! hour, day and week go. So rules stand still until an administrator says that it is all right.
//! What is asked for by name is deleted all the same.

use holdall_repository::Store;

use super::carry_out::Administration;
use super::command::Reply;
use crate::ServerError;

impl Administration<'_> {
    /// Looks at what came since the last look, and says why rules may let nothing go.
    pub(super) fn alarm(
        &self,
        store: &Store,
        name: &str,
        dry_run: bool,
    ) -> Result<Option<String>, ServerError> {
        let mut watched = self.accounts.watched(name)?;
        if watched.alarm.is_some() {
            return Ok(watched.alarm);
        }
        let weighed = store.weigh(&watched.weights)?;
        if weighed.is_empty() {
            return Ok(None);
        }
        for (series, one) in weighed {
            let before = watched.weights.get(&series);
            match before.and_then(|before| one.anomaly_since(before)) {
                Some(anomaly) => watched.alarm = Some(anomaly),
                None => drop(watched.weights.insert(series, one.now)),
            }
        }
        if !dry_run {
            if let Some(alarm) = &watched.alarm {
                self.log(&format!("alarm: {name}: {alarm}: rules let nothing go"));
            }
            self.accounts.put_watched(name, &watched)?;
        }
        Ok(watched.alarm)
    }

    /// Has rules let go again what they do not keep.
    pub(super) fn resume(&self, repository: &str) -> Result<Reply, ServerError> {
        self.check_name(repository)?;
        let alarm = self.accounts.watched(repository)?.alarm;
        // What is there now is what is usual from now on.
        self.accounts.put_watched(repository, &Default::default())?;
        self.log(&format!("rules of repository {repository} go on"));
        Ok(Reply::Resumed { alarm })
    }
}
