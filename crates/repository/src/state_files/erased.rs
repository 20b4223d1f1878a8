//! What stays of a repository that was erased.

use holdall_format::limits::WRAPPING_SET_MAX_BYTES;
use holdall_format::{
    ERASED_FILE, ERASED_MAX_BYTES, Erased, RepositoryConfig, RepositoryId, SPARE_MAX_BYTES, Spare,
    WrappingSet,
};
use holdall_protocol::RepositoryError;

use crate::storage::Stored;
use crate::storage::layout::{Layout, generations_in};
use crate::storage::publish::read_limited;
use crate::storage::retry::split_process_errors;

const CONFIG_MAX_BYTES: u64 = 4 << 10;

/// Reads it; `None` where nothing says that it was, signed by whom it names.
pub(crate) fn read_erased(layout: &Layout) -> Result<Option<Erased>, RepositoryError> {
    let bytes = read_limited(&layout.root().join(ERASED_FILE), ERASED_MAX_BYTES);
    let bytes = split_process_errors(bytes)?.ok().flatten();
    Ok(bytes.and_then(|bytes| Erased::decode(&String::from_utf8_lossy(&bytes)).ok()))
}

/// The same, if it is the repository that lies there still, as far as anything of that says which one it is.
///
/// # Errors
/// [`RepositoryError::Refused`] if it is another one's.
pub(crate) fn read_own_erased(layout: &Layout) -> Result<Option<Erased>, RepositoryError> {
    let Some(erased) = read_erased(layout)? else { return Ok(None) };
    let is_own = match config(layout)? {
        Some(config) => (config.repository, config.owner) == (erased.repository, erased.owner),
        None => {
            let of_keys = repositories_of_keys(layout)?;
            of_keys.is_empty() || of_keys.contains(&erased.repository)
        }
    };
    if is_own {
        return Ok(Some(erased));
    }
    let reason = format!(
        "{}/{ERASED_FILE} is of another repository than what lies there: move it away, and holdall-repository if that \
         came with it",
        layout.place()
    );
    Err(RepositoryError::Refused { reason })
}

fn config(layout: &Layout) -> Result<Option<RepositoryConfig>, RepositoryError> {
    let bytes = read(&layout.config(), CONFIG_MAX_BYTES)?;
    Ok(bytes.and_then(|bytes| RepositoryConfig::decode_signed(&bytes).ok()))
}

/// Whose keys lie there, sealed.
fn repositories_of_keys(layout: &Layout) -> Result<Vec<RepositoryId>, RepositoryError> {
    let mut found = Vec::new();
    for generation in split_process_errors(generations_in(&layout.spares()))?.unwrap_or_default() {
        let bytes = read(&layout.spare_of(generation), SPARE_MAX_BYTES as u64)?;
        let spare = bytes.and_then(|bytes| Spare::decode(&bytes).ok());
        found.extend(spare.map(|spare| spare.config.repository));
    }
    for generation in split_process_errors(generations_in(&layout.wrappings()))?.unwrap_or_default()
    {
        let bytes = read(&layout.wrappings_of(generation), WRAPPING_SET_MAX_BYTES as u64)?;
        let set = bytes.and_then(|bytes| WrappingSet::decode_signed(&bytes).ok());
        found.extend(set.map(|set| set.repository));
    }
    Ok(found)
}

/// What can be read of a file.
fn read(file: &Stored, most_bytes: u64) -> Result<Option<Vec<u8>>, RepositoryError> {
    Ok(split_process_errors(file.read_limited(most_bytes))?.ok().flatten())
}
