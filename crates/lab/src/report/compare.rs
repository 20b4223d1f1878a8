//! Two reports beside each other: two disks, two enclosures, two journal modes, two servers.

use holdall_meter::Layer;
use serde::Serialize;

use super::{Report, Rung, shown};
use crate::Measurement;
use crate::cache::Cache;

const BYTES: &str = "bytes_per_second";
const OPERATIONS: &str = "operations_per_second";
/// What a step of the ladder has in place of operations.
const ITEMS: &str = "items_per_second";
/// What a disk moved for each byte that was asked for.
const MOVED: &str = "device_bytes_for_each_asked";
/// Bytes of each operation that differ by less are the same: less than the per cent that are shown.
const EVEN: f64 = 0.0005;
/// What stands for something that a report does not have.
const UNKNOWN: &str = "unknown";

/// Two reports, row by row and step by step.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// How many rows and steps of the ladder both have.
    pub compared: usize,
    /// Their figures, in the order of the first, those of steps last.
    pub differences: Vec<Difference>,
    /// Rows and steps that only the first has, in words.
    pub only_first: Vec<String>,
    /// Rows and steps that only the second has, in words.
    pub only_second: Vec<String>,
    /// What limited each, the n-th verdict beside the n-th.
    pub limited_by: Vec<Limited>,
    /// Where their circumstances or facts differ: name, first, second.
    pub circumstances: Vec<(String, String, String)>,
}

/// One figure of a row or step of both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// What was measured, in words.
    pub row: String,
    /// What is compared: `bytes_per_second`, `bytes_per_core_second`, `operations_per_second`, `p50_ns`,
    /// `p99_ns` or `device_bytes_for_each_asked`; of a step `bytes_per_second` or `items_per_second`.
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
            BYTES | "bytes_per_core_second" => shown::rate(value),
            OPERATIONS | ITEMS => shown::frequency(value),
            MOVED => shown::ratio(value),
            // It was made from a whole number.
            _ => shown::time(value as u64),
        }
    }
}

/// What limited two runs, by a verdict of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limited {
    /// The first report's layer; `None` where it has no such verdict.
    pub first: Option<Layer>,
    /// The second report's.
    pub second: Option<Layer>,
}

impl Limited {
    /// One line about both.
    pub fn words(self) -> String {
        let word = |layer: Option<Layer>| layer.map_or(UNKNOWN, Layer::word);
        let (first, second) = (word(self.first), word(self.second));
        if first == second {
            return format!("limited by {first} in both");
        }
        format!("limited by: {first} / {second}")
    }
}

/// Compares two reports: rows with the same settings belong together, and steps with the same name, the
/// n-th with the n-th. A disk's rows that are left belong together where only their files' sizes differ.
pub fn compare(first: &Report, second: &Report) -> Comparison {
    let mut compared = Comparison {
        limited_by: limits(first, second),
        circumstances: other_circumstances(first, second),
        ..Comparison::default()
    };
    let (ours, theirs) = (&first.measurements, &second.measurements);
    let rows = Matched::of(ours, theirs, &[same_row, same_but_for_file]);
    compared.take_in(rows, shown::row, figures_of_row);
    let steps = Matched::of(&first.ladder, &second.ladder, &[same_step]);
    compared.take_in(steps, step_words, figures_of_step);
    compared
}

impl Comparison {
    /// Compares what belongs together, and names what only one has.
    fn take_in<T>(
        &mut self,
        matched: Matched<'_, T>,
        words: fn(&T) -> String,
        figures: fn(&T, &T) -> Vec<Difference>,
    ) {
        for (one, other) in matched.pairs {
            match other {
                Some(other) => {
                    self.compared += 1;
                    self.differences.extend(figures(one, other));
                }
                None => self.only_first.push(words(one)),
            }
        }
        self.only_second.extend(matched.rest.into_iter().map(words));
    }
}

/// What of two reports belongs together.
struct Matched<'a, T> {
    /// Each of the first, in its order, with its like of the second.
    pairs: Vec<(&'a T, Option<&'a T>)>,
    /// What of the second is left.
    rest: Vec<&'a T>,
}

impl<'a, T> Matched<'a, T> {
    /// Each rule is for what those before it left.
    fn of(first: &'a [T], second: &'a [T], rules: &[fn(&T, &T) -> bool]) -> Self {
        let mut pairs: Vec<(&'a T, Option<&'a T>)> = first.iter().map(|one| (one, None)).collect();
        let mut rest: Vec<&'a T> = second.iter().collect();
        for belong in rules {
            for (one, other) in pairs.iter_mut().filter(|(_, other)| other.is_none()) {
                let at = rest.iter().position(|candidate| belong(one, candidate));
                *other = at.map(|at| rest.remove(at));
            }
        }
        Self { pairs, rest }
    }
}

fn same_row(a: &Measurement, b: &Measurement) -> bool {
    a.file_bytes == b.file_bytes && same_settings(a, b)
}

