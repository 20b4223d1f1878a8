//! Making files appear whole and for good, or not at all.
//!
//! A file is written beside its place, made durable, then renamed without replacing anything, and
//! the directory is made durable too. Only then may anything be promised. Where a file system can
//! neither rename without replacing nor link, a plain rename has to do: the name of a pack is a
//! content hash, and records and sets of wrappings, which are named by numbers, are published only
//! by whoever has just renewed the lease. Where names can not be made durable at all, `probes` says so.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};

use aws_lc_rs::rand;
use holdall_protocol::RepositoryError;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// Turns a system error into one that says what was done to which file.
pub(crate) fn failed<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> RepositoryError + 'a {
    move |source| RepositoryError::io(format!("{action} {}", path.display()), source)
}

/// Fills an array with random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], RepositoryError> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes)
        .map_err(|_| RepositoryError::io("drawing random bytes", io::Error::other("refused")))?;
    Ok(bytes)
}

/// Whether a file was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Published {
    /// It is there now, durably.
    New,
    /// Something had that name already and was left as it was.
    Existed,
}

/// A name in `tmp` that nothing has.
pub(crate) fn beside(tmp: &Path) -> Result<PathBuf, RepositoryError> {
    Ok(tmp.join(format!("{:032x}", u128::from_le_bytes(random()?))))
}

/// Publishes `bytes` as the new file `target`, by way of a file in `tmp`.
pub(crate) fn publish(
    tmp: &Path,
    target: &Path,
    bytes: &[u8],
) -> Result<Published, RepositoryError> {
    publish_while(|| Ok(()), tmp, target, bytes)
}

/// Makes an empty file durably, for what its name alone says: a full disk has room for that. One that is there
/// stays as it is.
pub(crate) fn make_empty(path: &Path) -> Result<(), RepositoryError> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => drop(made.map_err(failed("making", path))?),
    }
    sync_parent(path)
}

/// As [`publish`] if only the name is missing and `is_held` says that the lease is held still. Who sleeps from then
/// on finds the file in `tmp` gone: whoever takes over sweeps that before anything else is looked at.
pub(crate) fn publish_while(
    is_held: impl FnOnce() -> Result<(), RepositoryError>,
    tmp: &Path,
    target: &Path,
    bytes: &[u8],
) -> Result<Published, RepositoryError> {
    let beside = write_beside(tmp, bytes)?;
    let outcome = is_held().and_then(|()| publish_file(&beside, target));
    if !matches!(outcome, Ok(Published::New)) {
        // The answer is what counts; a file that is left behind in tmp is swept at the next open.
        let _ = fs::remove_file(&beside);
    }
    outcome
}

/// Puts `bytes` in the place of whatever `target` is now; for files that are one owner's own.
pub(crate) fn replace(tmp: &Path, target: &Path, bytes: &[u8]) -> Result<(), RepositoryError> {
    replace_by_file(&write_beside(tmp, bytes)?, target)
}

/// Puts a durable file in the place of whatever `target` is now, and makes that durable.
pub(crate) fn replace_by_file(from: &Path, target: &Path) -> Result<(), RepositoryError> {
    fs::rename(from, target).map_err(failed("renaming to", target))?;
    sync_parent(target)
}

/// Publishes a durable file under its final name and makes the name durable.
pub(crate) fn publish_file(from: &Path, target: &Path) -> Result<Published, RepositoryError> {
    if !rename_no_replace(from, target).map_err(failed("publishing", target))? {
        return Ok(Published::Existed);
    }
    sync_parent(target)?;
    Ok(Published::New)
}

/// Makes the names in a directory durable, where its file system can.
///
/// # Errors
/// [`RepositoryError::Io`].
pub fn sync_dir(dir: &Path) -> Result<(), RepositoryError> {
    match File::open(dir).and_then(|dir| dir.sync_all()) {
        Err(error) if !is_unsupported(&error) => Err(failed("syncing", dir)(error)),
        _ => Ok(()),
    }
}

/// Whether an error says that a file system lacks what was asked for, not that it failed.
pub(crate) fn is_unsupported(error: &io::Error) -> bool {
    let unsupported = [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP];
    unsupported.iter().any(|errno| Some(errno.raw_os_error()) == error.raw_os_error())
}

/// Makes a directory if it is not there, and its name durable: who made it may not have come so far.
pub(crate) fn make_dir(dir: &Path) -> Result<(), RepositoryError> {
    make_all(std::slice::from_ref(&dir))
}

/// Makes directories that lie in one, as [`make_dir`] does each.
pub(crate) fn make_all(dirs: &[impl AsRef<Path>]) -> Result<(), RepositoryError> {
    dirs.iter().try_for_each(|dir| make_name(dir.as_ref()))?;
    dirs.last().map_or(Ok(()), |dir| sync_parent(dir.as_ref()))
}

/// Makes a directory and those above it, as far as they are not there, and makes all their names
/// durable, where whoever has the directory above lets others look into it.
///
/// # Errors
/// [`RepositoryError::Io`].
pub fn make_dirs(dir: &Path) -> Result<(), RepositoryError> {
    if !dir.is_dir() {
        parent_of(dir).filter(|above| *above != dir).map_or(Ok(()), make_dirs)?;
        make_name(dir)?;
    }
    match sync_parent(dir) {
        Err(RepositoryError::Io { source, .. })
            if source.kind() == io::ErrorKind::PermissionDenied =>
        {
            Ok(())
        }
        synced => synced,
    }
}

/// The same, and the directory itself is not for every user of the computer.
///
/// # Errors
/// As for [`make_dirs`].
pub(crate) fn make_private_dirs(dir: &Path) -> Result<(), RepositoryError> {
    if !dir.is_dir() {
        parent_of(dir).filter(|above| *above != dir).map_or(Ok(()), make_dirs)?;
        make_private(dir)?;
    }
    make_dirs(dir)
}

