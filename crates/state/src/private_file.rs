//! Small files that hold secrets or state: readable by their owner alone, and never half written. As root, no link of
//! another user's leads to them, whenever it is put there.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use holdall_crypto::{Entropy, SystemEntropy};
use holdall_protocol::RepositoryError;
use holdall_repository::{rename_no_replace, sync_dir, sync_folder};
use holdall_sys::{PathBeneath, guarded, raw_file};

use crate::error::{StateError, StateFile};

/// Makes a folder that only its owner can enter, with those above it.
///
/// # Errors
/// What the system says.
pub fn make_folder(folder: &Path) -> Result<(), StateError> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder_of(folder);
    if above != folder {
        make_folder(above)?;
    }
    match holdall_sys::make_folder(folder, 0o700) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
        made => made.map_err(StateError::io(format!("cannot make {}", folder.display())))?,
    }
    // What is durable in it would be lost with its name.
    match sync_above(&guarded::place(folder)) {
        // Who may only enter the folder above cannot open it for that.
        Err(RepositoryError::Io { source, .. })
            if source.kind() == io::ErrorKind::PermissionDenied =>
        {
            Ok(())
        }
        synced => Ok(synced?),
    }
}

/// Writes a new file that is durable when this returns. One that exists is kept: `false`.
///
/// # Errors
/// What the system says.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<bool, StateError> {
    write_whole(path, bytes, rename_no_replace)
}

/// Writes a file in place of the one that may be there, as a whole; durable when this returns.
///
/// # Errors
/// What the system says; the old file stays.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), StateError> {
    write_whole(path, bytes, |from, to| from.rename(to).map(|()| true)).map(drop)
}

/// Writes a file beside the one that may be there, and has `put` give it the name.
fn write_whole(
    path: &Path,
    bytes: &[u8],
    put: impl FnOnce(&PathBeneath, &PathBeneath) -> io::Result<bool>,
) -> Result<bool, StateError> {
    make_folder(folder_of(path))?;
    let place = guarded::place(path);
    let mut name = [0; 8];
    SystemEntropy.fill(&mut name);
    let beside = place.with_file_name(format!(".{:016x}.new", u64::from_le_bytes(name)));
    let cannot = || StateError::io(format!("cannot write in {}", folder_of(path).display()));
    let mut file = beside.create_new(0o600).map_err(cannot())?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let is_put = written.and_then(|()| put(&beside, &place));
    if !matches!(is_put, Ok(true)) {
        // What is left of it is in nobody's way.
        let _ = beside.remove_file();
    }
    let is_put = is_put.map_err(StateError::io(format!("cannot write {}", path.display())))?;
    if is_put {
        sync_above(&place)?;
    }
    Ok(is_put)
}

/// Has something that cannot be used end with `.damaged` from now on, under a name that nothing has; says where it is.
///
/// # Errors
/// What the system says.
pub(crate) fn put_aside(path: &Path) -> Result<PathBuf, StateError> {
    let what = || format!("cannot move {} away", path.display());
    for number in 0..u16::MAX {
        let mut name = path.as_os_str().to_owned();
        name.push(if number == 0 { ".damaged".to_owned() } else { format!(".damaged{number}") });
        let aside = PathBuf::from(name);
        let (from, to) = (guarded::place(path), guarded::place(&aside));
        if rename_no_replace(&from, &to).map_err(StateError::io(what()))? {
            return Ok(aside);
        }
    }
    Err(StateError::io(what())(io::ErrorKind::AlreadyExists.into()))
}

/// Removes a file that may be there; durable when this returns.
///
/// # Errors
/// What the system says.
pub fn remove(path: &Path) -> Result<(), StateError> {
    let place = guarded::place(path);
    match place.remove_file() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => {
            removed.map_err(StateError::io(format!("cannot remove {}", path.display())))?;
            Ok(sync_above(&place)?)
        }
    }
}

