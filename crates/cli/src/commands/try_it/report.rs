//! What `try` says: for people as it goes, for programs one object a run and one for all.

use std::path::Path;

use anyhow::Result;
use holdall_engine::{CompareReport, Survey};
use serde::Serialize;

use super::memory::Memory;
use crate::commands::{backup, restore};
use crate::terminal::output::{JsonPath, Output, Shown, count, counted, size};

/// How many paths of a list are shown to people.
const PATHS_SHOWN: usize = 20;
/// Width of the first column.
const COLUMN: usize = 18;

/// The circumstances that figures depend on.
pub(crate) struct Conditions {
    /// Bytes that the first backup read from a disk, not from memory, where the system tells.
    pub(crate) read_from_disk: Option<u64>,
    /// Whether source, server and restore are on one file system.
    pub(crate) same_disk: bool,
    /// The most memory that any of the runs took.
    pub(crate) memory: Memory,
}

impl Conditions {
    /// Bytes that this process had read from disks so far.
    pub(crate) fn bytes_read_from_disk() -> Option<u64> {
        holdall_sys::process::bytes_read_from_disks()
    }

    /// Bytes read since `before`.
    pub(crate) fn bytes_read_since(before: Option<u64>) -> Option<u64> {
        Some(Self::bytes_read_from_disk()?.saturating_sub(before?))
    }

    /// `warm` if hardly anything came from the disk, `cold` if most of it did.
    fn cache(&self, bytes: u64) -> &'static str {
        match self.read_from_disk {
            None => "unknown",
            Some(read) if read <= bytes / 20 => "warm",
            Some(read) if read >= bytes / 5 * 4 => "cold",
            Some(_) => "partly warm",
        }
    }
}

/// The report of one attempt.
pub(crate) struct Report<'a> {
    output: &'a Output,
}

impl<'a> Report<'a> {
    /// Says what is tried, and where.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(crate) fn begin(
        output: &'a Output,
        dir: &Path,
        survey: &Survey,
        work: &Path,
    ) -> Result<Self> {
        let report = Self { output };
        let what =
            format!("{}: {}, {}", dir.display(), counted(survey.items, "item"), size(survey.bytes));
        report.lines("source", &[what])?;
        report.lines("work folder", &[format!("{}, removed at the end", work.display())])?;
        Ok(report)
    }

    /// Tells of a backup.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(crate) fn backup(
        &self,
        run: &'static str,
        done: &backup::Done,
        memory: &Memory,
    ) -> Result<()> {
        let summary = backup::JsonSummary::new(done);
        self.output.object("summary", &Named { run, summary: &summary, memory })?;
        self.lines(run, &with_memory(backup::words(done), memory))
    }

    /// Tells of the restore.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(crate) fn restore(&self, done: &restore::Done, memory: &Memory) -> Result<()> {
        let summary = restore::JsonSummary::new(done);
        self.output.object("summary", &Named { run: "restore", summary: &summary, memory })?;
        self.lines("restore", &with_memory(restore::words(done), memory))
    }

    /// Tells of the comparison and of the circumstances.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(crate) fn end(
        &self,
        first: &backup::Done,
        again: &backup::Done,
        restored: &restore::Done,
        compared: &CompareReport,
        conditions: &Conditions,
    ) -> Result<()> {
        self.lines("comparison", &comparison(compared))?;
        self.lines("circumstances", &[circumstances(first, conditions)])?;
        let all = TrySummary {
            run: "try",
            identical: compared.identical,
            differences: compared.difference_count,
            different_paths: compared
                .differences
                .iter()
                .map(|one| JsonPath::new(&one.path))
                .collect(),
            changed_meanwhile: compared.changed_count,
            changed_paths: paths(&compared.changed_meanwhile),
            unreadable: compared.unreadable_count,
            unreadable_paths: paths(&compared.unreadable),
            items_compared: compared.items,
            bytes_compared: compared.bytes,
            first_backup: backup::JsonSummary::new(first),
            unchanged_backup: backup::JsonSummary::new(again),
            restore: restore::JsonSummary::new(restored),
            verdict: &first.verdict,
            cache: conditions.cache(first.summary.bytes),
            same_disk: conditions.same_disk,
            network: "loopback",
            memory: &conditions.memory,
        };
        self.output.object("summary", &all)?;
        Ok(())
    }

    /// Prints lines behind a word in the first column.
    fn lines(&self, word: &str, lines: &[String]) -> Result<()> {
        for (at, line) in lines.iter().enumerate() {
            let word = if at == 0 { word } else { "" };
            self.output.say(format_args!("{word:<COLUMN$}{line}"))?;
        }
        Ok(())
    }
}

