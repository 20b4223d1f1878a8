//! What commands work on, with and without a running server.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use holdall_format::PublicKey;
use holdall_protocol::wire::is_repository_name;

use crate::accounts::Accounts;
use crate::activity::Activities;
use crate::auth::actor::Actor;
use crate::auth::scope::Scope;
use crate::jobs::{Job, Jobs};
use crate::short_codes::ShortCodes;
use crate::stores::Stores;
#[cfg(feature = "web")]
use crate::web_sessions::WebSessions;
use crate::{LogSink, ServerError};

/// What commands work on.
pub(crate) struct Administration<'a> {
    pub(crate) accounts: &'a Accounts,
    pub(crate) stores: &'a Stores,
    /// Whom invites lead to.
    pub(crate) identity: PublicKey,
    /// Where the server listens, or did last.
    pub(crate) listen: SocketAddr,
    pub(crate) log: &'a LogSink,
    /// Who has it done.
    pub(crate) actor: &'a Actor,
    /// What goes on in sessions; nothing where no server runs.
    pub(crate) activities: Option<&'a Activities>,
    /// The code by which a machine may be let in; nothing where no server runs.
    pub(crate) short_codes: Option<&'a ShortCodes>,
    /// Who is signed in to the pages; nothing where no server runs.
    #[cfg(feature = "web")]
    pub(crate) web_sessions: Option<&'a WebSessions>,
    /// What takes long, and which of that this is part of.
    pub(crate) jobs: &'a Jobs,
    pub(crate) job: Option<&'a Job>,
    /// Set when what takes long is to end.
    pub(crate) should_stop: &'a AtomicBool,
}

impl Administration<'_> {
    /// Checks that there is such a repository, or is to be.
    pub(super) fn check_name(&self, repository: &str) -> Result<(), ServerError> {
        let is_stored = || is_repository_name(repository) && self.stores.is_stored(repository);
        if self.accounts.owner(repository).is_some() || is_stored() {
            return Ok(());
        }
        Err(ServerError::refused(format!(
            "there is no repository {repository:?}; `holdall admin repositories` lists them"
        )))
    }

    /// Repositories that are stored, and those of machines that did not make theirs yet.
    pub(super) fn names(&self) -> Result<BTreeSet<String>, ServerError> {
        let mut names: BTreeSet<_> = self.stores.stored_names()?.into_iter().collect();
        names.extend(self.accounts.machines().into_iter().map(|machine| machine.repository));
        Ok(names)
    }

    /// Checks that whoever asks may have that done; what is refused is noted.
    ///
    /// # Errors
    /// [`ServerError::NotAllowed`].
    pub(crate) fn check_scope(&self, command: &str, scope: Scope) -> Result<(), ServerError> {
        if scope <= self.actor.scope {
            return Ok(());
        }
        // What no token may do, whoever administers may do in a browser.
        let right = scope.min(Scope::Administer).to_string();
        let why = ServerError::NotAllowed { who: self.actor.who.clone(), right };
        self.note(command, &serde_json::json!({}), Some(&why));
        Err(why)
    }

    pub(super) fn log(&self, line: &str) {
        (self.log)(line);
    }
}
