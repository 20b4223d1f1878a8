//! What is shown in the place of a page.

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use holdall_engine::EngineError;
use holdall_format::OneLine;
use holdall_pages::Page;
use maud::html;

/// Why there is no page.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    words: String,
    /// Whether the browser tries again by itself.
    is_tried_again: bool,
}

/// When a page that is tried again is asked for anew.
const AGAIN: (&str, &str) = ("refresh", "10");

impl Problem {
    pub(crate) fn new(status: StatusCode, words: impl Into<String>) -> Self {
        Self { status, words: words.into(), is_tried_again: false }
    }

    /// The server of a repository does not answer.
    pub(crate) fn silent(repository: &str) -> Self {
        let words = format!(
            "The server of {repository} does not answer. This page asks again every 10 seconds, until it does. \
             What is restored waits for it for up to five minutes."
        );
        Self { is_tried_again: true, ..Self::new(StatusCode::GATEWAY_TIMEOUT, words) }
    }

    /// The same for what was sent and is not sent again by itself.
    pub(crate) fn of_a_form(self) -> Self {
        Self { is_tried_again: false, ..self }
    }

    pub(crate) fn not_found(words: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, words)
    }

    pub(crate) fn forbidden(words: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, words)
    }

    pub(crate) fn wrong(words: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, words)
    }

    /// The pages are about to end, or too much is asked of them.
    pub(crate) fn busy() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "holdall is busy or ending. Try again.")
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        let status = match &error {
            EngineError::NoPath { .. } | EngineError::NoSnapshot { .. } => StatusCode::NOT_FOUND,
            EngineError::Path { .. } => StatusCode::BAD_REQUEST,
            EngineError::Repository(_) | EngineError::Interrupted => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let content = html! {
            p class="notice bad" { (OneLine(&self.words).to_string()) }
            p { a href="/" { "All snapshots" } }
        };
        let page = Page { title: "That did not work", server: "", account: None, content };
        let page = (self.status, Html(page.html()));
        if self.is_tried_again { ([AGAIN], page).into_response() } else { page.into_response() }
    }
}
