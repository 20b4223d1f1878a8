//! Why bytes were refused.

/// Why a decoder refused its input. No variant holds key material or content, so every message may
/// be logged. Decoding the same bytes again gives the same answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The input ends inside a field, as a torn write or a cut connection leaves it.
    #[error("{what} ends inside {field}: {needed_bytes} bytes needed, {present_bytes} present")]
    CutShort {
        /// The structure that was read.
        what: &'static str,
        /// The field in it.
        field: &'static str,
        /// Bytes that the field takes.
        needed_bytes: u64,
        /// Bytes that were left.
        present_bytes: u64,
    },
    /// A declared count or length is over its limit; nothing was allocated for it.
    #[error("{what}: {field} declares {declared}, the limit is {limit}")]
    OverLimit {
        /// The structure that was read.
        what: &'static str,
        /// The field in it.
        field: &'static str,
        /// The declared number.
        declared: u64,
        /// The largest accepted number.
        limit: u64,
    },
    /// The first bytes are not those of this structure.
    #[error("not a {what}")]
    WrongMagic {
        /// What was expected.
        what: &'static str,
    },
    /// A version that this program does not read.
    #[error("{what} has format version {found}; this program reads version {supported}")]
    UnsupportedVersion {
        /// The structure that was read.
        what: &'static str,
        /// The version found.
        found: u32,
        /// The only version that is read.
        supported: u32,
    },
    /// A field has a value that the format does not allow.
    #[error("{what}: {field} is not valid: {reason}")]
    Invalid {
        /// The structure that was read.
        what: &'static str,
        /// The field in it.
        field: &'static str,
        /// Why it is refused.
        reason: &'static str,
    },
    /// Bytes follow the end of the structure.
    #[error("{what} is followed by {extra_bytes} unexpected bytes")]
    TrailingBytes {
        /// The structure that was read.
        what: &'static str,
        /// How many bytes are left over.
        extra_bytes: u64,
    },
    /// A hash does not match the bytes that it names.
    #[error("{what}: {field} does not match its content")]
    HashMismatch {
        /// The structure that was read.
        what: &'static str,
        /// Which hash.
        field: &'static str,
    },
    /// A signature was not made by the key it should be from.
    #[error("{what}: the signature is not valid")]
    BadSignature {
        /// The structure that was read.
        what: &'static str,
    },
}

impl FormatError {
    /// Whether a program that knows other versions may read the same bytes.
    #[must_use]
    pub fn is_other_version(&self) -> bool {
        matches!(self, Self::UnsupportedVersion { .. })
    }
}
