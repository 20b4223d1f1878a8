//! Small files that hold secrets or state: readable by their owner alone, and never half written.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use holdall_repository::{make_dirs, sync_dir};
use holdall_sys::{Root, raw_file};

/// Makes a folder that only its owner can enter, with those above it.
///
/// # Errors
/// What the system says.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder_of(folder);
    if above != folder {
        make_folder(above)?;
    }
    match holdall_sys::make_folder(folder, 0o700) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
        made => made.with_context(|| format!("can not make {}", folder.display()))?,
    }
    // What is durable in it would be lost with its name.
    Ok(make_dirs(folder)?)
}

/// Writes a new file that is durable when this returns. One that exists is kept: `false`.
///
/// # Errors
/// What the system says.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<bool> {
    let beside = written_beside(path, bytes)?;
    match beside.persist_noclobber(path) {
        Ok(_) => sync_folder_of(path).map(|()| true),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.error).with_context(|| format!("can not write {}", path.display())),
    }
}

/// Writes a file in place of the one that may be there, as a whole; durable when this returns.
///
/// # Errors
/// What the system says; the old file stays.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let beside = written_beside(path, bytes)?;
    beside.persist(path).with_context(|| format!("can not write {}", path.display()))?;
    sync_folder_of(path)
}

/// Reads a file of at most `limit_bytes`; `None` if there is none.
///
/// # Errors
/// What the system says.
pub(crate) fn read(path: &Path, limit_bytes: u64) -> Result<Option<Vec<u8>>> {
    let what = || format!("can not read {}", path.display());
    let file = match raw_file::open_regular(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(what),
    };
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(file, limit_bytes + 1), &mut bytes)
        .with_context(what)?;
    anyhow::ensure!(bytes.len() as u64 <= limit_bytes, "{} is too long", path.display());
    Ok(Some(bytes))
}

/// Writes what a user asked for to a new file of mode 0600; refuses to replace one.
///
/// # Errors
/// What the system says.
pub(crate) fn hand_out(path: &Path, text: &str) -> Result<()> {
    let what = || format!("can not write {}", path.display());
    // It stays with who asked for it, whoever the folder belongs to.
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .with_context(what)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).with_context(what)?;
    sync_folder_of(path)
}

fn written_beside(path: &Path, bytes: &[u8]) -> Result<tempfile::NamedTempFile<File>> {
    let folder = folder_of(path);
    make_folder(folder)?;
    let mut beside = tempfile::Builder::new()
        .make_in(folder, make)
        .with_context(|| format!("can not write in {}", folder.display()))?;
    beside
        .write_all(bytes)
        .and_then(|()| beside.as_file().sync_all())
        .with_context(|| format!("can not write {}", path.display()))?;
    Ok(beside)
}

/// Makes a new file for its owner alone.
pub(crate) fn make(path: &Path) -> io::Result<File> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Root::at(folder_of(path)).join(name).create_new(0o600)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes durable that a file is in its folder.
///
/// # Errors
/// If the system can not.
pub(crate) fn sync_folder_of(path: &Path) -> Result<()> {
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
}
