//! Two reports beside each other: two disks, two enclosures, two journal modes, two servers.

use serde::Serialize;

use super::{Report, shown};
use crate::Measurement;
use crate::disk::Cache;

/// Two reports, row by row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Rows that both have, in the order of the first.
    pub rows: Vec<Difference>,
    /// Rows that only the first has, in words.
    pub only_first: Vec<String>,
    /// Rows that only the second has, in words.
    pub only_second: Vec<String>,
    /// Where their circumstances or facts differ: name, first, second.
    pub circumstances: Vec<(String, String, String)>,
}

/// One row of both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// What was measured, in words.
    pub row: String,
    /// What is compared: `bytes_per_second`, `operations_per_second` or `p50_ns`.
    pub figure: &'static str,
    /// The first report's.
    pub first: f64,
    /// The second report's.
    pub second: f64,
    /// How much the second is more (or, negative, less) than the first; `None` where that is 0.
    pub percent: Option<f64>,
}

impl Difference {
    /// A figure of this row in words.
    pub fn show(&self, value: f64) -> String {
        match self.figure {
            "bytes_per_second" => shown::rate(value),
            "operations_per_second" => shown::frequency(value),
            // It was made from a whole number.
            _ => shown::time(value as u64),
        }
    }
}

/// Compares two reports: rows with the same settings belong together, the n-th with the n-th.
pub fn compare(first: &Report, second: &Report) -> Comparison {
    let mut unmatched: Vec<_> = second.measurements.iter().collect();
    let (mut rows, mut only_first) = (Vec::new(), Vec::new());
    for row in &first.measurements {
        match unmatched.iter().position(|other| same_settings(row, other)) {
            Some(at) => rows.extend(difference(row, unmatched.remove(at))),
            None => only_first.push(shown::row(row)),
        }
    }
    Comparison {
        rows,
        only_first,
        only_second: unmatched.into_iter().map(shown::row).collect(),
        circumstances: other_circumstances(first, second),
    }
}

fn same_settings(a: &Measurement, b: &Measurement) -> bool {
    let of = |row: &Measurement| {
        (row.block_bytes, row.file_bytes, row.queue_depth, row.jobs, row.direct, row.end_fsync)
    };
    a.operation == b.operation && of(a) == of(b)
}

/// The first figure that both rows have: bytes, else operations, else how long one took.
fn difference(a: &Measurement, b: &Measurement) -> Option<Difference> {
    type Figure = (&'static str, fn(&Measurement) -> Option<f64>);
    const FIGURES: [Figure; 3] = [
        ("bytes_per_second", |row| row.bytes_per_second),
        ("operations_per_second", |row| row.operations_per_second),
        ("p50_ns", |row| row.latency_ns.map(|latency| latency.p50 as f64)),
    ];
    FIGURES.into_iter().find_map(|(figure, of)| {
        let (first, second) = (of(a)?, of(b)?);
        let percent = (first > 0.0).then(|| (second / first - 1.0) * 100.0);
        Some(Difference { row: name(a, b), figure, first, second, percent })
    })
}

/// A row in words, with where the bytes came from in each report if that is not the same.
fn name(a: &Measurement, b: &Measurement) -> String {
    if a.cache == b.cache {
        return shown::row(a);
    }
    let cache = |row: &Measurement| row.cache.map_or("not told", Cache::words);
    let row = shown::row(&Measurement { cache: None, ..a.clone() });
    format!("{row}, {} / {}", cache(a), cache(b))
}

fn other_circumstances(first: &Report, second: &Report) -> Vec<(String, String, String)> {
    let all = |report: &Report| {
        let facts = report.circumstances.iter().chain(&report.facts);
        facts.map(|fact| (fact.name.clone(), fact.value.clone())).collect::<Vec<_>>()
    };
    let (ours, theirs) = (all(first), all(second));
    let value = |of: &[(String, String)], name: &String| {
        let found = of.iter().find(|(other, _)| other == name);
        found.map_or_else(|| "not told".to_owned(), |(_, value)| value.clone())
    };
    let mut names: Vec<_> = ours.iter().chain(&theirs).map(|(name, _)| name.clone()).collect();
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let both = names.into_iter().map(|name| (value(&ours, &name), value(&theirs, &name), name));
    both.filter(|(a, b, _)| a != b).map(|(a, b, name)| (name, a, b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Fact, fixture};

    #[test]
    fn rows_of_the_same_settings_are_compared_in_per_cent() {
        let first = fixture::report();
        let mut second = first.clone();
        second.measurements[0].bytes_per_second = Some(55e6);
        second.measurements.remove(3);
        second.measurements.push(fixture::row("random write", 4096, 5e6));
        let compared = compare(&first, &second);
        assert_eq!(compared.rows.len(), 4);
        let row = &compared.rows[0];
        assert_eq!((row.row.as_str(), row.percent), ("sequential write 1M direct", Some(-50.0)));
        assert_eq!(
            (row.show(row.first), row.show(row.second)),
            ("110.0 MB/s".into(), "55.0 MB/s".into())
        );
        assert_eq!(compared.rows[1].percent, Some(0.0));
        assert_eq!(compared.only_first, ["create files of 2 kB direct"]);
        assert_eq!(compared.only_second, ["random write 4K direct"]);
        assert_eq!(compared.circumstances, []);
    }

    #[test]
    fn a_row_without_a_speed_is_compared_by_how_long_it_took() {
        let mut first = fixture::report();
        first.measurements.truncate(1);
        let row = &mut first.measurements[0];
        (row.bytes_per_second, row.operations_per_second) = (None, None);
        let compared = compare(&first, &first);
        assert_eq!(
            (compared.rows[0].figure, compared.rows[0].show(80_000.0)),
            ("p50_ns", "80 us".into())
        );
    }

    #[test]
    fn other_circumstances_are_told() {
        let first = fixture::report();
        let mut second = first.clone();
        second.circumstances[2].value = "warm".into();
        second.facts.push(Fact::new("journal", "ordered"));
        let told = compare(&first, &second).circumstances;
        let words = |name: &str, a: &str, b: &str| (name.to_owned(), a.to_owned(), b.to_owned());
        assert_eq!(told, [words("cache", "cold", "warm"), words("journal", "not told", "ordered")]);
    }
}
