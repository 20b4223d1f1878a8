//! Reports: what was measured, on what, in a form that can be kept, compared and shown around.
//!
//! A figure without its circumstances is worth nothing: which computer, kernel, file system, cold or
//! warm cache, sizes, versions, command. A [`Report`] has them beside the rows, and is written as
//! versioned JSON (the form that is kept and compared), as a text card for a forum, as CSV, and as
//! one HTML file with pictures, without scripts, which fetches nothing from anywhere.
//!
//! Whatever a report shows may have come from somebody else: a file name, a device's name, a report
//! that was sent. Everything is escaped, and reading is bounded.

mod card;
mod circumstances;
mod compare;
mod csv;
mod curves;
mod escape;
mod html;
mod nameless;
mod shown;
mod svg;

pub use circumstances::Fact;
pub use compare::{Comparison, Difference, Limited, compare};
use holdall_meter::Verdict;

use serde::{Deserialize, Serialize};

use crate::Measurement;

/// What [`Report::format`] says.
const FORMAT: &str = "holdall-lab-report";
/// The version that is written; later ones only add fields, or have another number.
const VERSION: u32 = 1;
/// Longest report that is read, in bytes.
pub const MAX_REPORT_BYTES: usize = 16 << 20;

/// What one command of the lab found.
///
/// Read from a file, it may be anything that has these fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// `holdall-lab-report`.
    format: String,
    /// The version of this form: 1.
    version: u32,
    /// The command that was run.
    pub command: String,
    /// When, in RFC 3339.
    pub made: String,
    /// What the figures depend on: computer, kernel, file system, cache, versions.
    #[serde(default)]
    pub circumstances: Vec<Fact>,
    /// What was found out beside the figures: devices, links, how they are connected.
    #[serde(default)]
    pub facts: Vec<Fact>,
    /// The rows.
    #[serde(default)]
    pub measurements: Vec<Measurement>,
    /// The steps of the ladder, from the source to the server's disk and the backup itself.
    #[serde(default)]
    pub ladder: Vec<Rung>,
    /// Speed over time.
    #[serde(default)]
    pub timeline: Vec<Moment>,
    /// What held runs back.
    #[serde(default)]
    pub verdicts: Vec<Verdict>,
    /// What the figures come to, in sentences for people who do not know the rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
    /// What the figures mean and what would help, a sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// One step of the ladder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    /// What it is, such as `source read`.
    pub name: String,
    /// What it can do, in bytes each second.
    pub bytes_per_second: Option<f64>,
    /// The same in items each second.
    pub items_per_second: Option<f64>,
    /// Whether it is the backup itself and no ceiling.
    #[serde(default)]
    pub reached: bool,
    /// How much of it the backup needed, from 0 to 1, and more where it did better than was measured; of a copy,
    /// how many times as fast the backup was.
    #[serde(default)]
    pub used: Option<f64>,
    /// What of the backup it is compared with; `None` for a backup itself, and in older reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<Needs>,
    /// Whether it was measured at less than the backup then did, so that it is no ceiling.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disturbed: bool,
}

/// What of a step a backup needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// Its items.
    Items,
    /// The bytes of files, before compression.
    Plain,
    /// The bytes that it sent, after compression.
    Sent,
    /// The bytes that it stored, after compression.
    Stored,
    /// Nothing: it is another way to move the same bytes.
    Copy,
}

impl Needs {
    /// Which bytes a step's rate counts, in words.
    pub fn bytes_in_words(self) -> &'static str {
        match self {
            Self::Items => "",
            Self::Plain | Self::Copy => "of files",
            Self::Sent | Self::Stored => "compressed",
        }
    }
}

impl Rung {
    /// How the backup stands to this step, in words: how much of it was used, or how many times as fast the backup
    /// was as a copy.
    pub fn beside(&self) -> Option<String> {
        let used = self.used?;
        Some(match self.needs {
            _ if self.disturbed => "disturbed".to_owned(),
            Some(Needs::Copy) => format!("{used:.1} times"),
            _ => format!("{:.0} % used", used.min(1.0) * 100.0),
        })
    }
}

