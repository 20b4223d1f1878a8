//! The messages of the listener's protocol, each of a fixed length.
//!
//! ```text
//! greeting, listener to caller   | "hldlab" 6 | version u16le = 2 | nonce 16 | zero 8 |          32
//! ask, caller to listener        | proof 32 | operation u8 | end u8 | wait u8 | zero 1
//!                                | duration_ms u32le | buffer_bytes u32le | zero 20 |            64
//! answer, listener to caller     | status u8 | length u8 | text, filled up with zeros |          64
//! result, listener to caller     | "hldcount" 8 | bytes u64le | nanoseconds u64le | retransmits u64le
//!                                | p50 p90 p99 p99.9, each u64le |                               64
//! ```
//!
//! Behind the answer come the bytes: the caller's, until it ends its direction, and then the result;
//! or, once the caller has sent one byte, the listener's, the result being the last 64 of them; or
//! 16 bytes at a time, there and back.
//!
//! A connection ends in the same way whether the listener is done or was killed. So the result says
//! what it is, and how many bytes were before it: without it, nothing was measured.
//!
//! Nothing has a length of its own, so that nothing is allocated for whoever calls.

use std::time::Duration;

use holdall_format::OneLine;
use holdall_meter::Latency;

use crate::net::{Token, Wait};

/// Longest time for which one connection may be asked to carry.
pub const MAX_SECONDS: u64 = 60;
/// Smallest piece that is written or read at once.
pub const MIN_BUFFER_BYTES: u32 = 1 << 10;
/// Largest piece that is written or read at once.
pub const MAX_BUFFER_BYTES: u32 = 4 << 20;
/// Most streams at once.
pub const MAX_STREAMS: usize = 64;

pub(super) const GREETING_BYTES: usize = 32;
pub(super) const ASK_BYTES: usize = 64;
pub(super) const ANSWER_BYTES: usize = 64;
pub(super) const RESULT_BYTES: usize = 64;
/// What a caller sends once all of its streams are ready, to be given bytes.
pub(super) const GO: u8 = 1;
/// Bytes that go there and back to measure a round trip.
pub(super) const PING_BYTES: usize = 16;

const MAGIC: &[u8; 6] = b"hldlab";
const RESULT_MAGIC: &[u8; 8] = b"hldcount";
const VERSION: u16 = 2;
const PROOF_BYTES: usize = 32;
const NOT_KNOWN: u64 = u64::MAX;

/// Why a message of the other end was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadMessage {
    /// What answered is no listener.
    #[error("this is no `holdall lab listen`")]
    NoListener,
    /// A listener of another version.
    #[error("the other end speaks version {found} of the protocol, this one {VERSION}")]
    OtherVersion { found: u16 },
    /// The token was not the listener's.
    #[error("wrong token")]
    WrongToken,
    /// A field has a value that it cannot have.
    #[error("{field} cannot be {value}")]
    OutOfRange { field: &'static str, value: u64 },
    /// The listener refused, in its own words.
    #[error("the other end refused: {0}")]
    Refused(String),
}

impl From<BadMessage> for std::io::Error {
    fn from(error: BadMessage) -> Self {
        let kind = match error {
            BadMessage::WrongToken | BadMessage::Refused(_) => std::io::ErrorKind::PermissionDenied,
            _ => std::io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}

/// The listener's first words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Greeting {
    /// Makes every proof another one.
    pub(super) nonce: [u8; 16],
}

impl Greeting {
    pub(super) fn encode(&self) -> [u8; GREETING_BYTES] {
        let mut bytes = [0; GREETING_BYTES];
        bytes[..6].copy_from_slice(MAGIC);
        bytes[6..8].copy_from_slice(&VERSION.to_le_bytes());
        bytes[8..24].copy_from_slice(&self.nonce);
        bytes
    }

    /// Untrusted: what answers may be anything.
    pub(super) fn decode(bytes: &[u8; GREETING_BYTES]) -> Result<Self, BadMessage> {
        if &bytes[..6] != MAGIC {
            return Err(BadMessage::NoListener);
        }
        match u16::from_le_bytes([bytes[6], bytes[7]]) {
            VERSION => {}
            found => return Err(BadMessage::OtherVersion { found }),
        }
        let mut nonce = [0; 16];
        nonce.copy_from_slice(&bytes[8..24]);
        Ok(Self { nonce })
    }
}

/// What a connection is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// Sends back what comes.
    Echo,
    /// Takes what comes.
    Take,
    /// Sends.
    Give,
}

