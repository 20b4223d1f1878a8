//! How far somebody who shows a token may go.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What somebody may have done; each may what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub enum Scope {
    /// See the overview and metrics.
    Look,
    /// Be told.
    Read,
    /// Have what is stored looked after, and keep it from being deleted.
    Operate,
    /// Let machines in, lock them out, and have things deleted.
    Administer,
    /// Become somebody: never by a token alone.
    Own,
}

impl fmt::Display for Scope {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.pad(match self {
            Self::Look => "look",
            Self::Read => "read",
            Self::Operate => "operate",
            Self::Administer => "administer",
            Self::Own => "own",
        })
    }
}
