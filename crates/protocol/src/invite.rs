//! Invites: one line of text that lets a machine in once.
//!
//! An invite carries everything that a machine needs to find the right server and to be let in: no
//! other secret is typed, and no certificate is confirmed by eye. It is short enough to paste, has no
//! upper case that could be lost, and a checksum tells a mangled one from an expired one.
//!
//! ```text
//! holdall1-<base32 without padding, lower case>
//!
//! | version u8 = 1 | identity 32 | secret 16 | repository length u8 | repository
//! | address count u8 | (length u8 | HOST:PORT) ... | checksum 4 (front of BLAKE3 of all before) |
//! ```

use std::fmt;

use holdall_format::PublicKey;
use holdall_format::wire::Reader;
use zeroize::Zeroizing;

use crate::base32;

const PREFIX: &str = "holdall1-";
const VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = 4;
/// Most addresses in an invite.
pub const INVITE_MAX_ADDRESSES: usize = 8;
/// Most bytes of one, all addresses and names as long as may be.
const MAX_BYTES: usize = 1 + 32 + 16 + 256 + 1 + INVITE_MAX_ADDRESSES * 256 + CHECKSUM_BYTES;
/// Longest invite that is read, in characters.
const MAX_CHARACTERS: usize = 4096;

/// Why a text is no invite.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InviteError {
    /// It does not begin like one.
    #[error("this is not an invite: an invite begins with {PREFIX}")]
    NotAnInvite,
    /// Characters were lost or changed on the way.
    #[error("this invite was not copied completely: {reason}; copy the whole line again")]
    Mangled {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// It was made by a newer program.
    #[error("this invite has version {found}; this program reads version {VERSION}")]
    UnsupportedVersion {
        /// The version found.
        found: u8,
    },
}

/// What an invite says.
///
/// Secret: whoever has it first is let in.
#[derive(Clone, PartialEq, Eq)]
pub struct Invite {
    /// The server's identity.
    pub identity: PublicKey,
    /// Accepted once, for ten minutes.
    pub secret: Zeroizing<[u8; 16]>,
    /// The repository that it gives access to; empty if the server names it when pairing.
    pub repository: String,
    /// Where the server may be reached, `HOST:PORT` each, the most likely first; at most
    /// [`INVITE_MAX_ADDRESSES`] of at most 255 bytes.
    pub addresses: Vec<String>,
}

impl Invite {
    /// The text to hand over. What is over its limit is left out.
    ///
    /// Secret: as the invite.
    pub fn to_text(&self) -> Zeroizing<String> {
        let mut out = Zeroizing::new(Vec::with_capacity(MAX_BYTES));
        out.push(VERSION);
        out.extend_from_slice(self.identity.as_bytes());
        out.extend_from_slice(&self.secret[..]);
        put_text(&mut out, &self.repository);
        let fitting = || self.addresses.iter().filter(|address| address.len() <= 255);
        let addresses = fitting().take(INVITE_MAX_ADDRESSES);
        out.push(addresses.clone().count() as u8);
        addresses.for_each(|address| put_text(&mut out, address));
        let checksum = checksum(&out);
        out.extend_from_slice(&checksum);
        base32::encode_behind(PREFIX, &out)
    }

    /// Reads an invite; blanks around it and upper case do no harm.
    ///
    /// Untrusted: reads at most 4096 characters.
    ///
    /// # Errors
    /// [`InviteError`].
    pub fn from_text(text: &str) -> Result<Self, InviteError> {
        let text = text.trim();
        if text.len() > MAX_CHARACTERS || !text.is_ascii() {
            return Err(InviteError::NotAnInvite);
        }
        let text = Zeroizing::new(text.to_ascii_lowercase());
        let encoded = text.strip_prefix(PREFIX).ok_or(InviteError::NotAnInvite)?;
        let mangled = |reason| InviteError::Mangled { reason };
        let bytes = base32::decode(encoded).ok_or(mangled("a character is not of its alphabet"))?;
        let (body, sum) =
            bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(mangled("it is cut short"))?;
        if checksum(body) != *sum {
            return Err(mangled("its checksum does not match"));
        }
        match body.first() {
            Some(&VERSION) => {}
            Some(&found) => return Err(InviteError::UnsupportedVersion { found }),
            None => return Err(mangled("it is empty")),
        }
        decode_body(body).map_err(|_| mangled("a field is not valid"))
    }
}

