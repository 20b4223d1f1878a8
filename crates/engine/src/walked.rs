//! How a run found out what changed, and why it looked at everything although it was told where to look.

/// How a run found out what changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walked {
    /// It looked at the places that it was given, and took over the rest.
    Journal,
    /// It looked at everything; for this reason, if it was given places.
    Full(Option<FullWalk>),
}

impl Default for Walked {
    fn default() -> Self {
        Self::Full(None)
    }
}

impl Walked {
    /// The word for it: `journal` or `full`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Journal => "journal",
            Self::Full(_) => "full",
        }
    }

    /// Why it looked at everything although it was given places.
    pub fn reason(self) -> Option<FullWalk> {
        match self {
            Self::Full(reason) => reason,
            Self::Journal => None,
        }
    }
}

/// Why a run that was given places looks at everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FullWalk {
    /// Every file is to be read, or every path is to be told.
    #[error("everything is to be looked at")]
    WantsAll,
    /// One source lies within another.
    #[error("one of the sources lies within another")]
    NestedSources,
    /// The journal knows of changes since another snapshot.
    #[error("the last snapshot is not the one that the journal starts from")]
    OtherSnapshot,
    /// A checkpoint is newer than the last snapshot.
    #[error("a run was interrupted since the last snapshot")]
    Interrupted,
    /// The last snapshot has other paths, or leaves out other ones.
    #[error("the last snapshot was made with other options")]
    OtherOptions,
    /// Another version records other things.
    #[error("the last snapshot was made by another version of holdall")]
    OtherVersion,
    /// What could not be read is tried again.
    #[error("the last snapshot lacks what could not be read")]
    Problems,
    /// What is needed to take over parts of the last snapshot is not on this computer.
    #[error("nothing is remembered of the last snapshot, or owners have other names since")]
    NothingRemembered,
    /// A source lies on a file system where inodes or times do not last.
    #[error("the file system of a source cannot be relied on for that")]
    FileSystem,
    /// Too much has to be looked at in any case.
    #[error("too many folders have to be looked at in any case")]
    TooMany,
    /// A file has more than one name, and had one, or was another: the other names may be anywhere.
    #[error("a file got another name, which may lie anywhere")]
    NewLink,
    /// The journal and the last snapshot do not fit what is there.
    #[error("a folder is not the one that the last snapshot has, and the journal does not say so")]
    Unfit,
}
