//! The machine's way from a short code to an invite.

use crate::client::{Caller, Weight};
use crate::wire::{
    CodeAnswer, CodeConfirmed, ConfirmRequest, ExchangeRequest, Frames, MAX_CONTROL_BYTES, Route,
};
use crate::{
    ClientOptions, Denial, INVITE_MAX_ADDRESSES, Invite, MachineIdentity, RepositoryError,
    ServerAddress, ShortCode, fingerprint, shown_identity,
};

use super::MachineExchange;

const NOT_PROVEN: &str = "the server did not prove that it has the same code: someone may be listening in between, \
                          so nothing was paired";

/// Trades a short code for the invite that it stands for, at the first of those hosts that answers. Which server that is, nobody
/// says for sure before: the code proves it, and the invite names it. Where it `announced` the fingerprint of its identity, one
/// that shows another gets no try.
///
/// # Errors
/// [`RepositoryError::Refused`] for a server that shows another identity than the announced one: the code is not spent.
/// [`RepositoryError::NotAllowed`] if the code is wrong, used or expired, or if someone in between ended TLS: then it is
/// spent, and another one is needed. [`RepositoryError::Unreachable`]; [`RepositoryError::Refused`] from a server that knows no
/// short codes.
pub fn invite_by_code(
    hosts: &[String],
    announced: Option<&str>,
    code: &ShortCode,
    identity: &MachineIdentity,
    options: ClientOptions,
) -> Result<Invite, RepositoryError> {
    let server = shown_identity(hosts, identity, &options)?;
    let address = ServerAddress { hosts: hosts.to_vec(), identity: server, repository: None };
    let refused = |reason: String| RepositoryError::Refused { reason };
    let shown = fingerprint(&server);
    if let Some(announced) = announced.filter(|announced| *announced != shown) {
        return Err(refused(format!(
            "{} is not the server that was found: that one has the identity {announced}, and this one shows {shown}; the code was \
             not sent there",
            hosts.join(", ")
        )));
    }
    let caller =
        Caller::new(&address, identity, options).map_err(|error| refused(error.to_string()))?;
    caller.reach()?;
    let exchange = MachineExchange::begin(code, identity.public(), server)
        .ok_or_else(|| refused("the code cannot be sent".into()))?;
    let limits = (Weight::Light, MAX_CONTROL_BYTES);
    let begun = Frames::plain(ExchangeRequest::new(exchange.message()).encode());
    let begun = caller.ask(&Route::BeginCode, &begun, limits, |body| CodeAnswer::decode(&body))?;
    let agreed = exchange.finish(&begun.message()).ok_or_else(not_proven)?;
    let confirms = Frames::plain(ConfirmRequest::new(agreed.machine_confirms()).encode());
    let confirmed =
        caller.ask(&Route::ConfirmCode, &confirms, limits, |body| CodeConfirmed::decode(&body))?;
    if !agreed.is_confirmed_by_server(&confirmed.confirmation()) {
        return Err(not_proven());
    }
    let invite = agreed.open(confirmed.sealed_invite()).ok_or_else(not_proven)?;
    match invite.identity == server {
        true => Ok(reached_at(invite, caller.host_reached())),
        false => Err(not_proven()),
    }
}

fn not_proven() -> RepositoryError {
    RepositoryError::denied(Denial::ShortCode, NOT_PROVEN)
}

/// The same invite, with the host first that has just answered.
fn reached_at(mut invite: Invite, host: &str) -> Invite {
    invite.addresses.retain(|other| other != host);
    invite.addresses.insert(0, host.to_owned());
    invite.addresses.truncate(INVITE_MAX_ADDRESSES);
    invite
}
