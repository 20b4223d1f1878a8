//! Signing keys: of a machine, of a repository's owner, of a recovery kit.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use holdall_format::{PublicKey, ReceiptSigner, SIGNATURE_BYTES, Signature, SignedContext};
use zeroize::Zeroizing;

use crate::Entropy;

/// What stands before the seed in the PKCS #8 form of an Ed25519 key (RFC 8410, section 7).
const PKCS8_PREFIX: [u8; 16] =
    [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// An Ed25519 key pair.
///
/// Secret: leaves memory when dropped; neither printed nor cloned.
pub struct SigningKey {
    seed: Zeroizing<[u8; 32]>,
    pair: Ed25519KeyPair,
    public: PublicKey,
}

impl SigningKey {
    /// Draws a new key.
    pub fn generate(entropy: &mut dyn Entropy) -> Self {
        let mut seed = Zeroizing::new([0; 32]);
        entropy.fill(&mut seed[..]);
        Self::from_seed(&seed)
    }

    /// The key of this seed (the private key of RFC 8032).
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        #[expect(clippy::expect_used, reason = "only a seed of another length is refused")]
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).expect("a seed has 32 bytes");
        let mut public = [0; PublicKey::LEN];
        public.copy_from_slice(pair.public_key().as_ref());
        Self { seed: Zeroizing::new(*seed), pair, public: PublicKey::from_bytes(public) }
    }

    /// The seed.
    ///
    /// Secret: whoever has it signs in this key's name. Meant for a file of mode 0600.
    pub fn seed(&self) -> &[u8; 32] {
        &self.seed
    }

    /// The private key as PKCS #8 (version 1, DER), as TLS libraries take it.
    ///
    /// Secret: as [`SigningKey::seed`].
    pub fn to_pkcs8(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new([&PKCS8_PREFIX[..], &self.seed[..]].concat())
    }

    /// The public key.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// Signs `message` in that context, so that the signature is good for nothing else.
    pub fn sign(&self, context: SignedContext, message: &[u8]) -> Signature {
        let mut signature = [0; SIGNATURE_BYTES];
        signature.copy_from_slice(self.pair.sign(&context.message(message)).as_ref());
        Signature::from_bytes(signature)
    }
}

impl ReceiptSigner for SigningKey {
    fn public(&self) -> PublicKey {
        self.public()
    }

    fn sign(&self, context: SignedContext, message: &[u8]) -> Signature {
        self.sign(context, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::tests::Stuck;

    #[test]
    fn a_signature_holds_for_its_key_context_and_message_only() {
        let (key, other) = (SigningKey::from_seed(&[1; 32]), SigningKey::generate(&mut Stuck(2)));
        let signature = key.sign(SignedContext::Record, b"message");
        let verify = |key: &SigningKey, context, message: &[u8]| {
            key.public().verify(context, message, &signature).is_ok()
        };
        assert!(verify(&key, SignedContext::Record, b"message"));
        assert!(!verify(&other, SignedContext::Record, b"message"));
        assert!(!verify(&key, SignedContext::Receipt, b"message"));
        assert!(!verify(&key, SignedContext::Record, b"massage"));
    }

    #[test]
    fn the_pkcs8_form_is_the_same_key() {
        let key = SigningKey::from_seed(&[3; 32]);
        let again = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&key.to_pkcs8()).unwrap();
        assert_eq!(again.public_key().as_ref(), key.public().as_bytes());
    }
}
