//! A high-water mark: a log position that only grows, kept as the name of the one file in a folder.
//!
//! The name is all that counts, so that no half-written or rotten file can take back what was said.

use holdall_format::record_file;
use holdall_protocol::RepositoryError;

use crate::storage::Stored;
use crate::storage::layout::number_of;

/// The position that is kept in `folder`; 0 if none is.
pub(crate) fn read(folder: &Stored) -> Result<u64, RepositoryError> {
    let names = folder.names()?;
    let numbers = names.iter().filter_map(|name| name.to_str().and_then(number_of));
    Ok(numbers.max().unwrap_or_default())
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
    if before == 0 { Ok(()) } else { folder.join(record_file(before)).remove() }
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
        folder.join(record_file(u64::MAX)).put_name().unwrap();
        assert_eq!(read(&folder).unwrap(), u64::MAX);
    }
}
