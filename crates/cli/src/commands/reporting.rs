//! Tells a server how a backup went, for its pages. A server that does not take it costs no backup anything but time, and
//! little of that.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anyhow::Result;
use holdall_diagnosis::report_of_failure;
use holdall_protocol::wire::RunReport;
use holdall_sys::{Clock, SystemClock, thread};

use super::status::schedule;
use crate::app::App;
use crate::exit::{Exit, exit_of};
use crate::opening::keeper::Keeper;
use crate::opening::open::{self, Patience, Where};

/// A server that did not take it by then is told nothing.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a backup leaves to be told.
#[derive(Default)]
pub(super) struct ToTell {
    /// Who keeps the repository, once it was found.
    pub(super) keeper: Option<Keeper>,
    /// What it did, once it has committed a snapshot.
    pub(super) report: Option<RunReport>,
}

/// Backs up, and tells the server how that went.
///
/// # Errors
/// Those of the backup.
pub(super) fn reported(
    app: &App,
    back_up: impl FnOnce(&mut ToTell) -> Result<Exit>,
) -> Result<Exit> {
    let (started_ns, begun, mut to_tell) =
        (SystemClock.now_ns(), Instant::now(), ToTell::default());
    let ended = back_up(&mut to_tell);
    let exit = ended.as_ref().map_or_else(exit_of, |exit| app.ended(*exit));
    if is_to_a_server(app) && is_worth_telling(exit) {
        let report = to_tell.report.take();
        let report = report.unwrap_or_else(|| report_of_failure(begun.elapsed().as_secs_f64()));
        tell(app, to_tell.keeper, RunReport { started_ns, exit_code: exit.code(), ..report });
    }
    ended
}

fn is_to_a_server(app: &App) -> bool {
    match app.named_repository().map(Where::parse) {
        Some(named) => matches!(named, Ok(Where::Server { .. })),
        None => app.pairings().is_ok_and(|pairings| pairings.default().is_some()),
    }
}

/// Whether it says something of the machine's backups, and somebody may be there to hear it: not a slip of the command
/// line, nor a run that a person ended.
fn is_worth_telling(exit: Exit) -> bool {
    !matches!(exit, Exit::Usage | Exit::Interrupted | Exit::Unreachable)
}

/// Tells it on a thread that is left behind if it hangs.
fn tell(app: &App, keeper: Option<Keeper>, report: RunReport) {
    let app = app.silent();
    let (done, is_done) = channel::<()>();
    let telling = move || {
        let next_ns = schedule::next_run(&app).map(|next| next.at_ns);
        let patience = Patience { retry_for: Duration::ZERO, ..Patience::default() };
        let found = || open::place(&app, patience).ok().map(|opened| opened.keeper);
        if let Some(keeper) = keeper.or_else(found) {
            let _ = keeper.report_run(&RunReport { next_ns, ..report });
        }
        drop(done);
    };
    if thread::start_alone(telling).is_ok() {
        let _ = is_done.recv_timeout(PATIENCE);
    }
}
