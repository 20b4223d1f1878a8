//! What an audit found, for whoever backs up: nothing where everything is there.

use anyhow::Error;
use holdall_engine::{AuditReport, EngineError, Listed, UnlockedRepository, audit, snapshots};
use holdall_state::Receipts;
use holdall_sys::{Clock, SystemClock};

use crate::app::App;
use crate::exit::{Exit, Refusal, exit_of};
use crate::terminal::output::{Shown, count, counted};

const HINT: &str = "`holdall check --verify` names everything that is damaged; `holdall check --repair \
                    --from` fetches what is lost from a second repository";

/// Asks the repository to show that it still has some of what was put there, and tells what it lost. A
/// server that is away is asked by the next backup.
pub(crate) fn tell(app: &App, access: &UnlockedRepository) {
    let audited = audit(access, SystemClock.now_ns(), &app.run(), &|| list(app, access));
    if let Ok(AuditReport { waiting_for: Some(time), .. }) = &audited {
        app.output.note(format_args!(
            "there was no time to ask the repository for all that it is to show within a week: what is next \
             was last asked for {} ago",
            counted(time.as_secs() / (24 * 3600), "day")
        ));
    }
    match audited {
        Ok(AuditReport { probed: 0, .. }) => {}
        Ok(report) if report.lost_count == 0 => app.output.detail(format_args!(
            "asked for {} of earlier backups: all that snapshots need are there ({} read as a \
             whole, {} needed no more)",
            counted(report.probed, "block"),
            count(report.read),
            count(report.gone)
        )),
        Ok(report) => app.damage(&in_words(&report)),
        Err(error) => {
            let error = Error::from(error);
            if !matches!(exit_of(&error), Exit::Unreachable | Exit::Interrupted) {
                let what = "the repository does not prove that it still has what was backed up";
                app.damage(
                    &Refusal::new(Exit::Damage, format!("{what}: {error}")).hint(HINT).into(),
                );
            }
        }
    }
}

/// All snapshots, among which is the one that this computer has a receipt for.
fn list(app: &App, access: &UnlockedRepository) -> Result<Listed, EngineError> {
    let listed = snapshots(access)?;
    let checked = Receipts::in_state(&app.folders.state).check(access, &listed);
    let damaged =
        |error| EngineError::damaged("the list of snapshots", format!("{:#}", Error::from(error)));
    checked.map_err(damaged)?;
    Ok(listed)
}

fn in_words(report: &AuditReport) -> Error {
    let first = report.lost.first().map(|lost| format!(", {} first", Shown(&lost.path)));
    let message = format!(
        "the repository no longer has what snapshots need: {} paths{}",
        count(report.lost_count),
        first.unwrap_or_default()
    );
    Refusal::new(Exit::Damage, message).hint(HINT).into()
}
