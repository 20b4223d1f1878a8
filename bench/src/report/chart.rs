//! `chart.svg`: how fast every tool is relative to holdall, a row of panels for each set.
//!
//! All panels of a set are of one session, the newest that measured it beside two other tools: a ratio and the seconds
//! next to it must agree, and computers and versions differ from session to session.

use super::stats::{OURS, Runs, newest_session_beside, runs_of_session};
use super::svg::Svg;
use crate::measure::Measure;
use crate::record::Row;

const LINK: &str = "loopback";
/// Each with what it is.
const SETS: [(&str, &str); 3] = [
    ("D1", "150,000 files of 2 KB (D1)"),
    ("D2", "4 files of 1 GiB (D2)"),
    ("D4", "1,000,000 files of 50 to 600 bytes (D4)"),
];
const MEASURES: [(Measure, &str); 3] = [
    (Measure::First, "first backup"),
    (Measure::Unchanged, "nothing changed"),
    (Measure::Restore, "restore"),
];
/// So many tools beside ours say something.
const OTHERS: usize = 2;
const PANEL_WIDTH: f64 = 300.0;
const LETTER_WIDTH: f64 = 7.2;
/// Room behind a bar for its figure.
const FIGURE_WIDTH: f64 = 104.0;
const BAR_PITCH: f64 = 18.0;
const BAR_HEIGHT: f64 = 13.0;
const HEAD_HEIGHT: f64 = 26.0;
const SET_HEIGHT: f64 = 30.0;
const TITLE_HEIGHT: f64 = 30.0;

/// The panels of a set, all of one session.
struct Shown<'a> {
    title: &'static str,
    panels: Vec<(&'static str, Vec<Runs<'a>>)>,
}

impl<'a> Shown<'a> {
    /// Those of a set; none if no session has it beside other tools.
    fn of(rows: &'a [Row], (set, title): (&str, &'static str)) -> Option<Self> {
        let session = newest_session_beside(rows, (LINK, set), OTHERS)?;
        let of = |(measure, name)| (name, runs_of_session(rows, (LINK, set, measure), session));
        let has_ours = |(_, all): &(&str, Vec<Runs<'_>>)| all.iter().any(|runs| runs.tool == OURS);
        Some(Self { title, panels: MEASURES.into_iter().map(of).filter(has_ours).collect() })
    }

    fn height(&self) -> f64 {
        let bars = self.panels.iter().map(|(_, all)| all.len()).max().unwrap_or(0);
        SET_HEIGHT + HEAD_HEIGHT + BAR_PITCH * bars as f64
    }
}

/// The chart; none if nothing was measured that belongs on it.
pub(super) fn svg(rows: &[Row]) -> Option<String> {
    let sets: Vec<_> = SETS.into_iter().filter_map(|set| Shown::of(rows, set)).collect();
    if sets.is_empty() {
        return None;
    }
    let tools = sets.iter().flat_map(|set| set.panels.iter().flat_map(|(_, all)| all));
    let longest = tools.map(|runs| runs.tool.chars().count()).max().unwrap_or(0);
    let names_width = longest as f64 * LETTER_WIDTH + 14.0;
    let width = PANEL_WIDTH * MEASURES.len() as f64;
    let height = TITLE_HEIGHT + sets.iter().map(Shown::height).sum::<f64>() + 12.0;
    let title = "Speed: holdall is 1, longer is faster, and in brackets the median seconds";
    let mut svg = Svg::new(width as u32, height as u32, title);
    svg.text(8.0, 19.0, "start", "t", title);
    let mut y = TITLE_HEIGHT;
    for set in &sets {
        svg.text(8.0, y + 22.0, "start", "t", set.title);
        for (column, (name, all)) in set.panels.iter().enumerate() {
            let at = (column as f64 * PANEL_WIDTH, y + SET_HEIGHT);
            panel(&mut svg, at, names_width, name, all);
        }
        y += set.height();
    }
    Some(svg.finish())
}

fn panel(svg: &mut Svg, (x, y): (f64, f64), names_width: f64, title: &str, all: &[Runs<'_>]) {
    svg.text(x + names_width, y + 16.0, "start", "s", title);
    let speed = |runs: &Runs<'_>| runs.times_as_fast().map_or(0.0, f64::recip);
    let fastest = all.iter().map(speed).fold(1.0, f64::max);
    let scale = (PANEL_WIDTH - names_width - FIGURE_WIDTH) / fastest;
    for (at, runs) in all.iter().enumerate() {
        let top = y + HEAD_HEIGHT + BAR_PITCH * at as f64;
        let text_y = top + BAR_HEIGHT - 2.0;
        let class = if runs.tool == OURS { "o" } else { "p" };
        let length = (speed(runs) * scale).max(1.0);
        svg.text(x + names_width - 6.0, text_y, "end", "", runs.tool);
        svg.rect(x + names_width, top, length, BAR_HEIGHT, class);
        let figure = format!("{:.2} ({})", speed(runs), seconds(runs.seconds()));
        svg.text(x + names_width + length + 5.0, text_y, "start", "s", &figure);
    }
}

/// As many digits as tell two times apart.
fn seconds(value: f64) -> String {
    if value < 1.0 { format!("{value:.3} s") } else { format!("{value:.2} s") }
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
            row("holdall", "D1", Measure::Restore, 0.03),
            row("restic", "D1", Measure::Restore, 0.04),
            row("restic", "D1", Measure::Unchanged, 2.0),
            row("holdall", "D2", Measure::First, 2.0),
            row("restic", "D2", Measure::First, 2.0),
        ];
        let svg = svg(&rows).unwrap();
        assert_eq!(svg.matches("<rect").count(), 5, "no bar without one of holdall: {svg}");
        assert!(svg.contains("0.25 (8.00 s)") && svg.contains("2.00 (1.00 s)"));
        assert!(svg.contains("0.75 (0.040 s)"), "two times that differ look different");
        assert!(svg.contains("150,000 files") && !svg.contains("D2"), "D2 has one other tool");
    }

    #[test]
    fn ratios_and_seconds_are_of_one_session() {
        let of_session = |session, tool, seconds| crate::record::Row {
            session,
            ..row(tool, "D1", Measure::First, seconds)
        };
        let rows = [
            of_session(1, "holdall", 20.0),
            of_session(1, "restic", 40.0),
            of_session(1, "bupstash", 60.0),
            // A newer one, on a computer that is twice as fast, without all of them.
            of_session(2, "holdall", 10.0),
            of_session(2, "bupstash", 30.0),
            crate::record::Row { session: 2, ..row("2 writers", "D1", Measure::Restore, 5.0) },
        ];
        let svg = svg(&rows).unwrap();
        for figure in ["1.00 (20.00 s)", "0.50 (40.00 s)", "0.33 (60.00 s)"] {
            assert!(svg.contains(figure), "{figure}: {svg}");
        }
    }

    #[test]
    fn a_name_has_room() {
        let rows = [
            row("holdall", "D1", Measure::First, 2.0),
            row("holdall-chacha", "D1", Measure::First, 3.0),
            row("restic", "D1", Measure::First, 8.0),
        ];
        let svg = svg(&rows).unwrap();
        let name = svg.lines().find(|line| line.contains(">holdall-chacha<")).unwrap();
        let end: f64 = name.split('"').nth(1).unwrap().parse().unwrap();
        assert!(end >= 14.0 * LETTER_WIDTH, "{name}");
    }

    #[test]
    fn without_a_set_that_belongs_on_it_there_is_no_chart() {
        assert_eq!(svg(&[row("holdall", "T0", Measure::First, 2.0)]), None);
    }
}
