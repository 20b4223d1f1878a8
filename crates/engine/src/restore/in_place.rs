//! Restoring something where it was, beside what is there now.
//!
//! What is there is not touched: what is restored gets a name of its own then, with the date. A file is restored into a
//! folder beside, and has its name once it is whole.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use holdall_sys::guarded;

use crate::EngineError;

/// Where something is restored, and what it is called then.
#[derive(Debug)]
pub struct InPlace {
    /// The folder to restore into.
    pub target: PathBuf,
    /// What it is called in the end.
    pub name: PathBuf,
    /// Where it is until then, if it is a file that gets another name.
    until_whole: Option<PathBuf>,
}

impl InPlace {
    /// The place of what was at `path`: that itself if nothing is there or it may be overwritten, else beside it with the
    /// `date` of the day.
    pub fn of(path: &[u8], is_dir: bool, may_overwrite: bool, date: &str) -> Self {
        let path = Path::new(OsStr::from_bytes(path));
        let folder = path.parent().unwrap_or(Path::new("/"));
        let is_free = |place: &Path| match fs::symlink_metadata(place) {
            Err(_) => true,
            Ok(found) if is_dir && found.is_dir() => {
                fs::read_dir(place).is_ok_and(|mut all| all.next().is_none())
            }
            Ok(_) => false,
        };
        if may_overwrite || is_free(path) {
            let target = if is_dir { path } else { folder };
            return Self { target: target.to_owned(), name: path.to_owned(), until_whole: None };
        }
        let name = beside(path, date, is_free);
        if is_dir {
            return Self { target: name.clone(), name, until_whole: None };
        }
        let hidden =
            [b".", name.file_name().unwrap_or_default().as_bytes(), b".unfinished"].concat();
        let target = folder.join(OsString::from_vec(hidden));
        let until_whole = target.join(path.file_name().unwrap_or_default());
        Self { target, name, until_whole: Some(until_whole) }
    }

    /// Gives a restored file its name; whether it is there.
    ///
    /// # Errors
    /// If that cannot be done; then the file stays where it is.
    pub fn finish(&self) -> Result<bool, EngineError> {
        let Some(whole) = &self.until_whole else {
            return Ok(self.name.symlink_metadata().is_ok());
        };
        let is_there = whole.symlink_metadata().is_ok();
        if is_there {
            rename_new(whole, &self.name).map_err(|error| {
                EngineError::io(format!("it is restored, and stays at {}", whole.display()), error)
            })?;
        }
        // What else is in it stays.
        let _ = fs::remove_dir(&self.target);
        let folder = self.name.parent().unwrap_or(Path::new("/"));
        let synced = fs::File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| EngineError::io(format!("syncing {}", folder.display()), error))?;
        Ok(is_there)
    }
}

/// A name beside that of `path` that is free.
fn beside(path: &Path, date: &str, is_free: impl Fn(&Path) -> bool) -> PathBuf {
    let named = |number: u64| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".restored-{date}"));
        if number > 1 {
            name.push(format!("-{number}"));
        }
        PathBuf::from(name)
    };
    let free = (1..1000).map(named).find(|name| is_free(name));
    free.unwrap_or_else(|| named(1000))
}

/// Renames, unless something has that name by now.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match guarded::place(from).rename_new(&guarded::place(to)) {
        // Not every file system can.
        Err(error)
            if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported)
                && to.symlink_metadata().is_err() =>
        {
            fs::rename(from, to)
        }
        renamed => renamed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_keeps_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let of = |name: &str, is_dir, may_overwrite| {
            InPlace::of(at(name).as_os_str().as_bytes(), is_dir, may_overwrite, "2026-11-29")
        };
        let free = of("will.odt", false, false);
        assert_eq!((free.target, free.name), (folder.path().to_owned(), at("will.odt")));
        assert_eq!(of("letters", true, false).target, at("letters"));
        fs::write(at("will.odt"), "x").unwrap();
        fs::create_dir(at("letters")).unwrap();
        assert_eq!(of("letters", true, false).target, at("letters"), "it is empty");
        fs::write(at("letters/x"), "x").unwrap();
        assert_eq!(of("letters", true, false).target, at("letters.restored-2026-11-29"));
        assert_eq!(of("letters", true, true).target, at("letters"));
        assert_eq!(of("will.odt", false, true).target, folder.path());

        let first = of("will.odt", false, false);
        assert_eq!(first.name, at("will.odt.restored-2026-11-29"));
        fs::create_dir(&first.target).unwrap();
        assert!(!first.finish().unwrap() && !first.target.exists());
        fs::create_dir(&first.target).unwrap();
        fs::write(first.target.join("will.odt"), "old").unwrap();
        assert!(first.finish().unwrap() && !first.target.exists());
        assert_eq!(fs::read(&first.name).unwrap(), b"old");
        assert_eq!(of("will.odt", false, false).name, at("will.odt.restored-2026-11-29-2"));
        assert_eq!(fs::read(at("will.odt")).unwrap(), b"x");
    }
}
