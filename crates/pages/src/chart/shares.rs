//! A bar of parts that make a whole.

use maud::{Markup, html};

use super::{Chart, Point, place};

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 24.0;
/// So many colours there are for parts; those behind them look alike, and are told apart by the key.
const COLOURS: usize = 6;

/// Draws each point as its share of all of them, side by side, with a key and the table. The table and the key have what
/// `shown` says, and the key the share besides.
pub fn shares(chart: &Chart<'_>) -> Markup {
    let all = chart.points.iter().map(Point::height).map(|value| value / 1e3).sum::<f64>();
    let share = |point: &Point| point.height() / 1e3 / all.max(f64::MIN_POSITIVE);
    let mut from = 0.0;
    let parts: Vec<_> = chart
        .points
        .iter()
        .map(|point| {
            let begin = from;
            from += share(point);
            (point, begin, share(point))
        })
        .collect();
    let inside = html! {
        @for (at, (point, begin, share)) in parts.iter().enumerate() {
            rect class=(part_class(at)) x=(place(begin * WIDTH)) y="0" width=(place(share * WIDTH)) height=(place(HEIGHT)) {
                title { (point.label) ": " (percent(*share)) }
            }
        }
    };
    html! {
        div class="chart" {
            (chart.svg("shares", (WIDTH, HEIGHT), &inside))
            ul class="key" {
                @for (at, (point, _, share)) in parts.iter().enumerate() {
                    li { span class=(format!("swatch {}", part_class(at))) {} " " (point.label) " " (percent(*share)) }
                }
            }
            (chart.table())
        }
    }
}

fn part_class(at: usize) -> String {
    format!("part part-{}", at % COLOURS)
}

fn percent(share: f64) -> String {
    match 100.0 * share {
        percent if percent > 0.0 && percent < 1.0 => "under 1 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::chart;
    use super::*;

    #[test]
    fn parts_stand_side_by_side_as_wide_as_their_share() {
        let picture = shares(&chart(&[3.0, 1.0])).into_string();
        let has = |part: &str| assert!(picture.contains(part), "{part} in {picture}");
        has("class=\"part part-0\" x=\"0\" y=\"0\" width=\"450\"");
        has("class=\"part part-1\" x=\"450\" y=\"0\" width=\"150\"");
        has("&lt;day&gt; 75 %");
        assert_eq!([0.0, 0.002, 0.254].map(percent), ["0 %", "under 1 %", "25 %"]);
    }
}
