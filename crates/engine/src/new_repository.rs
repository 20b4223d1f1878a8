//! What a repository is made from, and made again from where it lost all that it says of itself.

use bytes::Bytes;
use holdall_crypto::{
    CryptoError, KeyRing, RecoveryKit, RecoverySecret, RepositoryKeys, WORK_FACTOR_LOG_N,
    sign_wrappings, suite_for_this_cpu, wrap_passphrase, wrap_recovery,
};
use holdall_format::Suite;
use holdall_protocol::NewRepository;

/// Leaves of 2^3 entries on average: `docs/decisions/0002-leaves-of-eight-inline-512.md`.
const LEAF_BITS: u8 = 3;
/// Contents up to this length live in their entry.
const INLINE_LIMIT_BYTES: u16 = 512;

/// A repository for `ring`, which its recovery kit opens and, where one is given, a password. Blocks have the cipher of
/// `suite`, or else the one that is fastest on this computer.
///
/// # Errors
/// None that is known.
pub fn new_repository(
    ring: &KeyRing,
    recovery: &RecoverySecret,
    password: Option<&str>,
    suite: Option<Suite>,
) -> Result<NewRepository, CryptoError> {
    let password = password.map(|text| wrap_passphrase(ring, text, WORK_FACTOR_LOG_N));
    let wrappings = [wrap_recovery(ring, recovery)].into_iter().chain(password);
    request(ring, suite, 1, wrappings.collect())
}

/// The same repository again, from its recovery kit alone: with the configuration of a new one, which only what is stored
/// from now on depends on, and a set of that `generation` with a wrapping for this kit. `None` for a kit without keys.
///
/// # Errors
/// None that is known.
pub fn remade_repository(
    kit: &RecoveryKit,
    generation: u64,
) -> Result<Option<(KeyRing, NewRepository)>, CryptoError> {
    let Some(ring) = kit.ring.clone() else { return Ok(None) };
    let request = request(&ring, None, generation, vec![wrap_recovery(&ring, &kit.secret)])?;
    Ok(Some((ring, request)))
}

/// The same repository again where its set of wrappings is there still, which that ring opens: with the configuration of a
/// new one.
///
/// # Errors
/// None that is known.
pub fn with_new_config(ring: &KeyRing, wrappings: Bytes) -> Result<NewRepository, CryptoError> {
    Ok(NewRepository { config: config(&RepositoryKeys::derive(ring), None)?, wrappings })
}

fn config(keys: &RepositoryKeys, suite: Option<Suite>) -> Result<Bytes, CryptoError> {
    let suite = suite.unwrap_or_else(suite_for_this_cpu);
    Ok(keys.new_config(suite, LEAF_BITS, INLINE_LIMIT_BYTES)?.into())
}

fn request(
    ring: &KeyRing,
    suite: Option<Suite>,
    generation: u64,
    wrappings: Vec<holdall_format::Wrapping>,
) -> Result<NewRepository, CryptoError> {
    let keys = RepositoryKeys::derive(ring);
    Ok(NewRepository {
        config: config(&keys, suite)?,
        wrappings: sign_wrappings(&keys, generation, wrappings)?.into(),
    })
}
