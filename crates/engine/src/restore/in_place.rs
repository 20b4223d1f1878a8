//! Restoring something where it was, beside what is there now.
//!
//! What is there is not touched: what is restored gets a name of its own then, with the date. A file is restored into a
//! folder beside, and has its name once it is whole.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use holdall_crypto::{Entropy, SystemEntropy};
use holdall_sys::guarded;

use super::{Overwrite, mark};
use crate::EngineError;

/// Where something is restored, and what it is called then.
#[derive(Debug)]
pub struct InPlace {
    /// The folder to restore into.
    pub target: PathBuf,
    /// What it is called in the end.
    pub name: PathBuf,
    /// Folders in its way in which a restore was not finished: what is in them may be half-made.
    pub unfinished: Vec<PathBuf>,
    /// Where it is until then, if it is a file that gets another name, or a folder in the place of something else.
    until_whole: Option<PathBuf>,
    /// Whether what is no folder makes room for it in the end.
    replaces: bool,
}

impl InPlace {
    /// The place of what was at `path`: that itself if nothing is there or it is to be overwritten, else beside it with
    /// the `date` of the day.
    pub fn of(path: &[u8], is_dir: bool, overwrite: Option<Overwrite>, date: &str) -> Self {
        let path = Path::new(OsStr::from_bytes(path));
        let folder = path.parent().unwrap_or(Path::new("/"));
        let is_other = is_dir && path.symlink_metadata().is_ok() && !path.is_dir();
        if overwrite == Some(Overwrite::Always) && is_other {
            let target = hidden(folder, path);
            let until_whole = Some(target.clone());
            return Self { until_whole, replaces: true, ..Self::at(target, path.to_owned()) };
        }
        if overwrite.is_some() || is_free(path, is_dir) {
            let target = if is_dir { path } else { folder };
            return Self::at(target.to_owned(), path.to_owned());
        }
        let (name, taken) = beside(path, date, is_dir);
        let is_unfinished = |taken: &PathBuf| is_dir && taken.join(mark_name()).exists();
        let unfinished = taken.into_iter().filter(is_unfinished).collect();
        if is_dir {
            return Self { unfinished, ..Self::at(name.clone(), name) };
        }
        let target = hidden(folder, path);
        let until_whole = Some(target.join(path.file_name().unwrap_or_default()));
        Self { until_whole, ..Self::at(target, name) }
    }

    fn at(target: PathBuf, name: PathBuf) -> Self {
        Self { target, name, unfinished: Vec::new(), until_whole: None, replaces: false }
    }

    /// Whether it is restored at its own name right away, as all others in its folder for which this holds.
    pub fn is_plain(&self, path: &[u8]) -> bool {
        self.until_whole.is_none() && self.name.as_os_str().as_bytes() == path
    }

    /// Has files of one folder, each of which gets another name, restored into one folder beside.
    pub fn together(places: &mut [Self]) {
        let Some(target) = places.first().map(|first| first.target.clone()) else { return };
        for place in places {
            let own = place.until_whole.take();
            let own = own.as_deref().and_then(Path::file_name).unwrap_or_default();
            place.until_whole = Some(target.join(own));
            place.target.clone_from(&target);
        }
    }

    /// Gives what was restored its name; whether it is there.
    ///
    /// # Errors
    /// If that cannot be done; then it stays where it is.
    pub fn finish(&self) -> Result<bool, EngineError> {
        Self::finish_all(std::slice::from_ref(self)).map(|there| there == 1)
    }

    /// The same for those of one folder; how many are there.
    ///
    /// # Errors
    /// As for [`Self::finish`].
    pub fn finish_all(places: &[Self]) -> Result<usize, EngineError> {
        let mut there = 0;
        for place in places {
            let whole = place.until_whole.as_deref();
            if whole.unwrap_or(&place.name).symlink_metadata().is_err() {
                continue;
            }
            there += 1;
            let Some(whole) = whole else { continue };
            place.rename(whole).map_err(|error| {
                EngineError::io(format!("it is restored, and stays at {}", whole.display()), error)
            })?;
        }
        let moved = places.iter().rfind(|place| place.until_whole.is_some());
        let Some(last) = moved else { return Ok(there) };
        // What else is in it stays.
        let _ = fs::remove_dir(&last.target);
        let folder = last.name.parent().unwrap_or(Path::new("/"));
        let synced = guarded::place(folder).sync_dir();
        synced.map_err(|error| EngineError::io(format!("syncing {}", folder.display()), error))?;
        Ok(there)
    }

