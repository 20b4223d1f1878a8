//! What the user sees: words for people, or JSON Lines for programs.
//!
//! A command says each thing once and does not ask which of the two is wanted: `say` is silent with
//! `--json`, `object` is silent without it. What goes to standard output is the result; notes and
//! errors for people go to standard error. Whatever is for people is one line that shows what is in it
//! ([`OneLine`]), whoever gave the names; JSON has them as they are.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use holdall_engine::Problem;
use holdall_format::OneLine;
pub(crate) use holdall_format::Shown;
pub(crate) use holdall_meter::{count, counted, duration, size};
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::exit::is_closed_pipe;
use crate::terminal::wrapped::{columns_of, wrapped};

/// How to speak.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    /// JSON Lines on standard output.
    pub(crate) json: bool,
    /// Only results and errors.
    pub(crate) quiet: bool,
    /// How much more to tell.
    pub(crate) verbose: u8,
    /// Whether colours may be used on standard error.
    color: bool,
}

impl Output {
    /// Colours are used on a terminal, unless somebody objects.
    pub(crate) fn new(json: bool, quiet: bool, verbose: u8, no_color: bool) -> Self {
        let objected = no_color || std::env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty());
        Self { json, quiet, verbose, color: !objected && io::stderr().is_terminal() }
    }

    /// The same for something that is nobody's business.
    pub(crate) fn silent(&self) -> Self {
        Self { json: false, quiet: true, verbose: 0, ..self.clone() }
    }

    /// Whether notes are read by a person at a terminal.
    pub(crate) fn is_for_a_person(&self) -> bool {
        !self.json && !self.quiet && io::stderr().is_terminal()
    }

    /// Says a line of the report: not with `--json`, not with `-q`.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(crate) fn say(&self, line: impl Display) -> io::Result<()> {
        if self.quiet { Ok(()) } else { self.result_prose(line) }
    }

    /// The same of a sentence that belongs to the result, such as what is to be known of a row.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(crate) fn result_prose(&self, text: impl Display) -> io::Result<()> {
        self.result_beside("", text)
    }

    /// The same of a sentence behind what it is about, below which its later lines do not reach.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(crate) fn result_beside(&self, about: &str, text: impl Display) -> io::Result<()> {
        let line = format!("{about}{}", OneLine(text));
        match (self.json, columns_of(io::stdout())) {
            (false, Some(columns)) => plain(wrapped(&line, columns, about.chars().count())),
            _ => self.result(line),
        }
    }

    /// Says a line that is the very result, such as an entry of a list: not with `--json`.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(crate) fn result(&self, line: impl Display) -> io::Result<()> {
        if self.json { Ok(()) } else { plain(OneLine(line)) }
    }

    /// Says something beside the result, on standard error: not with `-q` or `--json`.
    pub(crate) fn note(&self, line: impl Display) {
        if !self.quiet && !self.json {
            to_stderr(OneLine(line));
        }
    }

    /// Says on standard error what keeps a command from going on: with `--json`, too, but not with `-q`.
    pub(crate) fn urge(&self, line: impl Display) {
        if !self.quiet {
            to_stderr(format_args!("note: {}", OneLine(line)));
        }
    }

    /// Says a note that only `-v` shows.
    pub(crate) fn detail(&self, line: impl Display) {
        if self.verbose > 0 {
            self.note(line);
        }
    }

    /// Prints one object of that `message_type`: only with `--json`.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(crate) fn object(&self, message_type: &str, body: &impl Serialize) -> io::Result<()> {
        #[derive(Serialize)]
        struct Typed<'a, T> {
            message_type: &'a str,
            #[serde(flatten)]
            body: &'a T,
        }
        if !self.json {
            return Ok(());
        }
        plain(serde_json::to_string(&Typed { message_type, body })?)
    }

    /// Tells of something that failed while the run goes on.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(crate) fn problem(&self, problem: &Problem) -> io::Result<()> {
        #[derive(Serialize)]
        struct Told<'a> {
            #[serde(flatten)]
            path: JsonPath,
            message: &'a str,
        }
        if self.json {
            let path = JsonPath::new(&problem.path);
            self.object("error", &Told { path, message: &problem.reason })
        } else {
            to_stderr(format_args!(
                "{}: {}: {}",
                self.red("error"),
                Shown(&problem.path),
                OneLine(&problem.reason)
            ));
            Ok(())
        }
    }

    /// Tells why the command ended, and what may help.
    pub(crate) fn failure(&self, error: &anyhow::Error, code: u8, hint: Option<&str>) {
        #[derive(Serialize)]
        struct Failure<'a> {
            code: u8,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            hint: Option<&'a str>,
        }
        let message = sentence(error);
        let is_told =
            self.json && self.object("error", &Failure { code, message: &message, hint }).is_ok();
        if is_told {
            return;
        }
        to_stderr(format_args!("{}: {}", self.red("error"), OneLine(&message)));
        if let Some(hint) = hint {
            to_stderr(format_args!("hint: {}", OneLine(hint)));
        }
    }

    /// Says what was done all the same, and why standard output does not tell it: on standard error,
    /// with `-q` and `--json` too, unless whoever reads has had enough.
    pub(crate) fn warn_unreported(&self, done: impl Display, error: &anyhow::Error) {
        if !is_closed_pipe(error) {
            let cause = sentence(error);
            to_stderr(format_args!(
                "note: {}, and standard output cannot be written: {}",
                OneLine(done),
                OneLine(&cause)
            ));
        }
    }

    /// What became of telling something that was done, which stays done; of a dry run, telling is all that there is.
    ///
    /// # Errors
    /// `told`, of a dry run.
    pub(crate) fn told(
        &self,
        told: anyhow::Result<()>,
        done: impl Display,
        dry_run: bool,
    ) -> anyhow::Result<()> {
        match told {
            Err(error) if !dry_run => {
                self.warn_unreported(done, &error);
                Ok(())
            }
            told => told,
        }
    }

    fn red(&self, word: &str) -> String {
        if self.color { format!("\x1b[1;31m{word}\x1b[0m") } else { word.to_owned() }
    }
}

