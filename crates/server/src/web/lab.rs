//! The server's own lab: a test is begun here as a job, its report is kept, and two are put beside each other.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use holdall_lab::report::{Difference, compare as beside};
use holdall_pages::{form, name};
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;

use super::problem::Problem;
use super::shared::Shared;
use super::visitor::{From, Sent, SignedIn};
use crate::admin::{
    Administration, Command, LabEntry, LabTest, ListLab, MeasureLab, Pace, Scope, ShowLab,
};

#[derive(Deserialize)]
pub(super) struct Begin {
    test: LabTest,
    /// Sent where the box is ticked.
    long: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Both {
    first: u64,
    second: u64,
}

/// What was measured, and what can be.
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    who: SignedIn,
) -> Result<Response, Problem> {
    let read = |on: &Administration<'_>| Ok(on.carry_out(&ListLab {})?.reports);
    let reports = shared.read(Pace::Quick, read).await?;
    let content = html! {
        p { "How fast the disk is that the backups lie on, measured by the server itself. It writes at most 537 MB, a tenth of \
             what is free, and nothing stays. It is not begun while a machine stores or reads, and ends when one begins." }
        @if who.may(Scope::Operate) { (beginning(&who.token)) }
        h2 { "Reports" }
        (report_list(&reports))
        @if reports.len() > 1 { (comparing(&reports)) }
        p class="faint" { "A test of the network says what this computer carries to itself, without a wire, and what each of its links negotiated. The way to this browser \
            is measured under Speed; the way from a machine by " code { "holdall lab net" } " there." }
    };
    Ok(who.page(&shared, "Lab", content))
}

fn beginning(token: &str) -> Markup {
    let fields = html! {
        label for="test" { "What to measure" }
        select id="test" name="test" {
            option value="disk" { "The disk: reads, writes and fsyncs" }
            option value="files" { "The file system: many small files" }
            option value="net" { "The network, as far as this computer alone can tell" }
        }
        label class="choice" { input type="checkbox" name="long" value="yes"; " For some minutes, and not for some seconds" }
        button { "Measure" }
    };
    form("/lab", token, &fields)
}

fn report_list(reports: &[LabEntry]) -> Markup {
    if reports.is_empty() {
        return html! { p { "None yet." } };
    }
    html! {
        ul {
            @for one in reports.iter().rev() {
                li { a href=(format!("/lab/{}", one.number)) { (name(&words(one))) } }
            }
        }
    }
}

fn words(entry: &LabEntry) -> String {
    format!("{}: {}, {}", entry.number, entry.command, entry.made)
}

/// A form that changes nothing, so that its address can be kept.
fn comparing(reports: &[LabEntry]) -> Markup {
    let chosen = |id: &str, at_back: usize| {
        html! {
            select id=(id) name=(id) {
                @for (at, one) in reports.iter().rev().enumerate() {
                    option value=(one.number) selected[at == at_back] { (words(one)) }
                }
            }
        }
    };
    html! {
        h2 { "Two beside each other" }
        form method="get" action="/lab/compare" {
            label for="first" { "The first" }
            (chosen("first", 1))
            label for="second" { "The second" }
            (chosen("second", 0))
            button { "Compare" }
        }
    }
}

/// Begins a test.
pub(super) async fn begin(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Sent(begin): Sent<Begin>,
) -> Result<Response, Problem> {
    let command = Command::MeasureLab(MeasureLab { test: begin.test, long: begin.long.is_some() });
    let number = shared.begin_job(who.actor(source), command)?;
    Ok(Redirect::to(&format!("/jobs/{number}")).into_response())
}

/// One report, as the lab draws it.
pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Path(number): Path<u64>,
) -> Result<Response, Problem> {
    let report = shared.ask(who.actor(source), ShowLab { number }).await?.report;
    let content = html! {
        p { (name(&report.command)) ", " (name(&report.made)) }
        // The lab escapes all that it writes.
        div class="report" { (PreEscaped(report.html_content())) }
        p { a href="/lab" { "All reports" } }
    };
    Ok(who.page(&shared, &format!("Report {number}"), content))
}

/// Two reports beside each other.
pub(super) async fn compare(
    State(shared): State<Arc<Shared>>,
    who: SignedIn,
    both: Result<Query<Both>, QueryRejection>,
) -> Result<Response, Problem> {
    let Ok(Query(Both { first, second })) = both else {
        return Err(Problem::not_found("Two reports are compared by their numbers."));
    };
    let read = move |on: &Administration<'_>| {
        let report = |number| on.carry_out(&ShowLab { number }).map(|shown| shown.report);
        Ok((report(first)?, report(second)?))
    };
    let (one, other) = shared.read(Pace::Quick, read).await?;
    let compared = beside(&one, &other);
    let content = html! {
        ul {
            @for (number, report) in [(first, &one), (second, &other)] {
                li { a href=(format!("/lab/{number}")) { "Report " (number) } ": " (name(&report.command)) ", " (name(&report.made)) }
            }
        }
        @if compared.compared == 0 { p class="notice look" { "They measured different things: no row of one is in the other." } }
        @else { (differences(&compared.differences, first, second)) }
        @for (what, here, there) in &compared.circumstances {
            p { "Not the same: " (name(what)) ": " (name(here)) " / " (name(there)) }
        }
        p { a href="/lab" { "All reports" } }
    };
    Ok(who.page(&shared, "Two reports", content))
}

fn differences(all: &[Difference], first: u64, second: u64) -> Markup {
    html! {
        // Who has no mouse moves it by its arrows.
        div class="wide" role="region" aria-label="Differences" tabindex="0" {
            table {
                thead { tr { th { "What" } th class="n" { "Report " (first) } th class="n" { "Report " (second) } th class="n" { "Change" } } }
                tbody {
                    @for one in all {
                        tr {
                            td { (name(&one.words())) }
                            td class="n" { (one.show(one.first)) }
                            td class="n" { (one.show(one.second)) }
                            td class="n" { @if let Some(percent) = one.percent { (format!("{percent:+.1} %")) } }
                        }
                    }
                }
            }
        }
    }
}
