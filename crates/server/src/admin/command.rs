//! What every command of an administrator has.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::administration::Administration;
use crate::ServerError;
use crate::auth::scope::Scope;

/// What an administrator alone is told, and changes nothing.
const ONLY_TELL: [&str; 2] = ["api-tokens", "audit"];

/// Something that an administrator has done.
pub trait AdminCommand: Serialize {
    /// What the command is called.
    const NAME: &'static str;
    /// What its answer is called.
    const REPLY: &'static str;
    /// How long it may take.
    const PACE: Pace;
    /// What is answered once it is done.
    type Reply: Serialize + DeserializeOwned;
}

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

/// How long a command may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// It looks into no repository, so that it waits for nobody.
    Quick,
    /// It may wait for a repository to be opened, or for a deletion that is being carried out.
    Usual,
    /// It may take as long as reading everything does.
    Long,
}
