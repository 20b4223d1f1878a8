//! When the next backup is due, by the timer of systemd that `packaging/install` brings along.

use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use holdall_diagnosis::runs::next_start_ns;
use holdall_sys::{thread, users};

/// The timer of backups.
const TIMER: &str = "holdall-backup.timer";
/// A service manager that takes longer is not waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// When a timer starts the next backup.
pub(in crate::commands) struct NextRun {
    /// In nanoseconds since 1970 UTC.
    pub(in crate::commands) at_ns: i64,
    /// What starts it.
    pub(super) by: &'static str,
}

/// The next start of the timer: for root of the system's manager, for other users of their own. `None` if there is no such
/// timer, or no manager that answers.
pub(in crate::commands) fn next_run() -> Option<NextRun> {
    let mut command = Command::new("systemctl");
    if users::effective_uid() != 0 {
        command.arg("--user");
    }
    command.args(["list-timers", "--all", "--output=json", TIMER]);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let (tell, told) = channel();
    // Should it hang, it is left behind.
    thread::start_alone(move || drop(tell.send(command.output()))).ok()?;
    let output = told.recv_timeout(PATIENCE).ok()?.ok()?;
    next_start_ns(&output.stdout, TIMER).map(|at_ns| NextRun { at_ns, by: TIMER })
}
