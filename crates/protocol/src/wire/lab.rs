//! The answers of a measurement: what the server took, and what it had to do with it.

use bytes::Bytes;
use holdall_format::FormatError;
use serde::{Deserialize, Serialize};

use super::control::{from_json, to_json};

/// What a server took of one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabTaken {
    /// Bytes of the body.
    pub bytes: u64,
    /// The server's version; older ones do not tell.
    ///
    /// Untrusted: a server may say anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
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

/// What a server had to do with the bytes of one request that it wrote to its disk and made durable.
///
/// Untrusted: a server may say any time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LabWritten {
    /// Bytes of the body.
    pub bytes: u64,
    /// Seconds of waiting for other requests.
    pub queue_seconds: f64,
    /// Seconds in which it was short of processor.
    pub cpu_seconds: f64,
    /// Seconds of writing and making durable.
    pub disk_seconds: f64,
    /// Processor time of the server's process since it began, in seconds.
    pub process_cpu_seconds: f64,
    /// Cores that the server's process may keep busy (0.2 for a fifth of one); older servers do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<f64>,
}

/// The body.
pub fn encode_lab_written(written: &LabWritten) -> Bytes {
    to_json(written)
}

/// Reads the body.
///
/// # Errors
/// [`FormatError`] over [`MAX_CONTROL_BYTES`](super::MAX_CONTROL_BYTES), or for what is not this
/// JSON.
pub fn decode_lab_written(body: &[u8]) -> Result<LabWritten, FormatError> {
    from_json("what was written", body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_server_that_does_not_tell_its_version_is_understood() {
        let taken = decode_lab_taken(br#"{"bytes":3}"#).unwrap();
        assert_eq!(taken, LabTaken { bytes: 3, version: None });
        assert_eq!(encode_lab_taken(&taken), br#"{"bytes":3}"#[..]);
    }

    #[test]
    fn a_server_that_does_not_tell_its_cores_is_understood() {
        let times = br#"{"bytes":3,"queue_seconds":0,"cpu_seconds":0,"disk_seconds":0,"process_cpu_seconds":1}"#;
        assert_eq!(decode_lab_written(times).unwrap().cores, None);
    }

    proptest! {
        #[test]
        fn what_was_taken_reads_back(bytes: u64, version: Option<String>) {
            let taken = LabTaken { bytes, version };
            prop_assert_eq!(decode_lab_taken(&encode_lab_taken(&taken)), Ok(taken));
        }

        #[test]
        fn what_was_written_reads_back(bytes: u64, times: [u32; 4], cores: Option<u16>) {
            let [queue_seconds, cpu_seconds, disk_seconds, process_cpu_seconds] = times.map(f64::from);
            let cores = cores.map(f64::from);
            let written = LabWritten {
                bytes,
                queue_seconds,
                cpu_seconds,
                disk_seconds,
                process_cpu_seconds,
                cores,
            };
            prop_assert_eq!(decode_lab_written(&encode_lab_written(&written)), Ok(written));
        }

        #[test]
        fn any_bytes_are_an_answer_or_an_error(bytes: Vec<u8>) {
            let _ = decode_lab_written(&bytes);
            let _ = decode_lab_taken(&bytes);
        }
    }
}
