//! What the server does that takes long, and what machines do here now: how far it is, its log, and an end to it.
//!
//! A page of what runs is renewed by itself, with a script and without.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use holdall_meter::{duration, size};
use holdall_pages::{Light, form, name};
use maud::{Markup, html};
use serde::Deserialize;

use super::entry::Nothing;
use super::live;
use super::problem::Problem;
use super::shared::Shared;
use super::visitor::{From, Sent, SignedIn};
use super::words::time;
use crate::admin::{
    AlsoRepair, CancelJob, Command, EndSession, JobEntry, LabEntry, ListJobs, ListSessions,
    Outcome, Pace, Prune, Scope, Scrub, SessionEntry, ShowJob,
};

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum What {
    Scrub,
    Prune,
}

#[derive(Deserialize)]
pub(super) struct Begin {
    what: What,
}

/// All of them.
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    who: SignedIn,
) -> Result<Response, Problem> {
    let read = |on: &crate::admin::Administration<'_>| {
        Ok((on.carry_out(&ListJobs {})?.jobs, on.carry_out(&ListSessions {})?.sessions))
    };
    let (jobs, sessions) = shared.read(Pace::Quick, read).await?;
    let runs = !sessions.is_empty() || jobs.iter().any(|job| job.outcome == Outcome::Running);
    let content = html! {
        h2 { "Machines that are here now" }
        (session_list(&sessions, &who))
        p class="faint" { a href="/bandwidth" { "Limits by hours of the week" } }
        h2 { "Jobs of the server" }
        (job_list(&jobs))
        @if who.may(Scope::Operate) {
            (beginning("scrub", "Read everything again", &who.token))
            (beginning("prune", "Apply the rules now", &who.token))
        }
        p class="faint" { "Every hour the server applies the rules and reads a part of what is stored by itself. " a href="/upkeep" { "Change when" } }
        @if runs { (live::script()) }
    };
    Ok(live::allow(who.page(&shared, "Jobs", content)))
}

fn beginning(what: &str, words: &str, token: &str) -> Markup {
    form(
        "/jobs",
        token,
        &html! { input type="hidden" name="what" value=(what); button { (words) } },
    )
}

fn session_list(sessions: &[SessionEntry], who: &SignedIn) -> Markup {
    if sessions.is_empty() {
        return html! { p { "None." } };
    }
    html! {
        ul {
            @for session in sessions {
                li {
                    (name(&session.who)) ": "
                    @if session.taken_bytes > 0 { (size(session.taken_bytes)) " taken" }
                    @else if session.given_bytes > 0 { (size(session.given_bytes)) " read" }
                    @else { "nothing yet" }
                    " in " (duration(session.seconds)) ", now " (size(session.bytes_per_second as u64)) "/s"
                    @if let Some(limit) = &session.limited_by {
                        @if limit.starts_with("the limit") { ", held back by " } @else { ", limited by " }
                        (limit)
                    }
                    @if who.may(Scope::Operate) {
                        (form(&format!("/sessions/{}/end", session.number), &who.token, &html! { button { "End it" } }))
                    }
                }
            }
        }
    }
}

fn job_list(jobs: &[JobEntry]) -> Markup {
    if jobs.is_empty() {
        return html! { p { "None since the server started." } };
    }
    html! {
        ul class="lights" {
            @for job in jobs {
                li {
                    (light(job.outcome).markup())
                    div {
                        a href=(format!("/jobs/{}", job.number)) { (name(&job.what)) }
                        p { (sentence(job)) }
                    }
                }
            }
        }
    }
}

fn light(outcome: Outcome) -> Light {
    match outcome {
        Outcome::Running | Outcome::Cancelled => Light::Off,
        Outcome::Done => Light::Good,
        Outcome::Failed => Light::Bad,
    }
}

fn sentence(job: &JobEntry) -> Markup {
    let how = match job.outcome {
        Outcome::Running => "runs",
        Outcome::Done => "done",
        Outcome::Failed => "failed",
        Outcome::Cancelled => "cancelled",
    };
    html! {
        "Begun " (time(job.begun_ns)) " for " (name(&job.who)) ", " (how)
        @if let Some(ended_ns) = job.ended_ns {
            ", took " (duration((ended_ns - job.begun_ns).max(0) as f64 / 1e9))
        }
        @if let Some(error) = &job.error { ": " (name(error)) }
        "."
        @if let (Some(steps), Outcome::Running) = (job.steps, job.outcome) {
            " " (steps.done) " of " (steps.total) " steps."
        }
        @if let (Some(now), Outcome::Running) = (job.progress, job.outcome) {
            " " (size(now.done_bytes)) " of " (size(now.total_bytes)) ", " (size(now.bytes_per_second as u64)) "/s"
            @if now.bytes_per_second > 0.0 {
                @let left = now.total_bytes.saturating_sub(now.done_bytes) as f64 / now.bytes_per_second;
                ", about " (duration(left)) " left"
            }
            "."
        }
    }
}

/// One of them, with its log.
pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Path(number): Path<u64>,
) -> Result<Response, Problem> {
    let job = shared.ask(who.actor(source), ShowJob { number }).await?;
    let runs = job.outcome == Outcome::Running;
    let content = html! {
        p { (light(job.outcome).markup()) " " (sentence(&job)) }
        @if runs && who.may(Scope::Operate) {
            (form(&format!("/jobs/{number}/cancel"), &who.token, &html! { button class="grave" { "Cancel" } }))
        }
        h2 { "Log" }
        @if job.lines.is_empty() { p { "Nothing was said." } }
        @for line in &job.lines { p { (time(line.time_ns)) " " (name(&line.text)) } }
        @if let Some(number) = report(&job) {
            p { a href=(format!("/lab/{number}")) { "What was measured" } }
        }
        p { a href="/jobs" { "All jobs" } }
        @if runs { (live::script()) }
    };
    Ok(live::allow(who.page(&shared, &job.what, content)))
}

/// The report that it made, if it measured.
fn report(job: &JobEntry) -> Option<u64> {
    let entry: LabEntry = serde_json::from_value(job.answer.clone()?).ok()?;
    Some(entry.number)
}

/// Begins one.
pub(super) async fn begin(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Sent(begin): Sent<Begin>,
) -> Result<Response, Problem> {
    let command = match begin.what {
        What::Scrub => Command::Scrub(Scrub { repository: None, also: AlsoRepair::default() }),
        What::Prune => Command::Prune(Prune { repository: None, dry_run: false }),
    };
    let number = shared.begin_job(who.actor(source), command)?;
    Ok(Redirect::to(&format!("/jobs/{number}")).into_response())
}

/// Has one end.
pub(super) async fn cancel(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Path(number): Path<u64>,
    Sent(_): Sent<Nothing>,
) -> Result<Response, Problem> {
    shared.carry_out(who.actor(source), CancelJob { number }, &format!("/jobs/{number}")).await
}

/// Has a machine's run end.
pub(super) async fn end_session(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Path(number): Path<u64>,
    Sent(_): Sent<Nothing>,
) -> Result<Response, Problem> {
    shared.carry_out(who.actor(source), EndSession { number }, "/jobs").await
}
