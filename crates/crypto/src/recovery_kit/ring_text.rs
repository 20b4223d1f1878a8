//! The key ring on a recovery kit's page: a line for each of its epochs.
//!
//! ```text
//! Bech32m, prefix "holdallkey", of | epoch u8, the first is 0 | secret 32 |
//! ```

use bech32::Hrp;
use zeroize::Zeroizing;

use crate::{KeyRing, secret_text};

const PREFIX: Hrp = Hrp::parse_unchecked("holdallkey");
const EPOCH_AND_SECRET_BYTES: usize = 33;

/// The lines' values, in the order of the epochs.
pub(super) fn values(ring: &KeyRing) -> Vec<Zeroizing<String>> {
    let (master, later) = ring.secrets();
    let secrets = (0..=u8::MAX).zip(std::iter::once(master).chain(later));
    let text = |(epoch, secret): (u8, &[u8; 32])| {
        let mut bytes = Zeroizing::new([0; EPOCH_AND_SECRET_BYTES]);
        let (first, rest) = bytes.split_at_mut(1);
        first.copy_from_slice(&[epoch]);
        rest.copy_from_slice(secret);
        secret_text::encode(PREFIX, &bytes[..])
    };
    secrets.map(text).collect()
}

/// The epoch and the secret that one line stands for.
///
/// # Errors
/// What is wrong with it, in words for people.
pub(super) fn epoch(text: &str) -> Result<(u8, Zeroizing<[u8; 32]>), String> {
    let bytes = secret_text::decode::<EPOCH_AND_SECRET_BYTES>("key", PREFIX, text)?;
    let mut secret = Zeroizing::new([0; 32]);
    let (first, rest) = bytes.split_at(1);
    secret.copy_from_slice(rest);
    Ok((first.first().copied().unwrap_or_default(), secret))
}

/// The ring of all lines, in whatever order they were typed.
///
/// # Errors
/// If an epoch is missing, or there twice.
pub(super) fn ring(mut epochs: Vec<(u8, Zeroizing<[u8; 32]>)>) -> Result<KeyRing, String> {
    epochs.sort_by_key(|(epoch, _)| *epoch);
    if epochs.iter().zip(0..=u8::MAX).any(|((epoch, _), expected)| *epoch != expected) {
        return Err("a line \"Key\" is missing, or there twice".into());
    }
    let mut secrets = epochs.into_iter().map(|(_, secret)| secret);
    let master = secrets.next().ok_or("there is no line \"Key\"")?;
    Ok(KeyRing::from_secrets(master, secrets.collect()))
}
