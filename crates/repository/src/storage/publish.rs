//! Making files appear whole and for good, or not at all.
//!
//! A file is written beside its place, made durable, then renamed without replacing anything, and
//! the directory is made durable too. Only then may anything be promised. Where a file system can
//! neither rename without replacing nor link, a plain rename has to do: the name of a pack is a
//! content hash, and records and sets of wrappings, which are named by numbers, are published only
//! by whoever has just renewed the lease. Where names cannot be made durable at all, `probes` says so.

use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;

use aws_lc_rs::rand;
use holdall_protocol::RepositoryError;
use holdall_sys::{PathBeneath, Unfit};

use rustix::io::Errno;

/// Permission bits of what is made, before the user's umask: as any program makes files and folders.
pub(crate) const FILE_MODE: u32 = 0o666;
const DIR_MODE: u32 = 0o777;
const NO_FOLDER: &str = "it is not a folder, and a repository has one there";
/// Why a file cannot be what it should be.
pub(crate) const NO_FILE: &str =
    "it is a folder, and a repository has a file there: move that folder away";
/// Of a repository's folders, which are not for every user of the computer.
pub(crate) const PRIVATE_DIR_MODE: u32 = 0o770;
/// Of those with wrapped keys, which are for their owner alone: whoever can read them can guess passwords.
pub(crate) const OWN_DIR_MODE: u32 = 0o700;

/// Something that messages name by its path.
pub(crate) trait Shown {
    fn shown(&self) -> std::path::Display<'_>;
}

impl Shown for Path {
    fn shown(&self) -> std::path::Display<'_> {
        self.display()
    }
}

impl Shown for PathBeneath {
    fn shown(&self) -> std::path::Display<'_> {
        self.display()
    }
}

/// Turns a system error into one that says what was done to which file. What cannot be a repository's own file is
/// damage.
pub(crate) fn failed<'a>(
    action: &'static str,
    path: &'a (impl Shown + ?Sized),
) -> impl FnOnce(io::Error) -> RepositoryError + 'a {
    move |source| match Unfit::of(&source) {
        Some(unfit) => {
            let reason =
                format!("{unfit}; a repository has no such file, and nothing was done to it");
            damaged(path, reason)
        }
        None => RepositoryError::io(format!("{action} {}", path.shown()), source),
    }
}

/// The error for a file that differs from what was stored.
pub(crate) fn damaged(path: &(impl Shown + ?Sized), reason: impl ToString) -> RepositoryError {
    RepositoryError::Damaged { what: path.shown().to_string(), reason: reason.to_string() }
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
pub(crate) fn beside(tmp: &PathBeneath) -> Result<PathBeneath, RepositoryError> {
    Ok(tmp.join(format!("{:032x}", u128::from_le_bytes(random()?))))
}

/// Whether a name is made of hexadecimal digits alone, in the way that names are written here.
pub(crate) fn is_hexadecimal(name: &str) -> bool {
    name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a name may have been given by [`beside`].
pub(crate) fn is_beside(name: &str) -> bool {
    name.len() == 32 && is_hexadecimal(name)
}

/// Makes an empty file durably, for what its name alone says: a full disk has room for that. One that is there
/// stays as it is.
pub(crate) fn make_empty(path: &PathBeneath) -> Result<(), RepositoryError> {
    match path.create_new(FILE_MODE) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => drop(made.map_err(failed("making", path))?),
    }
    sync_parent(path)
}

/// Publishes `bytes` as the new file `target`, by way of a file in `tmp`, if only the name is missing and `is_held`
/// says that the lease is held still. Who sleeps from then
/// on finds the file in `tmp` gone: whoever takes over sweeps that before anything else is looked at.
pub(crate) fn publish_while(
    is_held: impl FnOnce() -> Result<(), RepositoryError>,
    tmp: &PathBeneath,
    target: &PathBeneath,
    bytes: &[u8],
) -> Result<Published, RepositoryError> {
    let beside = write_beside(tmp, bytes)?;
    let outcome = is_held().and_then(|()| publish_file(&beside, target));
    if !matches!(outcome, Ok(Published::New)) {
        // The answer is what counts; a file that is left behind in tmp is swept at the next open.
        let _ = beside.remove_file();
    }
    outcome
}

/// Puts `bytes` in the place of whatever `target` is now; for files that are one owner's own.
pub(crate) fn replace(
    tmp: &PathBeneath,
    target: &PathBeneath,
    bytes: &[u8],
) -> Result<(), RepositoryError> {
    replace_by_file(&write_beside(tmp, bytes)?, target)
}

/// Puts a durable file in the place of whatever `target` is now, and makes that durable.
pub(crate) fn replace_by_file(
    from: &PathBeneath,
    target: &PathBeneath,
) -> Result<(), RepositoryError> {
    match from.rename(target) {
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
            return Err(damaged(target, NO_FILE));
        }
        renamed => renamed.map_err(failed("renaming to", target))?,
    }
    sync_parent(target)
}

