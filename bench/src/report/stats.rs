//! Rows of the same kind together: medians, ranges and ratios.

use crate::measure::Measure;
use crate::record::Row;

/// The name of the tool that all others are compared with.
pub(super) const OURS: &str = "holdall";

/// The runs of one tool in one measure, in the newest session that measured it.
pub(super) struct Runs<'a> {
    pub(super) tool: &'a str,
    rows: Vec<&'a Row>,
    /// The median of ours in that session.
    ours_seconds: Option<f64>,
}

impl Runs<'_> {
    pub(super) fn count(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn first(&self) -> &Row {
        self.rows[0]
    }

    /// The median of a figure.
    pub(super) fn median(&self, figure: impl Fn(&Row) -> f64) -> f64 {
        median(self.rows.iter().map(|row| figure(row)).collect())
    }

    /// The median of a figure that not all rows have; none if none has it.
    pub(super) fn median_of(&self, figure: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
        let figures: Vec<f64> = self.rows.iter().filter_map(|row| figure(row)).collect();
        (!figures.is_empty()).then(|| median(figures))
    }

    pub(super) fn seconds(&self) -> f64 {
        self.median(|row| row.figures.wall_seconds)
    }

    pub(super) fn range_seconds(&self) -> (f64, f64) {
        let all = || self.rows.iter().map(|row| row.figures.wall_seconds);
        (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max))
    }

    /// How many times as fast ours was in the same session; none without ours.
    pub(super) fn times_as_fast(&self) -> Option<f64> {
        Some(self.seconds() / self.ours_seconds?)
    }
}

/// The runs of every tool in one measure, the fastest first. Computers and versions change, so only those of
/// one session are taken together and compared.
pub(super) fn runs<'a>(rows: &'a [Row], link: &str, set: &str, measure: Measure) -> Vec<Runs<'a>> {
    let is_meant = |row: &&Row| row.link == link && row.set == set && row.measure == measure;
    let meant: Vec<&Row> = rows.iter().filter(is_meant).collect();
    let in_session = |tool: &str, session| -> Vec<&'a Row> {
        let is_of = |row: &&&Row| row.tool == tool && row.session == session;
        meant.iter().filter(is_of).copied().collect()
    };
    let seconds = |rows: Vec<&Row>| rows.iter().map(|row| row.figures.wall_seconds).collect();
    let of_tool = |tool: &'a str| {
        let session = meant.iter().filter(|row| row.tool == tool).map(|row| row.session).max()?;
        let ours: Vec<f64> = seconds(in_session(OURS, session));
        let ours_seconds = (!ours.is_empty()).then(|| median(ours));
        Some(Runs { tool, rows: in_session(tool, session), ours_seconds })
    };
    let tools = distinct(meant.iter().map(|row| row.tool.as_str()));
    let mut found: Vec<Runs<'a>> = tools.into_iter().filter_map(of_tool).collect();
    found.sort_by(|a, b| a.seconds().total_cmp(&b.seconds()));
    found
}

/// The runs of every tool in one measure of one session, ours first and then the fastest first; so that figures which
/// stand beside each other are of one computer on one day.
pub(super) fn runs_of_session<'a>(
    rows: &'a [Row],
    (link, set, measure): (&str, &str, Measure),
    session: u32,
) -> Vec<Runs<'a>> {
    let is_meant = |row: &&Row| {
        row.session == session && row.link == link && row.set == set && row.measure == measure
    };
    let meant: Vec<&Row> = rows.iter().filter(is_meant).collect();
    let of = |tool: &str| meant.iter().filter(|row| row.tool == tool).copied().collect::<Vec<_>>();
    let ours = of(OURS);
    let ours_seconds = (!ours.is_empty())
        .then(|| median(ours.iter().map(|row| row.figures.wall_seconds).collect()));
    let tools = distinct(meant.iter().map(|row| row.tool.as_str()));
    let runs = tools.into_iter().map(|tool| Runs { tool, rows: of(tool), ours_seconds });
    let mut found: Vec<Runs<'a>> = runs.collect();
    found.sort_by(|a, b| {
        (a.tool != OURS).cmp(&(b.tool != OURS)).then(a.seconds().total_cmp(&b.seconds()))
    });
    found
}