/// Speed at one moment of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Since the run began.
    pub seconds: f64,
    /// Bytes each second.
    pub bytes_per_second: f64,
    /// Items each second.
    pub items_per_second: f64,
    /// Cores that this process kept busy.
    #[serde(default)]
    pub cores: Option<f64>,
    /// Cores that the server's process kept busy, where it tells.
    #[serde(default)]
    pub server_cores: Option<f64>,
}

/// Why a file is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// Longer than any report.
    #[error("it is longer than {MAX_REPORT_BYTES} bytes")]
    TooLong,
    /// No JSON, or without the fields of a report.
    #[error("it is no report of the lab: {0}")]
    NotOne(#[from] serde_json::Error),
    /// JSON of something else.
    #[error("it is no report of the lab, but says that it is {0:?}")]
    OtherFormat(String),
    /// A later version, which an older program cannot read.
    #[error("it is of version {0}, and this holdall reads up to {VERSION}")]
    OtherVersion(u32),
    /// A figure that is none, such as an infinite one.
    #[error("a figure of it is no number")]
    NoNumber,
}

/// What a row is about, without its figures: `random read 4K QD32 x4 direct`.
pub fn row_name(row: &Measurement) -> String {
    shown::row(row)
}

/// The fields that say what a file is.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: String,
    #[serde(default)]
    version: u32,
}

/// Whether the content of a file is a report of the lab, in any form and of any version: then a newer
/// one may take its place.
///
/// Untrusted: it may be anything.
pub fn is_report(content: &[u8]) -> bool {
    let head = serde_json::from_slice::<Head>(content);
    let is_json = head.is_ok_and(|head| head.format == FORMAT && head.version > 0);
    is_json || html::is_one(content) || csv::is_one(content) || card::is_one(content)
}

/// In which form a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Versioned JSON.
    Json,
    /// The rows for a spreadsheet.
    Csv,
    /// A page with pictures.
    Html,
    /// A card for a forum.
    Text,
}

impl Form {
    /// The form that a file's ending stands for.
    pub fn of_ending(ending: &str) -> Option<Self> {
        Some(match ending {
            "json" => Self::Json,
            "csv" => Self::Csv,
            "html" | "htm" => Self::Html,
            "txt" => Self::Text,
            _ => return None,
        })
    }
}

impl Report {
    /// An empty one of a command that was run at `made`, in RFC 3339.
    pub fn new(command: String, made: String) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            command,
            made,
            circumstances: Vec::new(),
            facts: Vec::new(),
            measurements: Vec::new(),
            ladder: Vec::new(),
            timeline: Vec::new(),
            verdicts: Vec::new(),
            answers: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Reads one that was written as JSON.
    ///
    /// Untrusted: somebody may have sent it.
    ///
    /// # Errors
    /// Why it is none.
    pub fn from_json(bytes: &[u8]) -> Result<Self, ReportError> {
        if bytes.len() > MAX_REPORT_BYTES {
            return Err(ReportError::TooLong);
        }
        let head: Head = serde_json::from_slice(bytes)?;
        if head.format != FORMAT {
            return Err(ReportError::OtherFormat(head.format.chars().take(40).collect()));
        }
        if head.version != VERSION {
            return Err(ReportError::OtherVersion(head.version));
        }
        let report: Self = serde_json::from_slice(bytes)?;
        if report.figures().all(f64::is_finite) { Ok(report) } else { Err(ReportError::NoNumber) }
    }

    /// The same without the computer's name, addresses, paths and ids: to be shown to strangers.
    #[must_use]
    pub fn without_names(&self) -> Self {
        nameless::of(self)
    }

    /// The report in one of its forms.
    pub fn write(&self, form: Form) -> String {
        match form {
            // Only a map with keys that are no text could fail.
            Form::Json => serde_json::to_string_pretty(self).unwrap_or_default() + "\n",
            Form::Csv => csv::of(self),
            Form::Html => html::of(self),
            Form::Text => card::of(self),
        }
    }

    /// What its page has below the head, as HTML without a style and a script: for a page that has a style for the classes
    /// `answer`, `verdict`, `wide`, `n` and `grid`.
    pub fn html_content(&self) -> String {
        html::content(self)
    }

