//! Who has something done, for the audit log, and how far they may go.

use super::scope::Scope;
use crate::bounds::source::Source;

/// Who has something done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Actor {
    /// For people.
    pub(crate) who: String,
    /// The address; `None` on this computer.
    pub(crate) from: Option<String>,
    /// What they may have done.
    pub(crate) scope: Scope,
}

impl Actor {
    /// Whoever may write the data folder.
    pub(crate) fn terminal() -> Self {
        Self { who: "terminal".into(), from: None, scope: Scope::Own }
    }

    /// Whether it is whoever may write the data folder, who can do all of it anyway.
    pub(crate) fn is_terminal(&self) -> bool {
        *self == Self::terminal()
    }

    /// A machine, with an invite or an administrator's token.
    pub(crate) fn machine(name: &str, source: Source) -> Self {
        Self { who: format!("machine {name}"), from: Some(source.to_string()), scope: Scope::Own }
    }

    /// The server by itself, and a machine's request that names no administrator.
    pub(crate) fn server() -> Self {
        Self { who: "server".into(), from: None, scope: Scope::Own }
    }
}
