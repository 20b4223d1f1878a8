//! One request: who asks, may it, and who answers it.

use std::sync::Arc;
use std::time::Instant;

use holdall_format::PublicKey;
use holdall_meter::duration;
use holdall_protocol::wire::{self, Frames, Route, WireError};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::{Request, Response};

use super::body::{self, Answer};
use super::put::Puts;
use super::repository_request::RepositoryRequest;
use super::respond::{TEXT, respond, respond_error};
use super::{lab, pairing, short_code};
use crate::auth::rights;
use crate::bounds::source::Source;
use crate::state::ServerState;

/// Answers one request of a connection whose peer proved to hold `key`, or showed none, and is at `source`.
pub(crate) async fn answer(
    state: Arc<ServerState>,
    key: Option<PublicKey>,
    source: Source,
    request: Request<Incoming>,
    puts: &Puts,
) -> Response<Answer> {
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("", |path| path.as_str());
    if let Some(text) = open_page(head.method.as_str(), path) {
        return respond(TEXT, Frames::plain(text.into()), None);
    }
    let (mut body, mut is_last) = (Some(body), false);
    let answered = match (Route::parse(head.method.as_str(), path), key) {
        (Some(route), Some(key)) => {
            let (verb, begun) = (route.verb().name, Instant::now());
            let is_pairing = matches!(route, Route::Pair | Route::BeginCode | Route::ConfirmCode);
            let answered = dispatch(&state, (key, source), route, &mut body, puts).await;
            state.detail(2, || {
                let (who, seconds) = (state.accounts.shown(&key), begun.elapsed().as_secs_f64());
                format!("{who} at {source}: {verb}, {}", duration(seconds))
            });
            if let Err(error) = &answered {
                state.log_failure(verb, &key, source, error);
                is_last = is_pairing && !state.delay_refused_pairing(source).await;
            }
            answered
        }
        (None, _) | (_, None) => Err(WireError::NoSuchRoute),
    };
    match answered {
        Ok(response) => response,
        Err(error) => {
            if let Some(unread) = body {
                body::drain(unread, wire::MAX_PUT_BODY_BYTES).await;
            }
            let mut response = respond_error(error);
            if is_last {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            response
        }
    }
}

/// What is open to everybody.
fn open_page(method: &str, path: &str) -> Option<&'static str> {
    match (method, path) {
        ("GET", "/healthz") => Some("ok\n"),
        ("GET", "/") => Some("This is a holdall server. Machines are let in by `holdall pair`.\n"),
        _ => None,
    }
}

/// Checks the right and has the verb handled. Takes the body out of `body` when it reads it.
async fn dispatch(
    state: &Arc<ServerState>,
    (key, source): (PublicKey, Source),
    route: Route,
    body: &mut Option<Incoming>,
    puts: &Puts,
) -> Result<Response<Answer>, WireError> {
    let (name, verb) = match route {
        Route::Pair => return pairing::pair(state, key, source, body).await,
        Route::BeginCode => return short_code::begin(state, key, source, body).await,
        Route::ConfirmCode => return short_code::confirm(state, key, source, body).await,
        Route::Lab(verb) => return lab::answer(state, key, verb, body).await,
        Route::Repository { name, verb } => (name, verb),
    };
    let name = state.accounts.current_name(&name);
    let permit = rights::check(&state.accounts.role(&key), key, &name, verb.verb())
        .map_err(|error| state.with_removal(&key, error))?;
    let slot = Arc::new(state.request_slot(&key)?);
    let slot_of = Arc::clone(&slot);
    let request = RepositoryRequest { state, permit, source, slot: slot_of, body, puts };
    let mut response = request.handle(verb).await?;
    response.body_mut().hold(slot);
    Ok(response)
}
