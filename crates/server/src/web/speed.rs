//! How fast the way between this very browser and the server is, so that a telephone can say what the Wi-Fi gives.
//!
//! It needs a script: a file of this server, which the page's policy allows and nothing else. One browser measures
//! at a time, for half a minute, and none while a machine stores or reads.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderValue};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::html;

use super::guard::POLICY_WITH_SCRIPT;
use super::shared::Shared;
use super::turn::PIECE_BYTES;
use super::visitor::SignedIn;

/// The script, and where it is.
pub(super) const SCRIPT: &str = include_str!("speed.js");
pub(super) const SCRIPT_PATH: &str = "/speed.js";
/// The most of a body.
pub(super) const BODY_MOST: usize = PIECE_BYTES;
const TOKEN: HeaderName = HeaderName::from_static("x-holdall-token");

/// Why nothing is measured, for the script to say.
pub(super) struct Refused(StatusCode, &'static str);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}

pub(super) async fn show(State(shared): State<Arc<Shared>>, who: SignedIn) -> Response {
    let content = html! {
        p { "This measures the way from this browser to the server and back: over the Wi-Fi, if that is what it is on. It takes half a minute." }
        button id="measure" data-token=(who.token) hidden { "Measure" }
        noscript { p class="notice look" { "It needs a script, and the browser runs none." } }
        p id="said" role="status" {}
        table { tbody id="rows" {} }
        script src=(SCRIPT_PATH) {}
    };
    let mut page = who.page(&shared, "Speed of this browser", content);
    page.headers_mut()
        .insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY_WITH_SCRIPT));
    page
}

/// Checks that the page sent it, that no machine stores or reads, and whose turn it is.
fn check(
    shared: &Shared,
    who: &SignedIn,
    headers: &HeaderMap,
    is_begin: bool,
) -> Result<(), Refused> {
    let token = headers.get(TOKEN).and_then(|token| token.to_str().ok()).unwrap_or_default();
    if !shared.forms.is_token(&who.cookie, token) {
        return Err(Refused(StatusCode::FORBIDDEN, "load the page again"));
    }
    if !shared.state.activities.entries().is_empty() {
        return Err(Refused(
            StatusCode::CONFLICT,
            "a machine backs up or restores now; try again when it is done",
        ));
    }
    let now_ns = shared.running_ns();
    let has_turn = match is_begin {
        true => shared.turn.take(&who.cookie, now_ns),
        false => shared.turn.has(&who.cookie, now_ns),
    };
    match has_turn {
        true => Ok(()),
        false => Err(Refused(
            StatusCode::CONFLICT,
            "another browser measures now; try again in a minute",
        )),
    }
}

pub(super) async fn begin(
    State(shared): State<Arc<Shared>>,
    who: SignedIn,
    headers: HeaderMap,
) -> Result<StatusCode, Refused> {
    check(&shared, &who, &headers, true)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Answers at once.
pub(super) async fn ping(
    State(shared): State<Arc<Shared>>,
    who: SignedIn,
    headers: HeaderMap,
) -> Result<StatusCode, Refused> {
    check(&shared, &who, &headers, false)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sends bytes.
pub(super) async fn down(
    State(shared): State<Arc<Shared>>,
    who: SignedIn,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    check(&shared, &who, &headers, false)?;
    Ok(([(CONTENT_TYPE, "application/octet-stream")], shared.turn.piece.clone()).into_response())
}

/// Takes bytes, and forgets them.
pub(super) async fn up(
    State(shared): State<Arc<Shared>>,
    who: SignedIn,
    headers: HeaderMap,
    _: Bytes,
) -> Result<StatusCode, Refused> {
    check(&shared, &who, &headers, false)?;
    Ok(StatusCode::NO_CONTENT)
}
