//! `chart.svg`: how fast every tool is relative to holdall, a panel for each set and measure.

use super::stats::{OURS, Runs, distinct, runs};
use super::svg::Svg;
use crate::measure::Measure;
use crate::record::Row;

const LINK: &str = "loopback";
const SETS: [&str; 3] = ["D1", "D2", "D4"];
const MEASURES: [Measure; 3] = [Measure::First, Measure::Unchanged, Measure::Restore];
const PANEL_WIDTH: f64 = 300.0;
const NAME_WIDTH: f64 = 76.0;
/// Room behind a bar for its figure.
const FIGURE_WIDTH: f64 = 96.0;
const BAR_PITCH: f64 = 18.0;
const BAR_HEIGHT: f64 = 13.0;
const HEAD_HEIGHT: f64 = 34.0;
const TITLE_HEIGHT: f64 = 30.0;

/// The chart; none if nothing was measured that belongs on it.
pub(super) fn svg(rows: &[Row]) -> Option<String> {
    let sets: Vec<&str> = SETS.into_iter().filter(|set| !panels(rows, set).is_empty()).collect();
    if sets.is_empty() {
        return None;
    }
    let shown = |row: &&Row| row.link == LINK && SETS.contains(&row.set.as_str());
    let tools = distinct(rows.iter().filter(shown).map(|row| &row.tool)).len();
    let panel_height = HEAD_HEIGHT + BAR_PITCH * tools as f64 + 12.0;
    let width = PANEL_WIDTH * MEASURES.len() as f64;
    let height = TITLE_HEIGHT + panel_height * sets.len() as f64;
    let title = "Median speed relative to holdall = 1 (longer is faster), loopback";
    let mut svg = Svg::new(width as u32, height as u32, title);
    svg.text(8.0, 19.0, "start", "t", title);
    for (row, set) in sets.into_iter().enumerate() {
        for (measure, all) in panels(rows, set) {
            let column = MEASURES.iter().position(|one| *one == measure).unwrap_or(0);
            let at = (column as f64 * PANEL_WIDTH, TITLE_HEIGHT + row as f64 * panel_height);
            panel(&mut svg, at, &format!("{set}: {}", measure.words()), &all);
        }
    }
    Some(svg.finish())
}

/// The measures of `set` in which holdall has a figure.
fn panels<'a>(rows: &'a [Row], set: &str) -> Vec<(Measure, Vec<Runs<'a>>)> {
    let of = |measure| (measure, runs(rows, LINK, set, measure));
    let has_ours = |(_, all): &(Measure, Vec<Runs<'_>>)| all.iter().any(|runs| runs.tool == OURS);
    MEASURES.into_iter().map(of).filter(has_ours).collect()
}

fn panel(svg: &mut Svg, (x, y): (f64, f64), title: &str, all: &[Runs<'_>]) {
    svg.text(x + 8.0, y + 20.0, "start", "t", title);
    let speed = |runs: &Runs<'_>| runs.times_as_fast().map_or(0.0, f64::recip);
    let fastest = all.iter().map(speed).fold(1.0, f64::max);
    let scale = (PANEL_WIDTH - NAME_WIDTH - FIGURE_WIDTH) / fastest;
    for (at, runs) in all.iter().enumerate() {
        let top = y + HEAD_HEIGHT + BAR_PITCH * at as f64;
        let text_y = top + BAR_HEIGHT - 2.0;
        let class = if runs.tool == OURS { "o" } else { "p" };
        let length = (speed(runs) * scale).max(1.0);
        svg.text(x + NAME_WIDTH - 6.0, text_y, "end", "", runs.tool);
        svg.rect(x + NAME_WIDTH, top, length, BAR_HEIGHT, class);
        let figure = format!("{:.2} ({:.2} s)", speed(runs), runs.seconds());
        svg.text(x + NAME_WIDTH + length + 5.0, text_y, "start", "s", &figure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::row;

    #[test]
    fn every_tool_has_a_bar_in_every_panel() {
        let rows = [
            row("holdall", "D1", Measure::First, 2.0),
            row("restic", "D1", Measure::First, 8.0),
            row("rsync", "D1", Measure::First, 1.0),
            row("holdall", "D1", Measure::Restore, 2.0),
            row("restic", "D2", Measure::First, 2.0),
        ];
        let svg = svg(&rows).unwrap();
        assert_eq!(svg.matches("<rect").count(), 4, "no bar without one of holdall");
        assert!(svg.contains("0.25 (8.00 s)") && svg.contains("2.00 (1.00 s)"));
    }

    #[test]
    fn without_a_set_that_belongs_on_it_there_is_no_chart() {
        assert_eq!(svg(&[row("holdall", "T0", Measure::First, 2.0)]), None);
    }
}
