//! A command as the source of a backup: what it prints becomes one file of the snapshot, at the root of its tree.
//!
//! It is a [`Producer`] of the engine, so that its output is streamed as a file is, and that nothing is committed unless it
//! ends well. It ends with holdall, whatever ends that.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::process::{ChildStderr, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use holdall_engine::{Produced, Producer, Source, plain_path};
use holdall_sys::supervisor::{Supervised, ended_in_words};
use holdall_sys::thread;

use crate::exit::{Exit, Refusal};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output::{Output, Shown};

/// So often is looked whether a command has ended that closed its output.
const LOOK_UP: Duration = Duration::from_millis(5);
/// So long is waited for the last words of a command that has ended: another may have been given its standard error.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How many of the lines on standard error are kept, and how much of each.
const LINES_KEPT: usize = 10;
const LINE_MAX_BYTES: u64 = 1000;
/// What the name of a file may have, or it could not be restored.
const NAME_MAX_BYTES: usize = 255;

/// A command, and what it said on its standard error.
#[derive(Debug, Clone)]
pub(crate) struct CommandSource {
    words: Vec<OsString>,
    said: Arc<Mutex<VecDeque<String>>>,
    /// Set once a signal came.
    is_interrupted: Arc<AtomicBool>,
}

impl CommandSource {
    /// A command of these words.
    ///
    /// # Errors
    /// [`Refusal`] if there are none.
    pub(crate) fn new(words: &[OsString], interrupt: &Interrupt) -> Result<Self, Refusal> {
        if words.is_empty() {
            return Err(Refusal::new(Exit::Usage, "--stdin-from-command: no command was given")
                .hint("write it behind --, as `holdall backup --stdin-from-command shop.dump -- pg_dump shop`"));
        }
        Ok(Self { words: words.to_vec(), said: Arc::default(), is_interrupted: interrupt.flag() })
    }

    /// The program, for messages. What else is in a command may be a secret, and messages are logged and mailed.
    fn program(&self) -> String {
        let program = self.words.first().map(|word| Shown(word.as_bytes()).to_string());
        program.unwrap_or_default()
    }

    /// Shows what a command said that ended well: warnings, as a rule.
    pub(crate) fn tell(&self, output: &Output) {
        let program = self.program();
        for line in self.last_words() {
            output.note(format_args!("{program} said: {line}"));
        }
    }

    fn last_words(&self) -> VecDeque<String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Listens to the standard error of a command until its end, which it tells of.
    fn listen(&self, from: ChildStderr) -> io::Result<Receiver<()>> {
        let (said, (end, ended)) = (Arc::clone(&self.said), channel());
        thread::start_alone(move || {
            each_line(from, |line| {
                let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                if said.len() == LINES_KEPT {
                    said.pop_front();
                }
                said.push_back(line);
            });
            drop(end);
        })?;
        Ok(ended)
    }

    /// Waits until a command has ended.
    fn wait(&self, running: &mut Supervised) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = running.try_wait()? {
                return Ok(status);
            }
            if self.is_interrupted.load(Ordering::SeqCst) {
                return Err(io::Error::other("the backup was ended"));
            }
            std::thread::sleep(LOOK_UP);
        }
    }

    /// Why what it gave is not whole, if it is not.
    fn judge(&self, status: ExitStatus) -> io::Result<()> {
        if status.success() {
            return Ok(());
        }
        let said = self.last_words().into_iter().collect::<Vec<_>>().join("; ");
        let said =
            if said.is_empty() { "it said nothing".to_owned() } else { format!("it said: {said}") };
        let (program, end) = (self.program(), ended_in_words(status));
        Err(io::Error::other(format!(
            "nothing was committed, since the command {program} {end}: {said}"
        )))
    }
}

impl Producer for CommandSource {
    fn start(&self) -> io::Result<Produced> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let mut running = Supervised::start(self.words.iter().cloned(), |command| {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        })?;
        let (Some(output), Some(errors)) = running.outputs() else {
            return Err(io::Error::other("the command has no outputs"));
        };
        let silent = self.listen(errors)?;
        let this = self.clone();
        let finish = move || {
            let status = this.wait(&mut running)?;
            let _ = silent.recv_timeout(LAST_WORDS);
            this.judge(status)
        };
        Ok(Produced { pipe: File::from(OwnedFd::from(output)), finish: Box::new(finish) })
    }
}

/// Gives each line that is not empty, cut where it is too long.
fn each_line(from: impl Read, mut take: impl FnMut(String)) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    // What cannot be read any more has been said.
    while (&mut from).take(LINE_MAX_BYTES).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        if !text.is_empty() {
            take(text);
        }
        line.clear();
    }
}

/// The source that a command's output is recorded as: NAME at the root, wherever the backup is started.
///
/// # Errors
/// [`Refusal`] for what is no name of a file.
pub(crate) fn source(name: &str) -> Result<Source, Refusal> {
    let is_name = |name: &str| !matches!(name, "" | "." | "..") && name.len() <= NAME_MAX_BYTES;
    let relative = name.strip_prefix('/').unwrap_or(name);
    if !relative.split('/').all(is_name) {
        let message = format!("--stdin-from-command: {name:?} is no name for a file");
        let hint = format!(
            "it is what the file is called in the snapshot, such as shop.dump, and each part of it has at most {NAME_MAX_BYTES} bytes"
        );
        return Err(Refusal::new(Exit::Usage, message).hint(hint));
    }
    Ok(Source { path: plain_path(name.as_bytes()), read_at: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_at_the_root_and_a_path_where_it_says() {
        let at = |name: &str| source(name).map(|source| String::from_utf8(source.path).unwrap());
        assert_eq!(at("shop.dump").unwrap(), "/shop.dump");
        assert_eq!(at("db/shop.dump").unwrap(), "/db/shop.dump");
        assert_eq!(at("/srv/shop.dump").unwrap(), "/srv/shop.dump");
        let long = "x".repeat(255);
        assert_eq!(at(&long).unwrap().len(), 256);
        for wrong in ["", &format!("{long}y"), "/", "..", "a/../b", "a/", "a//b", "."] {
            assert_eq!(at(wrong).unwrap_err().exit, Exit::Usage, "{wrong}");
        }
    }

    #[test]
    fn the_last_lines_are_kept_and_no_line_is_endless() {
        let mut lines = Vec::new();
        each_line(&b"one\n\ntwo\r\nthree"[..], |line| lines.push(line));
        assert_eq!(lines, ["one", "two", "three"]);
        let long = "x".repeat(2500);
        lines.clear();
        each_line(long.as_bytes(), |line| lines.push(line));
        assert_eq!(lines.iter().map(String::len).collect::<Vec<_>>(), [1000, 1000, 500]);
    }
}
