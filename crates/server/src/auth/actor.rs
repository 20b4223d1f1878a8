//! Who has something done, for the audit log.

/// Who has something done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Actor {
    /// For people.
    pub(crate) who: String,
    /// The address; `None` on this computer.
    pub(crate) from: Option<String>,
}

impl Actor {
    /// Whoever may write the data folder.
    pub(crate) fn terminal() -> Self {
        Self { who: "terminal".into(), from: None }
    }

    /// The server by itself, and a machine's request that names no administrator.
    pub(crate) fn server() -> Self {
        Self { who: "server".into(), from: None }
    }
}
