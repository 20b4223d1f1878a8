//! Letting a machine in by an invite.

use std::sync::Arc;

use bytes::Bytes;
use holdall_format::PublicKey;
use holdall_protocol::RepositoryError;
use holdall_protocol::wire::{Frames, PairAnswer, PairRequest, Route, WireError};
use hyper::Response;
use hyper::body::Incoming;
use serde_json::json;
use tokio::time::timeout;

use super::body::Answer;
use super::read_body::{read_body, wipe};
use super::respond::{JSON, respond};
use crate::auth::actor::Actor;
use crate::auth::rights::Role;
use crate::bounds::source::Source;
use crate::state::ServerState;

/// Gives a key the account that its invite is for.
pub(super) async fn pair(
    state: &Arc<ServerState>,
    key: PublicKey,
    source: Source,
    body: &mut Option<Incoming>,
) -> Result<Response<Answer>, WireError> {
    let bytes = read_in_time(state, key, body, &Route::Pair).await?;
    let request = PairRequest::decode(&bytes);
    wipe(bytes);
    let request = request?;
    let secret = request.secret().ok_or_else(|| refused("not an invite's secret"))?;
    // Who has no invite takes no slot and no thread.
    let wants_proof = state.accounts.wants_proof(&secret, key).map_err(RepositoryError::from)?;
    let counts = |former: &_| wants_proof || state.accounts.may_go_back(key, former);
    let former = request.former().filter(counts);
    let _slot = match former {
        Some(_) => Some(state.proof_slot().await?),
        None => None,
    };
    let was_paired = matches!(state.accounts.role(&key), Role::Machine { .. });
    let inner = Arc::clone(state);
    let call = move || {
        if let Some(former) = &former {
            inner.stores.prove(former, key)?;
        }
        let is_stored = |name: &str| inner.stores.is_stored(name);
        let (name, former) = (&request.name, former.as_ref());
        let account = inner.accounts.pair(&secret, key, name, former, is_stored)?;
        if !was_paired {
            let fields =
                json!({ "machine": account.machine.to_string(), "repository": account.repository });
            let actor = Actor::machine(&account.name, source);
            inner.administer(&actor, |on| on.note("pair", &fields, None));
        }
        Ok(account)
    };
    let (account, _) = state.work.run(call).await?;
    if !was_paired {
        state.log(&format!("paired {} as machine {}", account.name, account.machine));
    }
    let answer =
        PairAnswer::new(account.machine, account.name, account.repository, state.name.clone());
    Ok(respond(JSON, Frames::plain(answer.encode()), None))
}

/// The body of a request by which strangers are let in, which has to come soon.
pub(super) async fn read_in_time(
    state: &Arc<ServerState>,
    key: PublicKey,
    body: &mut Option<Incoming>,
    route: &Route,
) -> Result<Bytes, WireError> {
    let reading = read_body(state, &key, body, route.verb().max_body_bytes);
    let taken = timeout(state.limits.idle_stranger, reading).await;
    let taken = taken.map_err(|_| refused("the request came too slowly"))??;
    Ok(taken.bytes)
}

fn refused(reason: &str) -> WireError {
    WireError::Repository(RepositoryError::Refused { reason: reason.into() })
}
