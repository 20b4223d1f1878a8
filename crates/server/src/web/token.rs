//! The token that a program shows: `Authorization: Bearer TOKEN`.

use std::sync::Arc;

use axum::http::header::{AUTHORIZATION, HeaderMap};

use super::problem::Problem;
use super::shared::Shared;
use crate::admin::{ApiToken, Pace};

/// The token that came with a request, if it is one.
pub(super) async fn shown(
    shared: &Arc<Shared>,
    headers: &HeaderMap,
) -> Result<Option<ApiToken>, Problem> {
    let line = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some(text) = line.and_then(|line| line.strip_prefix("Bearer ")) else { return Ok(None) };
    let text = zeroize::Zeroizing::new(text.trim().to_owned());
    shared.read(Pace::Quick, move |on| on.accounts.api_token(&text)).await
}
