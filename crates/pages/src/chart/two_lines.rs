//! Two lines over one time, each with an axis of its own: what belongs together and has not one unit, such as bytes and
//! items a second.

use maud::{Markup, html};

use super::place;
use super::ticks::{Ticks, round_ticks};

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 160.0;
/// Above and below the lines, for half of their width.
const EDGE: f64 = 2.0;
/// Nothing is drawn greater than that, so that all can be added and divided.
const MOST: f64 = 1e300;
/// About so many ticks an axis has.
const TICKS: usize = 4;

/// Two lines over one time.
pub struct TwoLines<'a> {
    /// Tells it apart from the others on its page: letters, digits and `-`.
    pub id: &'a str,
    /// What it is, in a few words.
    pub title: &'a str,
    /// What is seen in it, in a sentence.
    pub description: &'a str,
    /// The line whose axis is at the left.
    pub left: Line<'a>,
    /// The line whose axis is at the right.
    pub right: Line<'a>,
    /// The moments of both, from left to right.
    pub moments: Vec<Moment>,
    /// What a moment is called, such as `1 min 5 s`; its number is any that grows with time.
    pub shown_moment: &'a dyn Fn(f64) -> String,
}

/// One of the lines.
pub struct Line<'a> {
    /// What it is, with its unit, such as `MB/s`.
    pub name: &'a str,
    /// A value of it in words.
    pub shown: &'a dyn Fn(f64) -> String,
}

/// What both lines are at a moment. What is no number, or below zero, is drawn as zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// When.
    pub at: f64,
    /// The value of the line at the left.
    pub left: f64,
    /// The value of the line at the right.
    pub right: f64,
}

/// Draws both lines, with their axes and the table behind them.
pub fn two_lines(chart: &TwoLines<'_>) -> Markup {
    let moments: Vec<_> = chart.moments.iter().map(Moment::bounded).collect();
    let greatest = |of: fn(&Moment) -> f64| moments.iter().map(of).fold(0.0, f64::max);
    let left = round_ticks(greatest(|moment| moment.left), TICKS);
    let right = round_ticks(greatest(|moment| moment.right), TICKS);
    let line = |of: fn(&Moment) -> f64, ticks: &Ticks| polyline(&moments, of, ticks.end);
    let inside = html! {
        @for tick in &left.places {
            @let y = place(height(*tick, left.end));
            line class="grid" x1="0" y1=(y) x2=(place(WIDTH)) y2=(y) {}
        }
        polyline class="line" points=(line(|moment| moment.left, &left)) {}
        polyline class="line other" points=(line(|moment| moment.right, &right)) {}
    };
    html! {
        div class="chart" {
            p class="key" {
                span class="of-line" { (chart.left.name) } " "
                span class="of-line other" { (chart.right.name) }
            }
            div class="between" {
                (axis(&left, &chart.left))
                (picture(chart, &inside))
                (axis(&right, &chart.right))
            }
            (ends(chart, &moments))
            (table(chart, &moments))
        }
    }
}

impl Moment {
    fn bounded(&self) -> Self {
        let bounded = |value: f64| if value.is_finite() { value.clamp(0.0, MOST) } else { 0.0 };
        let Self { at, left, right } = *self;
        Self { at: bounded(at), left: bounded(left), right: bounded(right) }
    }
}

fn height(value: f64, end: f64) -> f64 {
    HEIGHT - EDGE - value / end * (HEIGHT - 2.0 * EDGE)
}

fn polyline(moments: &[Moment], of: fn(&Moment) -> f64, end: f64) -> String {
    let first = moments.first().map_or(0.0, |moment| moment.at);
    let last = moments.last().map_or(0.0, |moment| moment.at);
    let all = (last - first).max(f64::MIN_POSITIVE);
    let point = |moment: &Moment| {
        let x = ((moment.at - first) / all).clamp(0.0, 1.0) * WIDTH;
        format!("{},{}", place(x), place(height(of(moment), end)))
    };
    moments.iter().map(point).collect::<Vec<_>>().join(" ")
}

fn picture(chart: &TwoLines<'_>, inside: &Markup) -> Markup {
    let (title, description) = (format!("{}-title", chart.id), format!("{}-desc", chart.id));
    html! {
        svg class="lines" viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img"
            aria-labelledby=(format!("{title} {description}")) {
            title id=(title) { (chart.title) }
            desc id=(description) { (chart.description) }
            (inside)
        }
    }
}

