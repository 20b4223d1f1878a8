//! One machine: its snapshots as far as a server without keys knows them, its rights, its quota, deletions that wait, and
//! the end of its right to come.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use holdall_meter::{count, size};
use holdall_pages::{columns, form, name};
use maud::{Markup, html};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::entry::{self, Nothing};
use super::problem::Problem;
use super::runs;
use super::shared::Shared;
use super::visitor::{From, Sent, SignedIn};
use super::words::{Known, time};
use crate::ServerError;
use crate::admin::{
    Administration, Cancel, Deletion, ListDeletions, ListRuns, ListSnapshots, Pace, Revoke, Rights,
    RunEntry, Scope, SetQuota,
};

/// Days of the picture.
const DAYS: i64 = 30;
/// Most snapshots that are listed.
const LISTED: usize = 200;
/// Letters of a snapshot's id, as on a terminal.
const ID_SHOWN: usize = 10;

#[derive(Deserialize)]
pub(super) struct Confirmed {
    password: Zeroizing<String>,
}

pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    who: SignedIn,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    check_id(&id)?;
    let read = shared.read(Pace::Usual, move |on| read(on, &id)).await?;
    let title = read.known.machine.name.clone();
    let content = page(&read, &who, shared.now_ns());
    Ok(who.page(&shared, &title, content))
}

/// A page is of one machine, by its whole id: names change.
pub(super) fn check_id(id: &str) -> Result<(), Problem> {
    match id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Ok(()),
        false => Err(Problem::not_found("There is no such machine.")),
    }
}

/// What its page is made of.
struct Read {
    known: Known,
    /// What it told of its runs, the oldest first.
    runs: Vec<RunEntry>,
    deletions: Vec<Deletion>,
}

fn read(on: &Administration<'_>, id: &str) -> Result<Read, ServerError> {
    let machine = on.carry_out(&Rights { machine: id.to_owned(), right: None })?;
    let name = machine.repository.clone();
    let repository = on.carry_out(&SetQuota { repository: name.clone(), quota: None })?;
    let snapshots = match repository.id {
        Some(_) => on.carry_out(&ListSnapshots { repository: name.clone() })?.snapshots,
        None => Vec::new(),
    };
    let mut deletions = on.carry_out(&ListDeletions {})?.deletions;
    deletions.retain(|deletion| deletion.repository == name);
    let runs = on.carry_out(&ListRuns { machine: id.to_owned() })?.runs;
    let known = Known { machine, repository: Some(repository), snapshots };
    Ok(Read { known, runs, deletions })
}

fn page(read: &Read, who: &SignedIn, now_ns: i64) -> Markup {
    let Read { known, runs, deletions } = read;
    let (light, sentence) = known.sentence(now_ns);
    html! {
        p { (light.markup()) " " (name(&sentence)) }
        @for alert in known.alerts() { p class="notice look" { (name(&alert.words)) } }
        (facts(known))
        (runs::section(runs))
        h2 { "Snapshots" }
        (snapshots(known, now_ns))
        p { a href=(format!("/machines/{}/retention", known.machine.id)) { "What is kept of them" } }
        h2 { "Deletions that wait" }
        (waiting(deletions, who))
        @if !known.machine.revoked && who.may(Scope::Administer) { (revoking(known, who)) }
    }
}

fn facts(known: &Known) -> Markup {
    let machine = &known.machine;
    let right = if machine.revoked { "revoked".to_owned() } else { machine.right.to_string() };
    let quota = known.repository.as_ref().and_then(|repository| repository.quota_bytes);
    html! {
        dl class="facts" {
            div { dt { "Right" } dd { (right) } }
            div { dt { "Stored" } dd { (size(known.stored_bytes())) } }
            div { dt { "Quota" } dd { (quota.map_or_else(|| "none".to_owned(), size)) } }
            div { dt { "Repository" } dd { (name(&machine.repository)) } }
            div { dt { "Paired" } dd { (time(machine.created_ns)) } }
            div { dt { "Last here" } dd { @match machine.last_seen_ns { Some(ns) => (time(ns)), None => "never" } } }
        }
    }
}

fn snapshots(known: &Known, now_ns: i64) -> Markup {
    if known.snapshots.is_empty() {
        return html! { p { "None yet." } };
    }
    let older = known.snapshots.len().saturating_sub(LISTED);
    html! {
        (columns(&known.chart("days", DAYS, now_ns)))
        p class="faint" { "The server has no keys: it knows when a snapshot came, and not what is in it." }
        table {
            thead { tr { th { "Came" } th { "Snapshot" } } }
            tbody {
                @for snapshot in known.snapshots.iter().rev().take(LISTED) {
                    tr {
                        td {
                            (time(snapshot.received_ns))
                            @if let Some(taken_ns) = snapshot.taken_ns { ", a copy of " (time(taken_ns)) }
                        }
                        td { code { (snapshot.id.get(..ID_SHOWN).unwrap_or(&snapshot.id)) } }
                    }
                }
            }
        }
        @if older > 0 { p class="faint" { "And " (count(older as u64)) " older ones." } }
    }
}

/// Deletions that wait, each with a button that takes it back for who may.
pub(super) fn waiting(deletions: &[Deletion], who: &SignedIn) -> Markup {
    if deletions.is_empty() {
        return html! { p { "None." } };
    }
    html! {
        ul class="lights" {
            @for deletion in deletions {
                li {
                    span { (deletion.number) }
                    div {
                        p { (what(deletion)) " of " (name(&deletion.repository)) ", on " (time(deletion.due_ns)) "." }
                        @if who.may(Scope::Operate) {
                            (form(
                                &format!("/deletions/{}/cancel", deletion.number),
                                &who.token,
                                &html! { button { "Cancel this deletion" } },
                            ))
                        }
                    }
                }
            }
        }
    }
}

fn what(deletion: &Deletion) -> String {
    match deletion.superseded {
        Some(superseded) => holdall_meter::counted(superseded.blocks, "block"),
        None => holdall_meter::counted(deletion.snapshots.len() as u64, "snapshot"),
    }
}

fn revoking(known: &Known, who: &SignedIn) -> Markup {
    let fields = html! {
        (entry::once_more("password", who))
        button class="grave" { "Revoke" }
    };
    html! {
        h2 { "Lock this machine out" }
        p { "None of its keys will be let in from then on. Its backups stay." }
        (form(&format!("/machines/{}/revoke", known.machine.id), &who.token, &fields))
    }
}

/// Takes a deletion back.
pub(super) async fn cancel(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Path(number): Path<u64>,
    Sent(_): Sent<Nothing>,
) -> Result<Response, Problem> {
    shared.carry_out(who.actor(source), Cancel { number }, "/").await
}

/// Locks a machine out, once the password was given again.
pub(super) async fn revoke(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Path(id): Path<String>,
    Sent(confirmed): Sent<Confirmed>,
) -> Result<Response, Problem> {
    check_id(&id)?;
    entry::check_again(&shared, source, &who, confirmed.password).await?;
    shared
        .carry_out(who.actor(source), Revoke { machine: id.clone() }, &format!("/machines/{id}"))
        .await
}
