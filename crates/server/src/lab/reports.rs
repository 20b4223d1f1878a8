//! The reports that are kept: `DATA/lab/NUMBER.json`, as `holdall lab` writes them, the last ones.

use std::io::{self, ErrorKind, Read, Write};

use holdall_lab::report::{Form, MAX_REPORT_BYTES, Report};
use holdall_sys::PathBeneath;

use crate::ServerError;
use crate::data_folder::make_beside;

/// So many are kept; the oldest go.
const MOST: usize = 100;
const ENDING: &str = ".json";

/// Those of one server.
pub(crate) struct Reports {
    folder: PathBeneath,
}

impl Reports {
    /// Those in a folder, which need not be there.
    pub(crate) fn in_folder(folder: PathBeneath) -> Self {
        Self { folder }
    }

    /// Keeps one more, lets the oldest go, and gives its number. It is durable when this returns.
    pub(crate) fn keep(&self, report: &Report) -> Result<u64, ServerError> {
        let numbers = self.numbers()?;
        let number = numbers.last().map_or(1, |last| last + 1);
        self.write(number, report.write(Form::Json).as_bytes())
            .map_err(|source| ServerError::io("keeping a report in", self.folder.path(), source))?;
        for old in numbers.iter().rev().skip(MOST - 1) {
            self.file(*old)
                .remove_file()
                .map_err(|source| ServerError::io("removing", self.folder.path(), source))?;
        }
        Ok(number)
    }

    /// One of them.
    ///
    /// # Errors
    /// [`ServerError::Refused`] if there is none of that number, [`ServerError::Damaged`] if it cannot be read.
    pub(crate) fn read(&self, number: u64) -> Result<Report, ServerError> {
        let file = self.file(number);
        let mut bytes = Vec::new();
        let read = file
            .open()
            .and_then(|open| open.take(MAX_REPORT_BYTES as u64 + 1).read_to_end(&mut bytes));
        match read {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(ServerError::refused(format!(
                    "there is no report {number}; `holdall admin lab` lists them"
                )));
            }
            read => read.map_err(|source| ServerError::io("reading", file.path(), source))?,
        };
        Report::from_json(&bytes).map_err(|error| ServerError::Damaged {
            path: file.path().to_owned(),
            reason: error.to_string(),
        })
    }

    /// Their numbers, the oldest first.
    pub(crate) fn numbers(&self) -> Result<Vec<u64>, ServerError> {
        let names = match self.folder.names() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            names => {
                names.map_err(|source| ServerError::io("listing", self.folder.path(), source))?
            }
        };
        let number = |name: &std::ffi::OsString| name.to_str()?.strip_suffix(ENDING)?.parse().ok();
        let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn file(&self, number: u64) -> PathBeneath {
        self.folder.join(format!("{number}{ENDING}"))
    }

    fn write(&self, number: u64, bytes: &[u8]) -> io::Result<()> {
        match self.folder.create_dir(0o700) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let path = self.file(number);
        let (beside, mut file) = make_beside(&path)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        beside.rename_new(&path)?;
        self.folder.sync_dir()
    }
}

#[cfg(test)]
mod tests {
    use holdall_sys::Root;

    use super::*;

    #[test]
    fn the_last_hundred_are_kept_under_numbers_that_none_had_before() {
        let folder = tempfile::tempdir().unwrap();
        let reports = Reports::in_folder(Root::at(folder.path()).join("lab"));
        assert!(reports.numbers().unwrap().is_empty());
        assert!(matches!(reports.read(1), Err(ServerError::Refused { .. })));
        for number in 1..=MOST as u64 + 5 {
            let report = Report::new(format!("holdall lab {number}"), "now".into());
            assert_eq!(reports.keep(&report).unwrap(), number);
        }
        let numbers = reports.numbers().unwrap();
        assert_eq!((numbers.len(), numbers[0]), (MOST, 6));
        assert_eq!(reports.read(6).unwrap().command, "holdall lab 6");
        std::fs::write(folder.path().join("lab/7.json"), "no report").unwrap();
        assert!(matches!(reports.read(7), Err(ServerError::Damaged { .. })));
    }
}
