//! The rows for a spreadsheet (RFC 4180), one line each.

use super::{Report, escape};
use crate::cache::Cache;

const HEADER: &str = "operation,block_bytes,file_bytes,queue_depth,jobs,direct,end_fsync,\
    duration_seconds,bytes_per_second,operations_per_second,p50_ns,p90_ns,p99_ns,p99.9_ns,\
    cache,bytes_per_core_second,device_operations,device_flushes,device_bytes_read,\
    device_bytes_written,device_bytes_for_each_asked,items,retransmits,limited_by,made,command,circumstances";

/// What the header began with from the first version on.
const FIRST_FIELDS: &str = "operation,block_bytes,file_bytes,queue_depth,jobs,";

/// Whether a file has such rows.
pub(super) fn is_one(content: &[u8]) -> bool {
    content.starts_with(FIRST_FIELDS.as_bytes())
}

/// All rows of a report.
pub(super) fn of(report: &Report) -> String {
    let mut out = format!("{HEADER}\r\n");
    // In each row, since rows of several reports come into one table.
    let circumstances = circumstances(report);
    for row in &report.measurements {
        let latency = row.latency_ns;
        let fields = [
            escape::csv(&row.operation),
            number(row.block_bytes),
            number(row.file_bytes),
            number(row.queue_depth),
            number(row.jobs),
            number(row.direct),
            number(row.end_fsync),
            number(Some(row.duration_seconds)),
            number(row.bytes_per_second),
            number(row.operations_per_second),
            number(latency.map(|latency| latency.p50)),
            number(latency.map(|latency| latency.p90)),
            number(latency.map(|latency| latency.p99)),
            number(latency.map(|latency| latency.p99_9)),
            number(row.cache.map(Cache::words)),
            number(row.bytes_per_core_second),
            number(row.device.map(|device| device.operations)),
            number(row.device.map(|device| device.flushes)),
            number(row.device.map(|device| device.bytes_read)),
            number(row.device.map(|device| device.bytes_written)),
            number(row.device.map(|device| device.bytes_for_each_asked)),
            number(row.items),
            number(row.retransmits),
            number(row.limited_by),
            escape::csv(&report.made),
            escape::csv(&report.command),
            circumstances.clone(),
        ];
        out += &fields.join(",");
        out += "\r\n";
    }
    out
}

/// Computer, kernel, versions, file system and what else is known, in one field.
fn circumstances(report: &Report) -> String {
    let facts = report.circumstances.iter().chain(&report.facts);
    let named: Vec<_> = facts.map(|fact| format!("{}: {}", fact.name, fact.value)).collect();
    escape::csv(&named.join("; "))
}

fn number(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn each_row_has_as_many_fields_as_the_header() {
        let mut report = fixture::report();
        report.measurements[0].operation = "=cmd|x, \"quoted\"".into();
        report.measurements[1].device = Some(fixture::device());
        report.measurements[1].items = Some(1000);
        report.measurements[1].retransmits = Some(0);
        let text = of(&report);
        let mut lines = text.lines();
        let fields = lines.next().unwrap().split(',').count();
        let first = lines.next().unwrap();
        assert!(first.starts_with("\"'=cmd|x, \"\"quoted\"\"\",1048576,,1,1,true,,1.5,110000000,"));
        assert!(lines.clone().next().unwrap().contains(",1500,250,0,6144000,1.5,1000,0,"));
        assert_eq!(lines.clone().count(), report.measurements.len() - 1);
        let told = format!("{},{},", report.made, report.command);
        assert!(lines.clone().all(|line| line.contains(&told)), "{text}");
        for fact in report.circumstances.iter().chain(&report.facts) {
            let told = format!("{}: ", fact.name);
            assert_eq!(text.matches(&told).count(), report.measurements.len(), "{told}");
        }
        report.circumstances.clear();
        report.facts.clear();
        let text = of(&report);
        let lines = text.lines().skip(2);
        lines.for_each(|line| assert_eq!(line.split(',').count(), fields, "{line}"));
    }
}
