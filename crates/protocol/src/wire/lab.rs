//! The answer of a measurement: what the server took.

use bytes::Bytes;
use holdall_format::FormatError;
use serde::{Deserialize, Serialize};

use super::control::{from_json, to_json};

/// What a server took of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabTaken {
    /// Bytes of the body.
    pub bytes: u64,
}

/// The body.
pub fn encode_lab_taken(taken: &LabTaken) -> Bytes {
    to_json(taken)
}

/// Reads the body.
///
/// # Errors
/// [`FormatError`] over [`MAX_CONTROL_BYTES`](super::MAX_CONTROL_BYTES), or for what is not this
/// JSON.
pub fn decode_lab_taken(body: &[u8]) -> Result<LabTaken, FormatError> {
    from_json("what was taken", body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_taken_reads_back(bytes: u64) {
            let taken = LabTaken { bytes };
            prop_assert_eq!(decode_lab_taken(&encode_lab_taken(&taken)), Ok(taken));
        }

        #[test]
        fn any_bytes_are_an_answer_or_an_error(bytes: Vec<u8>) {
            let _ = decode_lab_taken(&bytes);
        }
    }
}
