//! Which places a repository's packs may lie in beside its directory, as its file `places` says, one in a line:
//!
//! ```text
//! holdall places, version 1
//! <the folder that the repository has in each place>
//! <id, 16 hexadecimal digits> <open | draining> <the place's folder>
//! ```
//!
//! A place is a folder with a marker that has its id, so that an empty mount point, or another disk, is never taken for it.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use holdall_format::RepositoryId;
use holdall_protocol::RepositoryError;
use holdall_sys::{PathBeneath, Root};

use crate::storage::place_away::PlaceAway;
use crate::storage::publish::{
    FILE_MODE, damaged, failed, is_hexadecimal, read_limited, rename_no_replace, sync_folder,
};

const TITLE: &[u8] = b"holdall places, version 1";
const MAX_BYTES: u64 = 1 << 20;
const MARKER: &str = "holdall-place";
const MARKER_FRONT: &[u8] = b"holdall place, version 1\n";
const MARKER_MAX_BYTES: u64 = 100;
const ID_DIGITS: usize = 16;

/// A folder on another disk that packs may lie in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackPlace {
    /// 16 hexadecimal digits, which its marker has too.
    pub id: String,
    /// Where it is, if it is mounted.
    pub folder: PathBuf,
    /// Whether it is to be emptied.
    pub is_draining: bool,
}

impl PackPlace {
    /// The place's folder, opened once, so that nothing else comes in its stead.
    ///
    /// # Errors
    /// [`PlaceAway`] if it is not there.
    pub(super) fn open(&self) -> io::Result<PathBeneath> {
        let root = Root::at(&self.folder);
        match id_in(&root) {
            Some(id) if id == self.id => Ok(root),
            _ => Err(io::Error::other(PlaceAway(self.folder.clone()))),
        }
    }

    /// Whether it is there now.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.open().is_ok()
    }
}

/// The id of the place that a folder is; `None` of one that is none, or cannot be read.
#[must_use]
pub fn place_id(folder: &Path) -> Option<String> {
    id_in(&Root::at(folder))
}

fn id_in(root: &PathBeneath) -> Option<String> {
    let text = read_limited(&root.join(MARKER), MARKER_MAX_BYTES).ok()??;
    let id = text.strip_prefix(MARKER_FRONT)?.strip_suffix(b"\n")?;
    String::from_utf8(id.to_vec()).ok().filter(|id| is_id(id))
}

/// Whether a name is that of a place.
pub(super) fn is_id(id: &str) -> bool {
    id.len() == ID_DIGITS && is_hexadecimal(id)
}

/// Makes a folder the place of that id, durably.
///
/// # Errors
/// [`RepositoryError::Refused`] if it is one already; [`RepositoryError::Io`].
pub fn make_place(folder: &Path, id: &str) -> Result<(), RepositoryError> {
    let root = Root::at(folder);
    let (marker, beside) = (root.join(MARKER), root.join(format!(".{MARKER}-{id}")));
    let mut file = beside.create_new(FILE_MODE).map_err(failed("making", &beside))?;
    let text = [MARKER_FRONT, id.as_bytes(), b"\n"].concat();
    let written = file.write_all(&text).and_then(|()| file.sync_all());
    written.map_err(failed("writing", &beside))?;
    if !rename_no_replace(&beside, &marker).map_err(failed("publishing", &marker))? {
        let _ = beside.remove_file();
        let reason = format!("{} is a storage place already", folder.display());
        return Err(RepositoryError::Refused { reason });
    }
    sync_folder(&root)
}

/// What a file `places` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// The folder that the repository has in each: its id.
    pub(crate) folder: RepositoryId,
    /// All of them.
    pub(crate) all: Vec<PackPlace>,
}

impl Places {
    /// Reads the file; `None` where there is none.
    pub(super) fn read(path: &PathBeneath) -> Result<Option<Self>, RepositoryError> {
        let Some(text) = read_limited(path, MAX_BYTES)? else { return Ok(None) };
        let reason = "it does not say in which places packs may lie; the server writes it anew when it starts";
        Self::decode(&text).map(Some).ok_or_else(|| damaged(path, reason))
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut text = [TITLE, b"\n", self.folder.to_string().as_bytes(), b"\n"].concat();
        for place in &self.all {
            let state = if place.is_draining { "draining" } else { "open" };
            text.extend_from_slice(format!("{} {state} ", place.id).as_bytes());
            text.extend_from_slice(place.folder.as_os_str().as_bytes());
            text.push(b'\n');
        }
        text
    }

    fn decode(text: &[u8]) -> Option<Self> {
        let mut lines = text.strip_suffix(b"\n")?.split(|byte| *byte == b'\n');
        (lines.next()? == TITLE).then_some(())?;
        let folder = std::str::from_utf8(lines.next()?).ok()?.parse().ok()?;
        let all = lines.map(decode_line).collect::<Option<_>>()?;
        Some(Self { folder, all })
    }
}

fn decode_line(line: &[u8]) -> Option<PackPlace> {
    let mut parts = line.splitn(3, |byte| *byte == b' ');
    let id = String::from_utf8(parts.next()?.to_vec()).ok().filter(|id| is_id(id))?;
    let is_draining = match parts.next()? {
        b"open" => false,
        b"draining" => true,
        _ => return None,
    };
    let folder = PathBuf::from(OsStr::from_bytes(parts.next()?));
    folder.is_absolute().then_some(PackPlace { id, folder, is_draining })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(id: &str, folder: &str, is_draining: bool) -> PackPlace {
        PackPlace { id: id.to_owned(), folder: PathBuf::from(folder), is_draining }
    }

    #[test]
    fn places_read_back_and_nothing_else_is_taken_for_them() {
        let all = vec![
            place("0123456789abcdef", "/mnt/large disk", false),
            place("fedcba9876543210", "/srv/old", true),
        ];
        let folder = RepositoryId::from_bytes([7; 16]);
        for places in [Places { folder, all }, Places { folder, all: Vec::new() }] {
            assert_eq!(Places::decode(&places.encode()).unwrap(), places);
        }
        let front = format!("holdall places, version 1\n{folder}\n");
        for bad in [
            "".to_owned(),
            "holdall places, version 1\n".to_owned(),
            front.replace('1', "2"),
            format!("{front}0123456789abcdef open relative\n"),
            format!("{front}0123456789abcdef shut /mnt\n"),
            format!("{front}0123456789abcdeF open /mnt\n"),
            format!("{front}\n"),
        ] {
            assert!(Places::decode(bad.as_bytes()).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn a_folder_is_a_place_only_with_its_own_marker() {
        let folder = tempfile::tempdir().unwrap();
        let id = "0123456789abcdef";
        let is_there = || place(id, folder.path().to_str().unwrap(), false).is_there();
        assert!(!is_there());
        make_place(folder.path(), id).unwrap();
        assert!(is_there() && place_id(folder.path()).as_deref() == Some(id));
        assert!(matches!(
            make_place(folder.path(), "fedcba9876543210"),
            Err(RepositoryError::Refused { .. })
        ));
        assert!(!place("fedcba9876543210", folder.path().to_str().unwrap(), false).is_there());
    }
}
