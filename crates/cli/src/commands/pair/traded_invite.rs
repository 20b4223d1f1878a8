//! The invite that a short code was traded for, kept until this machine is paired.
//!
//! A code has one try. What keeps the machine from being paired after that, such as a missing password or a kit that
//! cannot be written, must not cost the code: the server may have revoked the key of the old computer by then. So the invite
//! is written down before it is used, and the same code typed again goes on with it.
//!
//! The file has two lines, the code and the invite. It is as secret as the machine's own key beside it, and is never printed.

use std::path::PathBuf;

use anyhow::Result;
use holdall_protocol::{Denial, Invite, RepositoryError, ShortCode};
use holdall_state::private_file;
use zeroize::Zeroizing;

use crate::app::App;
use crate::exit::{Refusal, exit_of, hint_of, is_closed_pipe};
use crate::lab::remembered;
use crate::terminal::output::sentence;

const FILE: &str = "traded-invite";
/// Longer than any code and invite.
const MAX_BYTES: u64 = 16 << 10;
const GO_ON: &str = "the short code is spent, and this computer keeps what it got for it: once that is put right, give \
                     the same code again";

/// What was given to pair with.
pub(super) struct Given {
    /// The text of an invite.
    pub(super) invite: Zeroizing<String>,
    /// Whether a short code was traded for it.
    pub(super) is_traded: bool,
}

impl Given {
    /// What becomes of pairing by it: a kept invite that is of no more use is removed, and a failure says how to go on.
    pub(super) fn ended<T>(&self, app: &App, ended: Result<T>) -> Result<T> {
        if !self.is_traded {
            return ended;
        }
        match ended {
            Err(error) if is_closed_pipe(&error) => Err(error),
            Err(error) if !is_refused(&error) => Err(with_hint(app, &error)),
            ended => {
                let removed = private_file::remove(&file(app));
                removed.unwrap_or_else(|error| app.output.note(error));
                ended
            }
        }
    }
}

/// The invite that this computer got for that code and still keeps.
///
/// # Errors
/// If it is there and cannot be read.
pub(super) fn of(app: &App, code: &ShortCode) -> Result<Option<Zeroizing<String>>> {
    let Some(bytes) = private_file::read(&file(app), MAX_BYTES)?.map(Zeroizing::new) else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    let kept = text.split_once('\n');
    let kept = kept.filter(|(of, _)| ShortCode::from_text(of).as_ref() == Some(code));
    Ok(kept.map(|(_, invite)| Zeroizing::new(invite.trim().to_owned())))
}

/// Keeps the invite that was got for that code, in the place of any other.
///
/// # Errors
/// If it cannot be written.
pub(super) fn keep(app: &App, code: &ShortCode, invite: &Invite) -> Result<()> {
    let text = Zeroizing::new(format!("{}\n{}\n", *code.to_text(), *invite.to_text()));
    Ok(private_file::replace(&file(app), text.as_bytes())?)
}

fn file(app: &App) -> PathBuf {
    app.folders.state.join(FILE)
}

/// Whether the server takes that invite of this computer no more.
fn is_refused(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        matches!(
            cause.downcast_ref(),
            Some(RepositoryError::NotAllowed { cause: Denial::Invite | Denial::RevokedKey, .. })
        )
    })
}

/// The same failure, with how to go on.
fn with_hint(app: &App, error: &anyhow::Error) -> anyhow::Error {
    let hint = hint_of(error, &remembered::known_names(app));
    let hint = hint.map_or_else(|| GO_ON.to_owned(), |hint| format!("{hint}; {GO_ON}"));
    Refusal::new(exit_of(error), sentence(error)).hint(hint).into()
}
