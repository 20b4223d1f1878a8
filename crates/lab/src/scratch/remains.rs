//! What runs that were killed left behind.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use holdall_sys::lock::Held;
use holdall_sys::{disk, process, raw_file, users};

use super::{LOCK, is_ours, remove_locked};

/// What was found of earlier runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Remains {
    /// Folders that were removed, since nobody uses them any more.
    pub removed: u64,
    /// Folders in which somebody measures now.
    pub in_use: u64,
    /// Folders of which it is not certain, as on a share that other computers use too, which belong to
    /// another user, or which could not be removed. They stay.
    pub unsure: u64,
}

impl Remains {
    /// Removes the folders in `dir` in which nobody measures any more, without measuring there.
    ///
    /// # Errors
    /// What the system says if `dir` cannot be listed.
    pub fn sweep(dir: &Path) -> io::Result<Self> {
        sweep(dir)
    }
}

enum State {
    Left,
    InUse,
    Unsure,
}

/// Removes the folders in `dir` in which nobody measures any more.
///
/// A folder belongs to this user and has our name, or it is left alone. Another user's is counted: its
/// lock cannot be seen, and it may take much room.
pub(super) fn sweep(dir: &Path) -> io::Result<Remains> {
    let mut remains = Remains::default();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let is_named_so = entry.file_name().to_str().is_some_and(is_ours);
        let found = fs::symlink_metadata(entry.path()).ok().filter(|_| is_named_so);
        let Some(folder) = found.filter(Metadata::is_dir) else { continue };
        let is_own = folder.uid() == users::effective_uid();
        let found = if is_own { state(&entry.path()) } else { Ok(State::Unsure) };
        match found {
            Ok(State::Left) => remains.removed += 1,
            Ok(State::InUse) => remains.in_use += 1,
            // What is in the way of removing them is not in the way of measuring.
            Ok(State::Unsure) | Err(_) => remains.unsure += 1,
        }
    }
    Ok(remains)
}

/// What a folder is; one that is left is removed while its lock is held.
fn state(folder: &Path) -> io::Result<State> {
    let lock = match raw_file::open(&folder.join(LOCK), false) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Killed before it was locked, or about to be locked: then that run takes another name.
            return Ok(fs::remove_dir(folder).map_or(State::Unsure, |()| State::Left));
        }
        Err(_) => return Ok(State::Unsure),
    };
    let Some(lock) = Held::exclusive(lock)? else {
        return Ok(State::InUse);
    };
    // A share may not pass the locks of other computers on.
    let owner = fs::read_to_string(folder.join(LOCK)).unwrap_or_default();
    if disk::is_share(disk::file_system(folder)?) && !process::has_ended(&owner) {
        return Ok(State::Unsure);
    }
    remove_locked(folder, lock)?;
    Ok(State::Left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_folder_of_another_user_stays_and_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("holdall-lab-0123abcd");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("lock"), "").unwrap();
        // Only root can give something away.
        if std::os::unix::fs::chown(&folder, Some(65534), None).is_ok() {
            let remains = Remains::sweep(dir.path()).unwrap();
            assert_eq!(remains, Remains { removed: 0, in_use: 0, unsure: 1 });
            assert!(folder.join("lock").exists());
        }
    }

    #[test]
    fn only_folders_with_our_name_that_nobody_holds_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let (killed, begun) = ("holdall-lab-00000001", "holdall-lab-00000002");
        let (foreign, link) = ("holdall-lab-00000003", "holdall-lab-00000004");
        let names =
            ["holdall-lab-reports", "holdall-lab-0000000g", "holdall-lab-00000005x", "other"];
        for name in [killed, begun, foreign].into_iter().chain(names) {
            fs::create_dir(at(name)).unwrap();
        }
        fs::write(at(killed).join("lock"), "").unwrap();
        fs::write(at(killed).join("data"), "x").unwrap();
        // Not made by us, since it has content and no lock.
        fs::write(at(foreign).join("data"), "x").unwrap();
        for name in &names[1..] {
            fs::write(at(name).join("lock"), "").unwrap();
        }
        symlink(at("other"), at(link)).unwrap();
        let remains = sweep(dir.path()).unwrap();
        assert_eq!(remains, Remains { removed: 2, in_use: 0, unsure: 1 });
        assert!(names.iter().all(|name| at(name).exists()), "they are named otherwise");
        assert!(at(link).is_symlink() && at(foreign).join("data").exists());
        assert!(!at(killed).exists() && !at(begun).exists());
    }
}
