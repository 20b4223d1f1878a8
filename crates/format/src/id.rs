//! Names of things: fixed-length byte strings, each with a type of its own, so that a block's name
//! cannot be passed where an object's id is meant.

use std::fmt;
use std::str::FromStr;

/// Text that is not the hexadecimal form of an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not {expected_digits} hexadecimal digits")]
pub struct ParseIdError {
    found: String,
    expected_digits: usize,
}

fn hex_value(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

pub(crate) fn parse_hex<const N: usize>(text: &str) -> Result<[u8; N], ParseIdError> {
    let refuse = || ParseIdError { found: text.chars().take(80).collect(), expected_digits: 2 * N };
    if text.len() != 2 * N {
        return Err(refuse());
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let [high, low] = pair else { return Err(refuse()) };
        let (high, low) = hex_value(*high).zip(hex_value(*low)).ok_or_else(refuse)?;
        *byte = (high << 4) | low;
    }
    Ok(bytes)
}

/// Writes bytes as hexadecimal digits, in lower case.
pub(crate) fn write_hex(bytes: &[u8], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    let digits = |byte: &u8| [digit(byte >> 4), digit(byte & 15)];
    out.write_str(&bytes.iter().flat_map(digits).collect::<String>())
}

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident, $len:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; $len]);

        impl $name {
            /// Length in bytes.
            pub const LEN: usize = $len;

            /// Wraps the bytes.
            pub const fn from_bytes(bytes: [u8; $len]) -> Self {
                Self(bytes)
            }

            /// The bytes.
            pub const fn as_bytes(&self) -> &[u8; $len] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_hex(&self.0, out)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                parse_hex(text).map(Self)
            }
        }
    };
}

identifier!(
    /// An object's id: keyed BLAKE3 of its plain bytes, so nobody without the key can compute or
    /// check it.
    ObjectId, 32
);
identifier!(
    /// A block's name: BLAKE3 of its header, table and payload, which anybody can check.
    BlockName, 32
);
identifier!(
    /// A pack's name: BLAKE3 of its footer.
    PackName, 32
);
identifier!(
    /// BLAKE3 of a record's bytes, clear and sealed half together.
    RecordHash, 32
);
identifier!(
    /// A repository's id, derived from its master secret.
    RepositoryId, 16
);
identifier!(
    /// A machine's id: random, kept through replacement of its keys and its hardware.
    MachineId, 16
);
identifier!(
    /// A series' id: a keyed hash of what is backed up, so that it says nothing of it.
    SeriesId, 16
);
identifier!(
    /// A session's id: random, chosen by the repository.
    SessionId, 16
);
identifier!(
    /// A keyed hash of a tag, so that retention can tell tags apart without reading them.
    TagToken, 16
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_from_its_text() {
        let id = ObjectId::from_bytes(std::array::from_fn(|i| i as u8 * 7));
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn text_that_is_not_hexadecimal_or_has_another_length_is_refused() {
        for text in
            ["", "00", "zz", &"g".repeat(32), &"0".repeat(31), "+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1"]
        {
            assert!(text.parse::<MachineId>().is_err(), "{text:?}");
        }
    }
}
