//! A column for each point.

use maud::{Markup, html};

use super::{Chart, place};

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 101.0;
/// Below the columns, for half of the axis's width.
const EDGE: f64 = 1.0;

/// Draws a chart as columns, with its table.
pub fn columns(chart: &Chart<'_>) -> Markup {
    let (greatest, count) = (chart.greatest(), chart.points.len().max(1) as f64);
    let (step, room) = (WIDTH / count, HEIGHT - EDGE);
    let inside = html! {
        @for (at, point) in chart.points.iter().enumerate() {
            @let high = point.height() / greatest * room;
            rect class="column" x=(place(at as f64 * step + step * 0.1)) y=(place(room - high))
                width=(place(step * 0.8)) height=(place(high)) {
                title { (point.label) ": " (point.shown) }
            }
        }
        line class="axis" x1="0" y1=(place(room)) x2=(place(WIDTH)) y2=(place(room)) {}
    };
    // Letters within the picture would shrink with it.
    let ends = html! {
        div class="ends" aria-hidden="true" {
            @if let Some(first) = chart.points.first() { span { (first.label) } }
            @if let [_, .., last] = &chart.points[..] { span { (last.label) } }
        }
    };
    html! {
        div class="chart" {
            (chart.svg("columns", (WIDTH, HEIGHT), &inside))
            (ends)
            (chart.table())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::chart;
    use super::*;

    #[test]
    fn columns_stand_side_by_side_as_high_as_their_share_of_the_greatest() {
        let picture = columns(&chart(&[4.0, 1.0])).into_string();
        let has = |part: &str| assert!(picture.contains(part), "{part} in {picture}");
        has("x=\"30\" y=\"0\" width=\"240\" height=\"100\"");
        has("x=\"330\" y=\"75\" width=\"240\" height=\"25\"");
    }
}