    fn rename(&self, whole: &Path) -> io::Result<()> {
        if self.replaces {
            guarded::place(&self.name).remove_file()?;
        }
        rename_new(whole, &self.name)
    }
}

/// A name in a folder for what is not whole yet. Of a restore that was killed, nothing is taken for this one's.
fn hidden(folder: &Path, path: &Path) -> PathBuf {
    let mut random = [0; 8];
    SystemEntropy.fill(&mut random);
    let ending = format!(".{:016x}.unfinished", u64::from_le_bytes(random));
    let own = path.file_name().unwrap_or_default();
    folder.join(OsString::from_vec([b".", own.as_bytes(), ending.as_bytes()].concat()))
}

fn mark_name() -> &'static OsStr {
    OsStr::from_bytes(mark::NAME)
}

/// Whether nothing is there, or nothing is in a folder that is to be restored.
fn is_free(place: &Path, is_dir: bool) -> bool {
    match fs::symlink_metadata(place) {
        Err(_) => true,
        Ok(found) if is_dir && found.is_dir() => {
            fs::read_dir(place).is_ok_and(|mut all| all.next().is_none())
        }
        Ok(_) => false,
    }
}

/// A name beside that of `path` that is free, and those that are not, with `path` itself.
fn beside(path: &Path, date: &str, is_dir: bool) -> (PathBuf, Vec<PathBuf>) {
    let named = |number: u64| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".restored-{date}"));
        if number > 1 {
            name.push(format!("-{number}"));
        }
        PathBuf::from(name)
    };
    let mut taken = vec![path.to_owned()];
    for number in 1..1000 {
        let name = named(number);
        if is_free(&name, is_dir) {
            return (name, taken);
        }
        taken.push(name);
    }
    (named(1000), taken)
}

/// Renames, unless something has that name by now.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match guarded::place(from).rename_new(&guarded::place(to)) {
        // Not every file system can.
        Err(error)
            if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported)
                && to.symlink_metadata().is_err() =>
        {
            guarded::place(from).rename(&guarded::place(to))
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
        let of = |name: &str, is_dir, may_overwrite: bool| {
            let overwrite = may_overwrite.then_some(Overwrite::Always);
            InPlace::of(at(name).as_os_str().as_bytes(), is_dir, overwrite, "2026-11-29")
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
        let unfinished = at("letters.restored-2026-11-29");
        assert_eq!(of("letters", true, false).unfinished, Vec::<PathBuf>::new());
        fs::create_dir(&unfinished).unwrap();
        fs::write(unfinished.join(mark_name()), "").unwrap();
        let next = of("letters", true, false);
        assert_eq!(next.target, at("letters.restored-2026-11-29-2"));
        assert_eq!(next.unfinished, [unfinished]);
        assert_eq!(of("will.odt", false, true).target, folder.path());

        let first = of("will.odt", false, false);
        assert_eq!(first.name, at("will.odt.restored-2026-11-29"));
        fs::create_dir(&first.target).unwrap();
        assert!(!first.finish().unwrap() && !first.target.exists());
        fs::create_dir(&first.target).unwrap();
        fs::write(first.target.join("will.odt"), "old").unwrap();
        let second = of("will.odt", false, false);
        assert_ne!(first.target, second.target, "what was left is not taken for its own");
        assert!(first.finish().unwrap() && !first.target.exists());
        assert_eq!(fs::read(&first.name).unwrap(), b"old");
        assert_eq!(of("will.odt", false, false).name, at("will.odt.restored-2026-11-29-2"));
        assert_eq!(fs::read(at("will.odt")).unwrap(), b"x");
    }
}