/// The newest session that measured first backups of a set with us and at least so many other tools.
pub(super) fn newest_session_beside(
    rows: &[Row],
    (link, set): (&str, &str),
    others: usize,
) -> Option<u32> {
    let is_of_set =
        |row: &&Row| row.link == link && row.set == set && row.measure == Measure::First;
    let of_set = || rows.iter().filter(is_of_set);
    let sessions = distinct(of_set().map(|row| row.session));
    let has_enough = |session: &u32| {
        let tools = distinct(of_set().filter(|row| row.session == *session).map(|row| &row.tool));
        tools.len() > others && tools.iter().any(|tool| *tool == OURS)
    };
    sessions.into_iter().filter(has_enough).max()
}

/// The sessions from which something is shown.
pub(super) fn shown_sessions(rows: &[Row]) -> Vec<u32> {
    let is_newest = |row: &&Row| {
        let same = |other: &&Row| {
            (&other.tool, &other.set, other.measure, &other.link)
                == (&row.tool, &row.set, row.measure, &row.link)
        };
        rows.iter().filter(same).all(|other| other.session <= row.session)
    };
    distinct(rows.iter().filter(is_newest).map(|row| row.session))
}

/// What a figure of every row is, each once, in the order in which they came.
pub(super) fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// The middle of `figures`, which are not empty; of an even number the mean of the middle two.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() % 2 {
        0 => f64::midpoint(figures[middle - 1], figures[middle]),
        _ => figures[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::row;

    #[test]
    fn a_median_is_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), 2.5);
    }

    #[test]
    fn runs_are_grouped_by_tool_and_compared_with_ours() {
        let first = Measure::First;
        let rows = [
            row("slow", "D1", first, 9.0),
            row("holdall", "D1", first, 2.0),
            row("slow", "D1", first, 7.0),
            row("slow", "D1", first, 8.0),
            row("slow", "D2", first, 1.0),
            row("slow", "D1", Measure::Restore, 1.0),
        ];
        let all = runs(&rows, "loopback", "D1", first);
        assert_eq!(all.iter().map(|runs| runs.tool).collect::<Vec<_>>(), ["holdall", "slow"]);
        assert_eq!((all[1].count(), all[1].range_seconds()), (3, (7.0, 9.0)));
        assert_eq!(all[1].times_as_fast(), Some(4.0));
        let alone = runs(&rows, "loopback", "D2", first);
        assert_eq!(alone[0].times_as_fast(), None);
        assert!(runs(&rows, "1gbit", "D1", first).is_empty());
    }

    #[test]
    fn of_each_tool_the_newest_session_counts_and_is_compared_with_ours_in_it() {
        let of =
            |session, tool, seconds| Row { session, ..row(tool, "D1", Measure::First, seconds) };
        let rows = [
            of(1, "holdall", 4.0),
            of(1, "rare", 12.0),
            of(1, "often", 9.0),
            of(2, "often", 7.0),
            of(3, "holdall", 2.0),
            of(3, "often", 6.0),
        ];
        let all = runs(&rows, "loopback", "D1", Measure::First);
        let figures = all.iter().map(|runs| (runs.tool, runs.seconds(), runs.times_as_fast()));
        let expected =
            [("holdall", 2.0, Some(1.0)), ("often", 6.0, Some(3.0)), ("rare", 12.0, Some(3.0))];
        assert_eq!(figures.collect::<Vec<_>>(), expected);
        assert_eq!(shown_sessions(&rows), [1, 3]);
    }

    #[test]
    fn a_figure_that_some_rows_lack_has_the_median_of_the_others() {
        let rows = [row("a", "D1", Measure::First, 1.0), row("a", "D1", Measure::First, 1.0)];
        let all = runs(&rows, "loopback", "D1", Measure::First);
        assert_eq!(all[0].median_of(|row| row.ceiling_bytes_per_second), None);
        assert_eq!(all[0].median_of(|row| row.stored_bytes.map(|at| at as f64)), Some(4e6));
    }
}
