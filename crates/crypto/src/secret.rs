//! The master secret: the one thing that a repository's owner must not lose.

use zeroize::Zeroizing;

use crate::Entropy;

/// The 32 random bytes from which every key of a repository is derived.
///
/// Secret: leaves memory when dropped; neither printed nor cloned.
pub struct MasterSecret(Zeroizing<[u8; 32]>);

impl MasterSecret {
    /// Draws a new secret.
    pub fn generate(entropy: &mut dyn Entropy) -> Self {
        let mut bytes = Zeroizing::new([0; 32]);
        entropy.fill(&mut bytes[..]);
        Self(bytes)
    }

    /// Wraps the bytes of a secret that was kept.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes.
    ///
    /// Secret: whoever has them reads and signs everything. Meant for a file of mode 0600.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    /// Derives 32 bytes for one purpose, which `context` names and nothing else uses.
    pub(crate) fn derive(&self, context: &'static str) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(blake3::derive_key(context, self.expose()))
    }
}
