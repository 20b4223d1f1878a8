//! Who signs in here and who looks on: a code for one more, an end to all sessions of one, and taking one away.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use holdall_meter::counted;
use holdall_pages::{field, form, name};
use maud::{Markup, html};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::entry;
use super::problem::Problem;
use super::shared::Shared;
use super::visitor::{From, Sent, SignedIn};
use super::words::time;
use crate::admin::{EndSessions, ListPeople, MakeWebCode, Pace, PersonEntry, RemovePerson, Scope};

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum What {
    SignOut,
    Remove,
}

#[derive(Deserialize)]
pub(super) struct Change {
    person: String,
    what: What,
    password: Zeroizing<String>,
}

#[derive(Deserialize)]
pub(super) struct NewPerson {
    name: String,
    scope: Scope,
    password: Zeroizing<String>,
}

pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    who: SignedIn,
) -> Result<Response, Problem> {
    who.check(Scope::Administer)?;
    let people = shared.read(Pace::Quick, |on| Ok(on.carry_out(&ListPeople {})?.people)).await?;
    let content = html! {
        (list(&people))
        h2 { "Sign somebody out, or remove them" }
        (changing(&people, &who))
        h2 { "One more person" }
        p { "A code is made, with which they choose a password. It takes the place of any code that was made before." }
        (adding(&who))
    };
    Ok(who.page(&shared, "People", content))
}

fn list(people: &[PersonEntry]) -> Markup {
    html! {
        ul class="list" {
            @for one in people {
                li {
                    div {
                        strong { (name(&one.name)) }
                        p {
                            @if one.scope == Scope::Look { "Looks on, by a link" }
                            @else { "May " (one.scope) ", second factor " @if one.second_factor { "on" } @else { "off" } }
                            "; " (counted(one.sessions as u64, "session")) " open"
                            @if let Some(ns) = one.signed_in_ns { ", signed in last " (time(ns)) }
                            "."
                        }
                    }
                }
            }
        }
        p class="faint" { "Who looks on has a token, which is revoked in the " a href="/settings" { "settings" } "." }
    }
}

fn changing(people: &[PersonEntry], who: &SignedIn) -> Markup {
    let fields = html! {
        label for="person" { "Who" }
        select id="person" name="person" {
            @for one in people.iter().filter(|one| one.scope > Scope::Look) {
                option value=(one.name) { (holdall_format::Shown(one.name.as_bytes()).to_string()) }
            }
        }
        (entry::once_more("password", who))
        button name="what" value="sign-out" { "Sign out everywhere" }
        " "
        button class="grave" name="what" value="remove" { "Remove" }
    };
    form("/people", &who.token, &fields)
}

fn adding(who: &SignedIn) -> Markup {
    let fields = html! {
        (field("name", "What they are called", "off"))
        label for="scope" { "What they may do" }
        select id="scope" name="scope" {
            option value="read" { "read: see everything but tokens and who had what changed" }
            option value="operate" { "operate: scrub, prune, cancel deletions" }
            option value="administer" { "administer: everything" }
        }
        (entry::once_more("new-password", who))
        button { "Make a code" }
    };
    form("/people/code", &who.token, &fields)
}

/// Signs somebody out, or takes them away.
pub(super) async fn change(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Sent(change): Sent<Change>,
) -> Result<Response, Problem> {
    entry::check_again(&shared, source, &who, change.password).await?;
    let (actor, name) = (who.actor(source), change.person);
    match change.what {
        What::SignOut => shared.ask(actor, EndSessions { name }).await?,
        What::Remove => shared.ask(actor, RemovePerson { name }).await?,
    };
    Ok(Redirect::to("/people").into_response())
}

/// Makes a code for somebody, and shows it once.
pub(super) async fn make_code(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Sent(new): Sent<NewPerson>,
) -> Result<Response, Problem> {
    entry::check_again(&shared, source, &who, new.password).await?;
    let called = new.name.trim().to_owned();
    let asked = MakeWebCode { name: Some(called.clone()), scope: new.scope };
    let made = shared.ask(who.actor(source), asked).await?;
    let content = html! {
        p { (name(&called)) " opens one of these, and types in the code, that name, and a password of their own:" }
        @for address in &made.addresses { p { code { "https://" (address) "/setup" } } }
        p { code { (made.code.as_str()) } }
        p { "It is good once, until " (time(made.expires_ns)) ", and shown this once." }
        p { a href="/people" { "Back to the people" } }
    };
    Ok(who.page(&shared, "A code", content))
}
