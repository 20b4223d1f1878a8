//! Those who sign in by a browser: a name, and what is left of a password that was stretched.

use serde::{Deserialize, Serialize};

use super::Accounts;
use crate::ServerError;

const SETTING: &str = "web.accounts";

/// An administrator who signs in by a browser.
///
/// Secret: no `Debug`.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct WebAccount {
    pub(crate) name: String,
    pub(crate) salt: [u8; 16],
    /// By Argon2id with `memory_kib`, `passes` and one lane.
    pub(crate) hash: [u8; 32],
    pub(crate) memory_kib: u32,
    pub(crate) passes: u32,
    /// In nanoseconds since 1970 UTC.
    pub(crate) made_ns: i64,
}

impl Accounts {
    /// All of them.
    pub(crate) fn web_accounts(&self) -> Result<Vec<WebAccount>, ServerError> {
        match self.database.setting(SETTING)? {
            None => Ok(Vec::new()),
            Some(rows) => serde_json::from_str(&rows)
                .map_err(|error| ServerError::Admin { reason: error.to_string() }),
        }
    }

    /// Adds one, in the place of any of the same name.
    pub(crate) fn put_web_account(&self, account: WebAccount) -> Result<(), ServerError> {
        let _state = self.state();
        let mut accounts = self.web_accounts()?;
        accounts.retain(|known| known.name != account.name);
        accounts.push(account);
        let rows = serde_json::to_string(&accounts)
            .map_err(|error| ServerError::Admin { reason: error.to_string() })?;
        self.database.put_setting(SETTING, &rows)
    }
}
