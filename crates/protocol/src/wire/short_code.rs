//! The JSON bodies of pairing by a short code. What they prove, `short_code` says; here they are only bytes.

use bytes::Bytes;
use holdall_format::FormatError;
use holdall_format::wire::Reader;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::control::{from_json, to_json};
use crate::base32;

/// Length of the first message of either end: which end it is, and a point.
pub const EXCHANGE_BYTES: usize = 33;
/// Length of a confirmation.
pub const CONFIRMATION_BYTES: usize = 32;
/// Longest sealed invite: the longest text of one, and its tag.
pub const SEALED_INVITE_MAX_BYTES: usize = 4096 + 16;

/// The first message of either end. Nothing follows from it about the code.
pub type ExchangeMessage = [u8; EXCHANGE_BYTES];
/// The proof of either end that it has the same code, and sees the same keys.
pub type Confirmation = [u8; CONFIRMATION_BYTES];

/// The machine's first message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeRequest {
    message: Exact<EXCHANGE_BYTES>,
}

/// The server's answer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeAnswer {
    message: Exact<EXCHANGE_BYTES>,
}

/// The machine's proof that it has the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmRequest {
    confirmation: Exact<CONFIRMATION_BYTES>,
}

/// The server's, and what the code stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeConfirmed {
    confirmation: Exact<CONFIRMATION_BYTES>,
    invite: Sealed,
}

macro_rules! bodies {
    ($($body:ident, $what:literal;)+) => {
        $(impl $body {
            /// The body.
            pub fn encode(&self) -> Bytes {
                to_json(self)
            }

            /// Reads the body.
            ///
            /// # Errors
            /// [`FormatError`] over [`super::MAX_CONTROL_BYTES`], or for what is not this JSON.
            pub fn decode(body: &[u8]) -> Result<Self, FormatError> {
                from_json($what, body)
            }
        })+
    };
}

bodies! {
    ExchangeRequest, "short code request";
    CodeAnswer, "short code answer";
    ConfirmRequest, "short code confirmation";
    CodeConfirmed, "sealed invite";
}

impl ExchangeRequest {
    /// Begins with that message.
    pub fn new(message: ExchangeMessage) -> Self {
        Self { message: Exact(message) }
    }

    /// The message.
    pub fn message(&self) -> ExchangeMessage {
        self.message.0
    }
}

impl CodeAnswer {
    /// Answers with that message.
    pub fn new(message: ExchangeMessage) -> Self {
        Self { message: Exact(message) }
    }

    /// The message.
    pub fn message(&self) -> ExchangeMessage {
        self.message.0
    }
}

impl ConfirmRequest {
    /// Confirms with that.
    pub fn new(confirmation: Confirmation) -> Self {
        Self { confirmation: Exact(confirmation) }
    }

    /// What was confirmed with.
    pub fn confirmation(&self) -> Confirmation {
        self.confirmation.0
    }
}

impl CodeConfirmed {
    /// Confirms with that, and gives the sealed invite.
    ///
    /// # Errors
    /// [`FormatError`] for one that is longer than any.
    pub fn new(confirmation: Confirmation, invite: Vec<u8>) -> Result<Self, FormatError> {
        if invite.len() > SEALED_INVITE_MAX_BYTES {
            return Err(Reader::new("sealed invite", &[]).invalid("length", "over its limit"));
        }
        Ok(Self { confirmation: Exact(confirmation), invite: Sealed(invite) })
    }

    /// What was confirmed with.
    pub fn confirmation(&self) -> Confirmation {
        self.confirmation.0
    }

    /// The sealed invite, at most [`SEALED_INVITE_MAX_BYTES`].
    pub fn sealed_invite(&self) -> &[u8] {
        &self.invite.0
    }
}

/// So many bytes, in base32.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Exact<const LEN: usize>([u8; LEN]);

impl<const LEN: usize> Serialize for Exact<LEN> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&base32::encode(&self.0))
    }
}

impl<'de, const LEN: usize> Deserialize<'de> for Exact<LEN> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = base32::decode(&String::deserialize(deserializer)?);
        let exact = bytes.and_then(|bytes| bytes.as_slice().try_into().ok());
        exact.map(Self).ok_or_else(|| D::Error::custom("another length"))
    }
}

/// A sealed invite, in base32.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sealed(Vec<u8>);

impl Serialize for Sealed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&base32::encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Sealed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = base32::decode(&String::deserialize(deserializer)?);
        let fitting = bytes.filter(|bytes| bytes.len() <= SEALED_INVITE_MAX_BYTES);
        fitting.map(|bytes| Self(bytes.to_vec())).ok_or_else(|| D::Error::custom("too long"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bodies_of_another_length_are_refused() {
        let of = |bytes: &[u8]| format!(r#"{{"message":"{}"}}"#, *base32::encode(bytes));
        assert!(ExchangeRequest::decode(of(&[0x41; EXCHANGE_BYTES]).as_bytes()).is_ok());
        for len in [0, 1, EXCHANGE_BYTES - 1, EXCHANGE_BYTES + 1, 1000] {
            assert!(ExchangeRequest::decode(of(&vec![0x41; len]).as_bytes()).is_err(), "{len}");
        }
        assert!(CodeConfirmed::new([0; 32], vec![0; SEALED_INVITE_MAX_BYTES + 1]).is_err());
    }

    proptest! {
        #[test]
        fn bodies_read_back(
            message in any::<[u8; EXCHANGE_BYTES]>(),
            confirmation: Confirmation,
            invite in prop::collection::vec(any::<u8>(), 0..SEALED_INVITE_MAX_BYTES),
        ) {
            let request = ExchangeRequest::new(message);
            prop_assert_eq!(ExchangeRequest::decode(&request.encode()), Ok(request));
            let answer = CodeAnswer::new(message);
            prop_assert_eq!(CodeAnswer::decode(&answer.encode()), Ok(answer));
            let confirm = ConfirmRequest::new(confirmation);
            prop_assert_eq!(ConfirmRequest::decode(&confirm.encode()), Ok(confirm));
            let confirmed = CodeConfirmed::new(confirmation, invite).unwrap();
            prop_assert_eq!(CodeConfirmed::decode(&confirmed.encode()), Ok(confirmed));
        }

        #[test]
        fn any_bytes_are_a_body_or_an_error(bytes: Vec<u8>, at: usize, with: u8) {
            let sound = CodeConfirmed::new([7; 32], vec![9; 80]).unwrap().encode();
            let mut mutated = sound.to_vec();
            let at = at % mutated.len();
            mutated[at] = with;
            for body in [bytes, mutated] {
                let _ = ExchangeRequest::decode(&body);
                let _ = CodeAnswer::decode(&body);
                let _ = ConfirmRequest::decode(&body);
                let _ = CodeConfirmed::decode(&body).map(|body| body.sealed_invite().len());
            }
        }
    }
}
