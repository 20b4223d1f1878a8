//! Tells a page of what runs when to look again: server-sent events, one for each answer, so that it is an answer as any
//! other. A browser asks again by itself, and says which event it had last.
//!
//! A browser without scripts loads the page again.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use tokio::time::{Instant, sleep};

use super::guard::POLICY_WITH_SCRIPT;
use super::problem::Problem;
use super::shared::Shared;
use super::visitor::SignedIn;
use crate::ServerError;
use crate::admin::{Administration, ListJobs, ListSessions, Pace};

/// The script, and where it is.
pub(super) const SCRIPT: &str = include_str!("live.js");
pub(super) const SCRIPT_PATH: &str = "/live.js";
/// Milliseconds after which a browser asks for the next event.
const RETRY: u32 = 1000;
/// So often it is looked for something new.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// An answer without anything new comes after that.
const LONGEST: Duration = Duration::from_secs(20);

/// What a page of what runs has more.
pub(super) fn script() -> Markup {
    html! {
        noscript { meta http-equiv="refresh" content="5"; }
        script src=(SCRIPT_PATH) {}
    }
}

/// Lets such a page have its script.
pub(super) fn allow(mut page: Response) -> Response {
    let policy = HeaderValue::from_static(POLICY_WITH_SCRIPT);
    page.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    page
}

/// Says that something changed, as soon as it is not as it was at the last event.
pub(super) async fn changes(
    State(shared): State<Arc<Shared>>,
    _who: SignedIn,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
    let begun = Instant::now();
    loop {
        let now = shared.read(Pace::Quick, state).await?;
        if now != seen {
            return Ok(event(&format!("retry: {RETRY}\nid: {now}\ndata: changed\n\n")));
        }
        if begun.elapsed() >= LONGEST {
            return Ok(event(&format!("retry: {RETRY}\n\n")));
        }
        sleep(LOOK_EVERY).await;
    }
}

/// All that runs, as a short word that is another one when something of it changes.
fn state(on: &Administration<'_>) -> Result<String, ServerError> {
    let all = (on.carry_out(&ListJobs {})?, on.carry_out(&ListSessions {})?);
    let text = serde_json::to_vec(&all)
        .map_err(|error| ServerError::Admin { reason: error.to_string() })?;
    Ok(blake3::hash(&text).to_hex().as_str().chars().take(16).collect())
}

fn event(text: &str) -> Response {
    ([(CONTENT_TYPE, "text/event-stream; charset=utf-8")], text.to_owned()).into_response()
}
