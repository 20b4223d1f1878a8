//! The overview for who may only look, such as the rest of a family: by a link with a token in it.
//!
//! The link is opened once in a browser, which has a cookie from then on; the address it is sent to has no token any more.
//! Every look asks whether the token still counts. Nothing else is shown to whoever has that cookie, and it changes nothing.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use zeroize::Zeroizing;

use super::problem::Problem;
use super::shared::Shared;
use super::visitor::{Visitor, set_cookie};
use crate::admin::Pace;

/// Exchanges the token of a link for a cookie.
pub(super) async fn begin(
    State(shared): State<Arc<Shared>>,
    visitor: Visitor,
    Path(token): Path<Zeroizing<String>>,
) -> Result<Response, Problem> {
    // Who is signed in sees more than that, and stays so.
    if visitor.signed_in(&shared).is_ok() {
        return Ok(Redirect::to("/").into_response());
    }
    let token = shared.read(Pace::Quick, move |on| on.accounts.api_token(&token)).await?;
    let Some(token) = token else {
        return Err(Problem::forbidden(
            "That link does not count any more, or never did. Ask for another.",
        ));
    };
    let cookie = shared.state.web_sessions.begin_to_look(token, shared.running_ns())?;
    Ok((set_cookie(&shared, &cookie), Redirect::to("/")).into_response())
}
