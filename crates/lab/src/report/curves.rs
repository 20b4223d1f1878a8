//! What a report's pictures show: which rows belong into one line.

use std::collections::BTreeMap;

use holdall_meter::Unit;

use super::svg::{Axis, Bar, Line, Scale, bars, lines};
use super::{Moment, Report, Rung, shown};
use crate::Measurement;

/// More lines than this in one picture say nothing.
const MOST_LINES: usize = 12;

const SECONDS: Axis = Axis { scale: Scale::Even, show: seconds };
const BYTE_RATE: Axis = Axis { scale: Scale::Even, show: shown::rate_mark };
const ITEM_RATE: Axis = Axis { scale: Scale::Even, show: shown::frequency };
const CORES: Axis = Axis { scale: Scale::Even, show: |cores| format!("{cores} cores") };
/// Files: 1 kB, 10 kB, ...
const FILES: Axis = Axis { scale: Scale::Tens, show: |bytes| shown::file(bytes as u64) };
/// Requests: 4K, 8K, ...
const BLOCKS: Axis = Axis { scale: Scale::Twos, show: |bytes| shown::block(bytes as u64) };
/// `12 s`, `0.4 s`: short runs have marks within a second.
fn seconds(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    format!("{rounded} s")
}

/// A picture and what it shows.
pub(super) struct Picture {
    pub(super) title: String,
    pub(super) svg: String,
}

/// The pictures of a report, those that have something to show.
pub(super) fn pictures(report: &Report) -> Vec<Picture> {
    // Of a run that was about items, bytes say little, and the other way round.
    let is_about = |unit| report.verdicts.first().is_none_or(|verdict| verdict.unit == unit);
    let if_about = |unit, picture: String| if is_about(unit) { picture } else { String::new() };
    let bytes = || over_time(report, "MB/s", BYTE_RATE, |moment| moment.bytes_per_second);
    let items = || over_time(report, "items/s", ITEM_RATE, |moment| moment.items_per_second);
    let pictures = [
        ("The ladder", ladder(report)),
        ("The ladder, in items", if_about(Unit::ItemsPerSecond, item_ladder(report))),
        ("Bytes over time", if_about(Unit::BytesPerSecond, bytes())),
        ("Items over time", if_about(Unit::ItemsPerSecond, items())),
        ("Processor over time", processor(report)),
        ("Speed by size of file", by_size(report, FILES, |row| row.file_bytes)),
        ("Speed by size of request", by_size(report, BLOCKS, |row| row.block_bytes)),
        ("Speed by how many at once", by_jobs(report)),
    ];
    let pictures = pictures.map(|(title, svg)| Picture { title: title.to_owned(), svg });
    pictures.into_iter().filter(|picture| !picture.svg.is_empty()).collect()
}

fn ladder(report: &Report) -> String {
    let of = |rung: &Rung| Some((rung.bytes_per_second?, shown::rate(rung.bytes_per_second?)));
    rungs(report, "What each step can do, in bytes", of)
}

fn item_ladder(report: &Report) -> String {
    let of = |rung: &Rung| Some((rung.items_per_second?, shown::frequency(rung.items_per_second?)));
    rungs(report, "What each step can do, in items", of)
}

/// A bar for each step; behind its figure stands how much of that the backup reached.
fn rungs(report: &Report, title: &str, of: fn(&Rung) -> Option<(f64, String)>) -> String {
    let bar = |rung: &Rung| {
        let (value, mut words) = of(rung)?;
        if let Some(beside) = rung.beside() {
            words += &format!(", {beside}");
        }
        Some(Bar { name: rung.name.clone(), value, words, strong: rung.reached })
    };
    let drawn: Vec<_> = report.ladder.iter().filter_map(bar).collect();
    if drawn.is_empty() { String::new() } else { bars(title, &drawn) }
}

/// Cores that were busy: this process's, and the server's where it told.
fn processor(report: &Report) -> String {
    let line = |name: &str, of: fn(&Moment) -> Option<f64>| {
        let points = report.timeline.iter();
        let points: Vec<_> =
            points.filter_map(|moment| Some((moment.seconds, of(moment)?))).collect();
        (points.len() > 1).then(|| Line { name: name.to_owned(), points })
    };
    let drawn = [line("this process", |m| m.cores), line("the server", |m| m.server_cores)];
    let drawn: Vec<_> = drawn.into_iter().flatten().collect();
    lines("Processor over time", &drawn, (SECONDS, CORES))
}

fn over_time(report: &Report, name: &str, axis: Axis, of: fn(&super::Moment) -> f64) -> String {
    let points: Vec<_> =
        report.timeline.iter().map(|moment| (moment.seconds, of(moment))).collect();
    if points.len() < 2 {
        return String::new();
    }
    lines("Speed over time", &[Line { name: name.to_owned(), points }], (SECONDS, axis))
}

