//! Secrets as text that people can copy: Bech32m, whose checksum finds every mistake in up to four letters.

use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32m, Hrp};
use zeroize::Zeroizing;

/// The text of a secret of at most 40 bytes, with `prefix` in front.
///
/// Secret: as what it stands for.
pub(crate) fn encode(prefix: Hrp, bytes: &[u8]) -> Zeroizing<String> {
    #[expect(clippy::expect_used, reason = "10 + 1 + 64 + 6 letters are below the limit of 90")]
    let text = bech32::encode::<Bech32m>(prefix, bytes).expect("at most 81 letters");
    Zeroizing::new(text)
}

/// Reads such a text. White space and case do not matter.
///
/// Untrusted: any text; nothing is allocated beyond its length.
///
/// # Errors
/// What is wrong with the text, in words for people.
pub(crate) fn decode<const N: usize>(
    what: &str,
    prefix: Hrp,
    text: &str,
) -> Result<Zeroizing<[u8; N]>, String> {
    let letters = text.chars().filter(|letter| !letter.is_whitespace());
    let text: Zeroizing<String> =
        Zeroizing::new(letters.map(|letter| letter.to_ascii_lowercase()).collect());
    let refuse = |reason: &str| format!("the {what} cannot be right: {reason}");
    let decoded =
        CheckedHrpstring::new::<Bech32m>(&text).map_err(|error| refuse(&error.to_string()))?;
    if decoded.hrp() != prefix {
        return Err(refuse(&format!("it does not start with \"{prefix}\"")));
    }
    let mut bytes = decoded.byte_iter();
    let mut secret = Zeroizing::new([0; N]);
    for byte in secret.iter_mut() {
        *byte = bytes.next().ok_or_else(|| refuse("it is too short"))?;
    }
    match bytes.next() {
        None => Ok(secret),
        Some(_) => Err(refuse("it is too long")),
    }
}
