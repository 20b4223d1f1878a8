//! The table of one measure: a row for each tool, the fastest first.

use super::stats::{OURS, Runs};
use crate::measure::Measure;
use crate::record::Row;

/// The table of `all`, as markdown.
pub(super) fn table(measure: Measure, all: &[Runs<'_>]) -> String {
    let has_ceiling = all.iter().any(|runs| runs.first().ceiling_bytes_per_second.is_some());
    let columns: Vec<Column> = columns(measure)
        .into_iter()
        .filter(|column| has_ceiling || !column.needs_ceiling)
        .collect();
    let head: Vec<&str> = columns.iter().map(|column| column.head).collect();
    let mut table = format!("| tool | {} |\n| --- |", head.join(" | "));
    table += &" ---: |".repeat(head.len());
    for runs in all {
        let cells: Vec<String> = columns.iter().map(|column| (column.cell)(runs)).collect();
        table += &format!("\n| {} | {} |", runs.tool, cells.join(" | "));
    }
    table + "\n"
}

struct Column {
    head: &'static str,
    needs_ceiling: bool,
    cell: fn(&Runs<'_>) -> String,
}

fn column(head: &'static str, cell: fn(&Runs<'_>) -> String) -> Column {
    Column { head, needs_ceiling: false, cell }
}

fn columns(measure: Measure) -> Vec<Column> {
    let mut columns = vec![
        column("runs", |runs| runs.count().to_string()),
        column("median s (min-max)", |runs| {
            let (min, max) = runs.range_seconds();
            format!("{:.2} ({min:.2}-{max:.2})", runs.seconds())
        }),
        column("holdall is x times as fast", |runs| match runs.times_as_fast() {
            Some(ratio) if runs.tool != OURS => format!("{ratio:.2}"),
            _ => "-".into(),
        }),
        column("files/s", |runs| format!("{:.0}", runs.first().files as f64 / runs.seconds())),
        column("MB/s", |runs| format!("{:.1}", runs.first().bytes as f64 / 1e6 / runs.seconds())),
    ];
    let shares = [
        column("wire / ceiling", |runs| share(runs, Row::wire_share)),
        column("MB/s / ceiling", |runs| share(runs, Row::logical_share)),
    ];
    columns.extend(shares.map(|column| Column { needs_ceiling: true, ..column }));
    columns.extend([
        column("client CPU s", |runs| seconds(runs, |row| row.figures.client_cpu_seconds)),
        column("client MiB", |runs| mebibytes(runs, |row| row.figures.client_peak_bytes)),
        column("server CPU s", |runs| seconds(runs, |row| row.figures.server_cpu_seconds)),
        column("server MiB", |runs| mebibytes(runs, |row| row.figures.server_peak_bytes)),
    ]);
    match measure {
        Measure::First => columns.push(column("stored MB", |runs| {
            megabytes(runs, |row| row.stored_bytes.map(|bytes| bytes as f64))
        })),
        Measure::Unchanged | Measure::Changed | Measure::ChangedNear => {
            columns.push(column("growth MB", |runs| {
                megabytes(runs, |row| row.growth_bytes.map(|bytes| bytes as f64))
            }));
        }
        Measure::Restore => {}
    }
    if measure == Measure::ChangedNear {
        columns.push(column("sent / new content", |runs| share(runs, Row::sent_for_content)));
    }
    columns.push(column("other CPU s", |runs| seconds(runs, |row| row.figures.other_cpu_seconds)));
    columns
}

fn seconds(runs: &Runs<'_>, figure: impl Fn(&Row) -> f64) -> String {
    format!("{:.1}", runs.median(figure))
}

fn mebibytes(runs: &Runs<'_>, figure: impl Fn(&Row) -> u64) -> String {
    format!("{:.0}", runs.median(|row| figure(row) as f64) / f64::from(1 << 20))
}

fn megabytes(runs: &Runs<'_>, figure: impl Fn(&Row) -> Option<f64>) -> String {
    runs.median_of(figure).map_or("-".into(), |bytes| format!("{:.1}", bytes / 1e6))
}

fn share(runs: &Runs<'_>, figure: impl Fn(&Row) -> Option<f64>) -> String {
    runs.median_of(figure).map_or("-".into(), |share| format!("{share:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::row;
    use crate::report::stats::runs;

    #[test]
    fn a_table_has_a_row_for_each_tool() {
        let first = Measure::First;
        let rows = [
            row("restic", "D1", first, 5.0),
            row("holdall", "D1", first, 2.0),
            row("holdall", "D1", first, 3.0),
            row("holdall", "D1", first, 2.5),
        ];
        let expected = "\
| tool | runs | median s (min-max) | holdall is x times as fast | files/s | MB/s | client CPU s | client MiB | server CPU s | server MiB | stored MB | other CPU s |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| holdall | 3 | 2.50 (2.00-3.00) | - | 400 | 3.2 | 3.0 | 90 | 0.5 | 40 | 4.0 | 0.2 |
| restic | 1 | 5.00 (5.00-5.00) | 2.00 | 200 | 1.6 | 3.0 | 90 | 0.5 | 40 | 4.0 | 0.2 |
";
        assert_eq!(table(first, &runs(&rows, "loopback", "D1", first)), expected);
    }

    #[test]
    fn shares_are_shown_where_a_ceiling_is_known() {
        let mut shaped = row("holdall", "D1", Measure::Restore, 2.0);
        shaped.ceiling_bytes_per_second = Some(8e6);
        let rows = [shaped];
        let table = table(Measure::Restore, &runs(&rows, "loopback", "D1", Measure::Restore));
        assert!(table.contains("| wire / ceiling | MB/s / ceiling |"), "{table}");
        assert!(table.contains("| 4.0 | - | 0.50 |"), "{table}");
        assert!(!table.contains("stored MB"));
    }
}
