//! What every command of an administrator has.

use serde::Serialize;
use serde::de::DeserializeOwned;

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
