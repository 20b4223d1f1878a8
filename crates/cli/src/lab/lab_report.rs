//! Reports of the lab's commands: the circumstances, the files that were asked for, and the history
//! in the state folder.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use holdall_lab::report::{Form, MAX_REPORT_BYTES, Report, is_report};
use holdall_state::KeptReports;

use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::terminal::output::local_time_of;

/// Where a report goes.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ReportArgs {
    /// Writes a report to this file, .html, .json, .csv or .txt; several files with --report for each
    #[arg(long, value_name = "FILE")]
    report: Vec<PathBuf>,
    /// Names this computer, addresses, paths and ids in a .txt report, too, which leaves them out for a forum
    #[arg(long, requires = "report")]
    with_names: bool,
}

impl ReportArgs {
    /// Checks what can be known before anything is measured.
    ///
    /// # Errors
    /// [`Refusal`] for an ending that says nothing, where no file can be, and where something else than
    /// a report is.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        self.report.iter().try_for_each(|file| {
            form_of(file)?;
            check_place(file)
        })
    }

    /// Keeps the report in the history, and writes it where it was asked for.
    ///
    /// # Errors
    /// If a file that was asked for cannot be written; that it cannot be kept is a note.
    pub(crate) fn finish(&self, app: &App, report: &Report) -> Result<()> {
        let kept = KeptReports::in_state(&app.folders.state).keep(report);
        if let Err(error) = kept.map_err(anyhow::Error::from) {
            app.output.note(format_args!("this measurement is not in the history: {error:#}"));
        }
        for file in &self.report {
            // Much may have come there while it was measured.
            check_place(file)?;
            write_whole(file, &in_form(report, form_of(file)?, self.with_names))
                .with_context(|| format!("cannot write {}", file.display()))?;
            app.output.say(format_args!("report: {}", file.display()))?;
        }
        Ok(())
    }
}

/// The report as it is written; where people read it, its time is that of the clock on their wall, and a card is for
/// strangers.
fn in_form(report: &Report, form: Form, with_names: bool) -> String {
    match form {
        Form::Json | Form::Csv => report.write(form),
        Form::Html | Form::Text => {
            let is_for_strangers = form == Form::Text && !with_names;
            let mut report = if is_for_strangers { report.without_names() } else { report.clone() };
            report.made = local_time_of(&report.made);
            report.write(form)
        }
    }
}

fn form_of(file: &Path) -> Result<Form, Refusal> {
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    Form::of_ending(ending).ok_or_else(|| {
        Refusal::new(Exit::Usage, format!("--report {}: which form?", file.display()))
            .hint("let the name end in .html, .json, .csv or .txt")
    })
}

/// Whether a report can be written to a file, and nothing is lost by that.
fn check_place(file: &Path) -> Result<(), Refusal> {
    let refuse = |what: &str, hint: &str| {
        let message = format!("--report {}: {what}", file.display());
        Err(Refusal::new(Exit::Usage, message).hint(hint))
    };
    let target = target_of(file);
    let folder = folder_of(&target);
    let leads_nowhere = target.is_symlink();
    let can_write = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok();
    if leads_nowhere || !folder.is_dir() || !can_write || (target.exists() && !target.is_file()) {
        return refuse(
            "no file can be there",
            "name a file in a folder that is there, in which this user may write",
        );
    }
    if !may_be_replaced(&target) {
        return refuse(
            "this file is there already, and it is no report of the lab",
            "name another file, or remove this one first",
        );
    }
    Ok(())
}

/// Whether there is no file yet, or one that is empty or a report.
fn may_be_replaced(target: &Path) -> bool {
    let mut content = Vec::new();
    let read = File::open(target)
        .and_then(|file| file.take(MAX_REPORT_BYTES as u64).read_to_end(&mut content));
    match read {
        Ok(_) => content.is_empty() || is_report(&content),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// Writes a file beside the one that may be there, and puts it in its place: a full disk leaves the old
/// one as it was.
fn write_whole(file: &Path, text: &str) -> io::Result<()> {
    let target = target_of(file);
    let old = fs::metadata(&target).ok();
    // For whom the user's files usually are; it is no secret.
    let usual = Permissions::from_mode(0o666);
    let mut beside = tempfile::Builder::new()
        .prefix(".holdall-report-")
        .permissions(usual)
        .tempfile_in(folder_of(&target))?;
    beside.write_all(text.as_bytes())?;
    beside.as_file().sync_all()?;
    if let Some(old) = old {
        // Some shares know no owners and permissions, and only root gives a file away.
        let _ = std::os::unix::fs::fchown(beside.as_file(), Some(old.uid()), Some(old.gid()));
        let _ = beside.as_file().set_permissions(old.permissions());
    }
    beside.persist(&target)?;
    Ok(())
}

/// The file that a link leads to, or else the one that was named.
fn target_of(file: &Path) -> PathBuf {
    file.canonicalize().unwrap_or_else(|_| file.to_owned())
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_in_no_report() {
        let line = |args: &[&str]| command_line(args.iter().map(OsString::from));
        let typed =
            ["/usr/bin/holdall", "lab", "net", "--token", "s3cret", "my nas", "--token=s3cret"];
        assert_eq!(line(&typed), "holdall lab net --token ... \"my nas\" --token=...");
    }

    #[test]
    fn only_a_report_is_replaced_and_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("thesis.txt"), "To be or not to be").unwrap();
        let refused = check_place(&at("thesis.txt")).unwrap_err();
        assert!(refused.message.contains("thesis.txt") && refused.exit == Exit::Usage);
        check_place(folder.path()).unwrap_err();
        check_place(&at("none/new.txt")).unwrap_err();
        let text = Report::new("holdall lab quick".into(), "now".into()).write(Form::Text);
        for name in ["new.txt", "empty.txt"] {
            fs::write(at("empty.txt"), "").unwrap();
            check_place(&at(name)).unwrap();
            write_whole(&at(name), &text).unwrap();
            check_place(&at(name)).unwrap();
        }
        fs::set_permissions(at("new.txt"), Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("new.txt", at("link.txt")).unwrap();
        write_whole(&at("link.txt"), "holdall lab, another").unwrap();
        assert!(at("link.txt").is_symlink());
        assert_eq!(fs::read_to_string(at("new.txt")).unwrap(), "holdall lab, another");
        assert_eq!(fs::metadata(at("new.txt")).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4, "nothing else stays");
    }
}
