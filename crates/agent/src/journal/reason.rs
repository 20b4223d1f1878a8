//! Why everything is walked, though there is a journal.

use std::fmt;
use std::path::PathBuf;

/// Why the next run of a set walks everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// What happened since the last run's walk began was not all seen.
    BeganLater,
    /// The last run did not tell of a snapshot with everything in it.
    NoCompleteRun,
    /// A day has passed since the last full walk.
    Daily,
    /// The set says something else than at its last run.
    Settings,
    /// Events were lost.
    Overflow,
    /// Something was mounted or unmounted where a source lies, or it cannot be told where.
    Mounts,
    /// A source lies somewhere else now.
    SourceMoved,
    /// A file got another name, or one with several names was written. It may have one in any folder, where it may say what is
    /// backed up.
    SeveralNames,
    /// More folders changed than are worth remembering.
    TooManyPlaces,
    /// What an event is about cannot be found out.
    Doubt(String),
    /// It cannot be seen which files are open for writing.
    OpenFiles,
    /// A source lies where changes are not told.
    Unwatched {
        /// The source.
        source: PathBuf,
        /// Its file system, and what is the matter with it.
        why: String,
    },
    /// Changes cannot be watched on this computer, or not by this user.
    Unavailable(String),
    /// Its sources are not folders that are known beforehand.
    Unsuitable(&'static str),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::BeganLater => "the journal began after the last run",
            Self::NoCompleteRun => "the last run did not read everything",
            Self::Daily => "the last full walk was a day ago",
            Self::Settings => "the set was changed",
            Self::Overflow => "more happened at once than the kernel told",
            Self::Mounts => "something was mounted or unmounted at a source",
            Self::SourceMoved => "a source was moved",
            Self::SeveralNames => "a file has another name, which may lie anywhere",
            Self::TooManyPlaces => "too many folders changed",
            Self::OpenFiles => "it cannot be seen which files are open",
            Self::Doubt(why) => return write!(f, "a change cannot be placed: {why}"),
            Self::Unwatched { source, why } => {
                return write!(f, "changes in {} are not told: {why}", source.display());
            }
            Self::Unavailable(why) => return write!(f, "changes are not told: {why}"),
            Self::Unsuitable(why) => why,
        };
        f.write_str(words)
    }
}
