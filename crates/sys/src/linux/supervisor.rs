//! Commands that end with this process, whatever ends it: a kill that nobody can answer, too.
//!
//! ```text
//! this process ──lifeline──> supervisor ──starts──> command ──starts──> ...
//! ```
//!
//! The supervisor is this program once more, started with a name of its own. The lifeline is a pipe, its standard input,
//! whose other end this process alone has: when it closes, the supervisor asks everything below it to end (SIGTERM), and
//! ends what is left five seconds later. It takes in what lost its parent meanwhile (`PR_SET_CHILD_SUBREAPER`), so that a
//! pipeline of a shell goes as a whole. `PR_SET_PDEATHSIG` would reach the command alone, and would do so as soon as the
//! thread that started it ends.
//!
//! The command stays in the terminal's foreground, where it may ask for a password. Only the supervisor leaves it, so that
//! Ctrl-C does not take it from its duty.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::process::{is_zombie, stat_field};

/// What the supervisor is started as.
const NAME: &str = "holdall-supervisor";
/// How long commands have to end by themselves.
const GRACE: Duration = Duration::from_secs(5);
/// So often is looked whether they have.
const LOOK_UP: Duration = Duration::from_millis(20);
/// The place of the parent's number in `/proc/PID/stat`.
const PARENT: usize = 4;
/// What is added to a signal's number where a process was ended by it, as shells do.
const BY_SIGNAL: u8 = 128;
/// How shells end when a command is not there, and when it cannot be started.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

/// A command that ends with this process.
#[derive(Debug)]
pub struct Supervised {
    supervisor: Child,
    /// Closing it ends the command.
    lifeline: Option<ChildStdin>,
}

impl Supervised {
    /// Starts a command of these words, with nothing on its standard input. `prepare` may set its environment and its
    /// outputs. That there is no such program shows in how it ends, as with a shell: with 127, or 126 if it cannot be
    /// started.
    ///
    /// # Errors
    ///
    /// What the system says, where it allows no other process.
    pub fn start(
        words: impl IntoIterator<Item = OsString>,
        prepare: impl FnOnce(&mut Command),
    ) -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0(NAME).args(words);
        prepare(&mut command);
        let mut supervisor = command.stdin(Stdio::piped()).spawn()?;
        let lifeline = supervisor.stdin.take();
        Ok(Self { supervisor, lifeline })
    }

    /// What the command writes, if `prepare` asked for pipes.
    pub fn outputs(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.supervisor.stdout.take(), self.supervisor.stderr.take())
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.supervisor.try_wait()
    }

    /// Ends it and all that it started, and waits until they are gone, but for a few seconds at most.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        self.lifeline = None;
        self.supervisor.wait()
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// How a command ended that was supervised, behind its name: `ended with 3`.
#[must_use]
pub fn ended_in_words(status: ExitStatus) -> String {
    match status.code().and_then(|code| u8::try_from(code).ok()) {
        Some(NOT_FOUND) => "ended with 127, as where a program is not found".to_owned(),
        Some(NOT_STARTED) => "ended with 126, as where a program cannot be started".to_owned(),
        Some(code @ 129..=192) => format!("was ended by signal {}", code - BY_SIGNAL),
        Some(code) => format!("ended with {code}"),
        None => "was ended with its supervisor".to_owned(),
    }
}

/// The words of the command, if this process was started as its supervisor; `arguments` are this process's own.
#[must_use]
pub fn command_to_supervise(
    mut arguments: impl Iterator<Item = OsString>,
) -> Option<Vec<OsString>> {
    let is_supervisor = arguments.next().is_some_and(|name| name == NAME);
    is_supervisor.then(|| arguments.collect())
}

/// Is the supervisor: runs the command to its end, or to that of the lifeline. Gives the code to end with: the command's.
#[must_use]
pub fn supervise(words: &[OsString]) -> u8 {
    let Some((program, arguments)) = words.split_first() else { return NOT_FOUND };
    // Where one of the two is refused, less is ended than could be.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let started = Command::new(program).args(arguments).stdin(Stdio::null()).spawn();
    let _ = rustix::process::setpgid(None, None);
    let mut command = match started {
        Ok(command) => command,
        Err(error) => return not_started(program, &error),
    };
    let (tell, told) = channel();
    let (is_cut, cut) = (Arc::new(AtomicBool::new(false)), tell.clone());
    let seen = Arc::clone(&is_cut);
    let waits = super::thread::start_alone(move || {
        // Nobody listens any more if this comes last.
        let _ = tell.send(Some(command.wait().map_or(NOT_STARTED, code_of)));
    });
    let watches = super::thread::start_alone(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        seen.store(true, Ordering::SeqCst);
        end_all_below();
        let _ = cut.send(None);
    });
    if let Err(error) = waits.and(watches) {
        end_all_below();
        return not_started(program, &error);
    }
    let mut code = BY_SIGNAL;
    // Once the lifeline is cut, all that the command started is waited for, too.
    while let Ok(Some(ended)) = told.recv() {
        code = ended;
        if !is_cut.load(Ordering::SeqCst) {
            break;
        }
    }
    code
}

