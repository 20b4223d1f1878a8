//! A process that the agent started: a backup, or a measurement.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use holdall_agent::Ending;
use holdall_agent::journal::Committed;
use holdall_diagnosis::runs::{RunEnd, RunNote};
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
    /// Starts `holdall agent run SET`, which speaks as the agent does. It may ask for the file `changes` through the connection.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn back_up(
        program: &Path,
        set: String,
        slow: bool,
        asks: Option<(PathBuf, UnixStream)>,
        output: &Output,
    ) -> io::Result<Self> {
        let mut command = holdall(program, &["agent", "run", &set]);
        if let Some((changes, agent)) = asks {
            command.arg("--changes").arg(changes).stdin(OwnedFd::from(agent));
        }
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
    pub(super) fn ended(&mut self, app: &App) -> io::Result<Option<Ended>> {
        let process = self.process.id();
        let Some(status) = self.process.try_wait()? else { return Ok(None) };
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        // It was asked to end before it could mind that.
        let is_asked = status.signal() == Some(SIGTERM);
        let exit_code = code.or_else(|| is_asked.then_some(Exit::Interrupted.code()));
        let known = KnownRuns::in_state(&app.folders.state);
        let own = known.runs.newest().filter(|note| note.started_ns >= self.started_ns);
        let end = own.and_then(|note| note.end.as_ref());
        let committed = end.filter(|_| own.is_some_and(|note| is_of(note, process)));
        let committed = committed.map_or_else(
            // It may have committed something, and could not note it.
            || if exit_code == Some(0) { Committed::InPart } else { Committed::Nothing },
            committed_by,
        );
        let message =
            end.filter(|end| Some(end.exit_code) == exit_code).and_then(|end| end.cause.clone());
        Ok(Some(Ended { ending: Ending { exit_code, message }, committed }))
    }

    /// The set, unless it is a measurement.
    pub(super) fn set(&self) -> Option<&str> {
        self.set.as_deref()
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

/// How a child ended, and what it left.
pub(super) struct Ended {
    pub(super) ending: Ending,
    pub(super) committed: Committed,
}

/// Whether a note is of the process with that number.
fn is_of(note: &RunNote, process: u32) -> bool {
    // Behind it stands when it started.
    let number = note.process.as_deref().and_then(|name| name.rsplit(' ').nth(1));
    number.is_some_and(|number| number.parse() == Ok(process))
}

fn committed_by(end: &RunEnd) -> Committed {
    match &end.snapshot {
        Some(snapshot) if end.exit_code == Exit::Done.code() => Committed::Whole(snapshot.clone()),
        Some(_) => Committed::InPart,
        None => Committed::Nothing,
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