/// Rows that differ in one size only make a line; one that has a single point makes none.
fn by_size(report: &Report, sizes: Axis, size: fn(&Measurement) -> Option<u64>) -> String {
    let name = |row: &Measurement| {
        let mut other = of_a_line(row);
        if size(row) == row.file_bytes {
            other.file_bytes = None;
        }
        if size(row) == row.block_bytes {
            other.block_bytes = None;
        }
        shown::row(&other)
    };
    let point = |row: &Measurement| Some((size(row)? as f64, row.bytes_per_second?));
    lines("Speed by size", &grouped(&report.measurements, name, point), (sizes, BYTE_RATE))
}

/// A row without what one point of a line may have and another may not: a known name, a cache that had it.
fn of_a_line(row: &Measurement) -> Measurement {
    Measurement { known_as: None, cache: None, ..row.clone() }
}

fn by_jobs(report: &Report) -> String {
    // A job's file may be as long as its share of what one alone has.
    let name = |row: &Measurement| {
        let file_bytes = row.file_bytes.filter(|_| row.block_bytes.is_none());
        shown::row(&Measurement { jobs: None, file_bytes, ..of_a_line(row) })
    };
    let point = |row: &Measurement| Some((f64::from(row.jobs?), row.bytes_per_second?));
    let axis = Axis { scale: Scale::Even, show: |jobs| format!("{jobs}") };
    lines("Speed by jobs", &grouped(&report.measurements, name, point), (axis, BYTE_RATE))
}

fn grouped(
    rows: &[Measurement],
    name: impl Fn(&Measurement) -> String,
    point: impl Fn(&Measurement) -> Option<(f64, f64)>,
) -> Vec<Line> {
    let mut groups: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for row in rows {
        if let Some(point) = point(row) {
            groups.entry(name(row)).or_default().push(point);
        }
    }
    let several = |points: &mut Vec<(f64, f64)>| {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.first().map(|first| first.0) != points.last().map(|last| last.0)
    };
    let lines = groups
        .into_iter()
        .filter_map(|(name, mut points)| several(&mut points).then_some(Line { name, points }));
    lines.take(MOST_LINES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn a_full_report_has_every_picture_that_its_rows_allow() {
        let pictures = pictures(&fixture::report());
        let titles: Vec<_> = pictures.iter().map(|picture| picture.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "The ladder",
                "Bytes over time",
                "Processor over time",
                "Speed by size of file",
                "Speed by size of request",
            ]
        );
        let of = |title: &str| &pictures.iter().find(|picture| picture.title == title).unwrap().svg;
        assert_eq!(of("Speed by size of file").matches("<polyline").count(), 1);
        assert_eq!(of("Processor over time").matches("<polyline").count(), 2);
        assert!(of("The ladder").contains("117.0 MB/s, 75 % used"), "{}", of("The ladder"));
        let mut of_items = fixture::report();
        of_items.verdicts[0].unit = Unit::ItemsPerSecond;
        let titles: Vec<_> = super::pictures(&of_items).into_iter().map(|one| one.title).collect();
        assert_eq!(titles[1..3], ["The ladder, in items", "Items over time"]);
        let by_request = of("Speed by size of request");
        assert!(by_request.contains("sequential write direct"), "{by_request}");
        assert!(by_request.contains(">4K<") && by_request.contains(">1M<"), "{by_request}");
    }

    #[test]
    fn readers_are_drawn_against_speed_whatever_their_rows_are_called() {
        let mut report = fixture::report();
        let first =
            report.measurements.iter().find(|row| row.block_bytes.is_some()).unwrap().clone();
        let row = |jobs, file_bytes, known_as: Option<&str>| {
            let known_as = known_as.map(str::to_owned);
            Measurement {
                jobs: Some(jobs),
                file_bytes: Some(file_bytes),
                known_as,
                ..first.clone()
            }
        };
        report.measurements = vec![
            row(1, 512 << 20, Some("RND4K Q1T1")),
            row(8, 16 << 20, None),
            row(32, 16 << 20, None),
        ];
        let pictures = pictures(&report);
        let drawn = pictures.iter().find(|one| one.title == "Speed by how many at once").unwrap();
        let (_, line) = drawn.svg.split_once("points=\"").unwrap();
        let points = line.split('"').next().unwrap().split(' ');
        assert_eq!(points.count(), 3, "{}", drawn.svg);
    }

    #[test]
    fn an_empty_report_has_no_pictures() {
        assert_eq!(pictures(&Report::new("c".into(), "m".into())).len(), 0);
    }
}
