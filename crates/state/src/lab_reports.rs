//! Reports of the lab: those that are kept, the last ones, and those that a user names.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use holdall_lab::report::{Form, MAX_REPORT_BYTES, Report};
use holdall_sys::{Root, guarded};

use crate::error::StateError;
use crate::private_file;

/// So many reports are kept; the oldest go.
const MOST_KEPT: usize = 200;

/// Reads a report from a file that the user named.
///
/// # Errors
/// If it cannot be read, or is no report.
pub fn read_report(path: &Path) -> Result<Report, StateError> {
    parse(path, private_file::read_named(path, MAX_REPORT_BYTES as u64)?)
}

fn parse(path: &Path, bytes: Option<Vec<u8>>) -> Result<Report, StateError> {
    let bytes = bytes.ok_or_else(|| StateError::NotThere(path.to_owned()))?;
    Report::from_json(&bytes).map_err(|error| StateError::Report { path: path.to_owned(), error })
}

/// The reports that are kept.
pub struct KeptReports {
    folder: PathBuf,
}

impl KeptReports {
    /// Those in a state folder.
    pub fn in_state(state: &Path) -> Self {
        Self { folder: state.join("lab") }
    }

    /// Keeps one more, and lets the oldest go; never the new one, which seems to be the oldest where the
    /// clock was set back.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, report: &Report) -> Result<(), StateError> {
        let json = report.write(Form::Json);
        let digest = blake3::hash(json.as_bytes()).to_hex();
        let plain = |letter: &char| letter.is_ascii_alphanumeric();
        let made: String = report.made.chars().filter(plain).take(32).collect();
        let name = format!("{made}-{}.json", digest.as_str().get(..8).unwrap_or_default());
        let new = self.folder.join(name);
        private_file::write_new(&new, json.as_bytes())?;
        let files = self.files()?;
        let gone = files.len().saturating_sub(MOST_KEPT);
        for old in files.iter().filter(|&file| *file != new).take(gone) {
            let cannot = StateError::io(format!("cannot remove {}", old.display()));
            guarded::place(old).remove_file().map_err(cannot)?;
        }
        Ok(())
    }

    /// The newest of those that can be read and are `wanted`.
    pub fn newest(&self, wanted: impl Fn(&Report) -> bool) -> Option<Report> {
        let files = self.files().ok()?;
        files.iter().rev().filter_map(|file| Self::read(file).ok()).find(wanted)
    }

    /// Reads one of their files.
    ///
    /// # Errors
    /// If it cannot be read, or is no report.
    pub fn read(file: &Path) -> Result<Report, StateError> {
        parse(file, private_file::read(file, MAX_REPORT_BYTES as u64)?)
    }

    /// Their files, oldest first: their names begin with when they were made.
    ///
    /// # Errors
    /// If the folder cannot be listed; that it is not there is none.
    pub fn files(&self) -> Result<Vec<PathBuf>, StateError> {
        let names = match Root::guarded(&self.folder).names() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            names => {
                names.map_err(StateError::io(format!("cannot list {}", self.folder.display())))?
            }
        };
        let files = names.into_iter().map(|name| self.folder.join(name));
        Ok(files.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(made: &str) -> Report {
        Report::new("holdall lab quick".into(), made.into())
    }

    #[test]
    fn the_newest_are_kept_in_their_order_and_the_oldest_go() {
        let folder = tempfile::tempdir().unwrap();
        let kept = KeptReports::in_state(folder.path());
        assert_eq!(kept.files().unwrap(), [""; 0].map(PathBuf::from));
        for at in 0..MOST_KEPT + 3 {
            let made = format!("2026-11-22T00:{:02}:{:02}Z", at / 60, at % 60);
            kept.keep(&report(&made)).unwrap();
        }
        let files = kept.files().unwrap();
        assert_eq!(files.len(), MOST_KEPT);
        assert_eq!(read_report(&files[0]).unwrap().made, "2026-11-22T00:00:03Z");
        assert_eq!(read_report(&files[MOST_KEPT - 1]).unwrap().made, "2026-11-22T00:03:22Z");
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_cost_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let kept = KeptReports::in_state(folder.path());
        for at in 0..MOST_KEPT {
            let made = format!("2026-11-22T00:{:02}:{:02}Z", at / 60, at % 60);
            kept.keep(&report(&made)).unwrap();
        }
        kept.keep(&report("1970-01-01T00:00:01Z")).unwrap();
        let files = kept.files().unwrap();
        assert_eq!(files.len(), MOST_KEPT);
        let made = |at: usize| read_report(&files[at]).unwrap().made;
        assert_eq!([made(0), made(1)], ["1970-01-01T00:00:01Z", "2026-11-22T00:00:01Z"]);
    }

    #[test]
    fn a_file_that_is_no_report_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        std::fs::write(&path, "{}").unwrap();
        assert!(read_report(&path).unwrap_err().to_string().contains("no report"));
        assert!(
            read_report(&folder.path().join("none")).unwrap_err().to_string().contains("not there")
        );
    }
}
