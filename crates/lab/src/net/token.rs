//! The token that a listener prints: who has it may use the listener, and nobody else, so that a
//! listener is no amplifier for strangers.
//!
//! It never goes over the wire: a caller proves that it has it with a keyed hash of the listener's
//! nonce and of what it asks. What is measured is not secret and not protected.

use std::fmt;
use std::str::FromStr;

const TOKEN_BYTES: usize = 16;
const CONTEXT: &str = "holdall v1 lab listener token";

/// A listener's token, 16 random bytes, written as 32 hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Token([u8; TOKEN_BYTES]);

impl Token {
    /// From 16 bytes, which are random where it counts.
    pub const fn from_bytes(bytes: [u8; TOKEN_BYTES]) -> Self {
        Self(bytes)
    }

    /// What proves the token to a listener that greeted with `nonce`: 32 bytes.
    pub(super) fn proof(&self, nonce: &[u8; 16], asked: &[u8]) -> [u8; 32] {
        *self.hash(nonce, asked).as_bytes()
    }

    /// Whether `proof` is that, in constant time.
    pub(super) fn is_proof(&self, proof: &[u8], nonce: &[u8; 16], asked: &[u8]) -> bool {
        // A comparison of hashes takes the same time wherever they differ.
        proof.try_into().is_ok_and(|proof: [u8; 32]| self.hash(nonce, asked) == proof)
    }

    fn hash(&self, nonce: &[u8; 16], asked: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&blake3::derive_key(CONTEXT, &self.0));
        hasher.update(nonce).update(asked);
        hasher.finalize()
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Who debugs a listener needs no token.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl FromStr for Token {
    type Err = String;

    /// Reads 32 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "a token is the 32 hexadecimal digits that the listener printed".to_owned();
        let digits = text.trim();
        if digits.len() != 2 * TOKEN_BYTES || !digits.bytes().all(|d| d.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; TOKEN_BYTES];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_and_nonsense_is_none() {
        let token = Token::from_bytes([0xa7; 16]);
        assert_eq!(token.to_string().parse(), Ok(token));
        for bad in ["", "a7", &"a7".repeat(17), &"g7".repeat(16), &"ä".repeat(16)] {
            assert!(bad.parse::<Token>().is_err(), "{bad}");
        }
    }
}
