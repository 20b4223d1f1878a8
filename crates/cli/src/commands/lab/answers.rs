//! What the rows come to, told below them and kept in the report.

use anyhow::Result;
use holdall_lab::report::Report;
use serde::Serialize;

use crate::app::App;

/// Tells the sentences as the command's summary, and puts them into the report.
///
/// # Errors
/// If standard output cannot be written.
pub(super) fn summarise(app: &App, report: &mut Report, answers: Vec<String>) -> Result<()> {
    #[derive(Serialize)]
    struct Summary<'a> {
        answers: &'a [String],
    }
    app.output.object("summary", &Summary { answers: &answers })?;
    tell(app, report, answers)
}

/// The same without a summary, which has more to tell.
///
/// # Errors
/// If standard output cannot be written.
pub(super) fn tell(app: &App, report: &mut Report, answers: Vec<String>) -> Result<()> {
    if !answers.is_empty() {
        app.output.say("")?;
    }
    answers.iter().try_for_each(|answer| app.output.say(answer))?;
    report.answers = answers;
    Ok(())
}
