//! Who may come: machines by invite, programs and a family by tokens; and who had what changed.
//!
//! A token or an invite is shown once, in the answer to the form that made it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use holdall_pages::{field, form, name};
use maud::{Markup, html};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::entry;
use super::problem::Problem;
use super::shared::Shared;
use super::visitor::{From, Sent, SignedIn};
use super::words::time;
use crate::accounts::InviteRequest;
use crate::admin::{
    Administration, ApiToken, AuditEntry, ChannelEntry, Invite, ListApiTokens, ListAudit,
    ListChannels, MakeApiToken, Pace, RevokeApiToken, Scope, TestChannel,
};

/// Entries of the audit log that are shown.
const ENTRIES: usize = 100;
/// How long an invite from a page is good: time to walk to the machine.
const INVITE_S: u64 = 3600;

#[derive(Deserialize)]
pub(super) struct NewToken {
    name: String,
    scope: Scope,
    password: Zeroizing<String>,
}

#[derive(Deserialize)]
pub(super) struct Named {
    name: String,
}

#[derive(Deserialize)]
pub(super) struct NewMachine {
    machine: String,
    password: Zeroizing<String>,
}

pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    who: SignedIn,
) -> Result<Response, Problem> {
    if !who.may(Scope::Administer) {
        return Ok(who.page(&shared, "Settings", own()));
    }
    let read = |on: &Administration<'_>| {
        let tokens = on.carry_out(&ListApiTokens {})?.tokens;
        let channels = on.carry_out(&ListChannels {})?.channels;
        Ok((tokens, channels, on.carry_out(&ListAudit { before: None, most: ENTRIES })?.entries))
    };
    let (tokens, channels, entries) = shared.read(Pace::Quick, read).await?;
    let content = html! {
        (own())
        p { a href="/people" { "People who sign in here" } }
        h2 { "Let a machine in" }
        (inviting(&who))
        h2 { "Tokens" }
        p { "For programs such as Prometheus, and for who may only look. A token is shown once." }
        (token_list(&tokens, &who.token))
        (token_form(&who))
        h2 { "Who is told" }
        (channel_list(&channels, &who.token))
        h2 { "What was changed" }
        (audit(&entries))
    };
    Ok(who.page(&shared, "Settings", content))
}

/// What everybody has who signs in.
fn own() -> Markup {
    html! { p { a href="/second-factor" { "Your second factor" } } }
}

fn inviting(who: &SignedIn) -> Markup {
    let fields = html! {
        (field("machine", "What the machine is called", "off"))
        (entry::once_more("password", who))
        button { "Make an invite" }
    };
    form("/invites", &who.token, &fields)
}

fn token_list(tokens: &[ApiToken], token: &str) -> Markup {
    if tokens.is_empty() {
        return html! { p { "None." } };
    }
    html! {
        ul class="lights" {
            @for one in tokens {
                li {
                    span {}
                    div {
                        p { (name(&one.name)) ": may " (one.scope) ", made " (time(one.made_ns))
                            @if let Some(ns) = one.expires_ns() { ", good until " (time(ns)) } "." }
                        (form("/tokens/revoke", token, &html! {
                            input type="hidden" name="name" value=(one.name);
                            button class="grave" { "Revoke" }
                        }))
                    }
                }
            }
        }
    }
}

fn channel_list(channels: &[ChannelEntry], token: &str) -> Markup {
    html! {
        @if channels.is_empty() {
            p class="notice look" { "Nobody is told when a backup fails." }
        }
        ul class="lights" {
            @for one in channels {
                li {
                    span {}
                    div {
                        p { (name(&one.name)) ": " (one.kind) " to " (name(&one.to)) "." }
                        (form("/notices/test", token, &html! {
                            input type="hidden" name="name" value=(one.name);
                            button class="quiet" { "Send a trial" }
                        }))
                    }
                }
            }
        }
        p class="faint" { code { "holdall admin notify NAME" } " on the server adds e-mail, a webhook, ntfy or a ping." }
    }
}

