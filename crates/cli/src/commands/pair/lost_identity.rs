//! An invite of a server that has another identity than the one that this machine was paired with at that address: most
//! likely it was set up anew, and the machine means the repository that it had.

use anyhow::Result;
use holdall_protocol::Invite;

use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::terminal::confirm::confirm;

/// Whether the user means the repository that this machine had there: asks at the terminal.
///
/// # Errors
/// [`Refusal`] if that is the question and there is no terminal to ask at; if the state cannot be read.
pub(super) fn is_meant_again(app: &App, invite: &Invite) -> Result<bool> {
    let pairings = app.pairings()?;
    let Some(pairing) = pairings.replaced_by(invite) else { return Ok(false) };
    let (host, name) = (pairing.addresses.first().map_or("", String::as_str), &pairing.name);
    let had = format!(
        "this machine has the repository {name} on the server at {host}, which has another identity now"
    );
    let question = format!("{had}. Go on with that repository, as with --again? [Y/n] ");
    match confirm(&app.output, &app.interrupt, &question)? {
        Some(is_meant) => Ok(is_meant),
        None => Err(Refusal::new(Exit::Usage, had)
            .hint(
                "did you mean `holdall pair --again`, which goes on with that repository? `--new` begins another one; \
                 this invite was not used",
            )
            .into()),
    }
}