/// Reads a file of at most `limit_bytes`; `None` if there is none.
///
/// # Errors
/// What the system says.
pub fn read(path: &Path, limit_bytes: u64) -> Result<Option<Vec<u8>>, StateError> {
    read_opened(path, guarded::open_regular(path), limit_bytes)
}

/// The same of one kind of file: a folder in its place counts as a damaged one.
pub(crate) fn read_kind(
    kind: StateFile,
    path: &Path,
    limit_bytes: u64,
) -> Result<Option<Vec<u8>>, StateError> {
    read(path, limit_bytes).map_err(|error| match error {
        StateError::Io { source, .. } if source.kind() == io::ErrorKind::IsADirectory => {
            StateError::damaged(kind, path, source)
        }
        error => error,
    })
}

/// The same of a file that the user named, wherever that leads.
///
/// # Errors
/// What the system says.
pub fn read_named(path: &Path, limit_bytes: u64) -> Result<Option<Vec<u8>>, StateError> {
    read_opened(path, raw_file::open_regular(path), limit_bytes)
}

fn read_opened(
    path: &Path,
    opened: io::Result<File>,
    limit_bytes: u64,
) -> Result<Option<Vec<u8>>, StateError> {
    let cannot = || StateError::io(format!("cannot read {}", path.display()));
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(cannot())?,
    };
    let mut bytes = Vec::new();
    file.take(limit_bytes + 1).read_to_end(&mut bytes).map_err(cannot())?;
    if bytes.len() as u64 > limit_bytes {
        return Err(StateError::TooLong(path.to_owned()));
    }
    Ok(Some(bytes))
}

/// Writes what a user asked for to a new file of mode 0600; refuses to replace one.
///
/// # Errors
/// What the system says.
pub fn hand_out(path: &Path, text: &str) -> Result<(), StateError> {
    let cannot = || StateError::io(format!("cannot write {}", path.display()));
    // It stays with who asked for it, whoever the folder belongs to.
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(cannot())?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(cannot())?;
    sync_folder_of(path)
}

/// Makes durable that a file is in its folder.
fn sync_above(place: &PathBeneath) -> Result<(), RepositoryError> {
    place.parent().map_or(Ok(()), |above| sync_folder(&above))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The same of a file that the user named.
///
/// # Errors
/// If the system cannot.
pub fn sync_folder_of(path: &Path) -> Result<(), StateError> {
    Ok(sync_dir(folder_of(path))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_secret_is_for_its_owner_alone_and_the_first_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/key");
        assert!(write_new(&path, b"one").unwrap());
        assert!(!write_new(&path, b"two").unwrap());
        assert_eq!(read(&path, 3).unwrap().unwrap(), b"one");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        replace(&path, b"three").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"three");
        read(&path, 4).unwrap_err();
        assert_eq!(read(&folder.path().join("other"), 4).unwrap(), None);
    }

    #[test]
    fn what_is_handed_out_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kit.txt");
        hand_out(&path, "kit").unwrap();
        hand_out(&path, "other").unwrap_err();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn root_neither_writes_nor_reads_what_is_kept_over_a_link_of_another_user() {
        let folder = tempfile::tempdir().unwrap();
        let [of_root, link] = ["of-root", "link"].map(|name| folder.path().join(name));
        fs::create_dir(&of_root).unwrap();
        fs::write(of_root.join("file"), "x").unwrap();
        std::os::unix::fs::symlink(&of_root, &link).unwrap();
        if std::os::unix::fs::lchown(&link, Some(65_533), None).is_err() {
            eprintln!("not done: only root can give links away");
            return;
        }
        for path in ["link/file", "link/below/file"].map(|path| folder.path().join(path)) {
            replace(&path, b"y").unwrap_err();
            write_new(&path, b"y").unwrap_err();
        }
        read(&link.join("file"), 1).unwrap_err();
        assert_eq!(read_named(&link.join("file"), 1).unwrap().unwrap(), b"x");
        assert_eq!(fs::read(of_root.join("file")).unwrap(), b"x");
        assert_eq!(fs::read_dir(&of_root).unwrap().count(), 1);
    }
}
