//! Giving a repository back the records that are damaged or gone there: from this machine's cache, from what it kept of its
//! newest snapshot, from a second repository that is a copy.
//!
//! A record and its receipt prove themselves by their signatures, and a receipt says at which log position its record
//! lies. So it does not matter where the bytes come from.

use bytes::Bytes;
use holdall_format::{RepositoryId, StoredRecord, record_file};
use holdall_protocol::{ListedRecord, OwnedRepository, Repair, RepositoryError};

use crate::cache::record_cache::RecordCache;
use crate::records::gone::{GoneRecord, gone_among};
use crate::records::record_list::{list_records, offer_in_turn};
use crate::records::sound_records::{at, sound_in_place_of_damaged};
use crate::{Access, EngineError};

/// Stores records again that are damaged or gone in the repository, as far as this machine's cache has them, or `known`,
/// or `second`, and says which. With `dry_run` says only which there are; not all of those may be taken.
///
/// # Errors
/// If the records cannot be listed, or one cannot be stored; those before it are.
pub fn put_back_records(
    access: &Access,
    known: Vec<Bytes>,
    second: Option<&Access>,
    dry_run: bool,
) -> Result<Vec<Repair>, EngineError> {
    let listed = list_records(access.repository.as_ref())?;
    let is_there = |other: &ListedRecord| {
        at(&listed, other.position).is_ok_and(|at| listed[at].stored == other.stored)
    };
    let others = others(access, known, second)?.into_iter().filter(|other| !is_there(other));
    let ours = ours(others.map(|other| other.stored), &access.config.repository);
    let gone = gone_among(access.repository.as_ref(), access.config.repository, &ours, &listed)?;
    let mut offered = sound_in_place_of_damaged(&ours, &listed);
    offered.extend(gone.iter().map(GoneRecord::listed));
    // Two may have had one position, in copies that went on by themselves: the repository takes the right one.
    let taken = offer_in_turn(offered, |record| match dry_run {
        true => Ok(true),
        false => match access.repository.put_back_record(&record.stored) {
            // Something else is in its place, such as a tombstone that cannot be read, or it was given up: that is
            // told as what it is.
            Err(RepositoryError::Refused { .. }) => Ok(false),
            put_back => put_back.map(|()| true),
        },
    })?;
    Ok(taken.iter().map(|record| repair_of(record.position)).collect())
}

/// Stores the record of that log position again, for which the `owner` vouches: what this machine's cache has of it, or
/// `known`; where there is a `second`, what that has.
///
/// # Errors
/// [`EngineError::NoRecord`] if there is none, or several; if the repository refuses it.
pub fn put_back_record_at(
    access: &Access,
    owner: &dyn OwnedRepository,
    position: u64,
    known: Vec<Bytes>,
    second: Option<&Access>,
    dry_run: bool,
) -> Result<Repair, EngineError> {
    let all = match second {
        Some(second) => list_records(second.repository.as_ref())?,
        None => others(access, known, None)?,
    };
    let here = all.into_iter().filter(|record| record.position == position);
    let mut found = ours(here.map(|record| record.stored), &access.config.repository);
    found.dedup_by_key(|record| record.stored.clone());
    match &found[..] {
        [one] if dry_run => Ok(repair_of(one.position)),
        [one] => {
            owner.vouch_for_record(&one.stored)?;
            Ok(repair_of(one.position))
        }
        [] => Err(no_record(
            position,
            "this computer does not know it; name a copy of the repository with --from",
        )),
        _ => Err(no_record(
            position,
            "two had this place; name the copy of the repository that has the right one with --from",
        )),
    }
}

fn no_record(position: u64, reason: &'static str) -> EngineError {
    EngineError::NoRecord { file: file_of(position), reason }
}

/// What this machine knows of the repository's records, and what `second` has.
fn others(
    access: &Access,
    known: Vec<Bytes>,
    second: Option<&Access>,
) -> Result<Vec<ListedRecord>, EngineError> {
    let mut all = RecordCache::within(&access.cache).load();
    if let Some(second) = second {
        all.extend(list_records(second.repository.as_ref())?);
    }
    all.extend(ours(known.into_iter(), &access.config.repository));
    Ok(all)
}

fn repair_of(position: u64) -> Repair {
    Repair::Copy { file: file_of(position) }
}

fn file_of(position: u64) -> String {
    format!("records/{}", record_file(position))
}

/// The records of a repository among these.
fn ours(all: impl Iterator<Item = Bytes>, repository: &RepositoryId) -> Vec<ListedRecord> {
    let sound = all.filter_map(|bytes| Some((StoredRecord::decode(&bytes).ok()?.receipt, bytes)));
    let ours = sound.filter(|(receipt, _)| receipt.repository == *repository);
    ours.map(|(receipt, stored)| ListedRecord { position: receipt.log_position, stored }).collect()
}
