//! Giving a repository back the records that are damaged or gone there: from this machine's cache, from what it kept of its
//! newest snapshot, from a second repository that is a copy.
//!
//! A record and its receipt prove themselves by their signatures, and a receipt says at which log position its record
//! lies. So it does not matter where the bytes come from.

use std::collections::BTreeSet;

use bytes::Bytes;
use holdall_format::{RepositoryId, StoredRecord, record_file};
use holdall_protocol::{ListedRecord, Repair, RepositoryError};

use crate::cache::record_cache::RecordCache;
use crate::records::record_list::list_all;
use crate::records::sound_records::{at, sound_in_place_of_damaged};
use crate::{Access, EngineError};

/// Stores records again that are damaged or gone in the repository, as far as this machine's cache has them, or `known`,
/// or `second`, and says which.
///
/// # Errors
/// If the records can not be listed, or one can not be stored; those before it are.
pub fn put_back_records(
    access: &Access,
    known: Option<Bytes>,
    second: Option<&Access>,
) -> Result<Vec<Repair>, EngineError> {
    let listed = list_all(access)?;
    let cached = RecordCache::within(&access.cache).load();
    let theirs = second.map_or(Ok(Vec::new()), list_all)?;
    let is_there = |other: &ListedRecord| {
        at(&listed, other.position).is_ok_and(|at| listed[at].stored == other.stored)
    };
    let others = cached.into_iter().chain(theirs).filter(|other| !is_there(other));
    let others = others.map(|other| other.stored).chain(known);
    let mut offered = sound_in_place_of_damaged(&ours(others, &access.config.repository), &listed);
    // What follows a record shows that it was here, and so comes first.
    offered.sort_by_key(|record| std::cmp::Reverse(record.position));
    let (mut repairs, mut done) = (Vec::new(), BTreeSet::new());
    // Two may have had one position, in copies that went on by themselves: the repository takes the right one.
    for sound in offered {
        if done.contains(&sound.position) {
            continue;
        }
        match access.repository.put_back_record(&sound.stored) {
            // Something else is in its place, such as a tombstone that can not be read, or it was given up: that is
            // told as what it is.
            Err(RepositoryError::Refused { .. }) => continue,
            put_back => put_back?,
        }
        done.insert(sound.position);
        let file = format!("records/{}", record_file(sound.position));
        repairs.push(Repair::Copy { file });
    }
    Ok(repairs)
}

/// The records of a repository among these.
fn ours(all: impl Iterator<Item = Bytes>, repository: &RepositoryId) -> Vec<ListedRecord> {
    let sound = all.filter_map(|bytes| Some((StoredRecord::decode(&bytes).ok()?.receipt, bytes)));
    let ours = sound.filter(|(receipt, _)| receipt.repository == *repository);
    ours.map(|(receipt, stored)| ListedRecord { position: receipt.log_position, stored }).collect()
}