/// What is at the listener's end of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FarEnd {
    /// Nothing: they come from memory, or are forgotten.
    Memory,
    /// A scratch file.
    File,
}

/// What a caller wants of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) operation: Operation,
    pub(super) end: FarEnd,
    pub(super) wait: Wait,
    pub(super) duration: Duration,
    pub(super) buffer_bytes: u32,
}

impl Ask {
    pub(super) fn encode(&self, token: &Token, nonce: &[u8; 16]) -> [u8; ASK_BYTES] {
        let mut bytes = [0; ASK_BYTES];
        bytes[32] = match self.operation {
            Operation::Echo => 0,
            Operation::Take => 1,
            Operation::Give => 2,
        };
        bytes[33] = u8::from(self.end == FarEnd::File);
        bytes[34] = match self.wait {
            Wait::Never => 0,
            Wait::AtEnd => 1,
            Wait::EachWrite => 2,
        };
        let millis = u32::try_from(self.duration.as_millis()).unwrap_or(u32::MAX);
        bytes[36..40].copy_from_slice(&millis.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.buffer_bytes.to_le_bytes());
        let proof = token.proof(nonce, &bytes[PROOF_BYTES..]);
        bytes[..PROOF_BYTES].copy_from_slice(&proof);
        bytes
    }

    /// Untrusted: the proof is looked at before anything else.
    pub(super) fn decode(
        bytes: &[u8; ASK_BYTES],
        token: &Token,
        nonce: &[u8; 16],
    ) -> Result<Self, BadMessage> {
        let (proof, asked) = bytes.split_at(PROOF_BYTES);
        if !token.is_proof(proof, nonce, asked) {
            return Err(BadMessage::WrongToken);
        }
        let out_of = |field, value: u64| BadMessage::OutOfRange { field, value };
        let number = |at: usize| {
            u32::from_le_bytes([asked[at], asked[at + 1], asked[at + 2], asked[at + 3]])
        };
        let (millis, buffer_bytes) = (number(4), number(8));
        if u64::from(millis) > MAX_SECONDS * 1000 {
            return Err(out_of("a duration in ms", millis.into()));
        }
        if !(MIN_BUFFER_BYTES..=MAX_BUFFER_BYTES).contains(&buffer_bytes) {
            return Err(out_of("a buffer in bytes", buffer_bytes.into()));
        }
        Ok(Self {
            operation: match asked[0] {
                0 => Operation::Echo,
                1 => Operation::Take,
                2 => Operation::Give,
                other => return Err(out_of("an operation", other.into())),
            },
            end: match asked[1] {
                0 => FarEnd::Memory,
                1 => FarEnd::File,
                other => return Err(out_of("an end", other.into())),
            },
            wait: match asked[2] {
                0 => Wait::Never,
                1 => Wait::AtEnd,
                2 => Wait::EachWrite,
                other => return Err(out_of("a wait", other.into())),
            },
            duration: Duration::from_millis(millis.into()),
            buffer_bytes,
        })
    }
}

/// Whether a listener does what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// It does.
    Agreed,
    /// It does not, for this reason.
    Refused(String),
    /// Nothing is done for who has not the token.
    WrongToken,
}

impl Answer {
    pub(super) fn encode(&self) -> [u8; ANSWER_BYTES] {
        let mut bytes = [0; ANSWER_BYTES];
        let reason = match self {
            Self::Agreed => return bytes,
            Self::Refused(reason) => reason.as_str(),
            Self::WrongToken => "",
        };
        bytes[0] = if *self == Self::WrongToken { 2 } else { 1 };
        let mut length = reason.len().min(ANSWER_BYTES - 2);
        while !reason.is_char_boundary(length) {
            length -= 1;
        }
        bytes[1] = u8::try_from(length).unwrap_or(0);
        bytes[2..2 + length].copy_from_slice(&reason.as_bytes()[..length]);
        bytes
    }

