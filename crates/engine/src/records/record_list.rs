//! Asking for the stored records of a repository: all of them, or those that this machine lacks.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::path::Path;

use holdall_format::{RecordHash, RepositoryId, Tombstone, record_file};
use holdall_protocol::{
    ListedRecord, MAX_RECORDS, RecordQuery, RecordsDigest, Repository, RepositoryError,
};

use crate::cache::record_cache::RecordCache;
use crate::records::gone::{GoneRecord, gone_among, head_of};
use crate::records::sound_records::{at, is_sound, sound_in_place_of_damaged};
use crate::{EngineError, UnlockedRepository};

/// All records, as this machine knows them.
pub(crate) struct Known {
    /// In the order of the log.
    pub(crate) records: Vec<ListedRecord>,
    /// Those that were damaged or gone there, and that this machine had and stored again.
    pub(crate) put_back: Vec<PutBack>,
    /// Those that this machine has seen, and that are still gone.
    pub(crate) gone: Vec<GoneRecord>,
}

/// A record or a tombstone that was damaged or gone in the repository, and that this machine had and stored again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutBack {
    /// Its file in the repository.
    pub file: String,
    /// Its id, if nothing in the repository told that it was gone. Then more may be gone that nobody here has seen.
    pub untold: Option<RecordHash>,
}

/// Lists all records, of which those that this machine has seen are not sent again.
///
/// # Errors
/// As for [`each_record_behind`].
pub(crate) fn list_by_cache(access: &UnlockedRepository) -> Result<Known, EngineError> {
    let cache = RecordCache::within(&access.cache);
    let mut records = cache.load();
    let seen = records.len();
    match ask_behind(access, &mut records) {
        Err(EngineError::Repository(RepositoryError::OtherRecords)) => {
            return list_anew(access, &cache, &records);
        }
        asked => asked?,
    }
    // An empty list is kept too: what this machine publishes is added to it.
    if seen == 0 || records.len() > seen {
        cache.replace(&records);
    }
    Ok(Known { records, put_back: Vec::new(), gone: Vec::new() })
}

/// Lists all records where the repository has others than those that are known. Known ones that are sound where the
/// repository's are damaged or gone stay known, and are stored there again.
fn list_anew(
    access: &UnlockedRepository,
    cache: &RecordCache,
    known: &[ListedRecord],
) -> Result<Known, EngineError> {
    let (repository, id) = (access.repository.as_ref(), access.config.repository);
    let mut records = list_records(repository)?;
    let damaged = sound_in_place_of_damaged(known, &records);
    let mut gone = gone_among(repository, id, known, &records)?;
    let lost = lost_tombstones(known, &records);
    let offered = damaged.iter().cloned().chain(gone.iter().map(GoneRecord::listed));
    let offered = offered.chain(lost.iter().cloned()).collect();
    let refusals = RefCell::new(BTreeMap::new());
    // One that is refused stays known: the reason may pass, and nobody else may have it.
    let offer = |record: &ListedRecord| {
        let put_back = repository.put_back_record(&record.stored);
        if let Err(RepositoryError::Refused { reason }) = &put_back {
            refusals.borrow_mut().insert(record.position, reason.clone());
        }
        Ok::<_, Infallible>(put_back.is_ok())
    };
    let Ok(taken) = offer_in_turn(offered, offer);
    taken.iter().for_each(|record| put_in(&mut records, record));
    gone.iter_mut().for_each(|gone| gone.refusal = refusals.borrow().get(&gone.position).cloned());
    let (back, gone): (Vec<_>, Vec<_>) =
        gone.into_iter().partition(|gone| taken.contains(&gone.listed()));
    let untold = |position| {
        let found = back.iter().find(|gone| gone.position == position && !gone.is_followed);
        found.map(|gone| gone.id)
    };
    let put_back = taken
        .iter()
        .map(|record| PutBack { file: file_of(record), untold: untold(record.position) })
        .collect();
    let mut kept = records.clone();
    damaged.iter().for_each(|record| put_in(&mut kept, record));
    kept.extend(gone.iter().map(GoneRecord::listed));
    kept.extend(lost.into_iter().filter(|lost| at(&records, lost.position).is_err()));
    kept.sort_by_key(|record| record.position);
    cache.replace(&kept);
    Ok(Known { records, put_back, gone })
}

/// Has this machine's cache know the tombstones of the records that it has.
///
/// # Errors
/// If the records cannot be listed.
pub fn remember_tombstones(access: &UnlockedRepository) -> Result<(), EngineError> {
    let cache = RecordCache::within(&access.cache);
    let mut known = cache.load();
    if known.is_empty() {
        return Ok(());
    }
    each_record_behind(access.repository.as_ref(), 0, None, |listed| {
        match at(&known, listed.position) {
            Ok(at) if Tombstone::is_begun_by(&listed.stored) => known[at] = listed,
            _ => {}
        }
        Ok(())
    })?;
    cache.replace(&known);
    Ok(())
}