/// An error and its causes in one sentence. Some errors tell their cause themselves, and it is not
/// told twice.
pub(crate) fn sentence(error: &anyhow::Error) -> String {
    let mut sentence = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if sentence.is_empty() {
            sentence = cause;
        } else if !sentence.ends_with(&cause) {
            sentence = format!("{sentence}: {cause}");
        }
    }
    sentence
}

/// Writes a line to standard output as it is, and hands it on at once: JSON, and what has no name of others in it.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn plain(line: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Writes a line to standard error, on a terminal broken between words.
pub(crate) fn to_stderr(line: impl Display) {
    let columns = columns_of(io::stderr());
    let line =
        columns.map_or_else(|| line.to_string(), |columns| wrapped(&line.to_string(), columns, 0));
    // There is no better place to complain that this one is closed.
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// The same, leaving the line open for an answer.
pub(crate) fn to_stderr_unended(text: impl Display) {
    let mut out = io::stderr().lock();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

/// A path in JSON: `path`, and `path_base64` with the exact bytes if they are not UTF-8.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct JsonPath {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_base64: Option<String>,
}

impl JsonPath {
    /// From the path's bytes.
    pub(crate) fn new(path: &[u8]) -> Self {
        let path_base64 = std::str::from_utf8(path).is_err().then(|| base64(path));
        Self { path: String::from_utf8_lossy(path).into_owned(), path_base64 }
    }

    /// The path as text, which may have lost bytes that are no text.
    pub(crate) fn text(&self) -> &str {
        &self.path
    }
}

/// Base64 with padding (RFC 4648, section 4).
pub(crate) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_usize, |bits, &byte| bits << 8 | usize::from(byte));
        let bits = bits << (8 * (3 - group.len()));
        for place in 0..4 {
            let letter = LETTERS[bits >> (18 - 6 * place) & 63];
            out.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

/// A time in RFC 3339, UTC.
pub(crate) fn rfc3339(nanoseconds: impl Into<i128>) -> String {
    timestamp(nanoseconds.into()).to_string()
}

/// The same to the second.
pub(crate) fn rfc3339_seconds(nanoseconds: impl Into<i128>) -> String {
    timestamp(nanoseconds.into()).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A time for people, by the clock on their wall, with its zone: `2026-11-29 02:45 CET`, or `+03` for a zone without
/// a name.
pub(crate) fn local_time(nanoseconds: impl Into<i128>) -> String {
    in_local_words(timestamp(nanoseconds.into()))
}

/// The same of a time in RFC 3339. What is none stays as it is.
pub(crate) fn local_time_of(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), in_local_words)
}

fn in_local_words(time: jiff::Timestamp) -> String {
    time.to_zoned(local_zone()).strftime("%Y-%m-%d %H:%M %Z").to_string()
}

/// The zone of `TZ` or of this computer; UTC where neither is known.
fn local_zone() -> TimeZone {
    let zone = TimeZone::system();
    if zone.is_unknown() { TimeZone::UTC } else { zone }
}

/// The day of a time, by the clock on the wall.
pub(crate) fn local_date(nanoseconds: impl Into<i128>) -> String {
    timestamp(nanoseconds.into()).to_zoned(local_zone()).strftime("%Y-%m-%d").to_string()
}

/// A moment; before the year 1 and after the year 9999, of which RFC 3339 knows nothing, the end of what
/// it knows.
fn timestamp(nanoseconds: i128) -> jiff::Timestamp {
    const YEAR_1_NS: i128 = -62_135_596_800 * 1_000_000_000;
    jiff::Timestamp::from_nanosecond(nanoseconds.max(YEAR_1_NS)).unwrap_or(jiff::Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let cause = || std::io::Error::other("no luck");
        let told = holdall_engine::EngineError::io("opening /x", cause());
        assert_eq!(sentence(&told.into()), "opening /x: no luck");
        let wrapped = anyhow::Error::from(cause()).context("opening /x");
        assert_eq!(sentence(&wrapped), "opening /x: no luck");
    }

    #[test]
    fn base64_is_that_of_the_rfc() {
        let expected = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (len, expected) in expected.into_iter().enumerate() {
            assert_eq!(base64(&b"foobar"[..len]), expected);
        }
    }

    #[test]
    fn the_exact_bytes_of_a_name_are_in_the_json() {
        let json = serde_json::to_string(&JsonPath::new(b"a\xff")).unwrap();
        assert_eq!(json, "{\"path\":\"a\u{fffd}\",\"path_base64\":\"Yf8=\"}");
        assert_eq!(serde_json::to_string(&JsonPath::new(b"a")).unwrap(), "{\"path\":\"a\"}");
    }

    #[test]
    fn times_read_well() {
        assert_eq!(rfc3339(1_500_000_000), "1970-01-01T00:00:01.5Z");
        assert_eq!(rfc3339(13_569_465_600_000_000_000_i128), "2400-01-01T00:00:00Z");
        assert_eq!(rfc3339(i128::MIN), "0001-01-01T00:00:00Z");
        assert!(rfc3339(i128::MAX).starts_with("9999-12-30"));
    }
}
