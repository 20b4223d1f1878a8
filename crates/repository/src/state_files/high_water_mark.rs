//! A high-water mark: a log position that only grows, kept as the name of the one file in a folder.
//!
//! The name is all that counts, so that no half-written or rotten file can take back what was said. Names beyond
//! [`HIGHEST`] are not ours: no repository gets that far, and one stray file must not leave it without positions.

use holdall_format::record_file;
use holdall_protocol::RepositoryError;

use crate::storage::Stored;
use crate::storage::layout::number_of;

/// The highest mark that counts: 2^30 writers take 2^32 positions each to get there.
const HIGHEST: u64 = 1 << 62;

/// The position that is kept in `folder`; 0 if none is.
pub(crate) fn read(folder: &Stored) -> Result<u64, RepositoryError> {
    let names = folder.names()?;
    let numbers = names.iter().filter_map(|name| name.to_str().and_then(number_of));
    Ok(numbers.filter(|number| *number <= HIGHEST).max().unwrap_or_default())
}

/// Keeps `position` in `folder`, in the file of that name with `text`, unless a later one is kept there. It
/// is durable when this returns.
pub(crate) fn advance(folder: &Stored, position: u64, text: &[u8]) -> Result<(), RepositoryError> {
    let before = read(folder)?;
    if before >= position {
        return Ok(());
    }
    let path = folder.join(record_file(position));
    match path.put_new(text) {
        // A full disk has room for a name, and what is stored there can be read.
        Err(RepositoryError::NoRoom { .. }) => path.put_name()?,
        published => drop(published?),
    }
    // A lower mark does no harm, nor does a folder of that name.
    if before > 0 {
        let _ = folder.join(record_file(before)).remove();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::layout::Layout;
    use crate::storage::publish::make_dir;

    #[test]
    fn the_highest_is_kept_alone() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        layout.folders().iter().for_each(|folder| make_dir(folder).unwrap());
        let folder = layout.positions();
        assert_eq!(read(&folder).unwrap(), 0);
        for (raised, kept) in [(7, 7), (7, 7), (3, 7), (1 << 40, 1 << 40)] {
            advance(&folder, raised, b"text").unwrap();
            assert_eq!(read(&folder).unwrap(), kept);
            assert_eq!(folder.names().unwrap().len(), 1);
        }
        // Neither a folder in the place of a mark nor a stray name keeps it from rising.
        std::fs::create_dir(dir.path().join("positions").join(record_file(1 << 41))).unwrap();
        for stray in [HIGHEST + 1, u64::MAX] {
            folder.join(record_file(stray)).put_name().unwrap();
        }
        advance(&folder, 1 << 42, b"text").unwrap();
        assert_eq!(read(&folder).unwrap(), 1 << 42);
    }
}
