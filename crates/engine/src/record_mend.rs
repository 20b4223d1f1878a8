//! Giving a repository back the records that are damaged there: from this machine's cache, from what it kept of its
//! newest snapshot, from a second repository that is a copy.
//!
//! A record and its receipt prove themselves by their signatures, and a receipt says at which log position its record
//! lies. So it does not matter where the bytes come from.

use std::collections::BTreeMap;

use bytes::Bytes;
use holdall_format::{RepositoryId, StoredRecord, Tombstone, record_file};
use holdall_protocol::{ListedRecord, Repair, RepositoryError};

use crate::record_cache::RecordCache;
use crate::record_list::list_all;
use crate::{Access, EngineError};

/// Whether what lies at a position is what was stored there: a record with its receipt, or a tombstone.
pub(crate) fn is_sound(listed: &ListedRecord) -> bool {
    match Tombstone::is_begun_by(&listed.stored) {
        true => Tombstone::decode_signed(&listed.stored)
            .is_ok_and(|(tombstone, _)| tombstone.log_position == listed.position),
        false => StoredRecord::decode(&listed.stored)
            .is_ok_and(|stored| stored.receipt.log_position == listed.position),
    }
}

/// Those of the known records that are sound and lie under log positions where what is listed is not.
pub(crate) fn sound_in_place_of_damaged(
    known: &[ListedRecord],
    listed: &[ListedRecord],
) -> Vec<ListedRecord> {
    let find = |listed: &ListedRecord| {
        let at = known.binary_search_by_key(&listed.position, |known| known.position);
        let known = at.ok().and_then(|at| known.get(at))?;
        // Where both are the same nothing is to be chosen, and signatures take time.
        let is_better = known.stored != listed.stored && !is_sound(listed) && is_sound(known);
        is_better.then(|| known.clone())
    };
    listed.iter().filter_map(find).collect()
}

/// Stores records again that are damaged in the repository, as far as this machine's cache has them, or `known`, or
/// `second`, and says which.
///
/// # Errors
/// If the records can not be listed, or one can not be stored; those before it are.
pub fn put_back_records(
    access: &Access,
    known: Option<Bytes>,
    second: Option<&Access>,
) -> Result<Vec<Repair>, EngineError> {
    let mut damaged = list_all(access)?;
    damaged.retain(|listed| !is_sound(listed));
    if damaged.is_empty() {
        return Ok(Vec::new());
    }
    let cached = RecordCache::within(&access.cache).load();
    let theirs = second.map_or(Ok(Vec::new()), list_all)?;
    let all = cached.into_iter().chain(theirs).map(|listed| listed.stored).chain(known);
    let sound = positions_of(all, &access.config.repository);
    let mut repairs = Vec::new();
    for listed in damaged {
        let Some(stored) = sound.get(&listed.position) else { continue };
        match access.repository.put_back_record(stored) {
            // Something else is in its place, such as a tombstone that can not be read: that is told as what it is.
            Err(RepositoryError::Refused { .. }) => continue,
            put_back => put_back?,
        }
        let file = format!("records/{}", record_file(listed.position));
        repairs.push(Repair::Copy { file });
    }
    Ok(repairs)
}

/// The records of a repository among these, by their log positions.
fn positions_of(
    all: impl Iterator<Item = Bytes>,
    repository: &RepositoryId,
) -> BTreeMap<u64, Bytes> {
    let sound = all.filter_map(|bytes| Some((StoredRecord::decode(&bytes).ok()?.receipt, bytes)));
    let ours = sound.filter(|(receipt, _)| receipt.repository == *repository);
    ours.map(|(receipt, bytes)| (receipt.log_position, bytes)).collect()
}