/// Makes a directory that is not for every user of the computer, if it is not there. Whoever can read a set of
/// wrappings can guess passwords.
pub(crate) fn make_private(dir: &Path) -> Result<(), RepositoryError> {
    is_made(dir, DirBuilder::new().mode(0o770).create(dir))
}

fn make_name(dir: &Path) -> Result<(), RepositoryError> {
    is_made(dir, fs::create_dir(dir))
}

fn is_made(dir: &Path, made: io::Result<()>) -> Result<(), RepositoryError> {
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        made => made.map_err(failed("making", dir)),
    }
}

/// Whether something is there. That this can not be told is an error: it is not the same as no.
pub(crate) fn is_there(path: &Path) -> Result<bool, RepositoryError> {
    path.try_exists().map_err(failed("looking at", path))
}

/// Removes a file; one that is not there is no error.
pub(crate) fn remove(path: &Path) -> Result<(), RepositoryError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed("removing", path)(error))
        }
        _ => Ok(()),
    }
}

/// Reads a file of at most `limit_bytes` bytes; `None` if there is none.
pub(crate) fn read_limited(
    path: &Path,
    limit_bytes: u64,
) -> Result<Option<Vec<u8>>, RepositoryError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed("opening", path))?,
    };
    let length = file.metadata().map_err(failed("looking at", path))?.len();
    if length > limit_bytes {
        let reason = format!("it has {length} bytes, at most {limit_bytes} are allowed");
        return Err(RepositoryError::Damaged { what: path.display().to_string(), reason });
    }
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(file, limit_bytes), &mut bytes)
        .map_err(failed("reading", path))?;
    Ok(Some(bytes))
}

/// The names in a directory, in ascending order; none if there is no such directory, since copying
/// a repository may leave out empty ones.
pub(crate) fn names_in(dir: &Path) -> Result<Vec<OsString>, RepositoryError> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed("listing", dir))?,
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    let mut names = names.collect::<io::Result<Vec<_>>>().map_err(failed("listing", dir))?;
    names.sort_unstable();
    Ok(names)
}

fn write_beside(tmp: &Path, bytes: &[u8]) -> Result<PathBuf, RepositoryError> {
    let path = beside(tmp)?;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .map_err(failed("making", &path))?;
    let written = file.write_all_at(bytes, 0).and_then(|()| file.sync_all());
    if let Err(error) = written {
        // After a failed fsync the file is abandoned, never synced again.
        let _ = fs::remove_file(&path);
        return Err(failed("writing", &path)(error));
    }
    Ok(path)
}

/// Makes a file's name durable.
pub(crate) fn sync_parent(path: &Path) -> Result<(), RepositoryError> {
    parent_of(path).map_or(Ok(()), sync_dir)
}

/// The directory that a path's last name is in.
fn parent_of(path: &Path) -> Option<&Path> {
    let is_here = |parent: &Path| parent.as_os_str().is_empty();
    path.parent().map(|parent| if is_here(parent) { Path::new(".") } else { parent })
}

/// Renames unless `target` exists; says whether it did.
fn rename_no_replace(from: &Path, target: &Path) -> io::Result<bool> {
    match rename_new(from, target) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) if is_unsupported(&error) => link_no_replace(from, target),
        renamed => renamed.map(|()| true),
    }
}

/// The same where renaming always replaces.
fn link_no_replace(from: &Path, target: &Path) -> io::Result<bool> {
    match fs::hard_link(from, target) {
        Ok(()) => fs::remove_file(from).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) if has_no_links(&error) => look_and_rename(from, target),
        Err(error) => Err(error),
    }
}

/// The same where there are no links either.
fn look_and_rename(from: &Path, target: &Path) -> io::Result<bool> {
    if target.try_exists()? {
        return Ok(false);
    }
    fs::rename(from, target).map(|()| true)
}

/// Renames and never replaces; an error that [`is_unsupported`] knows where that is not possible.
pub(crate) fn rename_new(from: &Path, target: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, from, CWD, target, RenameFlags::NOREPLACE)?)
}

/// Whether linking failed since the file system has no hard links, which many say with `EPERM`.
pub(crate) fn has_no_links(error: &io::Error) -> bool {
    is_unsupported(error) || error.kind() == io::ErrorKind::PermissionDenied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publishing_never_replaces_and_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let tmp = dir.path().join("tmp");
        make_dir(&tmp).unwrap();
        make_dir(&tmp).unwrap();
        let target = dir.path().join("name");
        assert_eq!(publish(&tmp, &target, b"first").unwrap(), Published::New);
        assert_eq!(publish(&tmp, &target, b"second").unwrap(), Published::Existed);
        assert_eq!(fs::read(&target).unwrap(), b"first");
        replace(&tmp, &target, b"third").unwrap();
        assert_eq!(read_limited(&target, 5).unwrap().as_deref(), Some(&b"third"[..]));
        assert!(read_limited(&target, 4).is_err());
        assert!(names_in(&tmp).unwrap().is_empty());
    }

    #[test]
    fn whatever_a_place_can_do_nothing_is_replaced() {
        for publish in [rename_no_replace, link_no_replace, look_and_rename] {
            let dir = tempfile::tempdir().unwrap();
            let (from, target) = (dir.path().join("beside"), dir.path().join("name"));
            fs::write(&from, b"first").unwrap();
            assert!(publish(&from, &target).unwrap());
            assert_eq!(names_in(dir.path()).unwrap(), ["name"]);
            fs::write(&from, b"second").unwrap();
            assert!(!publish(&from, &target).unwrap());
            assert_eq!(fs::read(&target).unwrap(), b"first");
        }
    }
}
