//! Where an invite comes from: standard input, the terminal, or the command line, which every other user of the
//! computer can read while the command runs.

use std::io::{self, IsTerminal, Read};

use anyhow::{Context, Result};
use zeroize::Zeroizing;

use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::secrets::password;

/// The most that is read of standard input: an invite and what `holdall invite` says before it.
const INPUT_MAX_BYTES: u64 = 16 << 10;
const PLACES: &str = "`holdall pair -` reads it from standard input, all that `holdall invite` printed or its \
                      last line alone";

/// The text of the invite that was given, or is asked for.
///
/// # Errors
/// [`Refusal`] if there is none, and no terminal to ask at.
pub(super) fn read(app: &App, argument: Option<&str>) -> Result<Zeroizing<String>> {
    match argument {
        Some("-") if !io::stdin().is_terminal() => app.interrupt.while_waiting(from_input),
        None | Some("-") => {
            password::ask_for("an invite", "short code or invite: ", PLACES, &app.interrupt)
        }
        Some(invite) => Ok(Zeroizing::new(invite.to_owned())),
    }
}

/// The last line of standard input that is not blank.
fn from_input() -> Result<Zeroizing<String>> {
    let mut bytes = Zeroizing::new(Vec::new());
    let input = io::stdin().lock().take(INPUT_MAX_BYTES).read_to_end(&mut bytes);
    input.context("cannot read the invite from standard input")?;
    let no_invite = |reason| {
        Refusal::new(Exit::Usage, reason)
            .hint("it is the last line that `holdall invite` prints on the server")
    };
    let text = std::str::from_utf8(&bytes);
    let text =
        text.map_err(|_| no_invite("what came on standard input is no invite: it is no text"))?;
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    let line = line.ok_or_else(|| no_invite("no invite came on standard input"))?;
    Ok(Zeroizing::new(line.to_owned()))
}
