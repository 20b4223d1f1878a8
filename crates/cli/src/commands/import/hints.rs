//! What to do about what keeps a repository of restic, or a snapshot of it, from being read; and how an import ends for it.

use std::path::Path;

use holdall_import::{ImportError, UnreadKind};

use crate::exit::{Exit, Refusal};

/// What to do about what this user may not read.
const BY_ANOTHER: &str =
    "run this as the user who may read it, such as root; nothing in it has to be changed";

/// The refusal of a repository that cannot be read.
pub(super) fn refused(error: ImportError) -> anyhow::Error {
    let (exit, hint) = match &error {
        ImportError::NotBuilt => {
            (Exit::Failed, "build it with `--features import`, or take the packaged one")
        }
        ImportError::NoRepository { .. } => (
            Exit::NoRepository,
            "name the directory that `restic init` made; one that is elsewhere can be copied with `restic copy`",
        ),
        ImportError::WrongPassword { .. } => (
            Exit::WrongKey,
            "check restic's password (--password-file, --from-password-file, HOLDALL_FROM_PASSWORD)",
        ),
        ImportError::Forbidden { .. } => (Exit::Failed, BY_ANOTHER),
        ImportError::Damaged { .. } => (
            Exit::Damage,
            "`restic check` finds out what is affected, and `restic rebuild-index` makes its index anew",
        ),
        _ => return error.into(),
    };
    Refusal::new(exit, error.to_string()).hint(hint).into()
}

/// What to do about a snapshot whose file cannot be read.
pub(super) fn of_unread(kind: UnreadKind) -> (Exit, &'static str) {
    match kind {
        UnreadKind::Forbidden => (Exit::Failed, BY_ANOTHER),
        UnreadKind::NotUnderstood => (
            Exit::Incomplete,
            "it is whole, but not understood here: restic restores what it has, and `holdall backup` backs that up",
        ),
        _ => (
            Exit::Damage,
            "what it had is in others, or lost; `restic forget` takes it off restic's list",
        ),
    }
}

/// What to do about a snapshot whose topmost folder cannot be read.
pub(super) fn of_tree(error: &ImportError, place: &Path) -> (Exit, String) {
    match error {
        ImportError::Forbidden { .. } => (Exit::Failed, BY_ANOTHER.to_owned()),
        _ => (Exit::Damage, of_damage(place)),
    }
}

/// What to do about a snapshot that says more of itself than one here can.
pub(super) fn of_unrecordable(id: &str) -> String {
    format!(
        "it stays in restic's repository, where `restic tag --set TAG {id:.8}` gives it other tags; else restore it with \
         restic, and back that up"
    )
}

/// What to do about a damaged snapshot.
pub(super) fn of_damage(place: &Path) -> String {
    format!(
        "`restic check -r {}` finds out what is affected; if its index is lost, `restic rebuild-index` makes it anew",
        place.display()
    )
}
