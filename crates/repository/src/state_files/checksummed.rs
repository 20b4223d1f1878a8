//! Small files that end with the hash of all before it, so that whatever bit changes is noticed.

use holdall_format::FormatError;

const CHECKSUM_BYTES: usize = 32;

/// Ends what is to be stored with its checksum.
pub(crate) fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = blake3::hash(&bytes);
    bytes.extend_from_slice(checksum.as_bytes());
    bytes
}

/// What stands before the checksum of a stored `what`.
///
/// # Errors
/// [`FormatError::HashMismatch`] if it differs from what was stored.
pub(crate) fn without_checksum<'a>(
    what: &'static str,
    bytes: &'a [u8],
) -> Result<&'a [u8], FormatError> {
    let parts = bytes.split_last_chunk::<CHECKSUM_BYTES>();
    let sound = parts.filter(|(front, checksum)| blake3::hash(front).as_bytes() == *checksum);
    let mismatch = FormatError::HashMismatch { what, field: "checksum" };
    sound.map(|(front, _)| front).ok_or(mismatch)
}
