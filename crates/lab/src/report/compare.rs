//! Two reports beside each other: two disks, two enclosures, two journal modes, two servers.

use serde::Serialize;

use super::{Report, shown};
use crate::Measurement;
use crate::disk::Cache;

const OPERATIONS: &str = "operations_per_second";
/// What a disk moved for each byte that was asked for.
const MOVED: &str = "device_bytes_for_each_asked";
/// Bytes of each operation that differ by less are the same: less than the per cent that are shown.
const EVEN: f64 = 0.0005;

/// Two reports, row by row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// How many rows both have.
    pub compared: usize,
    /// Their figures, in the order of the first.
    pub differences: Vec<Difference>,
    /// Rows that only the first has, in words.
    pub only_first: Vec<String>,
    /// Rows that only the second has, in words.
    pub only_second: Vec<String>,
    /// Where their circumstances or facts differ: name, first, second.
    pub circumstances: Vec<(String, String, String)>,
}

/// One figure of a row of both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// What was measured, in words.
    pub row: String,
    /// What is compared: `bytes_per_second`, `bytes_per_core_second`, `operations_per_second`, `p50_ns`,
    /// `p99_ns` or `device_bytes_for_each_asked`.
    pub figure: &'static str,
    /// The first report's.
    pub first: f64,
    /// The second report's.
    pub second: f64,
    /// How much the second is more (or, negative, less) than the first; `None` where that is 0.
    pub percent: Option<f64>,
}

impl Difference {
    /// The row and its figure in words; a rate is named by its unit.
    pub fn words(&self) -> String {
        let figure = match self.figure {
            "bytes_per_core_second" => ", each core",
            "p50_ns" => ", p50",
            "p99_ns" => ", p99",
            MOVED => ", moved for each byte",
            _ => "",
        };
        format!("{}{figure}", self.row)
    }

    /// A figure of this row in words.
    pub fn show(&self, value: f64) -> String {
        match self.figure {
            "bytes_per_second" | "bytes_per_core_second" => shown::rate(value),
            OPERATIONS => shown::frequency(value),
            MOVED => shown::ratio(value),
            // It was made from a whole number.
            _ => shown::time(value as u64),
        }
    }
}

/// Compares two reports: rows with the same settings belong together, the n-th with the n-th.
pub fn compare(first: &Report, second: &Report) -> Comparison {
    let mut unmatched: Vec<_> = second.measurements.iter().collect();
    let (mut differences, mut only_first) = (Vec::new(), Vec::new());
    for row in &first.measurements {
        match unmatched.iter().position(|other| same_settings(row, other)) {
            Some(at) => differences.extend(figures(row, unmatched.remove(at))),
            None => only_first.push(shown::row(row)),
        }
    }
    Comparison {
        compared: first.measurements.len() - only_first.len(),
        differences,
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

/// The figures that both rows have.
fn figures(a: &Measurement, b: &Measurement) -> impl Iterator<Item = Difference> {
    type Figure = (&'static str, fn(&Measurement) -> Option<f64>);
    const FIGURES: [Figure; 6] = [
        ("bytes_per_second", |row| row.bytes_per_second),
        ("bytes_per_core_second", |row| row.bytes_per_core_second),
        (OPERATIONS, |row| row.operations_per_second),
        ("p50_ns", |row| row.latency_ns.map(|latency| latency.p50 as f64)),
        ("p99_ns", |row| row.latency_ns.map(|latency| latency.p99 as f64)),
        (MOVED, |row| row.device.map(|device| device.bytes_for_each_asked)),
    ];
    let says_more = move |(figure, _): &Figure| *figure != OPERATIONS || !is_proportional(a, b);
    FIGURES.into_iter().filter(says_more).filter_map(move |(figure, of)| {
        let (first, second) = (of(a)?, of(b)?);
        let percent = (first > 0.0).then(|| (second / first - 1.0) * 100.0);
        Some(Difference { row: name(a, b), figure, first, second, percent })
    })
}

/// Whether an operation moved as many bytes in both, as a disk's requests do: then operations differ as
/// bytes do, and say nothing more. What is backed up may have other files each time.
fn is_proportional(a: &Measurement, b: &Measurement) -> bool {
    let each = |row: &Measurement| Some(row.bytes_per_second? / row.operations_per_second?);
    let ratio = each(a).zip(each(b)).map(|(a, b)| a / b);
    ratio.is_some_and(|ratio| (ratio - 1.0).abs() < EVEN)
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
        second.measurements[0].operations_per_second = Some(55e6 / f64::from(1 << 20));
        second.measurements.remove(3);
        second.measurements.push(fixture::row("random write", 4096, 5e6));
        let compared = compare(&first, &second);
        assert_eq!(compared.compared, 4);
        let row = &compared.differences[0];
        assert_eq!(row.words(), "sequential write 1M direct");
        assert_eq!(row.percent, Some(-50.0));
        assert_eq!(
            (row.show(row.first), row.show(row.second)),
            ("110.0 MB/s".into(), "55.0 MB/s".into())
        );
        assert_eq!(compared.only_first, ["create files of 2 KiB direct"]);
        assert_eq!(compared.only_second, ["random write 4K direct"]);
        assert_eq!(compared.circumstances, []);
    }

    #[test]
    fn every_figure_that_both_have_is_compared_and_operations_where_they_say_more() {
        let mut first = fixture::report();
        first.measurements.truncate(1);
        let figures = |second: &Report| {
            let compared = compare(&first, second);
            compared.differences.iter().map(|one| one.figure).collect::<Vec<_>>()
        };
        let mut second = first.clone();
        assert_eq!(figures(&second), ["bytes_per_second", "p50_ns", "p99_ns"]);
        second.measurements[0].operations_per_second = Some(1.0);
        assert_eq!(figures(&second), ["bytes_per_second", OPERATIONS, "p50_ns", "p99_ns"]);
        second.measurements[0].bytes_per_second = None;
        assert_eq!(figures(&second), [OPERATIONS, "p50_ns", "p99_ns"]);
        let slow = &compare(&first, &second).differences[2];
        assert_eq!(slow.words(), "sequential write 1M direct, p99");
        assert_eq!(slow.show(80_000.0), "80 µs");
        second.measurements[0].device = Some(fixture::device());
        assert_eq!(figures(&second), [OPERATIONS, "p50_ns", "p99_ns"], "the first does not tell");
        first.measurements[0].device = second.measurements[0].device;
        let moved = compare(&first, &second).differences.pop().unwrap();
        assert_eq!(moved.words(), "sequential write 1M direct, moved for each byte");
        assert_eq!((moved.show(moved.first), moved.percent), ("1.50".into(), Some(0.0)));
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