    /// Untrusted: what is no text is shown as what it might be, and what is not seen is escaped.
    pub(super) fn decode(bytes: &[u8; ANSWER_BYTES]) -> Self {
        match bytes[0] {
            0 => return Self::Agreed,
            2 => return Self::WrongToken,
            _ => {}
        }
        let length = usize::from(bytes[1]).min(ANSWER_BYTES - 2);
        let text = String::from_utf8_lossy(&bytes[2..2 + length]);
        Self::Refused(OneLine(text).to_string())
    }
}

/// What a listener counted of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counted {
    /// Bytes that it took, or gave.
    pub(super) bytes: u64,
    /// From the first byte to the end.
    pub(super) duration: Duration,
    /// Segments that its computer sent again meanwhile, where the system tells.
    pub(super) retransmits: Option<u64>,
    /// How long its writes or reads took, where a file is at its end.
    pub(super) latency: Option<Latency>,
}

impl Counted {
    pub(super) fn encode(&self) -> [u8; RESULT_BYTES] {
        let nanos = u64::try_from(self.duration.as_nanos()).unwrap_or(u64::MAX);
        let latency = self.latency.map_or([NOT_KNOWN; 4], |l| [l.p50, l.p90, l.p99, l.p99_9]);
        let retransmits = self.retransmits.unwrap_or(NOT_KNOWN);
        let fields = [self.bytes, nanos, retransmits].into_iter().chain(latency);
        let mut bytes = [0; RESULT_BYTES];
        bytes[..8].copy_from_slice(RESULT_MAGIC);
        for (place, field) in bytes[8..].chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// Untrusted: whatever begins as a result does has some figures; `None` if these are the last
    /// bytes of something else.
    pub(super) fn decode(bytes: &[u8; RESULT_BYTES]) -> Option<Self> {
        let (magic, figures) = bytes.split_at(RESULT_MAGIC.len());
        if magic != RESULT_MAGIC {
            return None;
        }
        let mut fields = [0; 7];
        for (field, place) in fields.iter_mut().zip(figures.chunks_exact(8)) {
            *field = place.iter().rev().fold(0_u64, |value, &byte| value << 8 | u64::from(byte));
        }
        let [counted, nanos, retransmits, p50, p90, p99, p99_9] = fields;
        Some(Self {
            bytes: counted,
            duration: Duration::from_nanos(nanos),
            retransmits: Some(retransmits).filter(|&count| count != NOT_KNOWN),
            latency: Some(Latency { p50, p90, p99, p99_9 }).filter(|_| p50 != NOT_KNOWN),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NONCE: [u8; 16] = [7; 16];

    fn token() -> Token {
        Token::from_bytes([3; 16])
    }

    fn ask() -> Ask {
        Ask {
            operation: Operation::Take,
            end: FarEnd::File,
            wait: Wait::EachWrite,
            duration: Duration::from_millis(1500),
            buffer_bytes: 64 << 10,
        }
    }

    /// An ask whose bytes from `at` on are `with`, proved all the same.
    fn proved(at: usize, with: &[u8]) -> [u8; ASK_BYTES] {
        let mut bytes = ask().encode(&token(), &NONCE);
        bytes[at..at + with.len()].copy_from_slice(with);
        let proof = token().proof(&NONCE, &bytes[PROOF_BYTES..]);
        bytes[..PROOF_BYTES].copy_from_slice(&proof);
        bytes
    }

    #[test]
    fn every_message_reads_back() {
        let greeting = Greeting { nonce: NONCE };
        assert_eq!(Greeting::decode(&greeting.encode()), Ok(greeting));
        assert_eq!(Ask::decode(&ask().encode(&token(), &NONCE), &token(), &NONCE), Ok(ask()));
        for answer in [Answer::Agreed, Answer::Refused("no room".into()), Answer::WrongToken] {
            assert_eq!(Answer::decode(&answer.encode()), answer);
        }
        let latency = Some(Latency { p50: 1, p90: 2, p99: 3, p99_9: 4 });
        let duration = Duration::from_nanos(9);
        let counted = Counted { bytes: 5, duration, retransmits: Some(0), latency };
        assert_eq!(Counted::decode(&counted.encode()), Some(counted));
        assert_eq!(Counted::decode(&Counted::default().encode()), Some(Counted::default()));
    }

    #[test]
    fn a_result_has_these_bytes_and_the_end_of_a_payload_is_none() {
        let latency = Some(Latency { p50: 1, p90: 2, p99: 3, p99_9: 0x0405 });
        let duration = Duration::from_nanos(0x0102_0304);
        let bytes = Counted { bytes: 258, duration, retransmits: None, latency }.encode();
        let mut wanted = b"hldcount\x02\x01\0\0\0\0\0\0\x04\x03\x02\x01\0\0\0\0".to_vec();
        wanted.extend([0xff; 8]);
        for figure in [1_u64, 2, 3, 0x0405] {
            wanted.extend(figure.to_le_bytes());
        }
        assert_eq!(bytes.as_slice(), wanted);
        let noise = crate::net::end::noise(RESULT_BYTES);
        assert_eq!(Counted::decode(noise.first_chunk().unwrap()), None);
        // Of a listener of version 1, or cut by a byte.
        assert_eq!(Counted::decode(&[0; RESULT_BYTES]), None);
        let mut shifted = bytes;
        shifted.rotate_left(1);
        assert_eq!(Counted::decode(&shifted), None);
    }

    #[test]
    fn an_ask_without_the_token_or_for_another_greeting_is_refused() {
        let bytes = ask().encode(&token(), &NONCE);
        let other = Token::from_bytes([4; 16]);
        assert_eq!(Ask::decode(&bytes, &other, &NONCE), Err(BadMessage::WrongToken));
        assert_eq!(Ask::decode(&bytes, &token(), &[8; 16]), Err(BadMessage::WrongToken));
        for at in 0..ASK_BYTES {
            let mut changed = bytes;
            changed[at] ^= 1;
            assert_eq!(
                Ask::decode(&changed, &token(), &NONCE),
                Err(BadMessage::WrongToken),
                "{at}"
            );
        }
    }

    #[test]
    fn figures_over_the_limits_are_refused_even_from_who_has_the_token() {
        for (at, with, field) in [
            (32, &[3_u8][..], "an operation"),
            (33, &[2], "an end"),
            (34, &[3], "a wait"),
            (36, &60_001_u32.to_le_bytes(), "a duration in ms"),
            (40, &0_u32.to_le_bytes(), "a buffer in bytes"),
            (40, &(MAX_BUFFER_BYTES + 1).to_le_bytes(), "a buffer in bytes"),
        ] {
            match Ask::decode(&proved(at, with), &token(), &NONCE) {
                Err(BadMessage::OutOfRange { field: found, .. }) => assert_eq!(found, field),
                other => panic!("{field}: {other:?}"),
            }
        }
        assert!(Ask::decode(&proved(36, &60_000_u32.to_le_bytes()), &token(), &NONCE).is_ok());
    }

    #[test]
    fn another_program_and_another_version_are_told_apart() {
        let mut bytes = Greeting { nonce: NONCE }.encode();
        bytes[6] = 1;
        assert_eq!(Greeting::decode(&bytes), Err(BadMessage::OtherVersion { found: 1 }));
        bytes[0] = b'S';
        assert_eq!(Greeting::decode(&bytes), Err(BadMessage::NoListener));
    }

    #[test]
    fn a_long_reason_is_cut_between_letters_and_can_not_move_the_cursor() {
        let told = |reason: String| Answer::decode(&Answer::Refused(reason).encode());
        assert_eq!(told("ä".repeat(40)), Answer::Refused("ä".repeat(31)));
        assert_eq!(told("a\x1b[2Jb\n".into()), Answer::Refused("a\\u{1b}[2Jb\\n".into()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_refused(bytes: [u8; 32], more: [u8; 32]) {
            let _ = Greeting::decode(&bytes);
            let mut both = [0; 64];
            both[..32].copy_from_slice(&bytes);
            both[32..].copy_from_slice(&more);
            let _ = Answer::decode(&both);
            let _ = Counted::decode(&both);
            prop_assert_eq!(Ask::decode(&both, &token(), &NONCE), Err(BadMessage::WrongToken));
            if let Ok(read) = Ask::decode(&proved(32, &more), &token(), &NONCE) {
                prop_assert!(read.duration.as_secs() <= MAX_SECONDS);
                prop_assert!(read.buffer_bytes <= MAX_BUFFER_BYTES);
            }
        }
    }
}
