//! The recovery secret: 32 bytes on paper that bring everything back.
//!
//! From it are derived an age identity, which unwraps the key ring, and a signing key, the
//! *recovery identity*, with which a new computer signs in to a server and may only read.

use age::x25519;
use bech32::{Bech32, Hrp};
use zeroize::{Zeroize, Zeroizing};

use crate::{Entropy, SigningKey, secret_text};

/// The front of the secret's text.
const TEXT_PREFIX: Hrp = Hrp::parse_unchecked("holdall");
/// The front of an age identity's text, in which form alone age takes one.
const AGE_PREFIX: Hrp = Hrp::parse_unchecked("age-secret-key-");

/// The secret of a recovery kit.
///
/// Secret: leaves memory when dropped; neither printed nor cloned.
pub struct RecoverySecret(Zeroizing<[u8; 32]>);

impl RecoverySecret {
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
    /// Secret: whoever has them can unwrap the key ring.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    /// The read-only identity with which a new computer signs in.
    pub fn signing_key(&self) -> SigningKey {
        SigningKey::from_seed(&self.derive("holdall v1 recovery signing key"))
    }

    /// The secret as text: Bech32m, whose checksum finds every mistake in up to four letters.
    ///
    /// Secret: as [`RecoverySecret::expose`].
    pub fn to_text(&self) -> Zeroizing<String> {
        secret_text::encode(TEXT_PREFIX, &self.0[..])
    }

    /// Reads the text of a secret. White space and case do not matter.
    ///
    /// Untrusted: any text; nothing is allocated beyond its length.
    ///
    /// # Errors
    /// What is wrong with the text, in words for people.
    pub fn from_text(text: &str) -> Result<Self, String> {
        secret_text::decode("secret", TEXT_PREFIX, text).map(Self)
    }

    pub(crate) fn age_identity(&self) -> x25519::Identity {
        let key = self.derive("holdall v1 recovery age identity");
        #[expect(clippy::expect_used, reason = "15 + 1 + 52 + 6 letters are below the limit of 90")]
        let mut text = bech32::encode_upper::<Bech32>(AGE_PREFIX, &key[..]).expect("74 letters");
        #[expect(clippy::expect_used, reason = "any 32 bytes are an X25519 key")]
        let identity = text.parse().expect("the text of an age identity");
        text.zeroize();
        identity
    }

    fn derive(&self, context: &'static str) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(blake3::derive_key(context, self.expose()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_secret_reads_back_from_its_text_in_any_case_and_spacing(bytes: [u8; 32], gap in 1usize..9) {
            let text = RecoverySecret::from_bytes(bytes).to_text().to_uppercase();
            let spaced: Vec<&str> =
                text.as_bytes().chunks(gap).map(|c| std::str::from_utf8(c).unwrap()).collect();
            let again = RecoverySecret::from_text(&spaced.join(" \n")).unwrap();
            prop_assert_eq!(again.expose(), &bytes);
        }

        #[test]
        fn a_wrong_letter_is_found(bytes: [u8; 32], at in 0usize..66, letter in "[a-z0-9]") {
            let mut text = RecoverySecret::from_bytes(bytes).to_text().to_string();
            prop_assume!(text[at..=at] != letter);
            text.replace_range(at..=at, &letter);
            prop_assert!(RecoverySecret::from_text(&text).is_err());
        }

        #[test]
        fn any_other_text_is_refused(text: String) {
            prop_assert!(RecoverySecret::from_text(&text).is_err());
        }
    }

    #[test]
    fn the_recovery_identity_is_not_the_age_identity() {
        let secret = RecoverySecret::from_bytes([1; 32]);
        let key = secret.derive("holdall v1 recovery age identity");
        assert_ne!(secret.signing_key().seed(), &*key);
    }
}
