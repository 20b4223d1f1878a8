//! The decoders of the listener's messages, for tests and fuzz targets that feed them hostile bytes
//! without a connection. Only there with the feature `decoders`, so that nothing of it is in a program.

use super::Token;
use super::message::{Answer, Ask, Counted, Greeting};

/// The token that proves what is asked.
pub const TOKEN: [u8; 16] = [3; 16];
/// What the listener greeted with.
pub const NONCE: [u8; 16] = [7; 16];

/// A kind of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// The listener's first.
    Greeting,
    /// What a caller wants, proved by [`TOKEN`] and [`NONCE`].
    Ask,
    /// Whether the listener does it.
    Answer,
    /// What the listener counted.
    Counted,
}

impl Message {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Greeting, Self::Ask, Self::Answer, Self::Counted];

    /// Reads the message that `bytes` begin with, and gives what is written of what was read; `None` if
    /// it is refused or cut short.
    pub fn rewritten(self, bytes: &[u8]) -> Option<Vec<u8>> {
        let token = Token::from_bytes(TOKEN);
        Some(match self {
            Self::Greeting => Greeting::decode(bytes.first_chunk()?).ok()?.encode().to_vec(),
            Self::Ask => {
                let ask = Ask::decode(bytes.first_chunk()?, &token, &NONCE).ok()?;
                ask.encode(&token, &NONCE).to_vec()
            }
            Self::Answer => Answer::decode(bytes.first_chunk()?).encode().to_vec(),
            Self::Counted => Counted::decode(bytes.first_chunk()?)?.encode().to_vec(),
        })
    }
}
