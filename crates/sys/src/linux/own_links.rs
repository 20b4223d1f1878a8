//! Opening a path as root without being led elsewhere: by no link that another user can have made.
//!
//! Root may work with another user's folders, as `sudo` does that keeps `HOME`. That user can put a link in the place
//! of any folder at any moment, so looking for links beforehand is not enough. Root opens one folder after the other,
//! and judges what it has open:
//!
//! ```text
//! / ──> home ──> folder     a link on the way: followed if only root can have put it there, else refused
//! ```
//!
//! For other users the system resolves the path: their own links may lead to another disk.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::unfit::{Unfit, told};
use super::{stat, users};
use crate::{FileKind, Stat};

const STEP: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// As many as Linux follows for one path.
const MOST_LINKS: u32 = 40;
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Opens what is there already.
pub(super) fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    match users::effective_uid() {
        0 => open_by_steps(path, flags),
        _ => Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?),
    }
}

fn open_by_steps(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let mut folder = rustix::fs::openat(CWD, ".", STEP, Mode::empty())?;
    let mut left = steps(path);
    let mut links = 0;
    while let Some(step) = left.pop() {
        let found = rustix::fs::openat(&folder, &step, STEP, Mode::empty())?;
        let stat = stat::of_fd(&found)?;
        if stat.kind == FileKind::Symlink {
            links += 1;
            if links > MOST_LINKS || !is_of_root_alone(&stat, folder.as_fd())? {
                return Err(Unfit::Link.into());
            }
            let target = rustix::fs::readlinkat(&found, "", Vec::new())?;
            left.extend(steps(Path::new(&OsString::from_vec(target.into_bytes()))));
        } else if left.is_empty() {
            let flags = flags | OFlags::NOFOLLOW;
            let opened = rustix::fs::openat(&folder, &step, flags, Mode::empty());
            return opened.map_err(told);
        } else {
            folder = found;
        }
    }
    Err(Errno::NOENT.into())
}

/// The components of a path, the first one last.
fn steps(path: &Path) -> Vec<OsString> {
    path.components().rev().map(|step| step.as_os_str().to_owned()).collect()
}

/// Whether nobody but root can have put a link where it is: who may write to a folder can move root's links.
fn is_of_root_alone(link: &Stat, folder: BorrowedFd<'_>) -> io::Result<bool> {
    let folder = stat::of_fd(folder)?;
    Ok(link.uid == 0 && folder.uid == 0 && folder.mode & WRITABLE_BY_OTHERS == 0)
}
