//! The hooks of a set: commands of the user's shell around its backup.
//!
//! ```text
//! before ──> backup ──> after     (a snapshot was made)
//!    └─ fails ─┴──────> failed    (none was)
//!                          └────> finally
//! ```
//!
//! What they print goes to standard error, so that standard output stays the backup's. A signal ends `before` and `after`, and
//! the backup; `failed` and `finally` still run, since they may have to put back what `before` has changed. A second
//! signal ends everything.

use std::ffi::OsString;
use std::io;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use holdall_sys::supervisor::{Supervised, ended_in_words};

use crate::app::App;
use crate::config::Hooks;
use crate::exit::{Exit, Refusal, exit_of};
use crate::terminal::output::{duration, sentence};

/// So often is looked whether a hook has ended.
const LOOK_UP: Duration = Duration::from_millis(20);

/// What is said of a backup that is not complete, if it names nothing.
const UNREAD: &str = "some sources could not be read";

/// Which hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hook {
    Before,
    After,
    Failed,
    Finally,
}

impl Hook {
    fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
            Self::Failed => "failed",
            Self::Finally => "finally",
        }
    }

    /// Whether a signal ends it.
    fn is_interruptible(self) -> bool {
        matches!(self, Self::Before | Self::After)
    }
}

/// How the backup of a set ended.
struct Ended {
    exit: Exit,
    /// What went wrong, if something did.
    message: String,
}

/// Backs a set up with its hooks. `back_up` is given what runs `before`, which it calls once it is ready to begin, and where
/// to put the first thing that could not be read.
///
/// # Errors
/// Those of the backup, and of `before`.
pub(super) fn around(
    app: &App,
    set: &str,
    hooks: &Hooks,
    back_up: impl FnOnce(&dyn Fn() -> Result<()>, &mut Option<String>) -> Result<Exit>,
) -> Result<Exit> {
    let runner = Runner { app, set, hooks };
    if hooks.failed.is_some() || hooks.finally.is_some() {
        app.interrupt.is_followed_by_work();
    }
    let mut unread = None;
    let ended = back_up(&|| runner.run(Hook::Before, None), &mut unread);
    let mut told = match &ended {
        Ok(exit) => {
            let exit = app.ended(*exit);
            let unread =
                || (exit == Exit::Incomplete).then(|| unread.unwrap_or_else(|| UNREAD.into()));
            Ended { exit, message: app.met_first().or_else(unread).unwrap_or_default() }
        }
        Err(error) => Ended { exit: exit_of(error), message: sentence(error) },
    };
    let is_made = matches!(told.exit, Exit::Done | Exit::Incomplete);
    let next = if is_made { Hook::After } else { Hook::Failed };
    for hook in [next, Hook::Finally] {
        if let Err(error) = runner.run(hook, Some(&told)) {
            app.unseen(&error);
            told.exit = app.ended(told.exit);
            told.message = if told.message.is_empty() { sentence(&error) } else { told.message };
        }
    }
    ended
}

/// Runs the hooks of one set.
struct Runner<'a> {
    app: &'a App,
    set: &'a str,
    hooks: &'a Hooks,
}

impl Runner<'_> {
    /// Runs a hook to its end, if there is one.
    fn run(&self, hook: Hook, ended: Option<&Ended>) -> Result<()> {
        let command = match hook {
            Hook::Before => &self.hooks.before,
            Hook::After => &self.hooks.after,
            Hook::Failed => &self.hooks.failed,
            Hook::Finally => &self.hooks.finally,
        };
        let Some(command) = command else { return Ok(()) };
        let what = format!("the hook `{}` of the set {}", hook.name(), self.set);
        self.app.output.detail(format_args!("{what} runs"));
        let running = self.start(command, ended);
        let status =
            self.wait(hook, running.with_context(|| format!("{what} cannot be started"))?, &what)?;
        match status.success() {
            true => Ok(()),
            false => {
                let message = format!("{what} {}", ended_in_words(status));
                Err(Refusal::new(Exit::Failed, message).hint(hint(hook)).into())
            }
        }
    }

    fn start(&self, command: &str, ended: Option<&Ended>) -> io::Result<Supervised> {
        let words = ["/bin/sh", "-c", command].map(OsString::from);
        Supervised::start(words, |command| {
            command.stdout(io::stderr()).env("HOLDALL_SET", self.set);
            // Who started this may be a hook of another set.
            command.env_remove("HOLDALL_RESULT").env_remove("HOLDALL_MESSAGE");
            if let Some(Ended { exit, message }) = ended {
                command.env("HOLDALL_RESULT", exit.code().to_string());
                command.env("HOLDALL_MESSAGE", message);
            }
        })
    }

    /// Waits until a hook ends, its time is over, or a signal comes.
    fn wait(&self, hook: Hook, mut running: Supervised, what: &str) -> Result<ExitStatus> {
        let (begun, limit) = (Instant::now(), self.hooks.timeout.map(|limit| limit.0));
        loop {
            if let Some(status) = running.try_wait()? {
                return Ok(status);
            }
            if hook.is_interruptible() {
                self.app.interrupt.refuse_if_happened()?;
            }
            if let Some(limit) = limit.filter(|limit| begun.elapsed() > *limit) {
                running.end()?;
                let limit = duration(limit.as_secs_f64());
                let message = format!("{what} was ended: it ran for more than {limit}");
                return Err(Refusal::new(Exit::Failed, message).hint(hint(hook)).into());
            }
            std::thread::sleep(LOOK_UP);
        }
    }
}

/// What follows from a hook that failed.
fn hint(hook: Hook) -> &'static str {
    match hook {
        Hook::Before => "nothing was backed up; what the hook said stands above",
        Hook::After => "the snapshot is made all the same; what the hook said stands above",
        Hook::Failed | Hook::Finally => "what the hook said stands above",
    }
}
