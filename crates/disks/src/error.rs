//! What goes wrong with disks.

use std::io;
use std::path::PathBuf;

use crate::identity::Identity;
use crate::refusal::Reason;

/// Why something was not done, or not to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// What was named is not there, or cannot be looked at.
    #[error("{}: {cause}", path.display())]
    NotThere {
        /// What was named.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// What was named is no block device.
    #[error("{} is no disk, but {kind}", path.display())]
    NoDevice {
        /// What was named.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// The disk is in use, or is none that is written over. Nothing was changed.
    #[error("{name} is refused: {}", told(reasons))]
    Refused {
        /// The disk.
        name: String,
        /// Why; at least one.
        reasons: Vec<Reason>,
    },
    /// Another program has locked the disk, as udev does while it looks at it. Nothing was changed.
    #[error("{name} is locked by another program, which may be looking at it just now")]
    Locked {
        /// The disk.
        name: String,
    },
    /// The disk is not the one that was shown. Nothing was written to it.
    #[error("the disk is not the one that was shown: it was {was}, and is {}", is.as_ref().map_or("gone".to_owned(), ToString::to_string))]
    Changed {
        /// What was shown.
        was: Box<Identity>,
        /// What has its name now.
        is: Option<Box<Identity>>,
    },
    /// The label cannot be had. Nothing was changed.
    #[error("the label '{label}' cannot be had: {cause}")]
    Label {
        /// The label.
        label: String,
        /// Why not.
        cause: String,
    },
    /// A program is not installed. Nothing was changed.
    #[error("{program} is not installed")]
    Missing {
        /// The program.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// A program failed.
    #[error("{program} {ended}: {said}")]
    Program {
        /// The program.
        program: &'static str,
        /// How it ended.
        ended: String,
        /// What it said last.
        said: String,
    },
    /// The system failed.
    #[error("{what}: {cause}")]
    System {
        /// At what.
        what: String,
        /// What it says.
        cause: io::Error,
    },
    /// It was asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// It failed, or was asked to stop, when something was changed already.
    #[error("{cause}. {state}")]
    HalfDone {
        /// How the disk is now, in a sentence.
        state: String,
        /// What went wrong.
        cause: Box<DiskError>,
    },
}

impl DiskError {
    /// The same, with how the disk is now.
    pub(crate) fn with_state(self, state: impl Into<String>) -> Self {
        Self::HalfDone { state: state.into(), cause: Box::new(self) }
    }

    /// Whether it was asked to stop.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Interrupted => true,
            Self::HalfDone { cause, .. } => cause.is_interrupted(),
            _ => false,
        }
    }
}

/// An error of the system, at what.
pub(crate) fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> DiskError {
    |cause| DiskError::System { what: what.into(), cause }
}

fn told(reasons: &[Reason]) -> String {
    reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