/// The known tombstones in whose place nothing sound is listed, and whose records are missed there. They stay known, so that
/// nothing brings back what was forgotten.
pub(crate) fn lost_tombstones(
    known: &[ListedRecord],
    listed: &[ListedRecord],
) -> Vec<ListedRecord> {
    let heads = listed.iter().filter_map(head_of);
    let missed: HashSet<RecordHash> = heads.map(|(_, head, _)| head.previous).collect();
    let is_lost = |known: &&ListedRecord| {
        Tombstone::is_begun_by(&known.stored)
            && at(listed, known.position).map_or(true, |at| !is_sound(&listed[at]))
            && head_of(known).is_some_and(|(id, ..)| missed.contains(&id))
    };
    known.iter().filter(is_lost).cloned().collect()
}

/// The records that are gone from the repository of that id, of those that `cache`, its folder of caches, knows. It
/// takes no key.
///
/// # Errors
/// If the records cannot be listed, or what is stored cannot be asked for.
pub fn gone_records(
    cache: &Path,
    repository: &dyn Repository,
    id: RepositoryId,
) -> Result<Vec<GoneRecord>, EngineError> {
    let known = RecordCache::within(cache).load();
    gone_among(repository, id, &known, &list_records(repository)?)
}

/// Offers records to be put back, one at a time: from the last to the first, since what follows a record shows that it
/// was here; and those that were not taken from the first to the last, since each may be the next of its chain. Gives
/// those that were taken, of each log position one.
///
/// # Errors
/// What `offer` fails with.
pub(crate) fn offer_in_turn<E>(
    mut offered: Vec<ListedRecord>,
    offer: impl Fn(&ListedRecord) -> Result<bool, E>,
) -> Result<Vec<ListedRecord>, E> {
    offered.sort_by_key(|record| Reverse(record.position));
    let mut taken: Vec<ListedRecord> = Vec::new();
    for _ in 0..2 {
        let mut left = Vec::new();
        for record in offered {
            if taken.iter().any(|other| other.position == record.position) {
                continue;
            }
            match offer(&record)? {
                true => taken.push(record),
                false => left.push(record),
            }
        }
        left.reverse();
        offered = left;
    }
    Ok(taken)
}

/// The file of a record or a tombstone in the repository.
pub(crate) fn file_of(listed: &ListedRecord) -> String {
    let folder = if Tombstone::is_begun_by(&listed.stored) { "tombstones" } else { "records" };
    format!("{folder}/{}", record_file(listed.position))
}

/// Has a record take the place of the one under the same log position.
pub(crate) fn put_in(records: &mut Vec<ListedRecord>, record: &ListedRecord) {
    match at(records, record.position) {
        Ok(at) => records[at] = record.clone(),
        Err(at) => records.insert(at, record.clone()),
    }
}

/// Asks for the records behind those that are known.
///
/// # Errors
/// [`RepositoryError::OtherRecords`] if the repository has others than these.
fn ask_behind(
    access: &UnlockedRepository,
    records: &mut Vec<ListedRecord>,
) -> Result<(), EngineError> {
    let last = records.last().map_or(0, |last| last.position);
    let known = (!records.is_empty()).then(|| RecordsDigest::of(records.iter()));
    each_record_behind(access.repository.as_ref(), last, known, |listed| {
        records.push(listed);
        Ok(())
    })
}

pub(crate) fn list_records(repository: &dyn Repository) -> Result<Vec<ListedRecord>, EngineError> {
    let mut records = Vec::new();
    each_record_behind(repository, 0, None, |listed| {
        records.push(listed);
        Ok(())
    })?;
    Ok(records)
}

/// Asks for the records behind a log position, in order, if those up to there are the known ones.
///
/// # Errors
/// [`EngineError::Damaged`] for a list that is not in the order of the log;
/// [`RepositoryError::OtherRecords`]; if the repository cannot be asked; what `take` fails with.
pub fn each_record_behind(
    repository: &dyn Repository,
    mut after_position: u64,
    mut known: Option<RecordsDigest>,
    mut take: impl FnMut(ListedRecord) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    loop {
        let query = RecordQuery { after_position, limit: MAX_RECORDS, known: known.take() };
        let page = repository.records(&query)?;
        if page.is_empty() {
            return Ok(());
        }
        for listed in page {
            if listed.position <= after_position {
                let what = format!("record {}", record_file(listed.position));
                return Err(EngineError::damaged(what, "it is not in the order of the log"));
            }
            after_position = listed.position;
            take(listed)?;
        }
    }
}
