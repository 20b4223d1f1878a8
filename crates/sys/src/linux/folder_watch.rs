//! Notices that a file of a folder was written, replaced or removed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::inotify;

/// Folders that are watched, ready to be polled for.
#[derive(Debug)]
pub struct FolderWatch {
    watch: OwnedFd,
}

impl FolderWatch {
    /// One that watches nothing.
    ///
    /// # Errors
    ///
    /// What the system says, which allows only so many for each user.
    pub fn new() -> io::Result<Self> {
        let flags = inotify::CreateFlags::NONBLOCK.union(inotify::CreateFlags::CLOEXEC);
        Ok(Self { watch: inotify::init(flags)? })
    }

    /// Watches one more folder, not those below it.
    ///
    /// # Errors
    ///
    /// What the system says, as where no folder is there.
    pub fn add(&self, folder: &Path) -> io::Result<()> {
        let events = inotify::WatchFlags::CLOSE_WRITE
            .union(inotify::WatchFlags::MOVED_TO)
            .union(inotify::WatchFlags::MOVED_FROM)
            .union(inotify::WatchFlags::DELETE)
            .union(inotify::WatchFlags::ONLYDIR);
        inotify::add_watch(&self.watch, folder, events)?;
        Ok(())
    }

    /// Forgets what has happened so far.
    pub fn forget(&self) {
        // As much as several events take. It fails once there is none left.
        while rustix::io::read(&self.watch, &mut [0; 4096]).is_ok_and(|bytes| bytes > 0) {}
    }
}

impl AsFd for FolderWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waiting::is_ready;
    use std::fs;

    #[test]
    fn what_is_written_replaced_and_removed_is_noticed_and_reading_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let watch = FolderWatch::new().unwrap();
        watch.add(folder.path()).unwrap();
        let [file, other] = ["file", "other"].map(|name| folder.path().join(name));
        let noticed = || {
            let ready = is_ready(&watch).unwrap();
            watch.forget();
            ready
        };
        assert!(!noticed());
        fs::write(&file, "x").unwrap();
        assert!(noticed() && !noticed());
        fs::read(&file).unwrap();
        assert!(!noticed());
        fs::rename(&file, &other).unwrap();
        assert!(noticed());
        fs::remove_file(&other).unwrap();
        assert!(noticed());
        watch.add(&folder.path().join("none")).unwrap_err();
    }
}
