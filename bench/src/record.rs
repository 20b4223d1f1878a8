//! What was measured, kept as JSON Lines: one object for each session, link and measure.
//!
//! Lines are only ever appended, so that an interrupted session keeps what it has, and tables of
//! several sessions can be made from one file.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::measure::Measure;
use crate::stage::Figures;

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Record {
    Session(Session),
    Link(Ceiling),
    Row(Box<Row>),
}

/// One call of the benchmark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    /// Year, month, day; UTC.
    pub(crate) date: String,
    /// What repeats it.
    pub(crate) command: String,
    pub(crate) machine: Machine,
}

/// What iperf3 got over a link, in bytes of TCP payload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ceiling {
    pub(crate) link: String,
    pub(crate) up_bytes_per_second: f64,
    pub(crate) down_bytes_per_second: f64,
}

/// One measured command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// Which session of the file it was read from, counted from 1; rows follow theirs there.
    #[serde(skip)]
    pub(crate) session: u32,
    pub(crate) tool: String,
    pub(crate) version: String,
    pub(crate) set: String,
    pub(crate) measure: Measure,
    /// The link's name, with the share of a core if there was one.
    pub(crate) link: String,
    pub(crate) run: u32,
    /// Files and plain bytes of the whole set, which the speeds are counted in.
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    #[serde(flatten)]
    pub(crate) figures: Figures,
    /// Encrypted bytes that the tool itself says it sent and received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sent_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) received_bytes: Option<u64>,
    /// What it says it sealed of new contents alone, without nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content_bytes: Option<u64>,
    /// What the repository takes afterwards, and how much more that is than before; none for a
    /// restore, which stores nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stored_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) growth_bytes: Option<i64>,
    /// What iperf3 got in this measure's direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ceiling_bytes_per_second: Option<f64>,
    /// The tool's own verdict, as `network (0.8)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limited_by: Option<String>,
}

impl Row {
    /// Bytes over the wire in the direction of the data, over what the link can carry meanwhile.
    pub(crate) fn wire_share(&self) -> Option<f64> {
        let wire = self.figures.wire?;
        let bytes = if self.measure.is_backup() { wire.sent_bytes } else { wire.received_bytes };
        self.share_of_ceiling(bytes)
    }

    /// The set's own bytes, over what the link can carry meanwhile; compression takes it past 1.
    pub(crate) fn logical_share(&self) -> Option<f64> {
        self.share_of_ceiling(self.bytes)
    }

    /// Bytes that the tool says it sent, over what new contents were when sealed.
    pub(crate) fn sent_for_content(&self) -> Option<f64> {
        let content_bytes = self.content_bytes.filter(|bytes| *bytes > 0)?;
        Some(self.sent_bytes? as f64 / content_bytes as f64)
    }

    fn share_of_ceiling(&self, bytes: u64) -> Option<f64> {
        Some(bytes as f64 / self.figures.wall_seconds / self.ceiling_bytes_per_second?)
    }
}

/// Where records go; without a file they are only shown.
pub(crate) struct Sink {
    file: Option<PathBuf>,
}

impl Sink {
    /// Appends to `file`, which is made.
    pub(crate) fn new(file: Option<PathBuf>) -> Self {
        Self { file }
    }

    /// Appends `record`.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub(crate) fn add(&self, record: &Record) -> Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        let context = || format!("cannot append to {path:?}");
        let line = serde_json::to_string(record)? + "\n";
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.with_context(context)?.write_all(line.as_bytes()).with_context(context)
    }
}

/// All records of `file`, whose rows know their session.
///
/// # Errors
///
/// If it cannot be read, or the first line that is no record.
pub(crate) fn read(file: &Path) -> Result<Vec<Record>> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {file:?}"))?;
    let mut sessions = 0;
    let parse = |(at, line)| {
        let mut record: Record =
            serde_json::from_str(line).with_context(|| format!("{file:?}, line {}", at + 1))?;
        match &mut record {
            Record::Session(_) => sessions += 1,
            Record::Row(row) => row.session = sessions,
            Record::Link(_) => {}
        }
        Ok(record)
    };
    text.lines().enumerate().map(parse).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::stage::Wire;

    /// A row with round figures.
    pub(crate) fn row(tool: &str, set: &str, measure: Measure, wall_seconds: f64) -> Row {
        Row {
            session: 1,
            tool: tool.into(),
            version: format!("{tool} 1.0"),
            set: set.into(),
            measure,
            link: "loopback".into(),
            run: 1,
            files: 1000,
            bytes: 8_000_000,
            figures: Figures {
                wall_seconds,
                client_cpu_seconds: 3.0,
                client_peak_bytes: 90 << 20,
                server_cpu_seconds: 0.5,
                server_peak_bytes: 40 << 20,
                other_cpu_seconds: 0.25,
                steal_seconds: 0.0,
                wire: None,
                output: String::new(),
            },
            sent_bytes: None,
            received_bytes: None,
            content_bytes: None,
            stored_bytes: Some(4_000_000),
            growth_bytes: Some(4_000_000),
            ceiling_bytes_per_second: None,
            limited_by: None,
        }
    }

    #[test]
    fn what_was_appended_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("rows.jsonl");
        let mut shaped = row("holdall", "D1", Measure::Restore, 2.0);
        shaped.figures.wire = Some(Wire { sent_bytes: 10, received_bytes: 2_000_000 });
        shaped.ceiling_bytes_per_second = Some(1e6);
        let records = [
            Record::Session(Session {
                date: "2026-01-31".into(),
                command: "cargo xtask bench D1".into(),
                machine: Machine::here("ext4"),
            }),
            Record::Link(Ceiling {
                link: "1gbit".into(),
                up_bytes_per_second: 1e8,
                down_bytes_per_second: 1e8,
            }),
            Record::Row(Box::new(shaped)),
        ];
        let sink = Sink::new(Some(file.clone()));
        records.iter().try_for_each(|record| sink.add(record)).unwrap();
        assert_eq!(read(&file).unwrap(), records);

        fs::write(&file, "{\"kind\":\"row\"}\n").unwrap();
        assert!(format!("{:#}", read(&file).unwrap_err()).contains("line 1"));
    }

    #[test]
    fn shares_are_of_what_the_link_could_carry() {
        let mut row = row("holdall", "D1", Measure::Restore, 4.0);
        assert_eq!((row.wire_share(), row.logical_share()), (None, None));
        row.figures.wire = Some(Wire { sent_bytes: 1_000_000, received_bytes: 3_000_000 });
        row.ceiling_bytes_per_second = Some(1e6);
        assert_eq!((row.wire_share(), row.logical_share()), (Some(0.75), Some(2.0)));
        row.measure = Measure::First;
        assert_eq!(row.wire_share(), Some(0.25));
    }

    #[test]
    fn what_was_sent_is_held_against_new_contents_where_there_are_any() {
        let sent_for = |sent_bytes, content_bytes| {
            let row = row("holdall", "D1", Measure::ChangedNear, 1.0);
            Row { sent_bytes, content_bytes, ..row }.sent_for_content()
        };
        assert_eq!(sent_for(Some(6_000_000), Some(4_000_000)), Some(1.5));
        for (sent, content) in [(None, Some(1)), (Some(1), None), (Some(1), Some(0))] {
            assert_eq!(sent_for(sent, content), None);
        }
    }
}