fn token_form(who: &SignedIn) -> Markup {
    let fields = html! {
        (field("name", "What it is for", "off"))
        label for="scope" { "What may be done with it" }
        select id="scope" name="scope" {
            option value="look" { "look: the overview and metrics" }
            option value="read" { "read: everything that pages show" }
            option value="operate" { "operate: scrub, prune, cancel deletions" }
            option value="administer" { "administer: nearly everything" }
        }
        (entry::once_more("token-password", who))
        button { "Make a token" }
    };
    form("/tokens", &who.token, &fields)
}

fn audit(entries: &[AuditEntry]) -> Markup {
    html! {
        table {
            thead { tr { th { "When" } th { "Who" } th { "What" } } }
            tbody {
                @for entry in entries {
                    tr {
                        td { (time(entry.time_ns)) }
                        td { (name(&entry.who)) @if let Some(from) = &entry.from { " at " (from) } }
                        td {
                            (entry.command) " " (name(&entry.fields.to_string()))
                            @if let Some(why) = &entry.error { ", not done: " (name(why)) }
                        }
                    }
                }
            }
        }
    }
}

/// Makes a token, and shows it once.
pub(super) async fn make_token(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Sent(new): Sent<NewToken>,
) -> Result<Response, Problem> {
    entry::check_again(&shared, source, &who, new.password).await?;
    let (called, scope) = (new.name.trim().to_owned(), new.scope);
    let asked = MakeApiToken { name: called.clone(), scope, valid_for_s: None };
    let made = shared.ask(who.actor(source), asked).await?;
    let content = html! {
        p { "For " (name(&called)) ", which may " (scope) ". It is shown this once:" }
        p { code { (*made.token) } }
        @if scope == Scope::Look {
            p { "Whoever opens this address sees the overview, and nothing else:" }
            @for address in &made.addresses {
                p { code { "https://" (address) "/look/" (*made.token) } }
            }
        }
        p { a href="/settings" { "Back to the settings" } }
    };
    Ok(who.page(&shared, "A token", content))
}

/// Takes a token away.
pub(super) async fn revoke_token(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Sent(named): Sent<Named>,
) -> Result<Response, Problem> {
    shared.ask(who.actor(source), RevokeApiToken { name: named.name }).await?;
    Ok(Redirect::to("/settings").into_response())
}

/// Sends a trial.
pub(super) async fn test_channel(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Sent(named): Sent<Named>,
) -> Result<Response, Problem> {
    shared.ask(who.actor(source), TestChannel { name: named.name.clone() }).await?;
    let content = html! {
        p { "A trial was sent by " (name(&named.name)) ", and was taken. See whether it arrives." }
        p { a href="/settings" { "Back to the settings" } }
    };
    Ok(who.page(&shared, "A trial", content))
}

/// Makes an invite, and shows it once.
pub(super) async fn invite(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Sent(new): Sent<NewMachine>,
) -> Result<Response, Problem> {
    entry::check_again(&shared, source, &who, new.password).await?;
    let called = new.machine.trim().to_owned();
    let request = InviteRequest {
        name: Some(called.clone()),
        valid_for_s: Some(INVITE_S),
        ..InviteRequest::default()
    };
    let made = shared.ask(who.actor(source), Invite { request }).await?;
    let text = made.invite.to_text();
    let content = html! {
        p { "For " (name(&called)) ", good once, until " (time(made.expires_ns)) ". Run on that machine:" }
        p { code { "holdall pair " (text.as_str()) } }
        @if let Some(code) = holdall_pages::qr_code(&text, "The invite as a code to scan") { (code) }
        p { "Whoever has it may let one machine in. It is shown this once." }
        p { a href="/settings" { "Back to the settings" } }
    };
    Ok(who.page(&shared, "An invite", content))
}