fn not_started(program: &OsStr, error: &io::Error) -> u8 {
    // Whoever reads it is told by the code, too.
    let _ = writeln!(io::stderr(), "{}: {error}", program.display());
    if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED }
}

/// How a shell would say that a command ended so.
fn code_of(status: ExitStatus) -> u8 {
    let signal = status.signal().and_then(|signal| u8::try_from(signal).ok());
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.unwrap_or_else(|| BY_SIGNAL.saturating_add(signal.unwrap_or_default()))
}

/// Asks all processes below this one to end, and ends those that do not. What cannot even be killed, since it waits for
/// a disk that does not answer, is left behind.
fn end_all_below() {
    let begun = Instant::now();
    let mut asked = BTreeSet::new();
    loop {
        let below = living_below(std::process::id());
        if below.is_empty() || begun.elapsed() > 2 * GRACE {
            return;
        }
        let is_time_over = begun.elapsed() > GRACE;
        for number in below {
            let signal = if is_time_over { Signal::KILL } else { Signal::TERM };
            if (is_time_over || asked.insert(number))
                && let Some(pid) = i32::try_from(number).ok().and_then(Pid::from_raw)
            {
                // It may be gone by now.
                let _ = rustix::process::kill_process(pid, signal);
            }
        }
        std::thread::sleep(LOOK_UP);
    }
}

/// The numbers of the processes that `above` started, and those started, and so on, that have not ended.
fn living_below(above: u32) -> Vec<u32> {
    let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parent = |number: u32| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        let parent = stat_field(&stat, PARENT).and_then(|parent| u32::try_from(parent).ok())?;
        Some((number, (parent, is_zombie(&stat))))
    };
    let all: BTreeMap<u32, (u32, bool)> = numbers.filter_map(parent).collect();
    let is_below = |mut number: u32| {
        // No chain is longer than there are processes, even if some ended while they were listed.
        for _ in 0..all.len() {
            match all.get(&number) {
                Some(&(parent, _)) if parent == above => return true,
                Some(&(parent, _)) => number = parent,
                None => return false,
            }
        }
        false
    };
    let living = all.iter().filter(|(_, (_, is_zombie))| !is_zombie).map(|(&number, _)| number);
    living.filter(|&number| is_below(number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_child_started_is_below_this_process_until_it_has_ended() {
        let below = || living_below(std::process::id());
        let mut shell = Command::new("sh");
        // The second command keeps the shell from becoming the first.
        let mut shell = shell.args(["-c", "sleep 600; true"]).spawn().unwrap();
        let sleeper = || {
            below().into_iter().find(|number| {
                *number != shell.id() && {
                    let name = fs::read_to_string(format!("/proc/{number}/comm"));
                    name.is_ok_and(|name| name.trim() == "sleep")
                }
            })
        };
        let sleeper = loop {
            match sleeper() {
                Some(sleeper) => break sleeper,
                None => std::thread::yield_now(),
            }
        };
        assert!(below().contains(&shell.id()));
        let pid = Pid::from_raw(i32::try_from(sleeper).unwrap()).unwrap();
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
        shell.wait().unwrap();
        assert!(!below().contains(&shell.id()) && !below().contains(&sleeper));
    }

    #[test]
    fn a_command_that_is_not_there_ends_as_with_a_shell() {
        assert_eq!(supervise(&[]), NOT_FOUND);
        assert_eq!(not_started("x".as_ref(), &io::ErrorKind::NotFound.into()), NOT_FOUND);
        assert_eq!(not_started("x".as_ref(), &io::ErrorKind::PermissionDenied.into()), NOT_STARTED);
        assert_eq!(code_of(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(code_of(ExitStatus::from_raw(9)), 137);
        let words = |code: i32| ended_in_words(ExitStatus::from_raw(code << 8));
        assert_eq!(
            [words(3), words(127), words(137)],
            [
                "ended with 3",
                "ended with 127, as where a program is not found",
                "was ended by signal 9"
            ]
        );
    }

    #[test]
    fn only_who_was_started_as_a_supervisor_is_one() {
        let started_as = |words: &[&str]| command_to_supervise(words.iter().map(OsString::from));
        assert_eq!(started_as(&[NAME, "sleep", "1"]), Some(vec!["sleep".into(), "1".into()]));
        assert_eq!(started_as(&["holdall", "backup"]), None);
        assert_eq!(started_as(&[]), None);
    }
}
