//! What was seen of a repository's newest snapshots, and an alarm that nobody has answered yet.

use std::collections::BTreeMap;

use holdall_repository::Weight;
use serde::{Deserialize, Serialize};

use super::Accounts;
use crate::ServerError;

/// What is remembered of a repository between two looks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Watched {
    /// The snapshot of each series that was weighed last.
    pub(crate) weights: BTreeMap<String, Weight>,
    /// Why rules let nothing go, until an administrator says that it is all right.
    pub(crate) alarm: Option<String>,
}

impl Accounts {
    /// What was seen of a repository.
    pub(crate) fn watched(&self, repository: &str) -> Result<Watched, ServerError> {
        let row = self.database.setting(&setting(repository))?;
        Ok(row.and_then(|row| serde_json::from_str(&row).ok()).unwrap_or_default())
    }

    /// Remembers what was seen of a repository.
    pub(crate) fn put_watched(
        &self,
        repository: &str,
        watched: &Watched,
    ) -> Result<(), ServerError> {
        let row = serde_json::to_string(watched).unwrap_or_default();
        self.database.put_setting(&setting(repository), &row)
    }
}

fn setting(repository: &str) -> String {
    format!("watched:{repository}")
}
