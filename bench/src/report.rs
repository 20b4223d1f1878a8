//! The table: one row for each measure of each data set, as markdown.

use serde_json::Value;

use crate::product::Run;

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    FirstFull,
    Unchanged,
    Changed,
    Restore,
}

impl Measure {
    fn words(self) -> &'static str {
        match self {
            Self::FirstFull => "first full",
            Self::Unchanged => "unchanged",
            Self::Changed => "1 % changed, 0.5 % new",
            Self::Restore => "restore",
        }
    }
}

/// One row of the table.
pub(crate) struct Row {
    pub(crate) set: &'static str,
    pub(crate) measure: Measure,
    /// Files and plain bytes of the whole set, which the speeds are counted in.
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) run: Run,
    /// What the server's data take afterwards; none for a restore, which stores nothing.
    pub(crate) stored_bytes: Option<u64>,
}

const HEAD: &str = "\
| data | measure | seconds | files/s | MB/s | client CPU s | client MiB | server CPU s | server MiB | sent MB | stored MB | limited by |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
";

/// The table of `rows`.
pub(crate) fn table(rows: &[Row]) -> String {
    rows.iter().fold(HEAD.to_owned(), |table, row| table + &line(row) + "\n")
}

/// One row as a line of the table, without its end.
pub(crate) fn line(row: &Row) -> String {
    let run = &row.run;
    let stored = row.stored_bytes.map_or("-".to_owned(), |bytes| megabytes(bytes as f64));
    let sent = run.summary["bytes_sent"].as_f64().map_or("-".to_owned(), megabytes);
    format!(
        "| {} | {} | {:.2} | {:.0} | {:.1} | {:.1} | {} | {:.1} | {} | {sent} | {stored} | {} |",
        row.set,
        row.measure.words(),
        run.wall_seconds,
        row.files as f64 / run.wall_seconds,
        row.bytes as f64 / 1e6 / run.wall_seconds,
        run.client_cpu_seconds,
        run.client_peak_bytes >> 20,
        run.server_cpu_seconds,
        run.server_peak_bytes >> 20,
        limited_by(&run.summary),
    )
}

fn megabytes(bytes: f64) -> String {
    format!("{:.1}", bytes / 1e6)
}

/// The verdict's layer and confidence, as `network (0.8)`.
fn limited_by(summary: &Value) -> String {
    let verdict = &summary["verdict"];
    match (verdict["limited_by"].as_str(), verdict["confidence"].as_f64()) {
        (Some(layer), Some(confidence)) => format!("{layer} ({confidence:.1})"),
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_reads_as_the_head_says() {
        let summary = serde_json::json!({
            "bytes_sent": 2_500_000,
            "verdict": { "limited_by": "network", "confidence": 0.84 },
        });
        let run = Run {
            wall_seconds: 2.0,
            client_cpu_seconds: 3.0,
            client_peak_bytes: 90 << 20,
            server_cpu_seconds: 0.5,
            server_peak_bytes: 40 << 20,
            summary,
        };
        let row = Row {
            set: "D1",
            measure: Measure::FirstFull,
            files: 1000,
            bytes: 8_000_000,
            run,
            stored_bytes: Some(4_000_000),
        };
        let expected = "| D1 | first full | 2.00 | 500 | 4.0 | 3.0 | 90 | 0.5 | 40 | 2.5 | 4.0 \
                        | network (0.8) |";
        assert_eq!(line(&row), expected);
        let columns = |line: &str| line.matches('|').count();
        assert!(table(&[row]).lines().all(|line| columns(line) == columns(expected)));
    }
}
