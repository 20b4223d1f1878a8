//! The private key of somebody's own that `--identity` names.

use std::path::Path;

use anyhow::{Context, Result};
use holdall_crypto::OwnPrivateKey;
use holdall_state::private_file;
use zeroize::Zeroizing;

use crate::exit::{Exit, Refusal};
use crate::secrets::password::Passwords;
use crate::secrets::password::explained;

/// More than any identity file or SSH key has.
const LIMIT_BYTES: u64 = 1 << 20;

/// Reads an age identity file or an SSH private key. One that is locked is unlocked with a password,
/// which comes from where a repository's would.
///
/// # Errors
/// If it cannot be read; [`holdall_crypto::CryptoError::WrongKey`] for another password.
pub(crate) fn read(file: &Path, passwords: &Passwords) -> Result<OwnPrivateKey> {
    let bytes = private_file::read_named(file, LIMIT_BYTES)?;
    let bytes = Zeroizing::new(bytes.with_context(|| format!("{} is not there", file.display()))?);
    let refused = |reason: &str| {
        Refusal::new(Exit::Usage, format!("the identity {}: {reason}", file.display()))
    };
    let text = std::str::from_utf8(&bytes).map_err(|_| refused("it is not text"))?;
    let key = OwnPrivateKey::from_text(text).map_err(|reason| refused(&reason))?;
    if !key.is_locked() {
        return Ok(key);
    }
    let password = passwords.existing(&format!("the key {}", file.display()))?;
    key.unlock(&password).map_err(|error| explained(error.into(), &password))
}
