//! A log position that only rises, kept as the name of the one file in a folder.
//!
//! The name is all that counts, so that no half-written or rotten file can take back what was said.

use holdall_format::record_file;
use holdall_protocol::RepositoryError;
use holdall_sys::PathBeneath;

use crate::layout::{Layout, number_of};
use crate::publish::{make_empty, names_in, publish, remove};

/// The position that is kept in `folder`; 0 if none is.
pub(crate) fn highest(folder: &PathBeneath) -> Result<u64, RepositoryError> {
    let names = names_in(folder)?;
    let numbers = names.iter().filter_map(|name| name.to_str().and_then(number_of));
    Ok(numbers.max().unwrap_or_default())
}

/// Keeps `position` in `folder`, in the file of that name with `text`, unless a later one is kept there. It
/// is durable when this returns.
pub(crate) fn raise(
    layout: &Layout,
    folder: &PathBeneath,
    position: u64,
    text: &[u8],
) -> Result<(), RepositoryError> {
    let before = highest(folder)?;
    if before >= position {
        return Ok(());
    }
    let path = folder.join(record_file(position));
    match publish(&layout.tmp(), &path, text) {
        // A full disk has room for a name, and what is stored there can be read.
        Err(RepositoryError::NoRoom { .. }) => make_empty(&path)?,
        published => drop(published?),
    }
    if before == 0 { Ok(()) } else { remove(&folder.join(record_file(before))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::make_dir;

    #[test]
    fn the_highest_is_kept_alone() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        layout.folders().iter().for_each(|folder| make_dir(folder).unwrap());
        let folder = layout.positions();
        assert_eq!(highest(&folder).unwrap(), 0);
        for (raised, kept) in [(7, 7), (7, 7), (3, 7), (1 << 40, 1 << 40)] {
            raise(&layout, &folder, raised, b"text").unwrap();
            assert_eq!(highest(&folder).unwrap(), kept);
            assert_eq!(names_in(&folder).unwrap().len(), 1);
        }
        make_empty(&folder.join(record_file(u64::MAX))).unwrap();
        assert_eq!(highest(&folder).unwrap(), u64::MAX);
    }
}
