//! Those who sign in by a browser: a name, and what is left of a password that was stretched.

use serde::{Deserialize, Serialize};

use super::Accounts;
use super::second_factor::SecondFactor;
use crate::ServerError;
use crate::auth::scope::Scope;

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
    /// What is asked for beside the password.
    #[serde(default)]
    pub(crate) second_factor: Option<SecondFactor>,
    /// What they may have done. Those of before could do everything.
    #[serde(default = "administer")]
    pub(crate) scope: Scope,
    /// When they signed in last, in nanoseconds since 1970 UTC.
    #[serde(default)]
    pub(crate) signed_in_ns: Option<i64>,
}

fn administer() -> Scope {
    Scope::Administer
}

/// What is answered for a name that nobody has.
pub(crate) fn no_person(name: &str) -> ServerError {
    ServerError::refused(format!("nobody is called {name:?}; `holdall admin people` lists them"))
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

    /// Adds one, in the place of any of the same name, whose second factor is gone then.
    pub(crate) fn put_web_account(&self, account: WebAccount) -> Result<(), ServerError> {
        self.change_web_accounts(|accounts| {
            accounts.retain(|known| known.name != account.name);
            accounts.push(account);
            Ok(())
        })
    }

    /// Takes one away, and gives it.
    ///
    /// # Errors
    /// [`ServerError::Refused`] if there is none of that name, and for the last administrator unless that `may_be_last`.
    pub(crate) fn remove_web_account(
        &self,
        name: &str,
        may_be_last: bool,
    ) -> Result<WebAccount, ServerError> {
        self.change_web_accounts(|accounts| {
            let at = accounts.iter().position(|account| account.name == name);
            let at = at.ok_or_else(|| no_person(name))?;
            let removed = accounts.remove(at);
            let is_last = !accounts.iter().any(|account| account.scope == Scope::Administer);
            if is_last && removed.scope == Scope::Administer && !may_be_last {
                return Err(ServerError::refused(format!(
                    "{name:?} is the last administrator; `holdall admin people NAME --remove` on the server removes them"
                )));
            }
            Ok(removed)
        })
    }

    /// Changes one.
    ///
    /// # Errors
    /// [`ServerError::Refused`] if there is none of that name.
    pub(crate) fn change_web_account<T>(
        &self,
        name: &str,
        change: impl FnOnce(&mut WebAccount) -> T,
    ) -> Result<T, ServerError> {
        self.change_web_accounts(|accounts| {
            let found = accounts.iter_mut().find(|account| account.name == name);
            found.map(change).ok_or_else(|| no_person(name))
        })
    }

    /// Changes them, one change after the other.
    fn change_web_accounts<T>(
        &self,
        change: impl FnOnce(&mut Vec<WebAccount>) -> Result<T, ServerError>,
    ) -> Result<T, ServerError> {
        let _state = self.state();
        let mut accounts = self.web_accounts()?;
        let changed = change(&mut accounts)?;
        let rows = serde_json::to_string(&accounts)
            .map_err(|error| ServerError::Admin { reason: error.to_string() })?;
        self.database.put_setting(SETTING, &rows)?;
        Ok(changed)
    }
}
