//! Trading a short code for the invite that it stands for.

use std::sync::Arc;
use std::time::Duration;

use holdall_format::PublicKey;
use holdall_protocol::wire::{
    CodeAnswer, ConfirmRequest, ExchangeRequest, Frames, Route, WireError,
};
use holdall_protocol::{Denial, Invite, RepositoryError};
use hyper::Response;
use hyper::body::Incoming;
use serde_json::json;
use tokio::time::sleep;

use super::body::Answer;
use super::pairing::read_in_time;
use super::respond::{JSON, respond};
use crate::ServerError;
use crate::auth::actor::Actor;
use crate::bounds::source::Source;
use crate::short_codes::{Begun, Confirmed, Left};
use crate::state::ServerState;

const NONE_IS_OPEN: &str = "no short code is open here for this computer: it was used, another computer tried it, its try \
                            took over a minute, or its ten minutes are over";
const WRONG: &str = "the short code is wrong, or someone between here and the server ends TLS; it had this one try, and is \
                     spent";
const LEFT: &str =
    "the try with the short code was not finished; it had this one try, and is spent";
/// How often it is looked whether a code was begun and left.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Takes the first message of a machine that was given a code.
pub(super) async fn begin(
    state: &Arc<ServerState>,
    key: PublicKey,
    source: Source,
    body: &mut Option<Incoming>,
) -> Result<Response<Answer>, WireError> {
    let bytes = read_in_time(state, key, body, &Route::BeginCode).await?;
    let message = ExchangeRequest::decode(&bytes)?.message();
    let now_ns = state.accounts.clock().running_ns();
    tell_left(state).await?;
    let begun = state.short_codes.begin((key, source), state.identity(), &message, now_ns);
    let Begun { answer, is_new } = begun.ok_or_else(|| denied(NONE_IS_OPEN))?;
    if is_new {
        state.log(&format!("{} at {source} types the short code", state.accounts.shown(&key)));
    }
    Ok(respond(JSON, Frames::plain(CodeAnswer::new(answer).encode()), None))
}

/// Takes its proof that the code is the same, and gives the invite.
pub(super) async fn confirm(
    state: &Arc<ServerState>,
    key: PublicKey,
    source: Source,
    body: &mut Option<Incoming>,
) -> Result<Response<Answer>, WireError> {
    let bytes = read_in_time(state, key, body, &Route::ConfirmCode).await?;
    let confirmation = ConfirmRequest::decode(&bytes)?.confirmation();
    let now_ns = state.accounts.clock().running_ns();
    match state.short_codes.confirm(key, &confirmation, now_ns) {
        Confirmed::Same { answer, is_new } => {
            if is_new {
                let who = state.accounts.shown(&key);
                state.log(&format!("{who} at {source} has the right short code"));
            }
            Ok(respond(JSON, Frames::plain(answer.encode()), None))
        }
        Confirmed::Wrong(invite) => {
            let what = "was typed wrong, or someone was in between,";
            tell_spent(state, (what, WRONG), source, invite).await?;
            Err(denied(WRONG))
        }
        Confirmed::NotBegun => Err(denied(NONE_IS_OPEN)),
    }
}

/// Reports codes that were begun and left. Never ends by itself.
pub(crate) async fn watch_left(state: &Arc<ServerState>) {
    loop {
        sleep(LOOK_EVERY).await;
        if tell_left(state).await.is_err() {
            state.log("reporting an unfinished try with a short code ended unexpectedly");
        }
    }
}

/// Reports the code that was begun and left, if there is one.
async fn tell_left(state: &Arc<ServerState>) -> Result<(), WireError> {
    match state.short_codes.take_left(state.accounts.clock().running_ns()) {
        Some(Left { invite, from }) => {
            tell_spent(state, ("was begun and not finished", LEFT), from, invite).await
        }
        None => Ok(()),
    }
}

/// Forgets the invite of a code that was spent in vain, and tells whoever looks after the server.
async fn tell_spent(
    state: &Arc<ServerState>,
    (how, reason): (&str, &'static str),
    source: Source,
    invite: Invite,
) -> Result<(), WireError> {
    let what = format!("a short code {how} from {source}: it is spent, and no machine was let in");
    state.log(&what);
    state.short_codes.note_wrong(what, state.accounts.clock().running_ns());
    let inner = Arc::clone(state);
    let forget = move || {
        if let Err(error) = inner.accounts.forget_invite(&invite.secret) {
            inner.log(&format!("the invite of that code could not be forgotten: {error}"));
        }
        let (fields, why) = (json!({ "from": source.to_string() }), ServerError::refused(reason));
        inner.administer(&Actor::server(), |on| on.note("wrong-short-code", &fields, Some(&why)));
        Ok(())
    };
    state.quick_work.run(forget).await?;
    state.run_was_told.notify_one();
    Ok(())
}

fn denied(reason: &str) -> WireError {
    RepositoryError::denied(Denial::ShortCode, reason).into()
}
