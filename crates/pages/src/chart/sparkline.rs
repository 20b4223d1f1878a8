//! A line the size of a word.

use maud::{Markup, html};

use super::{Chart, place};

const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 24.0;
/// Room for half of the line's width at the edges.
const EDGE: f64 = 2.0;

/// Draws a chart as a line, with its table.
pub fn sparkline(chart: &Chart<'_>) -> Markup {
    let line = line_of(chart);
    let picture =
        chart.svg("spark", (WIDTH, HEIGHT), &html! { polyline class="line" points=(line) {} });
    html! { div class="chart" { (picture) (chart.table()) } }
}

fn line_of(chart: &Chart<'_>) -> String {
    let greatest = chart.greatest();
    let step = (WIDTH - 2.0 * EDGE) / (chart.points.len().max(2) - 1) as f64;
    let points = chart.points.iter().enumerate().map(|(at, point)| {
        let (x, share) = (EDGE + at as f64 * step, point.height() / greatest);
        format!("{},{}", place(x), place(HEIGHT - EDGE - share * (HEIGHT - 2.0 * EDGE)))
    });
    points.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::chart;
    use super::*;

    #[test]
    fn the_greatest_is_at_the_top_and_nothing_at_the_bottom() {
        assert_eq!(line_of(&chart(&[0.0, 2.0, 1.0])), "2,22 60,2 118,12");
        assert_eq!(line_of(&chart(&[3.0])), "2,2");
    }
}