/// Publishes a durable file under its final name and makes the name durable.
pub(crate) fn publish_file(
    from: &PathBeneath,
    target: &PathBeneath,
) -> Result<Published, RepositoryError> {
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
    as_far_as_possible(dir, File::open(dir).and_then(|dir| dir.sync_all()))
}

/// The same of an open folder.
///
/// # Errors
/// [`RepositoryError::Io`].
pub fn sync_folder(dir: &PathBeneath) -> Result<(), RepositoryError> {
    as_far_as_possible(dir, dir.sync_dir())
}

fn as_far_as_possible(
    dir: &(impl Shown + ?Sized),
    synced: io::Result<()>,
) -> Result<(), RepositoryError> {
    match synced {
        Err(error) if !is_unsupported(&error) => Err(failed("syncing", dir)(error)),
        _ => Ok(()),
    }
}

/// Whether an error says that a file system lacks what was asked for, not that it failed.
pub(crate) fn is_unsupported(error: &io::Error) -> bool {
    let unsupported = [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP];
    unsupported.iter().any(|errno| Some(errno.raw_os_error()) == error.raw_os_error())
}

/// Makes a folder if it is not there, and its name durable: who made it may not have come so far.
pub(crate) fn make_dir(dir: &PathBeneath) -> Result<(), RepositoryError> {
    make_name(dir, DIR_MODE)?;
    sync_parent(dir)
}

/// Makes a directory and those above it, as far as they are not there, and makes all their names
/// durable, where whoever has the directory above lets others look into it.
///
/// # Errors
/// [`RepositoryError::Io`].
pub fn make_dirs(dir: &Path) -> Result<(), RepositoryError> {
    make_with_those_above(dir, DIR_MODE)
}

/// The same, and the directory itself is not for every user of the computer.
///
/// # Errors
/// As for [`make_dirs`].
pub(crate) fn make_private_dirs(dir: &Path) -> Result<(), RepositoryError> {
    make_with_those_above(dir, PRIVATE_DIR_MODE)
}

fn make_with_those_above(dir: &Path, mode: u32) -> Result<(), RepositoryError> {
    let above = parent_of(dir);
    if !dir.is_dir() {
        above.filter(|above| *above != dir).map_or(Ok(()), make_dirs)?;
        match DirBuilder::new().mode(mode).create(dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
            made => made.map_err(failed("making", dir))?,
        }
    }
    match above.map_or(Ok(()), sync_dir) {
        Err(RepositoryError::Io { source, .. })
            if source.kind() == io::ErrorKind::PermissionDenied =>
        {
            Ok(())
        }
        synced => synced,
    }
}

/// Makes a folder if it is not there, with at most the permission bits `mode`. Its name is not durable yet.
pub(crate) fn make_name(dir: &PathBeneath, mode: u32) -> Result<(), RepositoryError> {
    match dir.create_dir(mode) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match dir.is_dir() {
            true => Ok(()),
            false => Err(damaged(dir, NO_FOLDER)),
        },
        made => made.map_err(failed("making", dir)),
    }
}

/// Whether something is there. That this cannot be told is an error: it is not the same as no.
pub(crate) fn is_there(path: &PathBeneath) -> Result<bool, RepositoryError> {
    path.try_exists().map_err(failed("looking at", path))
}

/// Removes a file; one that is not there is no error.
pub(crate) fn remove(path: &PathBeneath) -> Result<(), RepositoryError> {
    match path.remove_file() {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed("removing", path)(error))
        }
        _ => Ok(()),
    }
}

/// Reads a file of at most `limit_bytes` bytes; `None` if there is none.
pub(crate) fn read_limited(
    path: &PathBeneath,
    limit_bytes: u64,
) -> Result<Option<Vec<u8>>, RepositoryError> {
    let file = match path.open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed("opening", path))?,
    };
    let length = file.metadata().map_err(failed("looking at", path))?.len();
    if length > limit_bytes {
        let reason = format!("it has {length} bytes, at most {limit_bytes} are allowed");
        return Err(damaged(path, reason));
    }
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(file, limit_bytes), &mut bytes)
        .map_err(failed("reading", path))?;
    Ok(Some(bytes))
}

