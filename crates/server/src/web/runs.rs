//! Runs, as their machine told them: the last one with its picture, and those before it.

use holdall_meter::{Unit, count, counted, duration, per_second, size};
use holdall_pages::{Chart, Line, Moment, Point, TwoLines, columns, shares, two_lines};
use holdall_protocol::wire::LayerWork;
use maud::{Markup, html};

use super::words::{believed_next_ns, clock, layer_in_words, time};
use crate::admin::RunEntry;

/// Most runs that are listed.
const LISTED: usize = 50;
/// Most runs in the picture of speeds, and most moments in that of one run.
const DRAWN: usize = 60;
const MOMENTS: usize = 100;

/// The section about a machine's runs, the oldest first.
pub(super) fn section(runs: &[RunEntry]) -> Markup {
    let Some(last) = runs.last() else {
        return html! {
            h2 { "Last run" }
            p { "This machine told of none. An older holdall tells nothing of its backups." }
        };
    };
    html! {
        h2 { "Last run" }
        (facts(last))
        (verdict(last))
        @if last.report.points.len() > 1 { (course(last)) }
        @if !last.report.work.is_empty() { (work(last)) }
        h2 { "Runs" }
        @if runs.len() > 1 { (speeds(runs)) }
        (table(runs))
    }
}

/// The speed of a run over all of its time, in bytes and in items a second.
fn rates(run: &RunEntry) -> [f64; 2] {
    let report = &run.report;
    [report.bytes, report.items].map(|amount| per_second(amount, seconds(report.milliseconds)))
}

fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1e3
}

fn bytes_rate(value: f64) -> String {
    if value > 0.0 { Unit::BytesPerSecond.show(value) } else { "0 MB/s".to_owned() }
}

fn items_rate(value: f64) -> String {
    Unit::ItemsPerSecond.show(value)
}

fn facts(run: &RunEntry) -> Markup {
    let report = &run.report;
    let [bytes, items] = rates(run);
    html! {
        dl class="facts" {
            div { dt { "Ended" } dd { (time(run.received_ns)) } }
            div { dt { "Outcome" } dd { (run.outcome()) } }
            div { dt { "Took" } dd { (duration(seconds(report.milliseconds))) } }
            @if report.items > 0 {
                div { dt { "Backed up, about" } dd { (size(report.bytes)) ", " (counted(report.items, "item")) } }
                div { dt { "Sent" } dd { (size(report.sent_bytes)) } }
                div { dt { "On average" } dd { (bytes_rate(bytes)) ", " (items_rate(items)) } }
            }
            @if let Some(ns) = believed_next_ns(run) { div { dt { "Next one" } dd { (time(ns)) } } }
        }
    }
}

/// What held it back, if something did.
fn verdict(run: &RunEntry) -> Markup {
    let report = &run.report;
    let slower = report.usual_milliseconds.map(|usual| {
        format!(
            "Such a run usually takes {}; this one took {}. ",
            duration(seconds(usual)),
            duration(seconds(report.milliseconds))
        )
    });
    let layer = layer_in_words(report.limited_by);
    // What would help a machine is told by its own words for itself.
    let help = report.limited_by.help(None).filter(|help| !help.contains(" here"));
    html! {
        @if slower.is_some() || layer.is_some() {
            p class=(if slower.is_some() { "notice look" } else { "notice" }) {
                @if let Some(slower) = slower { (slower) }
                @if let Some(layer) = layer {
                    "What held it back: " (layer) "."
                    @if let Some(help) = help { " " (help) }
                }
            }
        }
    }
}

/// Bytes and items a second over the run.
fn course(run: &RunEntry) -> Markup {
    let points = &run.report.points;
    let every = points.len().div_ceil(MOMENTS).max(1);
    let last = points.len() - 1;
    let ends: Vec<_> =
        (0..last).step_by(every).chain([last]).filter_map(|at| points.get(at)).collect();
    let rates = ends.windows(2).filter_map(|pair| {
        let [from, to] = pair else { return None };
        let taken = seconds(to.milliseconds.saturating_sub(from.milliseconds));
        let rate = |now: u64, then: u64| per_second(now.saturating_sub(then), taken);
        let (left, right) = (rate(to.bytes, from.bytes), rate(to.items, from.items));
        (taken > 0.0).then(|| Moment { at: seconds(to.milliseconds), left, right })
    });
    let rates: Vec<_> = rates.collect();
    let begin = rates.first().map(|first| Moment { at: 0.0, ..*first });
    let chart = TwoLines {
        id: "course",
        title: "Speed over the run",
        description: "How many bytes and how many items a second were backed up, from the beginning of the run to its end",
        left: Line { name: "MB/s", shown: &bytes_rate },
        right: Line { name: "items/s", shown: &items_rate },
        moments: begin.into_iter().chain(rates).collect(),
        shown_moment: &|at| duration(at),
    };
    two_lines(&chart)
}

/// Which share of the stages' time each layer has.
fn work(run: &RunEntry) -> Markup {
    let point = |work: &LayerWork| Point {
        label: layer_in_words(work.layer).unwrap_or_else(|| "other work".to_owned()),
        value: work.milliseconds as f64,
        shown: duration(seconds(work.milliseconds)),
    };
    let chart = Chart {
        id: "work",
        title: "What the stages worked on",
        description: "Which share of the time of all stages went into each layer, the largest at the left",
        points_are: "Layer",
        points: run.report.work.iter().map(point).collect(),
    };
    shares(&chart)
}

/// The speed of each of the last runs, in what most of them are about.
fn speeds(runs: &[RunEntry]) -> Markup {
    let done = runs.iter().filter(|run| run.report.items > 0);
    let point = |run: &RunEntry| {
        let [bytes, items] = rates(run);
        let label = clock(run.received_ns);
        Point {
            label,
            value: bytes,
            shown: format!("{}, {}", bytes_rate(bytes), items_rate(items)),
        }
    };
    let mut points: Vec<_> = done.map(point).collect();
    points.drain(..points.len().saturating_sub(DRAWN));
    let chart = Chart {
        id: "speeds",
        title: "Speed of each run",
        description: "How many bytes a second each of the last runs backed up, the newest at the right",
        points_are: "Ended",
        points,
    };
    columns(&chart)
}

fn table(runs: &[RunEntry]) -> Markup {
    let older = runs.len().saturating_sub(LISTED);
    html! {
        // Who has no mouse moves it by its arrows.
        div class="wide" role="region" aria-label="Runs" tabindex="0" {
            table {
                thead {
                    tr {
                        th { "Ended" } th { "Outcome" } th class="n" { "Took" } th class="n" { "Items" }
                        th class="n" { "Bytes" } th class="n" { "Sent" } th { "Held back by" }
                    }
                }
                tbody { @for run in runs.iter().rev().take(LISTED) { (row(run)) } }
            }
        }
        @if older > 0 { p class="faint" { "And " (count(older as u64)) " older ones." } }
        p class="faint" {
            "As the machine told them. Items and bytes are rounded up, so that no size of a file can be told from them."
        }
    }
}

fn row(run: &RunEntry) -> Markup {
    let report = &run.report;
    html! {
        tr {
            td { (time(run.received_ns)) }
            td { (run.outcome()) }
            td class="n" { (duration(seconds(report.milliseconds))) }
            td class="n" { (count(report.items)) }
            td class="n" { (size(report.bytes)) }
            td class="n" { (size(report.sent_bytes)) }
            td { (layer_in_words(report.limited_by).unwrap_or_default()) }
        }
    }
}
