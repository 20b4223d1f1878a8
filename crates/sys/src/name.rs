//! One component of a path, checked once, so that no tree can name anything outside the directory
//! that it is put into.

use std::{fmt, io};

/// The longest name that a [`Name`] holds, in bytes: what Linux file systems take.
pub const MAX_NAME_BYTES: usize = 255;

/// The name of one entry in a directory: any bytes but `/` and NUL, 1 to 255 of them, neither
/// `.` nor `..`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name<'a>(&'a [u8]);

/// Why bytes are not a [`Name`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadName {
    /// There is nothing there.
    #[error("a name is empty")]
    Empty,
    /// It is `.` or `..`, which name the directory itself and what lies around it.
    #[error("a name is . or ..")]
    Dots,
    /// It has a `/` or NUL byte in it.
    #[error("a name holds a slash or a NUL byte")]
    Separator,
    /// It is longer than [`MAX_NAME_BYTES`].
    #[error("a name is {len_bytes} bytes long, the limit is {MAX_NAME_BYTES}")]
    TooLong {
        /// Its length.
        len_bytes: usize,
    },
}

impl<'a> Name<'a> {
    /// Takes bytes as a name. Untrusted: `bytes` may come from any tree.
    ///
    /// # Errors
    ///
    /// Says which rule the bytes break.
    pub fn new(bytes: &'a [u8]) -> Result<Self, BadName> {
        match bytes {
            b"" => Err(BadName::Empty),
            b"." | b".." => Err(BadName::Dots),
            _ if bytes.len() > MAX_NAME_BYTES => Err(BadName::TooLong { len_bytes: bytes.len() }),
            _ if bytes.iter().any(|&byte| byte == b'/' || byte == 0) => Err(BadName::Separator),
            _ => Ok(Self(bytes)),
        }
    }

    /// The name's bytes.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\"", self.0.escape_ascii())
    }
}

impl From<BadName> for io::Error {
    fn from(error: BadName) -> Self {
        Self::new(io::ErrorKind::InvalidInput, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        assert_eq!(Name::new(b""), Err(BadName::Empty));
        assert_eq!(Name::new(b"."), Err(BadName::Dots));
        assert_eq!(Name::new(b".."), Err(BadName::Dots));
        assert_eq!(Name::new(b"a/b"), Err(BadName::Separator));
        assert_eq!(Name::new(b"/"), Err(BadName::Separator));
        assert_eq!(Name::new(b"a\0"), Err(BadName::Separator));
        assert_eq!(Name::new(&[b'x'; 256]), Err(BadName::TooLong { len_bytes: 256 }));
    }

    #[test]
    fn odd_but_harmless_names_are_taken() {
        for bytes in [b"...".as_slice(), b"\n", b"-rf", b" ", b"\xff\xfe", &[b'x'; 255]] {
            assert_eq!(Name::new(bytes).map(Name::as_bytes), Ok(bytes));
        }
        assert_eq!(format!("{:?}", Name::new(b"a\n\xff").expect("a name")), r#""a\n\xff""#);
    }

    proptest! {
        #[test]
        fn a_name_is_one_normal_component(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            use std::os::unix::ffi::OsStrExt;
            let path = std::path::Path::new(std::ffi::OsStr::from_bytes(&bytes));
            let normal = path.components().count() == 1
                && path.file_name().map(OsStrExt::as_bytes) == Some(bytes.as_slice())
                && bytes.len() <= MAX_NAME_BYTES
                && !bytes.contains(&0);
            prop_assert_eq!(Name::new(&bytes).is_ok(), normal);
        }
    }
}
