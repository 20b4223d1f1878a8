//! Invites of machines, and short codes in their place: one is made and shown once, those that are open are listed, and taken back.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
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
use crate::admin::{Invite, InviteEntry, MakeShortCode, WithdrawInvite};

/// How long an invite from a page is good: time to walk to the machine.
const INVITE_S: u64 = 3600;

#[derive(Deserialize)]
pub(super) struct NewMachine {
    machine: String,
    password: Zeroizing<String>,
}

#[derive(Deserialize)]
pub(super) struct Withdrawn {
    id: String,
}

/// Those that are open, each with a button that takes it back, and a form for one more.
pub(super) fn section(open: &[InviteEntry], who: &SignedIn) -> Markup {
    let fields = html! {
        (field("machine", "What the machine is called", "off"))
        (entry::once_more("password", who))
        button { "Make an invite" }
        button formaction="/invites/short" class="quiet" { "Show a short code" }
    };
    html! {
        h2 { "Let a machine in" }
        @if !open.is_empty() {
            ul class="list" { @for invite in open { li { (one(invite, &who.token)) } } }
        }
        (form("/invites", &who.token, &fields))
    }
}

fn one(invite: &InviteEntry, token: &str) -> Markup {
    html! {
        div {
            p {
                "An invite for "
                @match (&invite.for_machine, &invite.name) {
                    (Some(machine), _) => { "a new computer in the place of " (name(machine)) }
                    (None, Some(called)) => (name(called)),
                    (None, None) => "any machine",
                }
                ", right: " (invite.right) ", good until " (time(invite.expires_ns)) "."
            }
            (form("/invites/withdraw", token, &html! {
                input type="hidden" name="id" value=(invite.id);
                button class="quiet" { "Take it back" }
            }))
        }
    }
}

/// Makes an invite, and shows it once.
pub(super) async fn make(
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

/// Makes a short code, and shows it once.
pub(super) async fn make_short(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Sent(new): Sent<NewMachine>,
) -> Result<Response, Problem> {
    entry::check_again(&shared, source, &who, new.password).await?;
    let called = new.machine.trim().to_owned();
    let request = InviteRequest { name: Some(called.clone()), ..InviteRequest::default() };
    let made = shared.ask(who.actor(source), MakeShortCode { request }).await?;
    let content = html! {
        p {
            "For " (name(&called)) ", good for one try, until " (time(made.expires_ns)) ". Run "
            code { "holdall pair" } " on that machine, and type:"
        }
        p { code { (made.code.as_str()) } }
        p { "A machine that does not find this server is told where it is: " code { "holdall pair -r https://" (made.addresses.first().map_or("HOST", String::as_str)) } }
        p { "Typed wrong, it is spent. Whoever has it may let one machine in. It is shown this once, and takes the place of the one before." }
        p { a href="/settings" { "Back to the settings" } }
    };
    Ok(who.page(&shared, "A short code", content))
}

/// Takes one back.
pub(super) async fn withdraw(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Sent(withdrawn): Sent<Withdrawn>,
) -> Result<Response, Problem> {
    shared.carry_out(who.actor(source), WithdrawInvite { id: withdrawn.id }, "/settings").await
}
