//! Charts as SVG within a page: with classes for their colours, a title and a description for those who do not see them,
//! and a table behind each with the same figures.
//!
//! `sparkline` is a line the size of a word; `columns` has a column for each point of time or thing, `shares` a bar whose
//! parts make a whole, and `two_lines` two lines over one time, each with its axis, whose `ticks` are round.

mod columns;
mod shares;
mod sparkline;
mod ticks;
mod two_lines;

use maud::{Markup, html};

pub use columns::columns;
pub use shares::shares;
pub use sparkline::sparkline;
pub use two_lines::{Line, Moment, TwoLines, two_lines};

/// What a chart shows.
pub struct Chart<'a> {
    /// Tells it apart from the others on its page: letters, digits and `-`.
    pub id: &'a str,
    /// What it is, in a few words.
    pub title: &'a str,
    /// What is seen in it, in a sentence.
    pub description: &'a str,
    /// What the points are called in the table, such as "Day".
    pub points_are: &'a str,
    /// From left to right.
    pub points: Vec<Point>,
}

/// One point of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// What it is of, such as a day.
    pub label: String,
    /// How much; what is no number, or below zero, is drawn as zero.
    pub value: f64,
    /// The same in words, with its unit.
    pub shown: String,
}

impl Chart<'_> {
    /// The greatest value, at least a little, so that all may be divided by it.
    fn greatest(&self) -> f64 {
        self.points.iter().map(Point::height).fold(f64::MIN_POSITIVE, f64::max)
    }

    /// The picture with its name and what is seen in it.
    fn svg(&self, class: &str, (width, height): (f64, f64), inside: &Markup) -> Markup {
        let (title, description) = (format!("{}-title", self.id), format!("{}-desc", self.id));
        html! {
            svg class=(class) viewBox=(format!("0 0 {width} {height}")) role="img"
                aria-labelledby=(format!("{title} {description}")) {
                title id=(title) { (self.title) }
                desc id=(description) { (self.description) }
                (inside)
            }
        }
    }

    /// The same figures as a table.
    fn table(&self) -> Markup {
        html! {
            details {
                summary { (self.title) " as a table" }
                table {
                    thead { tr { th { (self.points_are) } th class="n" { "Value" } } }
                    tbody {
                        @for point in &self.points {
                            tr { td { (point.label) } td class="n" { (point.shown) } }
                        }
                    }
                }
            }
        }
    }
}

impl Point {
    fn height(&self) -> f64 {
        if self.value.is_finite() { self.value.max(0.0) } else { 0.0 }
    }
}

/// A place in a picture, short and the same everywhere.
fn place(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    format!("{rounded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn chart(values: &[f64]) -> Chart<'static> {
        let point = |value: &f64| Point {
            label: "<day>".into(),
            value: *value,
            shown: format!("{value} & more"),
        };
        let points = values.iter().map(point).collect();
        Chart { id: "c", title: "A <title>", description: "Seen", points_are: "Day", points }
    }

    fn drawn(chart: &Chart<'_>) -> [String; 3] {
        [sparkline, columns, shares].map(|draw| draw(chart).into_string())
    }

    #[test]
    fn every_picture_has_its_name_its_description_and_a_table_and_no_style() {
        let chart = chart(&[1.0, 2.0]);
        for picture in drawn(&chart) {
            let has = |part: &str| assert!(picture.contains(part), "{part} in {picture}");
            has("aria-labelledby=\"c-title c-desc\"");
            has("<title id=\"c-title\">A &lt;title&gt;</title>");
            has("<desc id=\"c-desc\">Seen</desc>");
            has("<td>&lt;day&gt;</td><td class=\"n\">2 &amp; more</td>");
            assert!(!picture.contains("style") && !picture.contains("fill="), "{picture}");
        }
    }

    #[test]
    fn what_is_no_number_is_drawn_as_nothing_and_an_empty_chart_is_a_chart() {
        for values in [&[][..], &[0.0], &[f64::NAN, f64::INFINITY, -1.0], &[f64::MAX, 1.0]] {
            let chart = chart(values);
            for picture in drawn(&chart) {
                let (svg, _) = picture.split_once("</svg>").unwrap();
                for never in ["=\"NaN", "=\"inf", "=\"-", ",NaN", ",inf", ",-"] {
                    assert!(!svg.contains(never), "{picture}");
                }
            }
        }
    }

    #[test]
    fn every_element_of_a_picture_ends_or_a_browser_would_hide_what_follows_in_it() {
        for picture in drawn(&chart(&[1.0, 2.0])) {
            let begun = picture.matches('<').count() - picture.matches("</").count();
            assert_eq!(begun, picture.matches("</").count(), "{picture}");
        }
    }
}
