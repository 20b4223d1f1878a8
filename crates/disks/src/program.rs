//! The system's own programs: where they are, how they are run, and how much of what they say is taken.
//!
//! They are looked for in the system's folders alone and get an environment of their own, so that nothing of whoever calls
//! changes what they do. What they print is bounded, as a disk's answers may be in it.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use holdall_sys::thread;

use crate::error::{DiskError, failed};

/// Where programs of the system are.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/// The most that is taken of either output.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;
/// The most that is repeated of what one said.
const MAX_SAID_CHARS: usize = 300;
/// How long one may take that only looks: a disk that slept has to start first.
pub(crate) const LOOK: Duration = Duration::from_secs(60);

/// How long udev may take to find out what is on a disk, in the words of its own option.
pub(crate) const SETTLE: &str = "--timeout=20";

/// A program of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Program {
    name: &'static str,
    package: &'static str,
}

pub(crate) const WIPEFS: Program = Program { name: "wipefs", package: "util-linux" };
pub(crate) const BLKID: Program = Program { name: "blkid", package: "util-linux" };
pub(crate) const PARTX: Program = Program { name: "partx", package: "util-linux" };
pub(crate) const BLKDISCARD: Program = Program { name: "blkdiscard", package: "util-linux" };
pub(crate) const MOUNT: Program = Program { name: "mount", package: "mount" };
pub(crate) const SFDISK: Program = Program { name: "sfdisk", package: "fdisk" };
pub(crate) const MKFS_EXT4: Program = Program { name: "mkfs.ext4", package: "e2fsprogs" };
pub(crate) const MKFS_BTRFS: Program = Program { name: "mkfs.btrfs", package: "btrfs-progs" };
pub(crate) const MKFS_XFS: Program = Program { name: "mkfs.xfs", package: "xfsprogs" };
pub(crate) const UDEVADM: Program = Program { name: "udevadm", package: "udev" };
pub(crate) const SMARTCTL: Program = Program { name: "smartctl", package: "smartmontools" };
pub(crate) const SYSTEMCTL: Program = Program { name: "systemctl", package: "systemd" };

/// How a program ended, and what it printed.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    stderr: String,
}

impl Program {
    /// Where it is.
    ///
    /// # Errors
    /// [`DiskError::Missing`].
    pub(crate) fn find(self) -> Result<PathBuf, DiskError> {
        let places = FOLDERS.iter().map(|folder| Path::new(folder).join(self.name));
        let missing = || DiskError::Missing { program: self.name, package: self.package };
        places.into_iter().find(|place| place.is_file()).ok_or_else(missing)
    }

    /// Runs it with `input` on its standard input, to its end or for `most`.
    ///
    /// # Errors
    /// [`DiskError::Missing`]; [`DiskError::System`] if it cannot be started, or took too long.
    pub(crate) fn run(
        self,
        args: &[&str],
        input: &str,
        most: Option<Duration>,
    ) -> Result<Ended, DiskError> {
        let mut command = Command::new(self.find()?);
        command.args(args).env_clear().env("PATH", FOLDERS.join(":")).env("LC_ALL", "C");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C does not end it in the middle of what it writes.
        command.process_group(0);
        let at = || failed(format!("running {}", self.name));
        let mut child = command.spawn().map_err(at())?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that reads nothing says by itself what it lacked.
            let _ = stdin.write_all(input.as_bytes());
        }
        let outputs = (gathered(child.stdout.take()), gathered(child.stderr.take()));
        let until = most.map(|most| Instant::now() + most);
        let stdout = within(&outputs.0, until);
        let stderr = within(&outputs.1, until);
        let (Some(stdout), Some(stderr)) = (stdout, stderr) else {
            end(&mut child);
            return Err(at()(std::io::ErrorKind::TimedOut.into()));
        };
        let status = child.wait().map_err(at())?;
        Ok(Ended { status, stdout, stderr })
    }

    /// The same of one that has to end well; gives what it printed.
    ///
    /// # Errors
    /// As above; [`DiskError::Program`].
    pub(crate) fn succeed(self, args: &[&str], input: &str) -> Result<String, DiskError> {
        let ended = self.run(args, input, None)?;
        match ended.status.success() {
            true => Ok(ended.stdout),
            false => Err(self.failure(&ended)),
        }
    }

    /// How it failed.
    pub(crate) fn failure(self, ended: &Ended) -> DiskError {
        let how = match (ended.status.code(), ended.status.signal()) {
            (Some(code), _) => format!("ended with {code}"),
            (None, Some(signal)) => format!("was ended by signal {signal}"),
            (None, None) => "failed".to_owned(),
        };
        let said = if ended.stderr.trim().is_empty() { &ended.stdout } else { &ended.stderr };
        let lines: Vec<_> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let said = lines.join(" ").chars().take(MAX_SAID_CHARS).collect();
        DiskError::Program { program: self.name, ended: how, said }
    }
}

/// What comes out of a pipe, up to its end or the most that is taken.
fn gathered(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (told, gathered) = channel();
    let Some(pipe) = pipe else { return gathered };
    // Where no thread may start, nothing comes, which is taken for the end of waiting.
    let _ = thread::start_alone(move || {
        let mut bytes = Vec::new();
        let _ = pipe.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes);
        let _ = told.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    gathered
}

fn within(gathered: &Receiver<String>, until: Option<Instant>) -> Option<String> {
    match until {
        Some(until) => gathered.recv_timeout(until.saturating_duration_since(Instant::now())).ok(),
        None => gathered.recv().ok(),
    }
}

/// Ends one that takes too long. It is not waited for: it may hang in the kernel, with the disk.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.try_wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    const SH: Program = Program { name: "sh", package: "dash" };

    #[test]
    fn what_a_program_says_comes_with_how_it_ended() {
        let error = SH.succeed(&["-c", "echo so; echo bad >&2; exit 3"], "").unwrap_err();
        assert_eq!(error.to_string(), "sh ended with 3: bad");
        let killed = SH.succeed(&["-c", "kill -9 $$"], "").unwrap_err();
        assert_eq!(killed.to_string(), "sh was ended by signal 9: ");
        assert_eq!(SH.succeed(&["-c", "cat; echo $HOME"], "in").unwrap(), "in\n");
    }

    #[test]
    fn one_that_is_not_installed_is_named_with_its_package() {
        let none = Program { name: "holdall-no-such-program", package: "no-such" };
        assert_eq!(
            none.find().unwrap_err().to_string(),
            "holdall-no-such-program is not installed"
        );
    }

    #[test]
    fn one_that_hangs_is_given_up_and_one_that_talks_for_ever_is_cut_off() {
        let hangs = SH.run(&["-c", "exec sleep 600"], "", Some(Duration::ZERO));
        assert!(hangs.is_err());
        let talks = SH.run(&["-c", "exec yes"], "", None).unwrap();
        assert_eq!(talks.stdout.len() as u64, MAX_OUTPUT_BYTES);
        assert!(!talks.status.success());
    }
}