    /// All figures that are shown.
    fn figures(&self) -> impl Iterator<Item = f64> {
        let rows = self.measurements.iter().flat_map(|row| {
            let device = row.device.map(|device| device.bytes_for_each_asked);
            let rates =
                [row.bytes_per_second, row.operations_per_second, row.bytes_per_core_second];
            rates.into_iter().chain([Some(row.duration_seconds), device])
        });
        let rungs = self
            .ladder
            .iter()
            .flat_map(|rung| [rung.bytes_per_second, rung.items_per_second, rung.used]);
        let moments = self.timeline.iter().flat_map(|moment| {
            let rates = [moment.seconds, moment.bytes_per_second, moment.items_per_second];
            let [seconds, bytes, items] = rates.map(Some);
            [seconds, bytes, items, moment.cores, moment.server_cores]
        });
        rows.chain(rungs).chain(moments).flatten()
    }
}

#[cfg(test)]
mod fixture;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads_back_and_unknown_fields_do_no_harm() {
        let report = fixture::report();
        let json = report.write(Form::Json);
        assert_eq!(Report::from_json(json.as_bytes()).unwrap(), report);
        let more = json.replacen('{', "{\"added_later\": [1, 2],", 1);
        assert_eq!(Report::from_json(more.as_bytes()).unwrap(), report);
        let mut of_processor = report.clone();
        of_processor.measurements[0].bytes_per_core_second = Some(5e8);
        of_processor.measurements[1].device = Some(fixture::device());
        let json = of_processor.write(Form::Json);
        assert_eq!(Report::from_json(json.as_bytes()).unwrap(), of_processor);
        let least = r#"{"format":"holdall-lab-report","version":1,"command":"c","made":"m"}"#;
        assert_eq!(
            Report::from_json(least.as_bytes()).unwrap(),
            Report::new("c".into(), "m".into())
        );
    }

    #[test]
    fn what_is_no_report_is_refused_with_the_reason() {
        let why = |text: &str| Report::from_json(text.as_bytes()).unwrap_err().to_string();
        assert!(why("").contains("no report"), "{}", why(""));
        assert!(why("[]").contains("no report"));
        assert!(why(r#"{"format":"fio"}"#).contains("\"fio\""));
        let other = r#"{"format":"holdall-lab-report","version":2}"#;
        assert!(why(other).contains("version 2"));
        assert!(why(&" ".repeat(MAX_REPORT_BYTES + 1)).contains("longer than"));
        let json = fixture::report().write(Form::Json);
        let huge = json.replacen("\"duration_seconds\": 1.5", "\"duration_seconds\": 1e999", 1);
        assert_ne!(huge, json);
        assert!(Report::from_json(huge.as_bytes()).is_err());
    }

    #[test]
    fn a_report_is_known_in_each_form_and_nothing_else_is_taken_for_one() {
        for form in [Form::Json, Form::Csv, Form::Html, Form::Text] {
            let report = fixture::report().write(form);
            assert!(is_report(report.as_bytes()), "{form:?}");
            assert!(is_report(Report::new("c".into(), "m".into()).write(form).as_bytes()));
            assert!(!is_report(&format!("\n{report}").as_bytes()[..9]), "{form:?}");
        }
        assert!(is_report(br#"{"format":"holdall-lab-report","version":99}"#), "a later one");
        let others: [&[u8]; 6] = [
            b"",
            br#"{"format":"holdall-lab-report"}"#,
            b"{\"version\":1}",
            b"<!doctype html>\n<title>Diary</title>",
            b"operation,surgeon\nheart,Dr. Who\n",
            b"holdall laboratory",
        ];
        others.iter().for_each(|other| assert!(!is_report(other), "{other:?}"));
    }

    #[test]
    fn the_ending_of_a_file_names_the_form() {
        assert_eq!(Form::of_ending("html"), Some(Form::Html));
        assert_eq!(Form::of_ending("json"), Some(Form::Json));
        assert_eq!(Form::of_ending("pdf"), None);
    }
}
