//! Who a machine is to a server: an Ed25519 key.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use holdall_format::PublicKey;
use zeroize::Zeroizing;

use crate::base32;
use crate::tls::TlsError;

/// The key with which a machine signs in. The same seed signs its records, elsewhere.
///
/// Secret: holds the seed, has no `Debug` and no `Clone`, and is wiped when dropped.
pub struct MachineIdentity {
    seed: Zeroizing<[u8; 32]>,
    public: PublicKey,
}

impl MachineIdentity {
    /// Takes the 32-byte seed of an Ed25519 key.
    ///
    /// # Errors
    /// [`TlsError`] if the seed gives no key, which no known seed does.
    pub fn from_seed(seed: &[u8; 32]) -> Result<Self, TlsError> {
        Ok(Self { public: public_of_seed(seed)?, seed: Zeroizing::new(*seed) })
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    pub(crate) fn seed(&self) -> &[u8; 32] {
        &self.seed
    }
}

/// The public key of a seed.
///
/// # Errors
/// [`TlsError`] if the seed gives no key.
fn public_of_seed(seed: &[u8; 32]) -> Result<PublicKey, TlsError> {
    let refused = || rustls::Error::General("not an Ed25519 seed".into());
    let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| refused())?;
    let bytes = pair.public_key().as_ref().try_into().map_err(|_| refused())?;
    Ok(PublicKey::from_bytes(bytes))
}

/// A key in a form that two people can compare: eight groups of four letters and digits.
pub fn fingerprint(key: &PublicKey) -> String {
    let hash = blake3::hash(key.as_bytes());
    let text = base32::encode(hash.as_bytes().split_at(20).0);
    let groups: Vec<_> = text.as_bytes().chunks(4).map(String::from_utf8_lossy).collect();
    groups.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_has_eight_groups_of_four() {
        let text = fingerprint(&PublicKey::from_bytes([1; 32]));
        assert!(text.split('-').all(|group| group.len() == 4), "{text}");
        assert_eq!(text.split('-').count(), 8);
        assert_ne!(text, fingerprint(&PublicKey::from_bytes([2; 32])));
    }
}
