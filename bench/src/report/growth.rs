//! How time and memory grow with the number of files: a table, and a chart with both scales
//! logarithmic, on which what grows in proportion is a straight line.

use super::stats::{Runs, distinct, runs};
use super::svg::Svg;
use crate::measure::Measure;
use crate::record::Row;

const MEASURES: [Measure; 2] = [Measure::First, Measure::Unchanged];
const HEAD: &str = "\
| files | measure | runs | median s | files/s | client MiB | server MiB | client CPU s | server CPU s |
| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";
const PLOT: (f64, f64) = (320.0, 220.0);
const LEFT: f64 = 56.0;
const TOP: f64 = 64.0;
const PANEL_WIDTH: f64 = 430.0;
const HEIGHT: u32 = 320;

/// The points of one measure, the fewest files first.
fn points(rows: &[Row], measure: Measure) -> Vec<Runs<'_>> {
    let sets = distinct(rows.iter().map(|row| (row.link.as_str(), row.set.as_str())));
    let of_set = |(link, set)| runs(rows, link, set, measure);
    let mut points: Vec<Runs<'_>> = sets.into_iter().flat_map(of_set).collect();
    points.sort_by_key(|runs| runs.first().files);
    points
}

/// The table of `rows`.
pub(super) fn table(rows: &[Row]) -> String {
    let mut table = HEAD.to_owned();
    for measure in MEASURES {
        for runs in points(rows, measure) {
            let files = runs.first().files;
            table += &format!(
                "| {files} | {} | {} | {:.2} | {:.0} | {:.0} | {:.0} | {:.1} | {:.1} |\n",
                measure.words(),
                runs.count(),
                runs.seconds(),
                files as f64 / runs.seconds(),
                client_mebibytes(&runs),
                server_mebibytes(&runs),
                runs.median(|row| row.figures.client_cpu_seconds),
                runs.median(|row| row.figures.server_cpu_seconds),
            );
        }
    }
    table
}

fn client_mebibytes(runs: &Runs<'_>) -> f64 {
    runs.median(|row| row.figures.client_peak_bytes as f64) / f64::from(1 << 20)
}

fn server_mebibytes(runs: &Runs<'_>) -> f64 {
    runs.median(|row| row.figures.server_peak_bytes as f64) / f64::from(1 << 20)
}

/// A named line of a plot: files and a figure for each point.
type Line = (String, Vec<(f64, f64)>);

/// The chart; none with fewer than two sizes, which make no line.
pub(super) fn svg(rows: &[Row]) -> Option<String> {
    if distinct(rows.iter().map(|row| row.files)).len() < 2 {
        return None;
    }
    let line = |name: String, measure, figure: fn(&Runs<'_>) -> f64| -> Line {
        let point = |runs: &Runs<'_>| (runs.first().files as f64, figure(runs));
        (name, points(rows, measure).iter().map(point).collect())
    };
    let mut seconds = Vec::new();
    let mut memory = Vec::new();
    for measure in MEASURES {
        let words = measure.words();
        seconds.push(line(words.into(), measure, |runs| runs.seconds()));
        memory.push(line(format!("{words}, client"), measure, client_mebibytes));
        memory.push(line(format!("{words}, server"), measure, server_mebibytes));
    }
    let title = "holdall over the number of files";
    let mut svg = Svg::new((2.0 * PANEL_WIDTH) as u32, HEIGHT, title);
    plot(&mut svg, 0.0, "Seconds over files", &seconds);
    plot(&mut svg, PANEL_WIDTH, "Peak memory in MiB over files", &memory);
    Some(svg.finish())
}

/// Powers of ten below and above all of `figures`.
fn decades(figures: impl Iterator<Item = f64> + Clone) -> (i32, i32) {
    let low = figures.clone().fold(f64::INFINITY, f64::min).max(1e-3).log10().floor();
    let high = figures.fold(0.0, f64::max).max(1e-3).log10().ceil();
    (low as i32, (high as i32).max(low as i32 + 1))
}

fn plot(svg: &mut Svg, x: f64, title: &str, lines: &[Line]) {
    let all = || lines.iter().flat_map(|(_, points)| points.iter());
    let (x_low, x_high) = decades(all().map(|point| point.0));
    let (y_low, y_high) = decades(all().map(|point| point.1));
    let share = |value: f64, low: i32, high: i32| {
        (value.max(1e-3).log10() - f64::from(low)) / f64::from(high - low)
    };
    let at_x = |files: f64| x + LEFT + PLOT.0 * share(files, x_low, x_high);
    let at_y = |figure: f64| TOP + PLOT.1 * (1.0 - share(figure, y_low, y_high));
    svg.text(x + 8.0, 19.0, "start", "t", title);
    svg.line(&[(x + LEFT, TOP), (x + LEFT, TOP + PLOT.1), (x + LEFT + PLOT.0, TOP + PLOT.1)], "a");
    for decade in x_low..=x_high {
        let files = 10f64.powi(decade);
        svg.text(at_x(files), TOP + PLOT.1 + 18.0, "middle", "s", &files.to_string());
    }
    for decade in y_low..=y_high {
        let figure = 10f64.powi(decade);
        svg.text(x + LEFT - 6.0, at_y(figure) + 4.0, "end", "s", &figure.to_string());
    }
    for (at, (name, points)) in lines.iter().enumerate() {
        let class = format!("c{at}");
        let points: Vec<(f64, f64)> =
            points.iter().map(|(files, figure)| (at_x(*files), at_y(*figure))).collect();
        svg.line(&points, &class);
        let key = (x + LEFT + 8.0 + 170.0 * (at % 2) as f64, 34.0 + 14.0 * (at / 2) as f64);
        svg.line(&[(key.0, key.1 - 4.0), (key.0 + 18.0, key.1 - 4.0)], &class);
        svg.text(key.0 + 23.0, key.1, "start", "s", name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::row;

    fn of_size(files: u64, measure: Measure, seconds: f64) -> Row {
        Row { files, ..row("holdall", &format!("G{files}"), measure, seconds) }
    }

    #[test]
    fn sizes_are_sorted_and_have_lines() {
        let rows = [
            of_size(100_000, Measure::First, 2.0),
            of_size(10_000, Measure::First, 0.25),
            of_size(10_000, Measure::Unchanged, 0.125),
            of_size(100_000, Measure::Unchanged, 0.5),
        ];
        let table = table(&rows);
        let lines: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[0], "| 10000 | first full | 1 | 0.25 | 40000 | 90 | 40 | 3.0 | 0.5 |");
        assert!(lines[3].starts_with("| 100000 | unchanged | 1 | 0.50 | 200000 |"));
        let chart = svg(&rows).unwrap();
        // Two axes, and two lines and four with a key each.
        assert_eq!(chart.matches("<polyline").count(), 2 + 2 * 6);
        assert_eq!(svg(&rows[..1]), None);
    }

    #[test]
    fn decades_are_around_all_figures() {
        assert_eq!(decades([0.25, 40.0].into_iter()), (-1, 2));
        assert_eq!(decades([10.0].into_iter()), (1, 2));
    }
}
