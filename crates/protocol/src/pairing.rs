//! Pairing: a machine trades an invite for an account.

use std::time::Duration;

use holdall_format::MachineId;

use crate::FormerAccount;
use crate::client::{Caller, Weight};
use crate::wire::{self, Frames, PairAnswer, PairRequest, Route};
use crate::{ClientOptions, Invite, MachineIdentity, RepositoryError, ServerAddress};

/// How long an answer that was lost on the way is asked for again.
const RETRY_FOR: Duration = Duration::from_secs(10);

/// What a machine is on its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paired {
    /// Its id, kept for as long as it exists.
    pub machine: MachineId,
    /// Its name for people.
    pub name: String,
    /// Its repository on that server; whether it exists is for the caller to ask.
    pub repository: String,
    /// The server's name for people.
    pub server: String,
    /// Where the server is, which key it has, and the repository's name.
    pub address: ServerAddress,
}

/// Shows the invite's secret to the server that the invite names, signed in with the machine's key.
/// The same invite and key again get the same answer.
///
/// # Errors
/// [`RepositoryError::NotAllowed`] for an invite that is unknown, used or expired;
/// [`RepositoryError::Unreachable`], [`RepositoryError::WrongServer`].
pub fn pair(
    invite: &Invite,
    machine_name: &str,
    identity: &MachineIdentity,
    options: ClientOptions,
) -> Result<Paired, RepositoryError> {
    ask(invite, &PairRequest::new(&invite.secret, machine_name), identity, options)
}

/// The same for a machine that had an account there. A server that lost it gives it back if the
/// machine's newest record in that repository was signed by the key that signs in.
///
/// # Errors
/// As for [`pair`]; [`RepositoryError::NotAllowed`] if the records do not prove it.
pub fn pair_again(
    invite: &Invite,
    former: &FormerAccount,
    machine_name: &str,
    identity: &MachineIdentity,
    options: ClientOptions,
) -> Result<Paired, RepositoryError> {
    let request = PairRequest::new(&invite.secret, machine_name).again(former);
    ask(invite, &request, identity, options)
}

fn ask(
    invite: &Invite,
    request: &PairRequest,
    identity: &MachineIdentity,
    options: ClientOptions,
) -> Result<Paired, RepositoryError> {
    let hosts = invite.addresses.clone();
    let mut address = ServerAddress { hosts, identity: invite.identity, repository: None };
    let options = ClientOptions { retry_for: RETRY_FOR, ..options };
    let caller = Caller::new(&address, identity, options)
        .map_err(|error| RepositoryError::Refused { reason: error.to_string() })?;
    caller.reach()?;
    let body = Frames::plain(request.encode());
    let limits = (Weight::Light, wire::MAX_CONTROL_BYTES);
    let answer = caller.ask(&Route::Pair, &body, limits, |body| PairAnswer::decode(&body))?;
    address.repository = Some(answer.repository.clone());
    let machine = answer.machine();
    let PairAnswer { name, repository, server, .. } = answer;
    Ok(Paired { machine, name, repository, server, address })
}
