//! What was seen of a repository's newest snapshots, whose rules those of its name are, and an alarm that nobody has
//! answered yet.
//!
//! Rules lie here and not in the repository. One that lost them, with the database or by another name of its folder,
//! must not be taken for one that nobody ever said anything of: the usual rules may let go what its own kept.

use std::collections::BTreeMap;

use holdall_format::RepositoryId;
use holdall_repository::SnapshotSize;
use serde::{Deserialize, Serialize};

use super::Accounts;
use super::entries::Keeping;
use crate::ServerError;

/// Why rules let nothing go that may be another repository's.
const UNKNOWN_RULES: &str = "it is not known here which rules it had, since the server's database was lost or is of \
    an older version, or its folder was renamed or brought here: look at them with `holdall admin retention`, or set them";

/// What the settings begin with under which that is remembered.
pub(super) const SETTING: &str = "watched:";

/// What is remembered of a repository between two looks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct RetentionWatch {
    /// The snapshot of each series that was weighed last.
    pub(crate) weights: BTreeMap<String, SnapshotSize>,
    /// Why rules let nothing go, until an administrator says that it is all right.
    pub(crate) alarm: Option<String>,
    /// The rules that were applied last; none since an administrator said that all is right.
    #[serde(default)]
    pub(crate) applied: Option<Keeping>,
    /// Whose rules those of that name are.
    #[serde(default)]
    rules_of: RulesOf,
}

/// Whose rules those of a name are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RulesOf {
    /// Nobody said that.
    #[default]
    Nobody,
    /// That of the repository which the next look finds.
    Next,
    /// That of the repository with this id, in hexadecimal.
    One(String),
}

impl RetentionWatch {
    /// Of a repository that was made here just now, or of which an administrator said that it is all right.
    fn beginning() -> Self {
        Self { rules_of: RulesOf::Next, ..Self::default() }
    }

    /// Notes which repository has that name, and raises the alarm if it may have had other rules.
    pub(crate) fn meet(&mut self, repository: &RepositoryId) {
        let id = repository.to_string();
        match &self.rules_of {
            RulesOf::One(known) if *known == id => {}
            RulesOf::Next => self.rules_of = RulesOf::One(id),
            RulesOf::Nobody | RulesOf::One(_) => {
                self.rules_of = RulesOf::Nobody;
                self.alarm = Some(UNKNOWN_RULES.to_owned());
            }
        }
    }
}

impl Accounts {
    /// What was seen of a repository.
    pub(crate) fn retention_watch(&self, repository: &str) -> Result<RetentionWatch, ServerError> {
        let row = self.database.setting(&Self::watch_setting(repository))?;
        Ok(row.and_then(|row| serde_json::from_str(&row).ok()).unwrap_or_default())
    }

    /// Remembers what was seen of a repository.
    pub(crate) fn put_retention_watch(
        &self,
        repository: &str,
        watched: &RetentionWatch,
    ) -> Result<(), ServerError> {
        self.database.put_setting(&Self::watch_setting(repository), &Self::watch_row(watched))
    }

    /// Under what it is remembered.
    pub(super) fn watch_setting(repository: &str) -> String {
        format!("{SETTING}{repository}")
    }

    pub(super) fn watch_row(watched: &RetentionWatch) -> String {
        serde_json::to_string(watched).unwrap_or_default()
    }

    /// Has what is there now of a repository be what is usual from now on, and the rules of its name be its own.
    pub(crate) fn watch_anew(&self, repository: &str) -> Result<(), ServerError> {
        self.put_retention_watch(repository, &RetentionWatch::beginning())
    }

    /// Has the rules of a repository's name be its own, since somebody just said them.
    pub(super) fn rules_were_said(&self, repository: &str) -> Result<(), ServerError> {
        let watched = match self.retention_watch(repository)? {
            RetentionWatch { rules_of: RulesOf::Nobody, .. } => RetentionWatch::beginning(),
            seen => RetentionWatch { rules_of: RulesOf::Next, ..seen },
        };
        self.put_retention_watch(repository, &watched)
    }
}
