//! Paths of what this program keeps for its user: root follows no link there that another user can have made.
//!
//! A folder is opened as `own_links` has it, and what lies in it is reached from there.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::beneath::{self, PathBeneath, Root};
use super::own_links;
use super::unfit::Unfit;

/// What is at `path`, reached from the folder it lies in. A link at the end of the path is never followed.
#[must_use]
pub fn place(path: &Path) -> PathBeneath {
    let above = path.parent().unwrap_or(Path::new("/"));
    let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
    Root::guarded(above).join(path.file_name().unwrap_or_default())
}

/// Opens a regular file to read; nothing waits for the other end of a pipe.
///
/// # Errors
///
/// [`Unfit`] for a link that is not followed and for what is no regular file; `EISDIR`; else what the system says.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    beneath::regular(own_links::open(path, flags)?).map(|(file, _)| file)
}

/// Whether `path` is a link that this process does not follow.
#[must_use]
pub fn is_refused_link(path: &Path) -> bool {
    let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let opened = || own_links::open(path, OFlags::PATH.union(OFlags::CLOEXEC));
    is_link && opened().is_err_and(|error| Unfit::of(&error) == Some(Unfit::Link))
}

/// A link at `path`, or in that folder to a depth of `levels`, that this process does not follow. Folders that cannot be
/// listed have none.
#[must_use]
pub fn refused_link_in(path: &Path, levels: u8) -> Option<PathBuf> {
    let found = path.symlink_metadata().ok()?;
    if found.is_symlink() {
        return is_refused_link(path).then(|| path.to_owned());
    }
    if levels == 0 || !found.is_dir() {
        return None;
    }
    let entries = path.read_dir().ok()?.flatten();
    entries.into_iter().find_map(|entry| refused_link_in(&entry.path(), levels - 1))
}

/// Makes a folder of what this program keeps, with at most the permission bits `mode`. As root in another user's folder,
/// it becomes that user's.
///
/// # Errors
///
/// `EEXIST` if anything is there; else what the system says, and [`Unfit::Link`].
pub fn make_folder(path: &Path, mode: u32) -> io::Result<()> {
    place(path).create_dir(mode)
}

/// The same with those above it, unless it is there.
///
/// # Errors
///
/// As for [`make_folder`], but for a folder that is there.
pub fn make_folders(path: &Path, mode: u32) -> io::Result<()> {
    match make_folder(path, mode) {
        Err(_) if path.is_dir() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            path.parent().map_or(Err(error), |above| make_folders(above, mode))?;
            make_folders(path, mode)
        }
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    /// A user other than root.
    const OTHER: Option<u32> = Some(65_533);

    fn refused<T>(opened: io::Result<T>) -> bool {
        opened.is_err_and(|error| Unfit::of(&error) == Some(Unfit::Link))
    }

    #[test]
    fn a_link_of_ones_own_leads_to_another_disk_and_an_endless_one_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("disk/below")).unwrap();
        fs::write(at("disk/below/file"), "x").unwrap();
        symlink("disk/../disk", at("relative")).unwrap();
        symlink(at("relative/below"), at("absolute")).unwrap();
        symlink("file", at("disk/below/link")).unwrap();
        symlink("loop", at("loop")).unwrap();
        for path in ["relative/below/file", "absolute/file", "absolute/link", "./disk/below/link"] {
            open_regular(&at(path)).unwrap();
            place(&at(path)).with_file_name("file").open().unwrap();
            assert!(!is_refused_link(&at(path)));
        }
        open_regular(&at("loop")).unwrap_err();
        open_regular(&at("disk/file/below")).unwrap_err();
        place(Path::new("/")).open_dir().unwrap();
        place(Path::new("Cargo.toml")).open().unwrap();
    }

    #[test]
    fn root_follows_no_link_that_another_user_can_have_made() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let of_root = at("of-root");
        for name in ["of-root", "of-root/below", "theirs", "open"] {
            fs::create_dir(at(name)).unwrap();
        }
        fs::write(of_root.join("below/file"), "x").unwrap();
        for link in ["link", "theirs/link", "open/link"] {
            symlink(&of_root, at(link)).unwrap();
        }
        if lchown(at("link"), OTHER, OTHER).is_err() {
            eprintln!("not done: only root can give links away");
            return;
        }
        lchown(at("theirs"), OTHER, OTHER).unwrap();
        fs::set_permissions(at("open"), fs::Permissions::from_mode(0o1777)).unwrap();
        symlink("theirs/link", at("chain")).unwrap();
        for link in ["link", "theirs/link", "open/link", "chain"].map(at) {
            assert!(is_refused_link(&link));
            assert!(refused(open_regular(&link.join("below/file"))), "{}", link.display());
            for path in [link.join("file"), link.join("below/file")] {
                let place = place(&path);
                assert!(refused(place.create_new(0o600)) && refused(place.remove_file()));
                assert!(refused(place.create_dir(0o700)) && refused(place.names()));
                assert!(refused(place.rename(&place)) && refused(place.open_or_create(0o600)));
            }
        }
        assert_eq!(refused_link_in(&of_root, 2), None);
        assert_eq!(refused_link_in(&at("theirs"), 0), None);
        assert_eq!(refused_link_in(&at("theirs"), 1), Some(at("theirs/link")));
        assert_eq!(place(&of_root).names().unwrap(), ["below"]);
        assert_eq!(place(&of_root.join("below")).names().unwrap(), ["file"]);
    }

    /// Whenever it is swapped: the folder that was opened is the one that is used.
    #[test]
    fn a_folder_that_was_opened_stays_the_same_whatever_takes_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("kept")).unwrap();
        fs::create_dir(at("of-root")).unwrap();
        let place = place(&at("kept/file"));
        place.create_new(0o600).unwrap();
        fs::rename(at("kept"), at("aside")).unwrap();
        symlink(at("of-root"), at("kept")).unwrap();
        place.with_file_name("other").create_new(0o600).unwrap();
        assert!(at("aside/other").exists() && !at("of-root/other").exists());
    }
}