/// A summary and which run it is of.
#[derive(Serialize)]
struct Named<'a, T> {
    run: &'static str,
    #[serde(flatten)]
    summary: &'a T,
    #[serde(flatten)]
    memory: &'a Memory,
}

/// All of it.
#[derive(Serialize)]
struct TrySummary<'a> {
    run: &'static str,
    identical: bool,
    differences: u64,
    different_paths: Vec<JsonPath>,
    changed_meanwhile: u64,
    changed_paths: Vec<JsonPath>,
    unreadable: u64,
    unreadable_paths: Vec<JsonPath>,
    items_compared: u64,
    bytes_compared: u64,
    first_backup: backup::JsonSummary<'a>,
    unchanged_backup: backup::JsonSummary<'a>,
    restore: restore::JsonSummary<'a>,
    verdict: &'a holdall_meter::Verdict,
    cache: &'static str,
    same_disk: bool,
    network: &'static str,
    #[serde(flatten)]
    memory: &'a Memory,
}

fn paths(paths: &[Vec<u8>]) -> Vec<JsonPath> {
    paths.iter().map(|path| JsonPath::new(path)).collect()
}

fn comparison(compared: &CompareReport) -> Vec<String> {
    let verdict = if compared.identical { "identical" } else { "NOT IDENTICAL" };
    let (items, bytes) = (counted(compared.items, "item"), size(compared.bytes));
    let mut lines = vec![format!("{verdict}: {items} and {bytes} of content compared")];
    let mut list = |what: &str, total: u64, shown: Vec<String>| {
        if total > 0 {
            lines.push(format!("{} {what}", count(total)));
            let rest = total.saturating_sub(shown.len() as u64);
            lines.extend(shown.into_iter().map(|line| format!("  {line}")));
            if rest > 0 {
                lines.push(format!("  and {} more", count(rest)));
            }
        }
    };
    let different = compared.differences.iter().take(PATHS_SHOWN);
    let different = different.map(|one| format!("/{}: {}", Shown(&one.path), one.what));
    list("differ", compared.difference_count, different.collect());
    let shown = |paths: &[Vec<u8>]| {
        paths.iter().take(PATHS_SHOWN).map(|path| format!("/{}", Shown(path))).collect()
    };
    let changed = shown(&compared.changed_meanwhile);
    list("changed meanwhile and were left out:", compared.changed_count, changed);
    let unreadable = shown(&compared.unreadable);
    list("cannot be read by this user and were left out:", compared.unreadable_count, unreadable);
    lines
}

fn with_memory(mut lines: Vec<String>, memory: &Memory) -> Vec<String> {
    lines.push(memory.words());
    lines
}

fn circumstances(first: &backup::Done, conditions: &Conditions) -> String {
    let bytes = first.summary.bytes;
    let cache = match conditions.read_from_disk {
        Some(read) => format!(
            "source read from a {} cache ({} of {} came from the disk)",
            conditions.cache(bytes),
            size(read),
            size(bytes)
        ),
        None => "cache: unknown".to_owned(),
    };
    let disk = match conditions.same_disk {
        true => "source, server and restore on one file system",
        false => "source on another file system than server and restore",
    };
    format!("{cache}; TLS over loopback, no network in between; {disk}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_warm_if_hardly_anything_came_from_the_disk() {
        let cache = |read_from_disk| {
            Conditions { read_from_disk, same_disk: true, memory: Memory::default() }.cache(1000)
        };
        assert_eq!(cache(Some(0)), "warm");
        assert_eq!(cache(Some(500)), "partly warm");
        assert_eq!(cache(Some(1000)), "cold");
        assert_eq!(cache(None), "unknown");
    }

    #[test]
    fn what_changed_meanwhile_is_named() {
        let report = CompareReport {
            identical: true,
            changed_meanwhile: vec![b"log/a\nb".to_vec()],
            changed_count: 1,
            items: 3,
            ..CompareReport::default()
        };
        let lines = comparison(&report);
        assert_eq!(lines[0], "identical: 3 items and 0 B of content compared");
        assert_eq!(lines[1], "1 changed meanwhile and were left out:");
        assert_eq!(lines[2], "  /log/a\\nb");
    }
}