/// The names in a folder, in ascending order; none if there is no such folder, since copying
/// a repository may leave out empty ones.
pub(crate) fn names_in(dir: &PathBeneath) -> Result<Vec<OsString>, RepositoryError> {
    match dir.names() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        // Not where the root itself is no folder.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory && dir.exists() => {
            Err(damaged(dir, NO_FOLDER))
        }
        names => names.map_err(failed("listing", dir)),
    }
}

fn write_beside(tmp: &PathBeneath, bytes: &[u8]) -> Result<PathBeneath, RepositoryError> {
    let path = beside(tmp)?;
    let file = path.create_new(FILE_MODE).map_err(failed("making", &path))?;
    let written = file.write_all_at(bytes, 0).and_then(|()| file.sync_all());
    if let Err(error) = written {
        // After a failed fsync the file is abandoned, never synced again.
        let _ = path.remove_file();
        return Err(failed("writing", &path)(error));
    }
    Ok(path)
}

/// Makes a file's name durable.
pub(crate) fn sync_parent(path: &PathBeneath) -> Result<(), RepositoryError> {
    path.parent().map_or(Ok(()), |parent| sync_folder(&parent))
}

/// The directory that a path's last name is in.
fn parent_of(path: &Path) -> Option<&Path> {
    let is_here = |parent: &Path| parent.as_os_str().is_empty();
    path.parent().map(|parent| if is_here(parent) { Path::new(".") } else { parent })
}

/// Renames unless `target` exists; says whether it did.
///
/// # Errors
/// What the system says.
pub fn rename_no_replace(from: &PathBeneath, target: &PathBeneath) -> io::Result<bool> {
    match from.rename_new(target) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) if is_unsupported(&error) => link_no_replace(from, target),
        renamed => renamed.map(|()| true),
    }
}

/// The same where renaming always replaces.
fn link_no_replace(from: &PathBeneath, target: &PathBeneath) -> io::Result<bool> {
    match from.hard_link(target) {
        Ok(()) => from.remove_file().map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) if has_no_links(&error) => look_and_rename(from, target),
        Err(error) => Err(error),
    }
}

/// The same where there are no links either.
fn look_and_rename(from: &PathBeneath, target: &PathBeneath) -> io::Result<bool> {
    if target.try_exists()? {
        return Ok(false);
    }
    from.rename(target).map(|()| true)
}

/// Whether linking failed since the file system has no hard links, which many say with `EPERM`.
pub(crate) fn has_no_links(error: &io::Error) -> bool {
    is_unsupported(error) || error.kind() == io::ErrorKind::PermissionDenied
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_sys::Root;
    use std::fs;

    #[test]
    fn publishing_never_replaces_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Root::at(folder.path());
        let tmp = dir.join("tmp");
        make_dir(&tmp).unwrap();
        make_dir(&tmp).unwrap();
        let target = dir.join("name");
        let publish = |bytes: &[u8]| publish_while(|| Ok(()), &tmp, &target, bytes);
        assert_eq!(publish(b"first").unwrap(), Published::New);
        assert_eq!(publish(b"second").unwrap(), Published::Existed);
        assert_eq!(fs::read(target.path()).unwrap(), b"first");
        replace(&tmp, &target, b"third").unwrap();
        assert_eq!(read_limited(&target, 5).unwrap().as_deref(), Some(&b"third"[..]));
        assert!(read_limited(&target, 4).is_err());
        assert!(names_in(&tmp).unwrap().is_empty());
    }

    #[test]
    fn whatever_a_place_can_do_nothing_is_replaced() {
        for publish in [rename_no_replace, link_no_replace, look_and_rename] {
            let folder = tempfile::tempdir().unwrap();
            let dir = Root::at(folder.path());
            let (from, target) = (dir.join("beside"), dir.join("name"));
            fs::write(from.path(), b"first").unwrap();
            assert!(publish(&from, &target).unwrap());
            assert_eq!(names_in(&dir).unwrap(), ["name"]);
            fs::write(from.path(), b"second").unwrap();
            assert!(!publish(&from, &target).unwrap());
            assert_eq!(fs::read(target.path()).unwrap(), b"first");
        }
    }
}
