//! The newest record that this server acknowledged for each repository.
//!
//! If the file of the newest record is gone from a repository's folder while the server is off, no other record names it.
//! Only the machine that made it would miss it, and a prune would take its content for unneeded. So the server keeps the
//! record's hash outside of that folder. It is replaced with each commit; records that several machines commit at once
//! may be noted in either order.

use holdall_format::{RecordHash, RepositoryId};

use super::Accounts;
use crate::ServerError;

impl Accounts {
    /// Notes the newest record of a repository, durably.
    pub(crate) fn note_newest(
        &self,
        repository: RepositoryId,
        record: &RecordHash,
    ) -> Result<(), ServerError> {
        self.database.put_setting(&setting_of(repository), &record.to_string())
    }

    /// The newest record that was acknowledged for a repository; `None` if none was since this is noted.
    pub(crate) fn newest(
        &self,
        repository: RepositoryId,
    ) -> Result<Option<RecordHash>, ServerError> {
        let noted = self.database.setting(&setting_of(repository))?;
        Ok(noted.and_then(|hash| hash.parse().ok()))
    }
}

/// What the settings begin with under which that is noted.
pub(super) const SETTING: &str = "newest record of ";

fn setting_of(repository: RepositoryId) -> String {
    format!("{SETTING}{repository}")
}
