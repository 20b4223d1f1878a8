//! Asking a server who it is, where nothing but the repository can tell whether it is the right one.
//!
//! A recovery kit pins the identity of the server that it was made for. That server may be gone for
//! good, and the repository lie on another. The kit's owner then says so, compares fingerprints, and
//! every connection from here on pins the key that was shown: nothing else is ever sent to a server
//! that nobody pinned.

use std::sync::atomic::AtomicBool;

use holdall_format::PublicKey;

use super::ClientOptions;
use super::dial::{DialError, Dialer};
use super::stream::interrupted;
use crate::tls;
use crate::{MachineIdentity, RepositoryError};

/// The identity that the server at the first of those addresses that answers shows and proves to
/// hold, whoever it is. No request is sent.
///
/// # Errors
/// [`RepositoryError::Unreachable`] after one attempt within the connect timeout;
/// [`RepositoryError::Interrupted`].
pub fn shown_identity(
    hosts: &[String],
    identity: &MachineIdentity,
    options: &ClientOptions,
) -> Result<PublicKey, RepositoryError> {
    let refused = |error: tls::TlsError| RepositoryError::Refused { reason: error.to_string() };
    let lost = |reason| RepositoryError::Unreachable { address: hosts.join(", "), reason };
    let config = tls::client_config_for_any(identity.seed()).map_err(refused)?;
    let dialer = Dialer::with_config(hosts.to_vec(), config, options);
    let lacking = |error| RepositoryError::io(format!("connecting to {}", hosts.join(", ")), error);
    let failed = |error| match error {
        DialError::Unreachable(reason) => lost(reason),
        DialError::Lacking(error) => lacking(error),
        DialError::WrongServer => lost("it is no holdall server".into()),
    };
    let runtime = super::stream::runtime().map_err(|error| failed(DialError::of(error)))?;
    let shown = runtime.block_on(ask(&dialer, &options.interrupt));
    // A look-up of a name may hang for longer than anybody waits for it.
    runtime.shutdown_background();
    match shown {
        Some(Ok(Some(key))) => Ok(key),
        Some(Ok(None)) => Err(lost("it showed no key".into())),
        Some(Err(error)) => Err(failed(error)),
        None => Err(RepositoryError::Interrupted),
    }
}

async fn ask(
    dialer: &Dialer,
    interrupt: &AtomicBool,
) -> Option<Result<Option<PublicKey>, DialError>> {
    tokio::select! {
        dialled = dialer.dial(0) => Some(dialled.map(|stream| {
            tls::peer_key(stream.get_ref().1.peer_certificates())
        })),
        () = interrupted(interrupt) => None,
    }
}
