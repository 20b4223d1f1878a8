//! A process that the agent started: a backup, or a measurement.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use holdall_agent::Ending;
use holdall_state::KnownRuns;
use holdall_sys::alarm::Alarm;
use holdall_sys::child::WatchedChild;
use holdall_sys::{Clock, SystemClock, waiting};
use signal_hook::consts::SIGTERM;

use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::{Output, duration};

/// What a backup may send in a second where it is to use little of the line.
const SLOW: &str = "500k";
/// How long a backup has to end in good order, before it is asked to end at once, and then is ended.
const PATIENCE: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(1)];

/// A backup that the agent started, or a measurement.
pub(super) struct Child {
    /// None of a measurement.
    set: Option<String>,
    process: WatchedChild,
    started_ns: i64,
    begun: Instant,
}

impl Child {
    /// Starts `holdall agent run SET`, which speaks as the agent does.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn back_up(
        program: &Path,
        set: String,
        slow: bool,
        output: &Output,
    ) -> io::Result<Self> {
        let mut command = holdall(program, &["agent", "run", &set]);
        command.args(slow.then_some(["--limit-upload", SLOW]).into_iter().flatten());
        command.args(output.json.then_some("--json"));
        command.args(output.quiet.then_some("--quiet"));
        command.args((0..output.verbose).map(|_| "-v"));
        Self::start(Some(set), &mut command)
    }

    /// Starts `holdall lab quick` on the disk of that folder. It says something only with `-v`, and its report is kept.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn measure(program: &Path, folder: &Path, output: &Output) -> io::Result<Self> {
        let mut command = holdall(program, &["lab", "quick"]);
        command.arg(folder);
        if output.json || output.verbose == 0 {
            command.arg("--quiet").stdout(Stdio::null()).stderr(Stdio::null());
        }
        Self::start(None, &mut command)
    }

    fn start(set: Option<String>, command: &mut Command) -> io::Result<Self> {
        let (started_ns, begun) = (SystemClock.now_ns(), Instant::now());
        Ok(Self { set, process: WatchedChild::spawn(command)?, started_ns, begun })
    }

    /// Asks it to end in good order.
    pub(super) fn terminate(&self) {
        self.process.terminate();
    }

    /// Has it end, within seconds.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn end(&mut self, alarm: &Alarm) -> io::Result<()> {
        for patience in PATIENCE {
            // The second time, it ends at once.
            self.process.terminate();
            let patience_ns = i64::try_from(patience.as_nanos()).unwrap_or(i64::MAX);
            alarm.set_ns(Some(SystemClock.now_ns().saturating_add(patience_ns)))?;
            waiting::wait(&[self.process.as_fd(), alarm.as_fd()])?;
            alarm.silence();
            if waiting::is_ready(&self.process)? {
                return Ok(());
            }
        }
        self.process.kill();
        waiting::wait(&[self.process.as_fd()])
    }

    /// How it ended, with what it noted of that itself; `None` while it goes on.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn ending(&mut self, app: &App) -> io::Result<Option<Ending>> {
        let Some(status) = self.process.try_wait()? else { return Ok(None) };
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        // It was asked to end before it could mind that.
        let is_asked = status.signal() == Some(SIGTERM);
        let exit_code = code.or_else(|| is_asked.then_some(Exit::Interrupted.code()));
        let known = KnownRuns::in_state(&app.folders.state);
        let own = known.runs.newest().filter(|note| note.started_ns >= self.started_ns);
        let end = own.and_then(|note| note.end.as_ref());
        let message =
            end.filter(|end| Some(end.exit_code) == exit_code).and_then(|end| end.cause.clone());
        Ok(Some(Ending { exit_code, message }))
    }

    /// Says how a backup ended, in the log.
    pub(super) fn tell_end(&self, app: &App, ending: &Ending) {
        let Some(set) = &self.set else { return };
        let took = duration(self.begun.elapsed().as_secs_f64());
        app.output.note(match ending.exit_code {
            Some(0) => format!("{set} is backed up, in {took}"),
            Some(code) => format!("the backup of {set} ended with exit code {code} after {took}"),
            None => format!("the backup of {set} was killed after {took}"),
        });
    }
}

impl AsFd for Child {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }
}

/// This program again, in a group of processes of its own: Ctrl-C is for the agent, which ends it.
fn holdall(program: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).process_group(0);
    command
}
