//! Pictures as inline SVG: bars, and lines over a scale. No scripts, no fonts, no links.

use std::fmt::Write;

use super::escape;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 190.0;
const BAR: f64 = 24.0;
const PLOT: (f64, f64) = (620.0, 200.0);
const MARGIN: (f64, f64) = (80.0, 20.0);
/// Lines of different colours, which differ in brightness too, and can be seen on white and on black.
const COLOURS: [&str; 6] = ["#2f81c7", "#d1495b", "#2e933c", "#a06cab", "#b8860b", "#808080"];

/// One bar.
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) value: f64,
    pub(super) words: String,
    pub(super) strong: bool,
}

/// Bars below each other, the longest as long as there is room.
pub(super) fn bars(title: &str, bars: &[Bar]) -> String {
    let most = bars.iter().map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
    let height = BAR * bars.len() as f64 + 8.0;
    let mut out = open(title, WIDTH, height);
    for (at, bar) in bars.iter().enumerate() {
        let y = BAR * at as f64 + 4.0;
        let length = (bar.value.max(0.0) / most * (WIDTH - LEFT - 200.0)).max(1.0);
        let colour = if bar.strong { COLOURS[1] } else { COLOURS[0] };
        text(&mut out, LEFT - 8.0, y + 15.0, "end", &bar.name);
        // Writing to a String cannot fail, here and below.
        let _ = write!(
            out,
            "<rect x=\"{LEFT}\" y=\"{:.1}\" width=\"{length:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
            y + 3.0,
            BAR - 8.0
        );
        text(&mut out, LEFT + length + 6.0, y + 15.0, "start", &bar.words);
    }
    out + "</svg>"
}

/// One line of a plot: points in any unit, from left to right.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// How an axis is divided.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Scale {
    /// Into even parts.
    Even,
    /// By the logarithm, with marks at powers of 10.
    Tens,
    /// By the logarithm, with marks at powers of 2.
    Twos,
}

/// How an axis is divided, and what is written at it.
#[derive(Clone, Copy)]
pub(super) struct Axis {
    pub(super) scale: Scale,
    pub(super) show: fn(f64) -> String,
}

impl Axis {
    /// Where on it a value is, from 0 to 1 between the ends of a range.
    fn place(self, value: f64, (low, high): (f64, f64)) -> f64 {
        let (value, low, high) = match self.scale {
            Scale::Even => (value, low, high),
            Scale::Tens | Scale::Twos => (value.log2(), low.log2(), high.log2()),
        };
        if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.5 }
    }

    /// Values to write at it.
    fn marks(self, (low, high): (f64, f64)) -> Vec<f64> {
        let (base, first, last) = match self.scale {
            Scale::Even => return round_marks(low, high),
            Scale::Tens => (10_f64, low.log10(), high.log10()),
            Scale::Twos => (2_f64, low.log2(), high.log2()),
        };
        let (first, last) = (first.ceil() as i32, last.floor() as i32);
        let step = ((last - first) / 6).max(1);
        let powers: Vec<_> = (first..=last).step_by(step.unsigned_abs() as usize).collect();
        if powers.is_empty() {
            vec![low, high]
        } else {
            powers.iter().map(|&e| base.powi(e)).collect()
        }
    }

    /// What can be on it at all.
    fn fits(self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Even || value > 0.0)
    }
}

/// The smallest of 1, 2 and 5 times a power of 10 that divides a length into 6 parts or fewer.
fn round_step(length: f64) -> f64 {
    let least = length / 6.0;
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|times| times * power)
        .find(|step| *step >= least)
        .unwrap_or(10.0 * power)
}

/// Round values from one end to the other.
fn round_marks(low: f64, high: f64) -> Vec<f64> {
    if high <= low {
        return vec![low];
    }
    let step = round_step(high - low);
    let first = (low / step).ceil();
    let count = ((high / step).floor() - first).clamp(0.0, 20.0) as u32;
    // Without the last digits of a product: 0.6 is no 0.6000000000000001.
    let shown = |value: f64| (value * 1e6).round() / 1e6;
    (0..=count).map(|at| shown((first + f64::from(at)) * step)).collect()
}

/// Lines in one plot; empty if no line has a point.
pub(super) fn lines(title: &str, lines: &[Line], (x, y): (Axis, Axis)) -> String {
    let all = lines.iter().flat_map(|line| &line.points);
    let all: Vec<_> = all.filter(|(a, b)| x.fits(*a) && y.fits(*b)).collect();
    let range = |of: fn(&(f64, f64)) -> f64, axis: Axis| {
        let values = || all.iter().map(|point| of(point));
        let low = values().fold(f64::INFINITY, f64::min);
        // A scale of speeds that does not begin at nothing makes much of little.
        (
            if axis.scale == Scale::Even { low.min(0.0) } else { low },
            values().fold(f64::NEG_INFINITY, f64::max),
        )
    };
    if all.is_empty() {
        return String::new();
    }
    let mut up = range(|point| point.1, y);
    if y.scale == Scale::Even && up.1 > up.0 {
        // The highest mark is above all points.
        let step = round_step(up.1 - up.0);
        up.1 = (up.1 / step).ceil() * step;
    }
    let plot = Plot { x, y, across: range(|point| point.0, x), up };
    let height = PLOT.1 + 2.0 * MARGIN.1 + 22.0 + 18.0 * lines.len() as f64;
    let mut out = open(title, WIDTH, height);
    plot.draw_scales(&mut out);
    for (at, line) in lines.iter().enumerate() {
        plot.draw(&mut out, line, at);
    }
    out + "</svg>"
}

