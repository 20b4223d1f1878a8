//! Who asks: by the one cookie that there is, and whether a form was shown to them.
//!
//! Whoever is not signed in has a cookie too, once they were shown a form, and it means nothing but that. Signing in
//! gives another, so that nobody can have somebody sign in under a cookie that they know.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Form;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::header::{COOKIE, HeaderValue, SET_COOKIE};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use holdall_pages::Account;
use maud::Markup;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::problem::Problem;
use super::shared::Shared;
use crate::admin::Pace;
use crate::auth::actor::Actor;
use crate::auth::scope::Scope;
use crate::bounds::source::Source;
use crate::web_sessions::{LINK_SUFFIX, Person, WebSessions};

/// Browsers keep cookies of one name apart by host, not by port. A name that begins so has no other path, no
/// domain, and never goes over plain HTTP.
const COOKIE_PREFIX: &str = "__Host-holdall-";
/// How long a form may take to come.
const FORM_PATIENCE: Duration = Duration::from_secs(10);

/// Where an administrator may go from every page.
const WAYS: [(&str, &str); 6] = [
    ("Overview", "/"),
    ("Jobs", "/jobs"),
    ("Storage", "/storage"),
    ("Lab", "/lab"),
    ("Speed", "/speed"),
    ("Settings", "/settings"),
];

/// Anybody who asks.
pub(super) struct Visitor {
    /// Their cookie, or a new one.
    pub(super) cookie: String,
    is_new: bool,
    /// Whose session the cookie is of.
    person: Option<Person>,
}

/// Somebody who is signed in.
pub(super) struct SignedIn {
    pub(super) account: String,
    scope: Scope,
    pub(super) cookie: String,
    /// For the forms that they are shown.
    pub(super) token: String,
}

/// Where a request comes from.
pub(super) struct From(pub(super) Source);

/// A form with the token of who was shown it.
pub(super) struct Sent<T>(pub(super) T);

#[derive(Deserialize)]
struct WithToken<T> {
    token: String,
    #[serde(flatten)]
    form: T,
}

/// The line that gives a cookie, or takes it away when `value` is empty.
pub(super) fn set_cookie(
    shared: &Shared,
    value: &str,
) -> [(axum::http::HeaderName, HeaderValue); 1] {
    let age = match value {
        "" => "; Max-Age=0",
        // Who looks on opens a link once, and not after each start of the browser.
        link if link.ends_with(LINK_SUFFIX) => "; Max-Age=2592000",
        _ => "",
    };
    let line =
        format!("{}={value}; Path=/; Secure; HttpOnly; SameSite=Strict{age}", cookie_name(shared));
    [(SET_COOKIE, HeaderValue::from_str(&line).unwrap_or(HeaderValue::from_static("")))]
}

fn cookie_name(shared: &Shared) -> String {
    format!("{COOKIE_PREFIX}{}", shared.state.port())
}

fn cookie_in(shared: &Shared, parts: &Parts) -> Option<String> {
    let name = cookie_name(shared);
    let lines = parts.headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs =
        lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(key, _)| *key == name).map(|(_, value)| value);
    let is_ours = |value: &&str| {
        let random = value.strip_suffix(LINK_SUFFIX).unwrap_or(value);
        random.len() == 64 && random.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    values.next().filter(is_ours).map(str::to_owned)
}

/// In whose name somebody has something done in a browser. Administrators do there what no token may, such as making one:
/// the pages ask them for the password again.
pub(super) fn actor(account: &str, scope: Scope, source: Source) -> Actor {
    let scope = if scope == Scope::Administer { Scope::Own } else { scope };
    Actor { who: format!("{account} in a browser"), from: Some(source.to_string()), scope }
}

impl Visitor {
    fn of(shared: &Shared, parts: &Parts) -> Result<Self, Problem> {
        let known = cookie_in(shared, parts);
        let is_new = known.is_none();
        let cookie = known.map_or_else(WebSessions::new_cookie, Ok)?;
        let person = shared.state.web_sessions.person(&cookie, shared.running_ns());
        Ok(Self { cookie, is_new, person })
    }

