//! What may have changed since a snapshot: the places that a backup looks at instead of walking all.
//!
//! Whoever watched the sources promises that everything below them is as that snapshot has it, except
//! what lies in these places. The engine does not check that promise. It only checks that the
//! snapshot is the one that the run builds on.
//!
//! Three things nobody has to watch, as the engine looks there in every run: what is mounted below a
//! source, what was not settled when that snapshot was made, and what had several names then. A file that
//! had one name and got another one has to show in the folder of either. Where rules change that lie in a
//! folder, which is in a `.holdallignore`, the place has to be deep.
//!
//! Handed from process to process as a file:
//!
//! ```text
//! | "holdall changes 1\n" | id of the snapshot, 64 hexadecimal digits | "\n" | per place: "-" or "+" for a deep one | path | NUL |
//! ```

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use holdall_format::RecordHash;

use crate::EngineError;

const MAGIC: &[u8] = b"holdall changes 1\n";
/// Hexadecimal digits of a snapshot's id.
const ID_DIGITS: usize = 2 * RecordHash::LEN;
const FLAT: u8 = b'-';
const DEEP: u8 = b'+';

/// What may have changed since a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// The snapshot of this series that the knowledge starts from.
    pub since: RecordHash,
    /// Where something may have changed since that snapshot's run began its walk, in ascending order.
    pub places: Vec<Place>,
}

/// A directory in which something may have changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its absolute path, as the sources are named: what lies directly in it may have changed, and its own
    /// metadata.
    pub directory: PathBuf,
    /// Whether anything below it may have changed.
    pub is_deep: bool,
}

impl Changes {
    /// The bytes of a file that hands them on.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = [MAGIC, self.since.to_string().as_bytes(), b"\n"].concat();
        for place in &self.places {
            bytes.push(if place.is_deep { DEEP } else { FLAT });
            bytes.extend_from_slice(place.directory.as_os_str().as_bytes());
            bytes.push(0);
        }
        bytes
    }

    /// Reads what [`Changes::to_bytes`] gave.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, EngineError> {
        Self::read(bytes).ok_or_else(|| EngineError::Damaged {
            what: "the list of changes".to_owned(),
            reason: "it is not one that this version of holdall writes".to_owned(),
        })
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (id, rest) = bytes.strip_prefix(MAGIC)?.split_at_checked(ID_DIGITS)?;
        let since = std::str::from_utf8(id).ok()?.parse().ok()?;
        let mut places = Vec::new();
        let mut rest = rest.strip_prefix(b"\n")?;
        while !rest.is_empty() {
            let end = rest.iter().position(|&byte| byte == 0)?;
            let (place, behind) = rest.split_at(end);
            places.push(Place::read(place)?);
            rest = behind.get(1..)?;
        }
        Some(Self { since, places })
    }
}

impl Place {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (kind, path) = bytes.split_first()?;
        let is_deep = match *kind {
            FLAT => false,
            DEEP => true,
            _ => return None,
        };
        let directory = PathBuf::from(OsStr::from_bytes(path));
        directory.is_absolute().then_some(Self { directory, is_deep })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn changes() -> Changes {
        let place = |directory: &[u8], is_deep| Place {
            directory: PathBuf::from(OsStr::from_bytes(directory)),
            is_deep,
        };
        let places = vec![place(b"/", false), place(b"/a\n\xff", true), place(b"/a/b", false)];
        Changes { since: RecordHash::from_bytes([7; 32]), places }
    }

    #[test]
    fn what_was_written_is_read() {
        assert_eq!(Changes::from_bytes(&changes().to_bytes()).unwrap(), changes());
        let none = Changes { places: Vec::new(), ..changes() };
        assert_eq!(Changes::from_bytes(&none.to_bytes()).unwrap(), none);
    }

    #[test]
    fn a_file_that_is_cut_or_has_something_else_is_refused() {
        let whole = changes().to_bytes();
        let ends_with_a_place = |len: usize| len > MAGIC.len() + ID_DIGITS && whole[len - 1] == 0;
        for len in 0..whole.len() {
            let is_list = ends_with_a_place(len) || len == MAGIC.len() + ID_DIGITS + 1;
            assert_eq!(Changes::from_bytes(&whole[..len]).is_ok(), is_list, "cut after {len}");
        }
        for place in [&b"/a\0"[..], b"-a\0", b"-\0", b"\0"] {
            let head = &whole[..MAGIC.len() + ID_DIGITS + 1];
            assert!(Changes::from_bytes(&[head, place].concat()).is_err(), "{place:?}");
        }
    }

    proptest! {
        #[test]
        fn anything_else_gives_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Changes::from_bytes(&bytes);
            let head = &changes().to_bytes()[..MAGIC.len() + ID_DIGITS + 1];
            let _ = Changes::from_bytes(&[head, &bytes].concat());
        }
    }
}