struct Plot {
    x: Axis,
    y: Axis,
    across: (f64, f64),
    up: (f64, f64),
}

impl Plot {
    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let across = MARGIN.0 + PLOT.0 * self.x.place(x, self.across);
        (across, MARGIN.1 + PLOT.1 * (1.0 - self.y.place(y, self.up)))
    }

    fn draw_scales(&self, out: &mut String) {
        let show = |axis: Axis, value: f64| {
            if value == 0.0 { "0".to_owned() } else { (axis.show)(value) }
        };
        let (right, bottom) = (MARGIN.0 + PLOT.0, MARGIN.1 + PLOT.1);
        for value in self.y.marks(self.up) {
            let (_, y) = self.at((self.across.0, value));
            let _ = write!(
                out,
                "<path d=\"M{} {y:.1}H{right}\" class=\"grid\" fill=\"none\"/>",
                MARGIN.0
            );
            text(out, MARGIN.0 - 6.0, y + 4.0, "end", &show(self.y, value));
        }
        for value in self.x.marks(self.across) {
            let (x, _) = self.at((value, self.up.0));
            text(out, x, bottom + 18.0, "middle", &show(self.x, value));
        }
    }

    fn draw(&self, out: &mut String, line: &Line, number: usize) {
        let colour = COLOURS[number % COLOURS.len()];
        let dashes = if number < COLOURS.len() { "" } else { " stroke-dasharray=\"7 4\"" };
        let fits = |point: &&(f64, f64)| self.x.fits(point.0) && self.y.fits(point.1);
        let points: Vec<_> = line.points.iter().filter(fits).map(|&point| self.at(point)).collect();
        let path: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = write!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>",
            path.join(" ")
        );
        for (x, y) in points.iter().take(64) {
            let _ = write!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
        let y = MARGIN.1 + PLOT.1 + 40.0 + 18.0 * number as f64;
        let _ = write!(
            out,
            "<path d=\"M{} {:.1}h18\" stroke=\"{colour}\" stroke-width=\"4\"{dashes}/>",
            MARGIN.0 - 4.0,
            y - 5.0
        );
        text(out, MARGIN.0 + 20.0, y, "start", &line.name);
    }
}

fn open(title: &str, width: f64, height: f64) -> String {
    let title = escape::html(title);
    format!("<svg viewBox=\"0 0 {width} {height:.0}\" role=\"img\" aria-label=\"{title}\">")
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let words = escape::html(words);
    let _ = write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINEAR: Axis = Axis { scale: Scale::Even, show: |value| format!("{value:.0}") };
    const LOGARITHMIC: Axis = Axis { scale: Scale::Tens, ..LINEAR };

    fn line(points: &[(f64, f64)]) -> Vec<Line> {
        vec![Line { name: "<one>".into(), points: points.to_vec() }]
    }

    #[test]
    fn a_line_goes_from_corner_to_corner() {
        let drawn = lines("t", &line(&[(0.0, 0.0), (10.0, 5.0)]), (LINEAR, LINEAR));
        assert!(drawn.contains("points=\"80.0,220.0 700.0,20.0\""), "{drawn}");
        assert!(drawn.contains("&lt;one&gt;") && !drawn.contains("<one>"));
        let drawn = lines(
            "t",
            &line(&[(1.0, 1.0), (10.0, 10.0), (100.0, 100.0)]),
            (LOGARITHMIC, LOGARITHMIC),
        );
        assert!(drawn.contains("390.0,120.0"), "the tenth is not in the middle: {drawn}");
    }

    #[test]
    fn marks_are_round_numbers() {
        assert_eq!(round_marks(0.0, 1742.4), [0.0, 500.0, 1000.0, 1500.0]);
        assert_eq!(round_marks(0.0, 0.8), [0.0, 0.2, 0.4, 0.6, 0.8]);
        assert_eq!(round_marks(0.0, 4.0), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(round_marks(3.0, 3.0), [3.0]);
        let show = |value: f64| format!("{value} MB/s");
        let axis = Axis { show, ..LINEAR };
        let drawn = lines("t", &line(&[(0.0, 0.0), (10.0, 871.2)]), (LINEAR, axis));
        assert!(drawn.contains(">0</text>") && drawn.contains(">200 MB/s</text>"), "{drawn}");
        assert!(drawn.contains(">1000 MB/s</text>"), "the highest is above all points: {drawn}");
    }

    #[test]
    fn odd_figures_draw_nothing_odd() {
        for points in [&[][..], &[(f64::NAN, 1.0)], &[(0.0, 0.0)]] {
            assert_eq!(lines("t", &line(points), (LOGARITHMIC, LOGARITHMIC)), "");
        }
        let one = lines("t", &line(&[(3.0, 3.0), (0.0, 1.0)]), (LOGARITHMIC, LOGARITHMIC));
        assert!(!one.contains("NaN") && !one.contains("inf"), "{one}");
        let bar = Bar { name: "a".into(), value: 0.0, words: "0".into(), strong: false };
        let drawn = bars("t", &[bar]);
        assert!(drawn.contains("width=\"1.0\"") && !drawn.contains("NaN"), "{drawn}");
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let bar = |value| Bar { name: String::new(), value, words: String::new(), strong: false };
        let drawn = bars("t", &[bar(100.0), bar(50.0)]);
        assert!(drawn.contains("width=\"330.0\"") && drawn.contains("width=\"165.0\""), "{drawn}");
    }
}
