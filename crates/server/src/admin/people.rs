//! Who signs in to the pages in a browser, and who looks on there.

use super::administration::Administration;
use super::entries::People;
#[cfg(feature = "web")]
use super::entries::PersonEntry;
#[cfg(not(feature = "web"))]
use super::pages::refuse_without_pages;
use crate::ServerError;
#[cfg(feature = "web")]
use crate::accounts::{ApiToken, WebAccount};
use crate::auth::scope::Scope;

/// Most characters of a name.
pub(crate) const NAME_MOST: usize = 100;

impl Administration<'_> {
    /// Checks that a code may be made with which somebody signs in so.
    pub(super) fn check_may_have_code(
        &self,
        name: Option<&str>,
        scope: Scope,
    ) -> Result<(), ServerError> {
        if !(Scope::Read..=Scope::Administer).contains(&scope) {
            return Err(ServerError::refused("a person may read, operate or administer"));
        }
        let Some(name) = name else { return Ok(()) };
        check_person_name(name)?;
        #[cfg(feature = "web")]
        if !self.actor.is_terminal() && self.account_of(name).is_ok() {
            return Err(ServerError::refused(format!(
                "{name:?} is known already; `holdall admin web-code --for` on the server gives a new password"
            )));
        }
        Ok(())
    }
}

/// Checks what somebody is to be called.
///
/// # Errors
/// [`ServerError::Refused`].
pub(crate) fn check_person_name(name: &str) -> Result<(), ServerError> {
    let is_one = name.trim() == name
        && (1..=NAME_MOST).contains(&name.chars().count())
        && !name.chars().any(char::is_control);
    match is_one {
        true => Ok(()),
        false => Err(ServerError::refused(format!("a name has 1 to {NAME_MOST} characters"))),
    }
}

#[cfg(feature = "web")]
impl Administration<'_> {
    /// All of them.
    pub(super) fn people(&self) -> Result<People, ServerError> {
        let mut accounts = self.accounts.web_accounts()?;
        accounts.sort_by(|one, other| one.name.cmp(&other.name));
        let mut tokens = self.accounts.api_tokens()?;
        tokens.retain(|token| token.scope == Scope::Look);
        let signing_in = accounts.iter().map(|account| self.person(account));
        let looking_on = tokens.iter().map(|token| self.onlooker(token));
        Ok(People { people: signing_in.chain(looking_on).collect() })
    }

    /// Takes somebody away who signs in. The last administrator is taken away by whoever can make another.
    pub(super) fn remove_person(&self, name: &str) -> Result<People, ServerError> {
        let may_be_last = self.actor.is_terminal();
        let account = self.accounts.remove_web_account(name, may_be_last)?;
        let person = self.person(&account);
        self.end_web_sessions(name);
        self.log(&format!("removed {name:?}, who signed in by a browser"));
        Ok(People { people: vec![person] })
    }

    /// Ends all sessions of somebody who signs in.
    pub(super) fn end_sessions(&self, name: &str) -> Result<People, ServerError> {
        let person = self.person(&self.account_of(name)?);
        self.end_web_sessions(name);
        Ok(People { people: vec![person] })
    }

    fn account_of(&self, name: &str) -> Result<WebAccount, ServerError> {
        let known = self.accounts.web_accounts()?.into_iter().find(|one| one.name == name);
        known.ok_or_else(|| crate::accounts::no_person(name))
    }

    fn end_web_sessions(&self, name: &str) {
        if let Some(sessions) = self.web_sessions {
            sessions.end_all_of(name);
        }
    }

    fn count(&self, name: &str, may_only_look: bool) -> usize {
        let now_ns = self.accounts.clock().running_ns();
        self.web_sessions.map_or(0, |sessions| sessions.count(name, may_only_look, now_ns))
    }

    fn person(&self, account: &WebAccount) -> PersonEntry {
        PersonEntry {
            name: account.name.clone(),
            scope: account.scope,
            second_factor: account.second_factor.is_some(),
            made_ns: account.made_ns,
            signed_in_ns: account.signed_in_ns,
            sessions: self.count(&account.name, false),
        }
    }

    fn onlooker(&self, token: &ApiToken) -> PersonEntry {
        PersonEntry {
            name: token.name.clone(),
            scope: token.scope,
            second_factor: false,
            made_ns: token.made_ns,
            signed_in_ns: None,
            sessions: self.count(&token.name, true),
        }
    }
}

#[cfg(not(feature = "web"))]
impl Administration<'_> {
    pub(super) fn people(&self) -> Result<People, ServerError> {
        refuse_without_pages().map(|()| People { people: Vec::new() })
    }

    pub(super) fn remove_person(&self, _: &str) -> Result<People, ServerError> {
        self.people()
    }

    pub(super) fn end_sessions(&self, _: &str) -> Result<People, ServerError> {
        self.people()
    }
}
