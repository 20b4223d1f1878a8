//! What pages in a browser need: snapshots as a server sees them, the code of the first sign-in, and commands that do not
//! come as lines.

use super::administration::Administration;
use super::commands::MakeApiToken;
use super::entries::{IssuedApiToken, IssuedWebCode, SnapshotEntry, Snapshots};
use crate::ServerError;
use crate::addresses::reachable_at;
use crate::auth::scope::Scope;

impl Administration<'_> {
    /// Lists the snapshots of a repository.
    pub(super) fn snapshots(&self, repository: &str) -> Result<Snapshots, ServerError> {
        self.check_name(repository)?;
        let listed = self.stores.store(repository)?.listed();
        Ok(Snapshots { snapshots: listed.iter().map(SnapshotEntry::listed).collect() })
    }

    /// Makes a code for the pages.
    pub(super) fn web_code(
        &self,
        name: Option<&str>,
        scope: Scope,
    ) -> Result<IssuedWebCode, ServerError> {
        refuse_without_pages()?;
        self.check_may_have_code(name, scope)?;
        let (code, expires_ns) = self.accounts.make_web_code(name, scope)?;
        self.log("made a code for the pages in a browser");
        Ok(IssuedWebCode { code, expires_ns, addresses: reachable_at(self.listen) })
    }

    /// Makes a token for a program.
    pub(super) fn api_token(&self, asked: &MakeApiToken) -> Result<IssuedApiToken, ServerError> {
        refuse_without_pages()?;
        let MakeApiToken { name, scope, valid_for_s } = asked;
        if *scope == Scope::Own {
            return Err(ServerError::refused(
                "no token may do what makes somebody an administrator",
            ));
        }
        // At a terminal it is renewed so, by scripts; a page or two at once take no token from who has it.
        let is_there = || {
            Ok::<_, ServerError>(self.accounts.api_tokens()?.iter().any(|one| one.name == *name))
        };
        if !self.actor.is_terminal() && is_there()? {
            return Err(ServerError::refused(format!(
                "a token is called {name:?} already: revoke it first, or choose another name"
            )));
        }
        let token = self.accounts.make_api_token(name, *scope, *valid_for_s)?;
        self.log(&format!("made a token for programs, {name:?}"));
        Ok(IssuedApiToken { token, addresses: reachable_at(self.listen) })
    }
}

pub(super) fn refuse_without_pages() -> Result<(), ServerError> {
    if cfg!(feature = "web") {
        return Ok(());
    }
    let reason = "this holdall was built without its pages; build it with `--features web`";
    Err(ServerError::refused(reason))
}
