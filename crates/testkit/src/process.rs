//! Child processes that tests wait for by what they say, kill at any moment, and never leave
//! behind.

use std::io::{self, BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal};

/// How long a silent child is waited for before a test fails with what it said: far more than any
/// needs, so that it only ends what would hang.
const SILENCE_LIMIT: Duration = Duration::from_secs(300);

/// A child process whose standard output is read all the time, so that it never blocks on it.
///
/// Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
}

impl Process {
    /// Starts `command` with its standard output read by line.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, lines: read_lines(stdout), said: Vec::new() })
    }

    /// Waits for the next line of standard output that starts with `prefix`, and returns it whole.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` with all that was said if the output ends before; `TimedOut` if nothing
    /// comes for five minutes.
    pub fn wait_for_line(&mut self, prefix: &str) -> io::Result<String> {
        loop {
            match self.lines.recv_timeout(SILENCE_LIMIT) {
                Ok(line) => {
                    self.said.push(line.clone());
                    if line.starts_with(prefix) {
                        return Ok(line);
                    }
                }
                Err(cause) => return Err(self.no_line(prefix, cause)),
            }
        }
    }

    /// Kills the process as `kill -9` does, and waits until it is gone.
    ///
    /// # Errors
    ///
    /// What the system says; a process that has ended already is no error.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        self.child.kill()?;
        self.child.wait()
    }

    /// Asks the process to end, as `kill` does (SIGTERM), and does not wait.
    ///
    /// # Errors
    ///
    /// `ESRCH` if it has ended and was waited for.
    pub fn terminate(&self) -> io::Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(rustix::process::kill_process(pid, Signal::TERM)?)
    }

    /// Waits until the process ends; returns how, and all lines of its standard output.
    ///
    /// A grandchild that keeps the standard output open is waited for too.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn wait(&mut self) -> io::Result<(ExitStatus, Vec<String>)> {
        let status = self.child.wait()?;
        self.said.extend(self.lines.iter());
        Ok((status, std::mem::take(&mut self.said)))
    }

    /// The process's number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The most memory that the process had resident so far, in bytes; ask while it lives.
    ///
    /// # Errors
    ///
    /// `InvalidData` or `NotFound` if it has ended.
    pub fn peak_rss_bytes(&self) -> io::Result<u64> {
        holdall_sys::memory::peak_rss_bytes_of(self.child.id())
    }

    fn no_line(&self, prefix: &str, cause: RecvTimeoutError) -> io::Error {
        let kind = match cause {
            RecvTimeoutError::Timeout => io::ErrorKind::TimedOut,
            RecvTimeoutError::Disconnected => io::ErrorKind::UnexpectedEof,
        };
        let said = self.said.join("\n");
        io::Error::new(kind, format!("no line starts with {prefix:?}, only:\n{said}"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself, which is just as well.
        let _ = self.kill();
    }
}

/// Reads lines on a thread of its own, which ends with the output.
fn read_lines(stdout: ChildStdout) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stdout);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|len| len > 0) {
            let text = String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned();
            if sender.send(text).is_err() {
                return;
            }
            line.clear();
        }
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn shell(script: &str) -> Process {
        Process::spawn(Command::new("sh").arg("-c").arg(script)).expect("there is a shell")
    }

    #[test]
    fn a_line_is_waited_for_and_the_rest_is_kept() {
        let mut process = shell("echo one; echo ready at 7; echo three; printf four");
        assert_eq!(process.wait_for_line("ready").expect("it is said"), "ready at 7");
        let (status, lines) = process.wait().expect("it ends");
        assert!(status.success());
        assert_eq!(lines, ["one", "ready at 7", "three", "four"]);
    }

    #[test]
    fn output_that_ends_too_soon_is_told_with_the_error() {
        let mut process = shell("echo other");
        let error = process.wait_for_line("ready").expect_err("it is never said");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(error.to_string().ends_with("other"));
    }

    #[test]
    fn a_killed_process_is_gone_and_a_living_one_has_memory() {
        let mut process = shell("echo ready; exec sleep 600");
        process.wait_for_line("ready").expect("it is said");
        assert!(process.peak_rss_bytes().expect("it lives") > 0);
        assert_eq!(process.kill().expect("it was there").signal(), Some(9));
        process.peak_rss_bytes().expect_err("it is gone");
    }

    #[test]
    fn a_process_can_be_asked_to_end() {
        let mut process = shell("echo ready; exec sleep 600");
        process.wait_for_line("ready").expect("it is said");
        process.terminate().expect("it lives");
        let (status, lines) = process.wait().expect("it ends");
        assert_eq!((status.signal(), lines), (Some(15), vec!["ready".to_owned()]));
    }
}