/// The ticks of an axis from top to bottom. Letters within the picture would shrink with it.
fn axis(ticks: &Ticks, line: &Line<'_>) -> Markup {
    html! {
        div class="ticks" aria-hidden="true" {
            @for tick in ticks.places.iter().rev() { span { ((line.shown)(*tick)) } }
        }
    }
}

fn ends(chart: &TwoLines<'_>, moments: &[Moment]) -> Markup {
    html! {
        div class="ends" aria-hidden="true" {
            @if let Some(first) = moments.first() { span { ((chart.shown_moment)(first.at)) } }
            @if let [_, .., last] = moments { span { ((chart.shown_moment)(last.at)) } }
        }
    }
}

fn table(chart: &TwoLines<'_>, moments: &[Moment]) -> Markup {
    html! {
        details {
            summary { (chart.title) " as a table" }
            table {
                thead {
                    tr { th { "Until" } th class="n" { (chart.left.name) } th class="n" { (chart.right.name) } }
                }
                tbody {
                    @for moment in moments {
                        tr {
                            td { ((chart.shown_moment)(moment.at)) }
                            td class="n" { ((chart.left.shown)(moment.left)) }
                            td class="n" { ((chart.right.shown)(moment.right)) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(values: &[(f64, f64, f64)]) -> String {
        let moment = |&(at, left, right): &(f64, f64, f64)| Moment { at, left, right };
        let chart = TwoLines {
            id: "c",
            title: "A <title>",
            description: "Seen",
            left: Line { name: "MB/s", shown: &|value| format!("{value} <MB>") },
            right: Line { name: "items/s", shown: &|value| format!("{value} items") },
            moments: values.iter().map(moment).collect(),
            shown_moment: &|at| format!("{at} s"),
        };
        two_lines(&chart).into_string()
    }

    #[test]
    fn each_line_goes_up_to_a_round_end_of_its_own_axis() {
        let picture = drawn(&[(0.0, 0.0, 0.0), (5.0, 10.0, 400.0), (10.0, 20.0, 100.0)]);
        let has = |part: &str| assert!(picture.contains(part), "{part} in {picture}");
        has("class=\"line\" points=\"0,158 300,80 600,2\"");
        has("class=\"line other\" points=\"0,158 300,2 600,119\"");
        has("<span>20 &lt;MB&gt;</span><span>15 &lt;MB&gt;</span>");
        has("<span>400 items</span><span>300 items</span>");
        has("<span>0 s</span><span>10 s</span>");
    }

    #[test]
    fn it_has_its_name_its_description_and_a_table_and_no_style() {
        let picture = drawn(&[(0.0, 1.0, 2.0), (1.0, 2.0, 3.0)]);
        let has = |part: &str| assert!(picture.contains(part), "{part} in {picture}");
        has("aria-labelledby=\"c-title c-desc\"");
        has("<title id=\"c-title\">A &lt;title&gt;</title>");
        has("<td>1 s</td><td class=\"n\">2 &lt;MB&gt;</td><td class=\"n\">3 items</td>");
        assert!(!picture.contains("style=") && !picture.contains("fill="), "{picture}");
        let begun = picture.matches('<').count() - picture.matches("</").count();
        assert_eq!(begun, picture.matches("</").count(), "{picture}");
    }

    #[test]
    fn what_is_no_number_is_drawn_as_nothing_and_an_empty_chart_is_a_chart() {
        let odd = f64::NAN;
        for values in [
            &[][..],
            &[(0.0, 0.0, 0.0)],
            &[(1.0, odd, f64::INFINITY), (1.0, -1.0, 1.0), (odd, 1.0, 1.0)],
            &[(0.0, f64::MAX, 1.0), (f64::MAX, 1.0, f64::MIN_POSITIVE)],
        ] {
            let picture = drawn(values);
            let (svg, _) = picture.split_once("</svg>").unwrap();
            for never in ["=\"NaN", "=\"inf", "=\"-", ",NaN", ",inf", ",-", " NaN", " inf", " -"] {
                assert!(!svg.contains(never), "{never}: {picture}");
            }
        }
    }
}
