//! When the next backup is due: by the agent, or by the timer of systemd that `packaging/install` brings along.

use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use holdall_diagnosis::runs::next_start_ns;
use holdall_state::AgentFiles;
use holdall_sys::{Clock, SystemClock, thread, users};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::app::App;

/// The timer of backups.
const TIMER: &str = "holdall-backup.timer";
/// A service manager that takes longer is not waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// When a timer starts the next backup.
pub(in crate::commands) struct NextRun {
    /// In nanoseconds since 1970 UTC.
    pub(in crate::commands) at_ns: i64,
    /// What starts it.
    pub(in crate::commands) by: &'static str,
}

/// The next backup that the agent plans, or the next start of the timer: for root of the system's manager, for other users
/// of their own. `None` if there is no such timer, or no manager that answers.
pub(in crate::commands) fn next_run(app: &App) -> Option<NextRun> {
    by_agent(app).or_else(by_timer)
}

/// The next backup of the agent that runs now, of any set.
fn by_agent(app: &App) -> Option<NextRun> {
    let files = AgentFiles::in_state(&app.folders.state);
    files.agent()?;
    let outlook = files.report().ok()?.outlook;
    let next = outlook.into_iter().filter_map(|set| set.next).min()?;
    Some(NextRun { at_ns: i64::try_from(next.as_nanosecond()).ok()?, by: "holdall agent" })
}

fn by_timer() -> Option<NextRun> {
    let (tell, told) = channel();
    // Should it hang, it is left behind.
    let telling = move || {
        let _ = tell.send(next_ns());
    };
    thread::start_alone(telling).ok()?;
    let at_ns = told.recv_timeout(PATIENCE).ok()??;
    Some(NextRun { at_ns, by: TIMER })
}

fn next_ns() -> Option<i64> {
    let listed = manager(&["list-timers", "--all", "--output=json", TIMER])?;
    let next_ns = next_start_ns(&listed, TIMER).filter(|next_ns| *next_ns > SystemClock.now_ns());
    next_ns.or_else(next_by_calendar)
}

/// While the backup runs that a timer started, the timer waits for nothing: its calendar says when it does so again.
fn next_by_calendar() -> Option<i64> {
    let shown = manager(&["show", "--value", "--property=TimersCalendar", TIMER])?;
    let shown = String::from_utf8(shown).ok()?;
    let elapses = calendars(&shown).filter_map(|calendar| {
        let mut command = Command::new("systemd-analyze");
        let said = said_by(command.args(["calendar", calendar]).env("LC_ALL", "C"))?;
        elapse_ns(&String::from_utf8(said).ok()?)
    });
    elapses.min()
}

/// What the service manager says of that.
fn manager(args: &[&str]) -> Option<Vec<u8>> {
    let mut command = Command::new("systemctl");
    if users::effective_uid() != 0 {
        command.arg("--user");
    }
    said_by(command.args(args))
}

fn said_by(command: &mut Command) -> Option<Vec<u8>> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then_some(output.stdout)
}

/// The calendars of a timer, by its property `TimersCalendar`: `{ OnCalendar=*-*-* *:00:00 ; next_elapse=... }` each.
fn calendars(shown: &str) -> impl Iterator<Item = &str> {
    let behind = shown.split("OnCalendar=").skip(1);
    behind.filter_map(|calendar| Some(calendar.split_once(" ;")?.0))
}

/// When a calendar elapses next, by what `systemd-analyze calendar` says, in nanoseconds since 1970 UTC.
fn elapse_ns(said: &str) -> Option<i64> {
    let line = |name: &str| said.lines().find_map(|line| line.trim().strip_prefix(name));
    // Where the computer's own zone is UTC, there is no line of its own for that.
    let time = line("(in UTC):").or_else(|| line("Next elapse:"))?.trim().strip_suffix(" UTC")?;
    let (_, time) = time.split_once(' ')?;
    let time = time.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok()?;
    i64::try_from(time.timestamp().as_nanosecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calendar_s_next_moment_is_read_in_every_zone() {
        let berlin = "Normalized form: *-*-* 02:30:00\n    Next elapse: Tue 2026-12-01 02:30:00 CET\n       \
             (in UTC): Tue 2026-12-01 01:30:00 UTC\n       From now: 23h left\n";
        let utc = "  Original form: daily\nNormalized form: *-*-* 00:00:00\n    Next elapse: Tue \
             2026-12-01 01:30:00 UTC\n       From now: 22h left\n";
        assert_eq!([berlin, utc].map(elapse_ns), [Some(1_796_088_600_000_000_000); 2]);
        for never in
            ["", "    Next elapse: never\n", "    Next elapse: Tue 2026-12-01 02:30:00 CET\n"]
        {
            assert_eq!(elapse_ns(never), None, "{never}");
        }
    }

    #[test]
    fn a_timer_may_have_several_calendars_or_none() {
        let shown = "{ OnCalendar=*-*-* *:00:00 ; next_elapse=Mon 2026-11-30 02:00:00 UTC }\n\
             { OnCalendar=Sun *-*-* 12:00:00 ; next_elapse=n/a }\n";
        assert_eq!(calendars(shown).collect::<Vec<_>>(), ["*-*-* *:00:00", "Sun *-*-* 12:00:00"]);
        assert_eq!(calendars("\n").count(), 0);
    }
}
