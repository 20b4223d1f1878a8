//! When the server keeps house.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use holdall_pages::{form, number};
use maud::{Markup, html};
use serde::Deserialize;

use super::hours::{self, HoursForm};
use super::problem::Problem;
use super::shared::Shared;
use super::visitor::{From, Sent, SignedIn};
use crate::admin::{Scope, SetUpkeep, ShowUpkeep, Upkeep};

#[derive(Deserialize)]
pub(super) struct Changed {
    #[serde(flatten)]
    hours: HoursForm,
    scrub_days: String,
}

pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
) -> Result<Response, Problem> {
    let upkeep = shared.ask(who.actor(source), ShowUpkeep {}).await?;
    let content = html! {
        p { "Every hour the server applies the rules, lets go of what is due, and reads a part of what is stored again, to find what a disk lost. \
             That takes the disk's time, so it can be kept to some hours of the week, by this server's clock. What has begun goes on until it is done." }
        p { "Now: " (upkeep) "." }
        @if who.may(Scope::Administer) { (changing(&upkeep, &who.token)) }
        p class="faint" { a href="/jobs" { "All jobs" } }
    };
    Ok(who.page(&shared, "Upkeep", content))
}

fn changing(upkeep: &Upkeep, token: &str) -> Markup {
    let fields = html! {
        (hours::fields(&upkeep.hours))
        (number("scrub_days", "Days in which everything is read again", &upkeep.scrub_days.to_string()))
        button { "Change" }
    };
    form("/upkeep", token, &fields)
}

/// Changes it.
pub(super) async fn change(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Sent(changed): Sent<Changed>,
) -> Result<Response, Problem> {
    let scrub_days = changed.scrub_days.trim().parse().map_err(|_| {
        let words = "The days in which everything is read again are a number, such as 30.";
        Problem::new(StatusCode::CONFLICT, words)
    })?;
    let before = shared.ask(who.actor(source), ShowUpkeep {}).await?;
    let upkeep = Upkeep { hours: changed.hours.hours(&before.hours), scrub_days };
    shared.carry_out(who.actor(source), SetUpkeep { upkeep }, "/upkeep").await
}
