//! Notes what a command came to, for `holdall status`.

use std::path::PathBuf;

use anyhow::Result;
use holdall_diagnosis::runs::{RunEnd, RunKind};

use crate::app::App;
use crate::exit::{Exit, exit_of};
use crate::lab::remembered;
use crate::terminal::output::sentence;
use holdall_state::RunGoingOn;

/// Runs a command, which fills in what status wants to know of it, and notes when it started and how it ended.
///
/// # Errors
/// Those of the command.
pub(super) fn noted(
    app: &App,
    kind: RunKind,
    sources: &[PathBuf],
    run: impl FnOnce(&mut RunEnd) -> Result<Exit>,
) -> Result<Exit> {
    let place = remembered::noted_place(app);
    let start = |(to, place)| RunGoingOn::start(&app.folders.state, kind, to, place, sources);
    let going_on = place.and_then(start);
    let mut end = RunEnd::default();
    let ended = run(&mut end);
    let (exit, cause) = match &ended {
        Ok(exit) => (app.ended(*exit), app.met_first()),
        Err(error) => (exit_of(error), Some(sentence(error))),
    };
    if let Some(going_on) = going_on {
        going_on.end(RunEnd { exit_code: exit.code(), cause, ..end });
    }
    ended
}