impl fmt::Debug for Invite {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Invite")
            .field("identity", &self.identity)
            .field("repository", &self.repository)
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

fn decode_body(body: &[u8]) -> Result<Invite, holdall_format::FormatError> {
    let mut reader = Reader::new("invite", body);
    reader.u8("version")?;
    let identity = PublicKey::from_bytes(reader.array("identity")?);
    let secret = Zeroizing::new(reader.array("secret")?);
    let repository = take_text(&mut reader)?;
    let count = usize::from(reader.u8("address count")?);
    if count > INVITE_MAX_ADDRESSES {
        return Err(reader.invalid("address count", "over its limit"));
    }
    let addresses = (0..count).map(|_| take_text(&mut reader)).collect::<Result<_, _>>()?;
    reader.finish()?;
    Ok(Invite { identity, secret, repository, addresses })
}

fn take_text(reader: &mut Reader<'_>) -> Result<String, holdall_format::FormatError> {
    let length = usize::from(reader.u8("text length")?);
    let text = std::str::from_utf8(reader.bytes("text", length)?);
    text.map(str::to_owned).map_err(|_| reader.invalid("text", "not UTF-8"))
}

/// Appends a text of at most 255 bytes; a longer one counts as empty.
fn put_text(out: &mut Vec<u8>, text: &str) {
    let (length, text) = u8::try_from(text.len()).map_or((0, ""), |length| (length, text));
    out.push(length);
    out.extend_from_slice(text.as_bytes());
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut sum = [0; CHECKSUM_BYTES];
    sum.copy_from_slice(blake3::hash(bytes).as_bytes().split_at(CHECKSUM_BYTES).0);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> Invite {
        Invite {
            identity: PublicKey::from_bytes([7; 32]),
            secret: Zeroizing::new([9; 16]),
            repository: "laptop".into(),
            addresses: vec!["192.0.2.1:7443".into(), "[2001:db8::1]:7443".into()],
        }
    }

    #[test]
    fn an_invite_reads_back_with_blanks_around_it_and_in_upper_case() {
        let text = sample().to_text();
        assert_eq!(Invite::from_text(&text), Ok(sample()));
        assert_eq!(Invite::from_text(&format!("  {}\n", text.to_uppercase())), Ok(sample()));
    }

    #[test]
    fn an_invite_of_another_version_is_told_from_a_mangled_one() {
        let text = sample().to_text();
        let mut body = base32::decode(text.strip_prefix(PREFIX).unwrap()).unwrap();
        let signed_bytes = body.len() - CHECKSUM_BYTES;
        body.truncate(signed_bytes);
        body[0] = 2;
        let sum = checksum(&body);
        let other = base32::encode_behind(PREFIX, &[&body[..], &sum].concat());
        assert_eq!(Invite::from_text(&other), Err(InviteError::UnsupportedVersion { found: 2 }));
    }

    #[test]
    fn neither_debug_nor_an_error_shows_the_secret() {
        assert!(!format!("{:?}", sample()).contains("9, 9"));
    }

    proptest! {
        #[test]
        fn any_invite_reads_back(
            identity: [u8; 32],
            secret: [u8; 16],
            repository in "[a-z0-9._-]{0,64}",
            addresses in prop::collection::vec("[a-z0-9.:\\[\\]-]{0,80}", 0..INVITE_MAX_ADDRESSES),
        ) {
            let identity = PublicKey::from_bytes(identity);
            let invite = Invite { identity, secret: Zeroizing::new(secret), repository, addresses };
            prop_assert_eq!(Invite::from_text(&invite.to_text()), Ok(invite));
        }

        #[test]
        fn a_changed_character_is_found(at: usize, with in "[a-z2-7]") {
            let text = sample().to_text();
            let at = PREFIX.len() + at % (text.len() - PREFIX.len());
            let mut changed = text.clone();
            changed.replace_range(at..=at, &with);
            prop_assume!(changed != text);
            prop_assert!(
                matches!(Invite::from_text(&changed), Err(InviteError::Mangled { .. })),
                "{}",
                *changed
            );
        }

        #[test]
        fn any_text_is_an_invite_or_an_error(text: String, tail in "[a-z2-7]{0,400}") {
            let _ = Invite::from_text(&text);
            let _ = Invite::from_text(&format!("{PREFIX}{tail}"));
        }
    }
}
