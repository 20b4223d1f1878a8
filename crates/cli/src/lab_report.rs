//! Reports of the lab's commands: the circumstances, the files that were asked for, and the history
//! in the state folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use holdall_lab::Measurement;
use holdall_lab::report::{Form, MAX_REPORT_BYTES, Report, ReportError};

use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::private_file;

/// So many reports are kept; the oldest go.
const MOST_KEPT: usize = 200;

/// Where a report goes.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ReportArgs {
    /// Writes a report to this file, .html, .json, .csv or .txt; several files with --report for each
    #[arg(long, value_name = "FILE")]
    report: Vec<PathBuf>,
}

impl ReportArgs {
    /// Checks what can be known before anything is measured.
    ///
    /// # Errors
    /// [`Refusal`] for an ending that says nothing, and where no file can be.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        self.report.iter().try_for_each(|file| {
            form_of(file)?;
            let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
            if file.is_dir() || folder.is_some_and(|folder| !folder.is_dir()) {
                let what = format!("--report {}: no file can be there", file.display());
                return Err(
                    Refusal::new(Exit::Usage, what).hint("name a file in a folder that is there")
                );
            }
            Ok(())
        })
    }

    /// Keeps the report in the history, and writes it where it was asked for.
    ///
    /// # Errors
    /// If a file that was asked for can not be written; that it can not be kept is a note.
    pub(crate) fn finish(&self, app: &App, report: &Report) -> Result<()> {
        if let Err(error) = Kept::in_state(&app.folders.state).keep(report) {
            app.output.note(format_args!("this measurement is not in the history: {error:#}"));
        }
        for file in &self.report {
            std::fs::write(file, report.write(form_of(file)?))
                .with_context(|| format!("can not write {}", file.display()))?;
            app.output.say(format_args!("report: {}", file.display()))?;
        }
        Ok(())
    }
}

fn form_of(file: &Path) -> Result<Form, Refusal> {
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    Form::of_ending(ending).ok_or_else(|| {
        Refusal::new(Exit::Usage, format!("--report {}: which form?", file.display()))
            .hint("let the name end in .html, .json, .csv or .txt")
    })
}

/// The command as it was typed, without what is secret in it.
pub(crate) fn command_line(args: impl Iterator<Item = OsString>) -> String {
    let mut words = vec!["holdall".to_owned()];
    let mut is_secret = false;
    for word in args.skip(1) {
        let word = word.to_string_lossy().into_owned();
        words.push(match word.split_once('=') {
            _ if is_secret => "...".to_owned(),
            Some(("--token", _)) => "--token=...".to_owned(),
            _ if word.contains(char::is_whitespace) => format!("{word:?}"),
            _ => word.clone(),
        });
        is_secret = word == "--token";
    }
    words.join(" ")
}

/// Reads a report from a file.
///
/// # Errors
/// [`Refusal`] if it is none.
pub(crate) fn read(path: &Path) -> Result<Report> {
    let limit = MAX_REPORT_BYTES as u64;
    let bytes = private_file::read(path, limit)?
        .ok_or_else(|| Refusal::new(Exit::Failed, format!("{} is not there", path.display())))?;
    Report::from_json(&bytes).map_err(|error| {
        let hint = match error {
            ReportError::OtherVersion(_) => "use the holdall that wrote it, or a newer one",
            _ => "name a file that `--report FILE.json` wrote, or one of `holdall lab history`",
        };
        Refusal::new(Exit::Failed, format!("{}: {error}", path.display())).hint(hint).into()
    })
}

/// The reports that are kept.
pub(crate) struct Kept {
    folder: PathBuf,
}

impl Kept {
    /// Those in a state folder.
    pub(crate) fn in_state(state: &Path) -> Self {
        Self { folder: state.join("lab") }
    }

    /// Keeps one more, and lets the oldest go.
    ///
    /// # Errors
    /// If it can not be written.
    pub(crate) fn keep(&self, report: &Report) -> Result<()> {
        let json = report.write(Form::Json);
        let digest = blake3::hash(json.as_bytes()).to_hex();
        let plain = |letter: &char| letter.is_ascii_alphanumeric();
        let made: String = report.made.chars().filter(plain).take(32).collect();
        let name = format!("{made}-{}.json", digest.as_str().get(..8).unwrap_or_default());
        private_file::write_new(&self.folder.join(name), json.as_bytes())?;
        let files = self.files()?;
        let gone = files.len().saturating_sub(MOST_KEPT);
        for old in &files[..gone] {
            std::fs::remove_file(old)
                .with_context(|| format!("can not remove {}", old.display()))?;
        }
        Ok(())
    }

    /// The newest of those that can be read and are `wanted`.
    pub(crate) fn newest(&self, wanted: impl Fn(&Report) -> bool) -> Option<Report> {
        let files = self.files().ok()?;
        files.iter().rev().filter_map(|file| read(file).ok()).find(wanted)
    }

    /// Their files, oldest first: their names begin with when they were made.
    ///
    /// # Errors
    /// If the folder can not be listed; that it is not there is none.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => {
                entries.with_context(|| format!("can not list {}", self.folder.display()))?
            }
        };
        let is_json = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "json");
        let mut files: Vec<_> =
            entries.flatten().map(|entry| entry.path()).filter(is_json).collect();
        files.sort();
        Ok(files)
    }
}

/// A row in words, its figures in columns.
pub(crate) fn row_in_words(row: &Measurement) -> String {
    let speed = row.bytes_per_second.map(|rate| holdall_lab::Unit::BytesPerSecond.show(rate));
    let micros = |nanos: u64| format!("{:.0} us", nanos as f64 / 1e3);
    let latency = row
        .latency_ns
        .map(|latency| format!("p50 {}, p99 {}", micros(latency.p50), micros(latency.p99)));
    let name = holdall_lab::report::row_name(row);
    format!("{name:44} {:>12}  {}", speed.unwrap_or_default(), latency.unwrap_or_default())
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(made: &str) -> Report {
        Report::new("holdall lab quick".into(), made.into())
    }

    #[test]
    fn a_token_is_in_no_report() {
        let line = |args: &[&str]| command_line(args.iter().map(OsString::from));
        let typed =
            ["/usr/bin/holdall", "lab", "net", "--token", "s3cret", "my nas", "--token=s3cret"];
        assert_eq!(line(&typed), "holdall lab net --token ... \"my nas\" --token=...");
    }

    #[test]
    fn the_newest_are_kept_in_their_order_and_the_oldest_go() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::in_state(folder.path());
        assert_eq!(kept.files().unwrap(), [""; 0].map(PathBuf::from));
        for at in (0..MOST_KEPT + 3).rev() {
            let made = format!("2026-11-22T00:{:02}:{:02}Z", at / 60, at % 60);
            kept.keep(&report(&made)).unwrap();
        }
        let files = kept.files().unwrap();
        assert_eq!(files.len(), MOST_KEPT);
        assert_eq!(read(&files[0]).unwrap().made, "2026-11-22T00:00:03Z");
        assert_eq!(read(&files[MOST_KEPT - 1]).unwrap().made, "2026-11-22T00:03:22Z");
    }

    #[test]
    fn a_file_that_is_no_report_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        std::fs::write(&path, "{}").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("no report"));
        assert!(read(&folder.path().join("none")).unwrap_err().to_string().contains("not there"));
    }
}
