//! Who may come: machines by invite, programs and a family by tokens; and who is told.
//!
//! A token is shown once, in the answer to the form that made it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use holdall_pages::{field, form, name};
use maud::{Markup, html};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::entry;
use super::invites;
use super::problem::Problem;
use super::shared::Shared;
use super::visitor::{From, Sent, SignedIn};
use super::words::time;
use crate::admin::{
    Administration, ApiToken, ChannelEntry, ListApiTokens, ListChannels, ListInvites, MakeApiToken,
    Pace, RevokeApiToken, Scope, TestChannel,
};

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

pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    who: SignedIn,
) -> Result<Response, Problem> {
    if !who.may(Scope::Administer) {
        return Ok(who.page(&shared, "Settings", own()));
    }
    let read = |on: &Administration<'_>| {
        let tokens = on.carry_out(&ListApiTokens {})?.tokens;
        let invites = on.carry_out(&ListInvites {})?.invites;
        let channels = on.carry_out(&ListChannels {})?.channels;
        Ok((tokens, invites, channels))
    };
    let (tokens, invites, channels) = shared.read(Pace::Quick, read).await?;
    let content = html! {
        (own())
        p { a href="/people" { "People who sign in here" } }
        p { a href="/audit" { "Who had what changed" } }
        (invites::section(&invites, &who))
        h2 { "Tokens" }
        p { "For programs such as Prometheus, and for who may only look. A token is shown once." }
        (token_list(&tokens, &who.token))
        (token_form(&who))
        h2 { "Who is told" }
        (channel_list(&channels, &who.token))
    };
    Ok(who.page(&shared, "Settings", content))
}

/// What everybody has who signs in.
fn own() -> Markup {
    html! {
        p { a href="/password" { "Your password" } }
        p { a href="/second-factor" { "Your second factor" } }
    }
}

fn token_list(tokens: &[ApiToken], token: &str) -> Markup {
    if tokens.is_empty() {
        return html! { p { "None." } };
    }
    html! {
        ul class="list" {
            @for one in tokens {
                li {
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
        ul class="list" {
            @for one in channels {
                li {
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
    shared.carry_out(who.actor(source), RevokeApiToken { name: named.name }, "/settings").await
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
