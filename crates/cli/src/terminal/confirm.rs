//! Questions at the terminal.

use std::io::{self, IsTerminal};

use anyhow::Result;
use holdall_format::OneLine;

use crate::terminal::interrupt::Interrupt;
use crate::terminal::output::{Output, to_stderr_unended};

/// Asks at the terminal; an empty answer is what the capital letter says: `[y/N]`, `[Y/n]`. `None` if there is
/// no terminal to ask at: if standard input is none, and with `-q` or `--json`.
///
/// # Errors
/// [`Refusal`](crate::exit::Refusal) if a signal came before; what the terminal says.
pub(crate) fn confirm(
    output: &Output,
    interrupt: &Interrupt,
    question: &str,
) -> Result<Option<bool>> {
    let Some(answer) = ask(output, interrupt, question)? else { return Ok(None) };
    Ok(Some(match answer.chars().next() {
        Some(letter) => letter.eq_ignore_ascii_case(&'y'),
        None => question.contains("[Y/"),
    }))
}

/// Asks at the terminal for a line; gives it without the blanks around it. `None` as above.
///
/// # Errors
/// As above.
pub(crate) fn ask(
    output: &Output,
    interrupt: &Interrupt,
    question: &str,
) -> Result<Option<String>> {
    if !io::stdin().is_terminal() || output.quiet || output.json {
        return Ok(None);
    }
    to_stderr_unended(OneLine(question));
    let mut answer = String::new();
    interrupt.while_waiting(|| Ok(io::stdin().read_line(&mut answer)?))?;
    Ok(Some(answer.trim().to_owned()))
}
