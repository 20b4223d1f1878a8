//! How the server carries a command out: whoever asks, and whatever way it comes.

use super::administration::Administration;
use super::command::{AdminCommand, Pace};
use crate::ServerError;
use crate::auth::scope::Scope;

/// What an administrator alone is told, and changes nothing.
const ONLY_TELL: [&str; 3] = ["api-tokens", "audit", "people"];

/// How the server carries a command out.
pub(crate) trait Carried: AdminCommand {
    /// What somebody must be allowed to do who has it carried out.
    fn scope(&self) -> Scope;

    /// Does what was asked. What it changed is durable then, and counts for the next request of every open connection.
    fn work(&self, on: &Administration<'_>) -> Result<Self::Reply, ServerError>;

    /// Whether it changes anything, and does not only tell.
    fn changes(&self) -> bool {
        self.scope() > Scope::Read && !ONLY_TELL.contains(&Self::NAME)
    }
}

impl Administration<'_> {
    /// Does what was asked, for a page and for a terminal alike, and notes who changed what.
    pub(crate) fn carry_out<C: Carried>(&self, asked: &C) -> Result<C::Reply, ServerError> {
        self.check_scope(C::NAME, asked.scope())?;
        let is_long = C::PACE == Pace::Long;
        // What takes long is noted when it begins: it may never end.
        if asked.changes() && is_long {
            self.note(C::NAME, asked, None);
        }
        let reply = asked.work(self);
        if asked.changes() && !is_long {
            self.note(C::NAME, asked, reply.as_ref().err());
        }
        reply
    }
}
