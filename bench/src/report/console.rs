//! Lines while it runs, and one table of them at the end.

use serde_json::Value;

use crate::record::Row;

const HEAD: &str = "\
| data | measure | tool | run | seconds | files/s | MB/s | client CPU s | client MiB | server CPU s | server MiB | sent MB | stored MB | other CPU s | limited by |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
";

/// The table of `rows`.
pub(crate) fn table(rows: &[Row]) -> String {
    rows.iter().fold(HEAD.to_owned(), |table, row| table + &line(row) + "\n")
}

/// One row as a line of the table, without its end.
pub(crate) fn line(row: &Row) -> String {
    let figures = &row.figures;
    let sent_bytes = row.sent_bytes.or(figures.wire.map(|wire| wire.sent_bytes));
    format!(
        "| {} | {} | {} | {} | {:.2} | {:.0} | {:.1} | {:.1} | {} | {:.1} | {} | {} | {} | {:.1} \
         | {} |",
        row.set,
        row.measure.words(),
        row.tool,
        row.run,
        figures.wall_seconds,
        row.files as f64 / figures.wall_seconds,
        row.bytes as f64 / 1e6 / figures.wall_seconds,
        figures.client_cpu_seconds,
        figures.client_peak_bytes >> 20,
        figures.server_cpu_seconds,
        figures.server_peak_bytes >> 20,
        megabytes(sent_bytes),
        megabytes(row.stored_bytes),
        figures.other_cpu_seconds,
        row.limited_by.as_deref().unwrap_or("-"),
    )
}

fn megabytes(bytes: Option<u64>) -> String {
    bytes.map_or("-".to_owned(), |bytes| format!("{:.1}", bytes as f64 / 1e6))
}

/// A summary's layer and confidence, as `network (0.8)`.
pub(crate) fn verdict(summary: &Value) -> Option<String> {
    let verdict = &summary["verdict"];
    let (layer, confidence) = (verdict["limited_by"].as_str()?, verdict["confidence"].as_f64()?);
    Some(format!("{layer} ({confidence:.1})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Measure;
    use crate::record::tests::row;

    #[test]
    fn a_row_reads_as_the_head_says() {
        let mut row = row("holdall", "D1", Measure::First, 2.0);
        row.sent_bytes = Some(2_500_000);
        row.limited_by = Some("network (0.8)".into());
        let expected = "| D1 | first full | holdall | 1 | 2.00 | 500 | 4.0 | 3.0 | 90 | 0.5 | 40 \
                        | 2.5 | 4.0 | 0.2 | network (0.8) |";
        assert_eq!(line(&row), expected);
        let columns = |line: &str| line.matches('|').count();
        assert!(table(&[row]).lines().all(|line| columns(line) == columns(expected)));
    }

    #[test]
    fn a_verdict_has_words_if_there_is_one() {
        let summary = serde_json::json!({
            "verdict": { "limited_by": "network", "confidence": 0.84 },
        });
        assert_eq!(verdict(&summary).as_deref(), Some("network (0.8)"));
        assert_eq!(verdict(&Value::Null), None);
    }
}
