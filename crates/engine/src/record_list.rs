//! Asking for the stored records of a repository: all of them, or those that this machine lacks.

use holdall_format::record_file;
use holdall_protocol::{
    ListedRecord, MAX_RECORDS, RecordQuery, RecordsDigest, Repository, RepositoryError,
};

use crate::record_cache::RecordCache;
use crate::record_mend::sound_in_place_of_damaged;
use crate::{Access, EngineError};

/// All records, as this machine knows them.
pub(crate) struct Known {
    /// In the order of the log.
    pub(crate) records: Vec<ListedRecord>,
    /// Log positions of those that were damaged there, and that this machine had and stored again.
    pub(crate) put_back: Vec<u64>,
}

/// Lists all records, of which those that this machine has seen are not sent again.
///
/// # Errors
/// As for [`each_record_behind`].
pub(crate) fn list_by_cache(access: &Access) -> Result<Known, EngineError> {
    let cache = RecordCache::within(&access.cache);
    let known = cache.load();
    let mut records = known.clone();
    if !ask_behind(access, &mut records)? {
        return Ok(Known { records, put_back: Vec::new() });
    }
    let stand_ins = sound_in_place_of_damaged(&known, &records);
    let mut sound = records.clone();
    put_in(&mut sound, stand_ins.iter());
    cache.replace(&sound);
    // One that can not be stored is damaged still, and this machine goes on having it.
    let is_stored = |one: &&ListedRecord| access.repository.put_back_record(&one.stored).is_ok();
    let stored: Vec<&ListedRecord> = stand_ins.iter().filter(is_stored).collect();
    put_in(&mut records, stored.iter().copied());
    let put_back = stored.iter().map(|one| one.position).collect();
    Ok(Known { records, put_back })
}

/// Has records take the places of those under the same log positions.
fn put_in<'a>(records: &mut [ListedRecord], others: impl Iterator<Item = &'a ListedRecord>) {
    for other in others {
        let at = records.binary_search_by_key(&other.position, |record| record.position);
        if let Some(record) = at.ok().and_then(|at| records.get_mut(at)) {
            *record = other.clone();
        }
    }
}

/// Asks for the records behind those that are known, or for all if the repository has others. Tells
/// whether they are others now than they were.
fn ask_behind(access: &Access, records: &mut Vec<ListedRecord>) -> Result<bool, EngineError> {
    let seen = records.len();
    let last = records.last().map_or(0, |last| last.position);
    let known = (seen > 0).then(|| RecordsDigest::of(records.iter()));
    let mut keep = |listed| {
        records.push(listed);
        Ok(())
    };
    match each_record_behind(access.repository.as_ref(), last, known, &mut keep) {
        Err(EngineError::Repository(RepositoryError::OtherRecords)) => {
            *records = list_all(access)?;
            Ok(true)
        }
        // An empty list is kept too: what this machine publishes is added to it.
        asked => asked.map(|()| seen == 0 || records.len() > seen),
    }
}

pub(crate) fn list_all(access: &Access) -> Result<Vec<ListedRecord>, EngineError> {
    let mut records = Vec::new();
    each_record_behind(access.repository.as_ref(), 0, None, |listed| {
        records.push(listed);
        Ok(())
    })?;
    Ok(records)
}

/// Asks for the records behind a log position, in order, if those up to there are the known ones.
///
/// # Errors
/// [`EngineError::Damaged`] for a list that is not in the order of the log;
/// [`RepositoryError::OtherRecords`]; if the repository can not be asked; what `take` fails with.
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
