//! Unmounting: at once, or lazily where something is in use.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::mount::{UnmountFlags, unmount as system_unmount};

/// Mounts and unmounts for ordinary users.
pub(crate) const FUSERMOUNT: &str = "fusermount3";

/// Takes a file system away; says whether something in it was in use, which from then on only that sees.
///
/// # Errors
/// The system's, or what the program said that unmounts for ordinary users.
pub(crate) fn unmount(directory: &Path) -> io::Result<bool> {
    if attempt(directory, false).is_ok() {
        return Ok(false);
    }
    attempt(directory, true).map(|()| true)
}

fn attempt(directory: &Path, lazily: bool) -> io::Result<()> {
    let flags = if lazily { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    match system_unmount(directory, flags | UnmountFlags::NOFOLLOW) {
        Err(rustix::io::Errno::PERM) => by_program(directory, lazily),
        ended => Ok(ended?),
    }
}

fn by_program(directory: &Path, lazily: bool) -> io::Result<()> {
    let mut command = Command::new(FUSERMOUNT);
    command.arg("-u").args(lazily.then_some("-z")).arg("--").arg(directory);
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}
