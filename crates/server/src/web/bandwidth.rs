//! How much the server takes and gives by hours of the week.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use holdall_pages::{field, form};
use maud::{Markup, html};
use serde::Deserialize;

use super::entry::Nothing;
use super::hours::{self, HoursForm};
use super::problem::Problem;
use super::shared::Shared;
use super::visitor::{From, Sent, SignedIn};
use crate::admin::{
    AddBandwidth, BandwidthEntry, BandwidthRule, Day, Hours, ListBandwidth, RemoveBandwidth, Scope,
};

const MEGABYTE: f64 = 1e6;

#[derive(Deserialize)]
pub(super) struct New {
    megabytes: String,
    #[serde(flatten)]
    hours: HoursForm,
}

pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
) -> Result<Response, Problem> {
    let rules = shared.ask(who.actor(source), ListBandwidth {}).await?.rules;
    let content = html! {
        p { "What all machines together may send in a second, and as many bytes that they may be sent; they share it evenly. The lowest \
             limit of the hour counts, by this server's clock. Without one, machines are as fast as they can." }
        (list(&rules, &who))
        @if who.may(Scope::Administer) {
            h2 { "Another limit" }
            (adding(&who.token))
        }
    };
    Ok(who.page(&shared, "Bandwidth", content))
}

fn list(rules: &[BandwidthEntry], who: &SignedIn) -> Markup {
    if rules.is_empty() {
        return html! { p { "No limit." } };
    }
    html! {
        ul class="list" {
            @for one in rules {
                li {
                    div {
                        p { (one.rule) }
                        @if who.may(Scope::Administer) {
                            (form(&format!("/bandwidth/{}/remove", one.number), &who.token, &html! {
                                button class="quiet" { "Remove" }
                            }))
                        }
                    }
                }
            }
        }
    }
}

fn adding(token: &str) -> Markup {
    let work_hours =
        Hours { from: "08:00".into(), to: "18:00".into(), days: Day::ALL[..5].to_vec() };
    let fields = html! {
        (field("megabytes", "Megabytes a second", "off"))
        (hours::fields(&work_hours))
        button { "Add" }
    };
    form("/bandwidth", token, &fields)
}

impl New {
    fn rule(self) -> Result<BandwidthRule, Problem> {
        let megabytes = self.megabytes.trim().replace(',', ".").parse::<f64>().ok();
        let bytes = megabytes.map(|megabytes| megabytes * MEGABYTE);
        let Some(bytes) = bytes.filter(|bytes| (0.0..1e15).contains(bytes)) else {
            let words = "Megabytes a second are a number, such as 20 or 0.5.";
            return Err(Problem::new(StatusCode::CONFLICT, words));
        };
        Ok(BandwidthRule { bytes_per_second: bytes as u64, hours: self.hours.hours(&Hours::all()) })
    }
}

/// Adds one.
pub(super) async fn add(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Sent(new): Sent<New>,
) -> Result<Response, Problem> {
    let rule = new.rule()?;
    shared.carry_out(who.actor(source), AddBandwidth { rule }, "/bandwidth").await
}

/// Takes one away.
pub(super) async fn remove(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Path(number): Path<u64>,
    Sent(_): Sent<Nothing>,
) -> Result<Response, Problem> {
    shared.carry_out(who.actor(source), RemoveBandwidth { number }, "/bandwidth").await
}
