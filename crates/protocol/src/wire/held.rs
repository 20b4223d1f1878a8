//! What a server says of a limit that its administrator set, in a field of each answer's head while one counts.

/// The field's name.
pub const HELD_FIELD: &str = "holdall-limit";

/// A limit, and what it cost a machine so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// What all machines together may send in a second, and as much that they may be sent.
    pub bytes_per_second: u64,
    /// For how long the machine was held back since the server started, added up over its connections.
    pub millis: u64,
}

impl Held {
    /// As the field has it: both numbers with a space between.
    pub fn encode(&self) -> String {
        format!("{} {}", self.bytes_per_second, self.millis)
    }

    /// Reads it; `None` if it is not that. A server may say anything: it counts for words alone.
    pub fn decode(text: &str) -> Option<Self> {
        let (bytes_per_second, millis) = text.split_once(' ')?;
        Some(Self {
            bytes_per_second: bytes_per_second.parse().ok()?,
            millis: millis.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_reads_back_and_nonsense_is_none() {
        let held = Held { bytes_per_second: 1_000_000, millis: 2500 };
        assert_eq!(Held::decode(&held.encode()), Some(held));
        for bad in ["", "1", "1 -2", "a 1", "1 2 3", "99999999999999999999 1"] {
            assert_eq!(Held::decode(bad), None, "{bad}");
        }
    }
}
