//! What stays of a repository that was erased: who it was, since when nothing of it is there, and its owner's signature.
//!
//! It is text, for whoever finds the folder:
//!
//! ```text
//! holdall erased, version 1
//! repository 0123456789abcdef0123456789abcdef
//! owner 89abcdef...
//! erased 1764489600
//! signature 0123...
//! ```

use std::fmt;

use crate::id::{parse_hex, write_hex};
use crate::signature::{PublicKey, Signature, SignedContext};
use crate::{FormatError, RepositoryId};

/// The file's name in a repository's directory.
pub const ERASED_FILE: &str = "erased";
/// No such file is longer.
pub const ERASED_MAX_BYTES: u64 = 1024;

/// What it begins with.
pub const ERASED_FRONT: &str = "holdall erased, version 1";
const WHAT: &str = "what stays of an erased repository";

/// A repository that was erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Erased {
    /// Which one it was.
    pub repository: RepositoryId,
    /// Its owner's key.
    pub owner: PublicKey,
    /// When it was begun, in seconds since 1970.
    pub erased_s: u64,
}

impl Erased {
    /// The text, signed by `sign`, which is given the bytes to sign.
    pub fn encode(&self, sign: impl FnOnce(SignedContext, &[u8]) -> Signature) -> String {
        let signed = self.signed();
        let signature = sign(SignedContext::Erased, signed.as_bytes());
        format!("{signed}signature {}\n", Digits(&signature))
    }

    fn signed(&self) -> String {
        let Self { repository, owner, erased_s } = self;
        format!("{ERASED_FRONT}\nrepository {repository}\nowner {owner}\nerased {erased_s}\n")
    }

    /// Reads it, and checks that the owner whom it names signed it.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] for anything else; [`FormatError::BadSignature`].
    pub fn decode(text: &str) -> Result<Self, FormatError> {
        let (erased, signature) = Self::parse(text).ok_or(FormatError::Invalid {
            what: WHAT,
            field: "text",
            reason: "it does not have its lines",
        })?;
        erased.owner.verify(SignedContext::Erased, erased.signed().as_bytes(), &signature)?;
        Ok(erased)
    }

    fn parse(text: &str) -> Option<(Self, Signature)> {
        let mut lines = text.strip_prefix(ERASED_FRONT)?.strip_prefix('\n')?.lines();
        let mut field = |name: &str| {
            let (found, value) = lines.next()?.split_once(' ')?;
            (found == name).then_some(value)
        };
        let erased = Self {
            repository: field("repository")?.parse().ok()?,
            owner: PublicKey::from_bytes(parse_hex(field("owner")?).ok()?),
            erased_s: field("erased")?.parse().ok()?,
        };
        let signature = Signature::from_bytes(parse_hex(field("signature")?).ok()?);
        // One text for one meaning.
        (erased.encode(|_, _| signature) == text).then_some((erased, signature))
    }
}

/// The digits of a signature.
struct Digits<'a>(&'a Signature);

impl fmt::Display for Digits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(self.0.as_bytes(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::tests::TestKey;

    fn erased(key: &TestKey) -> (Erased, String) {
        let repository = RepositoryId::from_bytes([7; 16]);
        let erased = Erased { repository, owner: key.public(), erased_s: 1_764_489_600 };
        let text = erased.encode(|context, message| key.sign(context, message));
        (erased, text)
    }

    #[test]
    fn what_stays_reads_back_and_only_its_owner_can_have_written_it() {
        let key = TestKey::new();
        let (erased, text) = erased(&key);
        assert_eq!(Erased::decode(&text), Ok(erased));
        let other = Erased { owner: TestKey::of(7).public(), ..erased };
        let forged = other.encode(|context, message| key.sign(context, message));
        assert!(matches!(Erased::decode(&forged), Err(FormatError::BadSignature { .. })));
        let other_time = text.replace("1764489600", "1764489601");
        assert!(matches!(Erased::decode(&other_time), Err(FormatError::BadSignature { .. })));
        assert!(text.len() as u64 <= ERASED_MAX_BYTES);
    }

    #[test]
    fn any_other_text_is_refused() {
        let (_, text) = erased(&TestKey::new());
        let shouted = text.to_uppercase();
        for bad in ["", "holdall erased, version 1", &text[1..], &format!("{text}\n"), &shouted] {
            assert!(matches!(Erased::decode(bad), Err(FormatError::Invalid { .. })), "{bad}");
        }
        let version = text.replace("version 1", "version 2");
        assert!(Erased::decode(&version).is_err());
    }
}
