//! What is shown in the place of a page.

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use holdall_format::OneLine;
use holdall_pages::Page;
use holdall_protocol::wire::WireError;
use maud::html;

use crate::ServerError;

/// Why there is no page.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    words: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, words: impl Into<String>) -> Self {
        Self { status, words: words.into() }
    }

    /// Its status and its words.
    pub(super) fn into_parts(self) -> (StatusCode, String) {
        (self.status, self.words)
    }

    pub(super) fn not_found(words: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, words)
    }

    pub(super) fn forbidden(words: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, words)
    }
}

/// An administrator is told as much as on a terminal.
impl From<ServerError> for Problem {
    fn from(error: ServerError) -> Self {
        let status = match &error {
            ServerError::Refused { .. } => StatusCode::CONFLICT,
            ServerError::NotAllowed { .. } => StatusCode::FORBIDDEN,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<WireError> for Problem {
    fn from(_: WireError) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "The server is busy or ending. Try again.")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let content = html! {
            p class="notice bad" { (OneLine(&self.words).to_string()) }
            p { a href="/" { "Back to the overview" } }
        };
        let page = Page { title: "That did not work", server: "", account: None, content };
        (self.status, Html(page.html())).into_response()
    }
}
