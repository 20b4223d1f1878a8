//! What stays of a repository that was erased.

use holdall_format::{ERASED_FILE, ERASED_MAX_BYTES, Erased};
use holdall_protocol::RepositoryError;

use crate::storage::layout::Layout;
use crate::storage::publish::read_limited;

/// Reads it; `None` where nothing says that it was, signed by whom it names.
pub(crate) fn read_erased(layout: &Layout) -> Result<Option<Erased>, RepositoryError> {
    let bytes = read_limited(&layout.root().join(ERASED_FILE), ERASED_MAX_BYTES)?;
    Ok(bytes.and_then(|bytes| Erased::decode(&String::from_utf8_lossy(&bytes)).ok()))
}
