//! What an administrator hands to somebody who may ask for deletions.
//!
//! A machine alone deletes nothing, however it was broken into. With a token it may ask, for one
//! repository and for a day; what it asked for waits like any other deletion, and can be cancelled.

use zeroize::Zeroizing;

use crate::base32;

const PREFIX: &str = "holdall-admin-";

/// A token; the server keeps only its hash.
///
/// Secret: no `Debug`.
pub struct AdminToken(Zeroizing<[u8; Self::LEN]>);

impl AdminToken {
    /// Its length in bytes.
    pub const LEN: usize = 32;

    /// Of random bytes.
    pub fn new(bytes: Zeroizing<[u8; Self::LEN]>) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// The text to hand over.
    pub fn to_text(&self) -> Zeroizing<String> {
        base32::encode_behind(PREFIX, &self.0[..])
    }

    /// Reads what [`AdminToken::to_text`] wrote; blanks around it do no harm. `None` for anything
    /// else.
    pub fn from_text(text: &str) -> Option<Self> {
        let bytes = base32::decode(text.trim().strip_prefix(PREFIX)?)?;
        bytes.as_slice().try_into().ok().map(|bytes| Self(Zeroizing::new(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_and_nothing_else_is_one() {
        let token = AdminToken::new(Zeroizing::new([7; 32]));
        let text = token.to_text();
        let again = AdminToken::from_text(&format!(" {}\n", *text)).unwrap();
        assert_eq!(again.as_bytes(), token.as_bytes());
        for bad in ["", PREFIX, &text[1..], &text[..text.len() - 1], &format!("{}a", *text)] {
            assert!(AdminToken::from_text(bad).is_none(), "{bad}");
        }
    }
}