    /// The same as somebody who is signed in; given back if they are not.
    pub(super) fn signed_in(self, shared: &Shared) -> Result<SignedIn, Self> {
        match self.person {
            Some(Person { account, scope }) => {
                let token = shared.forms.token(&self.cookie);
                Ok(SignedIn { account, scope, cookie: self.cookie, token })
            }
            None => Err(self),
        }
    }

    /// Whether they came by a link once, whether or not it still counts.
    pub(super) fn came_by_link(&self) -> bool {
        self.cookie.ends_with(LINK_SUFFIX)
    }

    /// Whether they came by a link that still lets them look.
    pub(super) async fn looks(&self, shared: &Arc<Shared>) -> Result<bool, Problem> {
        let now_ns = shared.running_ns();
        let Some(token) = shared.state.web_sessions.onlooker(&self.cookie, now_ns) else {
            return Ok(false);
        };
        let tokens = shared.read(Pace::Quick, |on| on.accounts.api_tokens()).await?;
        Ok(tokens.contains(&token))
    }

    /// Gives them their cookie with an answer, if it is new.
    pub(super) fn remember(&self, shared: &Shared, response: Response) -> Response {
        match self.is_new {
            true => (set_cookie(shared, &self.cookie), response).into_response(),
            false => response,
        }
    }
}

impl SignedIn {
    /// In whose name something is done.
    pub(super) fn actor(&self, source: Source) -> Actor {
        actor(&self.account, self.scope, source)
    }

    /// Whether they may have that done; what a page does not offer otherwise.
    pub(super) fn may(&self, scope: Scope) -> bool {
        self.scope >= scope
    }

    /// The same for a whole page.
    ///
    /// # Errors
    /// 403.
    pub(super) fn check(&self, scope: Scope) -> Result<(), Problem> {
        let words = format!("That takes the right to {scope}, and you may {}.", self.scope);
        if self.may(scope) { Ok(()) } else { Err(Problem::forbidden(&words)) }
    }

    /// A page for them.
    pub(super) fn page(&self, shared: &Shared, title: &str, content: Markup) -> Response {
        let account = Account { name: &self.account, token: &self.token, ways: &WAYS };
        shared.html(title, Some(account), content)
    }
}

impl FromRequestParts<Arc<Shared>> for Visitor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Problem> {
        Self::of(shared, parts)
    }
}

impl FromRequestParts<Arc<Shared>> for SignedIn {
    type Rejection = Response;

    /// Whoever is not signed in is led to where they can; nothing tells them what else there is.
    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Response> {
        let visitor = Visitor::of(shared, parts).map_err(IntoResponse::into_response)?;
        visitor.signed_in(shared).map_err(|_| Redirect::to("/").into_response())
    }
}

impl FromRequestParts<Arc<Shared>> for From {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Shared>) -> Result<Self, Infallible> {
        let nowhere = || Source::from(std::net::IpAddr::from([0, 0, 0, 0]));
        Ok(Self(parts.extensions.get().copied().unwrap_or_else(nowhere)))
    }
}

impl<T: DeserializeOwned> FromRequest<Arc<Shared>> for Sent<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let cookie = cookie_in(shared, &parts).unwrap_or_default();
        let request = Request::from_parts(parts, body);
        let came =
            timeout(FORM_PATIENCE, Form::<WithToken<T>>::from_request(request, shared)).await;
        let Ok(came) = came else {
            return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "The form came too slowly."));
        };
        match came {
            Ok(Form(sent)) if shared.forms.is_token(&cookie, &sent.token) => Ok(Self(sent.form)),
            _ => Err(Problem::forbidden(
                "That form is too old, or none of this server's. Go back, load the page again, and send it once more.",
            )),
        }
    }
}