/// A disk's file is smaller where there is little room. Where whole files are measured, their size is what
/// the row is about.
fn same_but_for_file(a: &Measurement, b: &Measurement) -> bool {
    a.block_bytes.is_some() && same_settings(a, b)
}

fn same_settings(a: &Measurement, b: &Measurement) -> bool {
    let of = |it: &Measurement| (it.block_bytes, it.queue_depth, it.jobs, it.direct, it.end_fsync);
    a.operation == b.operation && of(a) == of(b)
}

fn same_step(a: &Rung, b: &Rung) -> bool {
    a.name == b.name
}

/// A figure's name, and what a row or step has of it.
type Figure<T> = (&'static str, fn(&T) -> Option<f64>);

fn figures_of_row(a: &Measurement, b: &Measurement) -> Vec<Difference> {
    const FIGURES: [Figure<Measurement>; 6] = [
        (BYTES, |row| row.bytes_per_second),
        ("bytes_per_core_second", |row| row.bytes_per_core_second),
        (OPERATIONS, |row| row.operations_per_second),
        ("p50_ns", |row| row.latency_ns.map(|latency| latency.p50 as f64)),
        ("p99_ns", |row| row.latency_ns.map(|latency| latency.p99 as f64)),
        (MOVED, |row| row.device.map(|device| device.bytes_for_each_asked)),
    ];
    let each = |row: &Measurement| Some(row.bytes_per_second? / row.operations_per_second?);
    figures(&name(a, b), (a, b), &FIGURES, is_proportional(each(a), each(b)))
}

fn figures_of_step(a: &Rung, b: &Rung) -> Vec<Difference> {
    const FIGURES: [Figure<Rung>; 2] =
        [(BYTES, |rung| rung.bytes_per_second), (ITEMS, |rung| rung.items_per_second)];
    let each = |rung: &Rung| Some(rung.bytes_per_second? / rung.items_per_second?);
    figures(&step_words(a), (a, b), &FIGURES, is_proportional(each(a), each(b)))
}

fn step_words(rung: &Rung) -> String {
    format!("step {}", rung.name)
}

/// The figures that both have; how often something was done says nothing more where it is `proportional`
/// to the bytes.
fn figures<T>(
    row: &str,
    (a, b): (&T, &T),
    all: &[Figure<T>],
    proportional: bool,
) -> Vec<Difference> {
    let says_more = |figure: &str| !(proportional && [OPERATIONS, ITEMS].contains(&figure));
    let telling = all.iter().filter(|(figure, _)| says_more(figure));
    let both = telling.filter_map(|&(figure, of)| {
        let (first, second) = (of(a)?, of(b)?);
        let percent = (first > 0.0).then(|| (second / first - 1.0) * 100.0);
        Some(Difference { row: row.to_owned(), figure, first, second, percent })
    });
    both.collect()
}

/// Whether as many bytes were moved each time in both, as by a disk's requests: then operations differ as
/// bytes do. What is backed up may have other files each time.
fn is_proportional(a: Option<f64>, b: Option<f64>) -> bool {
    let ratio = a.zip(b).map(|(a, b)| a / b);
    ratio.is_some_and(|ratio| (ratio - 1.0).abs() < EVEN)
}

/// A row in words, with the size of the files and where the bytes came from in each report if that is not
/// the same.
fn name(a: &Measurement, b: &Measurement) -> String {
    let (mut row, mut others) = (a.clone(), String::new());
    if a.file_bytes != b.file_bytes {
        row.file_bytes = None;
        let size = |bytes: Option<u64>| bytes.map_or_else(|| UNKNOWN.to_owned(), shown::file);
        others += &format!(", files of {} / {}", size(a.file_bytes), size(b.file_bytes));
    }
    if a.cache != b.cache {
        row.cache = None;
        let cache = |row: &Measurement| row.cache.map_or(UNKNOWN, Cache::words);
        others += &format!(", {} / {}", cache(a), cache(b));
    }
    shown::row(&row) + &others
}

/// What limited each; where one has fewer verdicts, they are the first.
fn limits(first: &Report, second: &Report) -> Vec<Limited> {
    let layer = |report: &Report, at: usize| Some(report.verdicts.get(at)?.limited_by);
    let most = first.verdicts.len().max(second.verdicts.len());
    (0..most).map(|at| Limited { first: layer(first, at), second: layer(second, at) }).collect()
}

fn other_circumstances(first: &Report, second: &Report) -> Vec<(String, String, String)> {
    let all = |report: &Report| {
        let facts = report.circumstances.iter().chain(&report.facts);
        facts.map(|fact| (fact.name.clone(), fact.value.clone())).collect::<Vec<_>>()
    };
    let (ours, theirs) = (all(first), all(second));
    let value = |of: &[(String, String)], name: &String| {
        let found = of.iter().find(|(other, _)| other == name);
        found.map_or_else(|| UNKNOWN.to_owned(), |(_, value)| value.clone())
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
        assert_eq!(compared.compared, 4 + second.ladder.len());
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
        first.ladder.clear();
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

    /// What is compared, in words.
    fn words(compared: &Comparison) -> Vec<String> {
        compared.differences.iter().map(Difference::words).collect()
    }

    #[test]
    fn a_disks_rows_with_a_file_of_another_size_are_matched_after_those_of_the_same_size() {
        let report = |sizes: [u64; 2]| {
            let row = |mebibytes: u64| Measurement {
                file_bytes: Some(mebibytes << 20),
                latency_ns: None,
                ..fixture::row("sequential read", 1 << 20, mebibytes as f64)
            };
            let mut report = Report::new("c".into(), "m".into());
            report.measurements = sizes.map(row).to_vec();
            report
        };
        let compared = compare(&report([1024, 256]), &report([256, 128]));
        assert_eq!(
            words(&compared),
            [
                "sequential read 1M direct, files of 1 GiB / 128 MiB",
                "sequential read 1M direct, in a file of 256 MiB",
            ]
        );
        let all: Vec<_> = compared.differences.iter().map(|one| (one.first, one.second)).collect();
        assert_eq!(all, [(1024.0, 128.0), (256.0, 256.0)]);
        assert_eq!((compared.compared, compared.only_first.len()), (2, 0));
        assert_eq!(compared.only_second.len(), 0);

        let (mut first, mut second) = (report([1024, 256]), report([128, 64]));
        first.measurements.truncate(1);
        second.measurements.truncate(1);
        first.measurements[0].cache = Some(Cache::Cold);
        let told = words(&compare(&first, &second));
        let both = "sequential read 1M direct, files of 1 GiB / 128 MiB, cold / unknown";
        assert_eq!(told, [both]);
        second.measurements[0].jobs = Some(8);
        assert_eq!(compare(&first, &second).compared, 0, "something else differs, too");
    }

    #[test]
    fn whole_files_of_other_sizes_do_not_belong_together() {
        let mut first = fixture::report();
        first.measurements.drain(..4);
        first.ladder.clear();
        let mut second = first.clone();
        second.measurements[0].file_bytes = Some(2048);
        let compared = compare(&first, &second);
        assert_eq!(compared.compared, 0);
        assert_eq!(compared.only_first, ["create files of 200 MB direct"]);
        assert_eq!(compared.only_second, ["create files of 2 KiB direct"]);
    }

    #[test]
    fn steps_of_the_same_name_are_compared_and_their_items_where_they_say_more() {
        let mut first = fixture::report();
        first.measurements.clear();
        let mut second = first.clone();
        second.ladder[0].bytes_per_second = Some(250e6);
        second.ladder[0].items_per_second = Some(25e3);
        second.ladder[1].name = "loopback".into();
        second.ladder[2].items_per_second = Some(5400.0);
        let compared = compare(&first, &second);
        let told: Vec<_> = compared
            .differences
            .iter()
            .map(|one| (one.words(), one.figure, one.show(one.second)))
            .collect();
        let step = |row: &str, figure, value: &str| (row.to_owned(), figure, value.to_owned());
        assert_eq!(
            told,
            [
                step("step source read", BYTES, "250.0 MB/s"),
                step("step backup", BYTES, "108.0 MB/s"),
                step("step backup", ITEMS, "5,400/s"),
            ]
        );
        assert_eq!(compared.differences[0].percent, Some(-50.0));
        assert_eq!(compared.compared, 2);
        assert_eq!(compared.only_first, ["step wire"]);
        assert_eq!(compared.only_second, ["step loopback"]);

        first.ladder[0].bytes_per_second = None;
        assert_eq!(compare(&first, &second).differences[0].figure, ITEMS, "there are no bytes");
    }

    #[test]
    fn what_limited_each_is_told_the_nth_verdict_beside_the_nth() {
        let first = fixture::report();
        let limits = |second: &Report| {
            let compared = compare(&first, second);
            compared.limited_by.iter().map(|both| both.words()).collect::<Vec<_>>()
        };
        let mut second = first.clone();
        assert_eq!(limits(&second), ["limited by network in both"]);
        second.verdicts[0].limited_by = Layer::ServerDisk;
        second.verdicts.extend(first.verdicts.iter().cloned());
        let told = ["limited by: network / server-disk", "limited by: unknown / network"];
        assert_eq!(limits(&second), told);
        second.verdicts.clear();
        assert_eq!(limits(&second), ["limited by: network / unknown"]);
        assert_eq!(compare(&second, &second).limited_by, []);
    }

    #[test]
    fn other_circumstances_are_told() {
        let first = fixture::report();
        let mut second = first.clone();
        second.circumstances[2].value = "warm".into();
        second.facts.push(Fact::new("journal", "ordered"));
        let told = compare(&first, &second).circumstances;
        let words = |name: &str, a: &str, b: &str| (name.to_owned(), a.to_owned(), b.to_owned());
        assert_eq!(told, [words("cache", "cold", "warm"), words("journal", "unknown", "ordered")]);
    }
}
